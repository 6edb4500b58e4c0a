-- The values of the other slots stand behind the key of a slot's index, and not beside it (0010): a filter on one of them is then
-- tested on the tuple of the index as it lies there, and what does not pass is never taken out of it. No tuple is longer for it,
-- and the id before them decides every order.

DROP INDEX precast.entries_by_t1;
CREATE INDEX entries_by_t1 ON precast.entries
  (content_type_id, t1, published_at DESC, id, n1, n2, n3, n4, n5, n6, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND t1 IS NOT NULL;
DROP INDEX precast.entries_by_t2;
CREATE INDEX entries_by_t2 ON precast.entries
  (content_type_id, t2, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND t2 IS NOT NULL;
DROP INDEX precast.entries_by_t3;
CREATE INDEX entries_by_t3 ON precast.entries
  (content_type_id, t3, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND t3 IS NOT NULL;
DROP INDEX precast.entries_by_t4;
CREATE INDEX entries_by_t4 ON precast.entries
  (content_type_id, t4, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t3, t5, t6, t7, t8)
  WHERE status = 'published' AND t4 IS NOT NULL;
DROP INDEX precast.entries_by_t5;
CREATE INDEX entries_by_t5 ON precast.entries
  (content_type_id, t5, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t6, t7, t8)
  WHERE status = 'published' AND t5 IS NOT NULL;
DROP INDEX precast.entries_by_t6;
CREATE INDEX entries_by_t6 ON precast.entries
  (content_type_id, t6, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t7, t8)
  WHERE status = 'published' AND t6 IS NOT NULL;
DROP INDEX precast.entries_by_t7;
CREATE INDEX entries_by_t7 ON precast.entries
  (content_type_id, t7, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t8)
  WHERE status = 'published' AND t7 IS NOT NULL;
DROP INDEX precast.entries_by_t8;
CREATE INDEX entries_by_t8 ON precast.entries
  (content_type_id, t8, published_at DESC, id, n1, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7)
  WHERE status = 'published' AND t8 IS NOT NULL;
DROP INDEX precast.entries_by_n1;
CREATE INDEX entries_by_n1 ON precast.entries
  (content_type_id, n1, published_at DESC, id, n2, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n1 IS NOT NULL;
DROP INDEX precast.entries_by_n2;
CREATE INDEX entries_by_n2 ON precast.entries
  (content_type_id, n2, published_at DESC, id, n1, n3, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n2 IS NOT NULL;
DROP INDEX precast.entries_by_n3;
CREATE INDEX entries_by_n3 ON precast.entries
  (content_type_id, n3, published_at DESC, id, n1, n2, n4, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n3 IS NOT NULL;
DROP INDEX precast.entries_by_n4;
CREATE INDEX entries_by_n4 ON precast.entries
  (content_type_id, n4, published_at DESC, id, n1, n2, n3, n5, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n4 IS NOT NULL;
DROP INDEX precast.entries_by_n5;
CREATE INDEX entries_by_n5 ON precast.entries
  (content_type_id, n5, published_at DESC, id, n1, n2, n3, n4, n6, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n5 IS NOT NULL;
DROP INDEX precast.entries_by_n6;
CREATE INDEX entries_by_n6 ON precast.entries
  (content_type_id, n6, published_at DESC, id, n1, n2, n3, n4, n5, t1, t2, t3, t4, t5, t6, t7, t8)
  WHERE status = 'published' AND n6 IS NOT NULL;
