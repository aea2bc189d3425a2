-- Sites with nothing rest in one row. Crawlers of schema 2 cannot lease sites at rest: stop them first.

-- Everything known of a site at rest, which has no rows elsewhere; null while it has.
ALTER TABLE site ADD COLUMN packed BLOB;
-- Visits of a site at rest, for the sum of all; null while it has rows elsewhere.
ALTER TABLE site ADD COLUMN visits_at_rest INTEGER;
-- Sites with nothing by their last visit, to be put to rest.
CREATE INDEX site_state_idle ON site_state (COALESCE(last_visit_at_ms, first_seen_at_ms))
    WHERE manifests = 0 AND parked_until_ms IS NULL;
