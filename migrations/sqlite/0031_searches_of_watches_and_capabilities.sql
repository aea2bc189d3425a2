-- Watches of searches, and how many searches showed each capability of a site with an owner. An expansion: programs of the schema before
-- deliver nothing for a watch of a search, and count for sites alone.

-- The query of GET /search whose results are delivered; null for a watch of a site. The site of a watch of a search is empty.
ALTER TABLE watch ADD COLUMN search TEXT;

-- How many searches showed a capability of a site with an owner, for each day.
CREATE TABLE capability_search_count (
    -- Registrable domain, as in site.
    site TEXT NOT NULL,
    -- Days since 1970-01-01 UTC.
    day INTEGER NOT NULL,
    -- The public id of the capability.
    capability_id TEXT NOT NULL,
    -- Searches whose results had it.
    searches BIGINT NOT NULL,
    PRIMARY KEY (site, day, capability_id)
) WITHOUT ROWID;
-- Days that are no longer kept.
CREATE INDEX capability_search_count_day ON capability_search_count (day);
