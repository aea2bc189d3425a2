-- The publisher of each entry of a registry, so that a site's own entries come first. An expansion: programs of the schema before leave it
-- null. Positions are forgotten, so that the next reading of each registry reads all entries.
SET LOCAL lock_timeout = '10s';
ALTER TABLE registry_entry ADD COLUMN publisher TEXT COLLATE "C";
COMMENT ON COLUMN registry_entry.publisher IS 'Site of the publisher that the identifier names; null if it names none.';

DELETE FROM registry_position;
