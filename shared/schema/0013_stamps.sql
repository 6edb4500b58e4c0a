-- Lists are sorted and filtered by when entries were made and edited as well: what has changed since a moment is what
-- clients that keep a copy ask.

CREATE INDEX entries_by_creation ON precast.entries (content_type_id, created_at DESC, published_at DESC, id)
  WHERE status = 'published';
CREATE INDEX entries_by_edit ON precast.entries (content_type_id, updated_at DESC, published_at DESC, id)
  WHERE status = 'published';
