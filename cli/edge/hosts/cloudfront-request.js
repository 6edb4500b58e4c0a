/**
 * The viewer request. CloudFront looks for the path in the bucket first, and asks the server for the same path when the
 * bucket has none. So no path but those of the API may reach the bucket: whoever guesses one would be served past the
 * key. And a bucket takes some parameters for orders: only those go along that the server needs.
 */
function handler(event) {
  var request = event.request;
  var query = request.rawQueryString();
  var header = request.headers["x-app-key"];
  var key = header === undefined || header.multiValue !== undefined ? null : header.value;
  var found = mapRequest(foldersFor(key), request.method, request.uri + (query === undefined ? "" : "?" + query), key);
  if (found === "preflight") return { statusCode: 204, statusDescription: "No Content", headers: PREFLIGHT_HEADERS };
  if (found === "origin") return /^\/api\//.test(request.uri) ? request : NOT_FOUND;
  request.uri = found;
  request.querystring = filtersOf(request.querystring, found);
  return request;
}

/** Where there are more keys than a function has room for, the bucket and the server know them. */
function foldersFor(key) {
  var folders = {};
  if (APPS !== null) return APPS;
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(key)) folders[key] = segmentOf(key);
  return folders;
}

/** A name that is a hash tells nobody its value. */
function filtersOf(querystring, file) {
  var kept = {};
  if (file.indexOf("/h-", 1) < 0) return kept;
  Object.keys(querystring).forEach(function (name) {
    if (/^filter\[/.test(decode(name.replace(/\+/g, "%20")) || "")) kept[name] = querystring[name];
  });
  return kept;
}
