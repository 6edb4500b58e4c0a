-- Refuses a media address to which no file name can be appended, as imports do (isMediaBaseUrl in shared/api/catalog.ts):
-- one with ?, # or a character that no address may contain. Not checked for the apps that are there already (NOT VALID):
-- such an app stays, and its address must be corrected when the app is next written.

ALTER TABLE precast.apps
  ADD CONSTRAINT media_base_url_has_no_query_fragment_blank_or_control CHECK (
    media_base_url !~ '[\u0001-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff?#]') NOT VALID;
