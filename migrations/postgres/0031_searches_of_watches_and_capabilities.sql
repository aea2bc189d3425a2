-- Watches of searches, and how many searches showed each capability of a site with an owner. An expansion: programs of the schema before
-- deliver nothing for a watch of a search, and count for sites alone.
SET LOCAL lock_timeout = '10s';
ALTER TABLE watch ADD COLUMN search TEXT;
COMMENT ON COLUMN watch.search IS 'The query of GET /search whose results are delivered; null for a watch of a site. The site of a watch of a search is empty.';

CREATE TABLE capability_search_count (
    site TEXT COLLATE "C" NOT NULL,
    day INTEGER NOT NULL,
    capability_id TEXT COLLATE "C" NOT NULL,
    searches BIGINT NOT NULL,
    PRIMARY KEY (site, day, capability_id)
);
COMMENT ON TABLE capability_search_count IS 'How many searches showed a capability of a site with an owner, for each day.';
COMMENT ON COLUMN capability_search_count.site IS 'Registrable domain, as in site.';
COMMENT ON COLUMN capability_search_count.day IS 'Days since 1970-01-01 UTC.';
COMMENT ON COLUMN capability_search_count.capability_id IS 'The public id of the capability.';
COMMENT ON COLUMN capability_search_count.searches IS 'Searches whose results had it.';
CREATE INDEX capability_search_count_day ON capability_search_count (day);
COMMENT ON INDEX capability_search_count_day IS 'Days that are no longer kept.';
