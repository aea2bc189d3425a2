-- The order of the listings of a site, so that an index returns the first ones, and the clients that made watches, so that each has a share of
-- them. An expansion: programs of the schema before write neither, so that their entries come last and their watches count for nobody.
-- Positions are forgotten, so that the next reading of each registry reads all entries.
SET LOCAL lock_timeout = '10s';
ALTER TABLE registry_entry ADD COLUMN rank INTEGER NOT NULL DEFAULT 2;
COMMENT ON COLUMN registry_entry.rank IS 'Place among the entries about the site: a number of manifest::ListingRank.';
CREATE INDEX registry_entry_order ON registry_entry (site, rank, registry, identifier);
COMMENT ON INDEX registry_entry_order IS 'The first entries about a site.';
-- the new index serves its statements
DROP INDEX registry_entry_site;

DELETE FROM registry_position;

ALTER TABLE watch ADD COLUMN client INTEGER;
COMMENT ON COLUMN watch.client IS 'The client that made it: 16 bits of a keyed hash of its network; null if it was made by a program of the schema before.';
