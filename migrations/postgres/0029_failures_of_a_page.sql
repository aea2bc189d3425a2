-- How often the next page of a registry has failed. An expansion: programs of the schema before leave it null.
SET LOCAL lock_timeout = '10s';
ALTER TABLE registry_position ADD COLUMN failures INTEGER;
COMMENT ON COLUMN registry_position.failures IS 'How often the page next_page has failed in a row; null if there is no unfinished reading.';
