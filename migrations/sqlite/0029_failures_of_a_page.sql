-- How often the next page of a registry has failed. An expansion: programs of the schema before leave it null.
-- How often the page next_page has failed in a row; null if there is no unfinished reading.
ALTER TABLE registry_position ADD COLUMN failures INTEGER;
