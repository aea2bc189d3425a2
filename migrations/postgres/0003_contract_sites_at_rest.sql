-- Sites with nothing rest in one row, and the hot table is split by the hash of the name, so that vacuum keeps up with it.
--
-- Rewrites `site`: some seconds a million rows, during which leases wait. Crawlers of schema 2 cannot lease sites at rest:
-- stop them first. Interfaces and indexers of schema 2 go on beside; they do not list sites at rest.
SET LOCAL lock_timeout = '60s';
LOCK TABLE site IN ACCESS EXCLUSIVE MODE;
ALTER TABLE site RENAME TO site_unsplit;
ALTER INDEX site_pkey RENAME TO site_unsplit_pkey;
DROP INDEX site_due;
DROP INDEX site_leased;

-- Columns of eight bytes first: they need no padding then.
CREATE TABLE site (
    next_visit_at_ms BIGINT NOT NULL,
    lease_until_ms BIGINT NOT NULL DEFAULT 0,
    fence BIGINT NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL,
    visits_at_rest INTEGER,
    name TEXT COLLATE "C" NOT NULL,
    lease_owner TEXT,
    packed BYTEA,
    PRIMARY KEY (name)
) PARTITION BY HASH (name);

-- Every lease and every visit rewrites a row and its entry in site_due: vacuum comes early and often. The packed bytes stay
-- in the row, uncompressed; they are a hundred bytes at the most.
DO $$
BEGIN
    FOR part IN 0..15 LOOP
        EXECUTE format(
            'CREATE TABLE site_%s PARTITION OF site FOR VALUES WITH (MODULUS 16, REMAINDER %s) WITH (
                 fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
                 autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.05,
                 autovacuum_vacuum_cost_delay = 1)',
            part, part);
        EXECUTE format('ALTER TABLE site_%s ALTER COLUMN packed SET STORAGE MAIN', part);
    END LOOP;
END
$$;
ALTER TABLE site ALTER COLUMN packed SET STORAGE MAIN;

INSERT INTO site (name, priority, next_visit_at_ms, lease_owner, lease_until_ms, fence)
SELECT name, priority, next_visit_at_ms, lease_owner, lease_until_ms, fence FROM site_unsplit;
DROP TABLE site_unsplit;

CREATE INDEX site_due ON site (priority, next_visit_at_ms) WITH (fillfactor = 85);
CREATE INDEX site_leased ON site (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX site_state_idle ON site_state (COALESCE(last_visit_at_ms, first_seen_at_ms))
    WHERE manifests = 0 AND parked_until_ms IS NULL;

COMMENT ON TABLE site IS 'The hot table: who is due, and who holds it. Narrow, since every lease and every visit rewrites its row; in 16 parts by the hash of the name.';
COMMENT ON COLUMN site.name IS 'Registrable domain, in ASCII.';
COMMENT ON COLUMN site.priority IS 'Class of the lease order, 0 first: 0 asked for, 1 linked, 2 listed, 3 to 5 by rank.';
COMMENT ON COLUMN site.next_visit_at_ms IS 'When the next visit is planned; 9000000000000000 while the owner opts out.';
COMMENT ON COLUMN site.lease_owner IS 'Worker that holds the site; null while nobody does.';
COMMENT ON COLUMN site.lease_until_ms IS 'When the lease ends; 0 while nobody holds it.';
COMMENT ON COLUMN site.fence IS 'Counts the leases; a save with an older fence is refused.';
COMMENT ON COLUMN site.packed IS 'Everything known of a site at rest, which has no rows elsewhere; null while it has.';
COMMENT ON COLUMN site.visits_at_rest IS 'Visits of a site at rest, for the sum of all; null while it has rows elsewhere.';
COMMENT ON INDEX site_due IS 'Leases are taken in this order.';
COMMENT ON INDEX site_leased IS 'Leases of one worker, and how many are out.';
COMMENT ON INDEX site_state_idle IS 'Sites with nothing by their last visit, to be put to rest.';
