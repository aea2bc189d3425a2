-- The size of the next page of a registry. An expansion: programs of the schema before leave it null.
SET LOCAL lock_timeout = '10s';
ALTER TABLE registry_position ADD COLUMN page_entries INTEGER;
COMMENT ON COLUMN registry_position.page_entries IS 'Number of entries of the page next_page if pages of several sizes were requested, so that entries may be missing; otherwise null.';
