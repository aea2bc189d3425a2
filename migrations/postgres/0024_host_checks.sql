-- Daily checks of the hosts that endpoints name: whether the name resolves and a TLS handshake is completed. An expansion: programs of the
-- schema before check no hosts.
CREATE TABLE host_check (
    host TEXT COLLATE "C" PRIMARY KEY,
    site TEXT COLLATE "C" NOT NULL,
    begun_day INTEGER NOT NULL,
    own_day INTEGER,
    history_day INTEGER NOT NULL,
    checked INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    outcome TEXT,
    checked_at_ms BIGINT
);
COMMENT ON TABLE host_check IS 'Daily checks of the hosts that endpoints name.';
COMMENT ON COLUMN host_check.host IS 'The host of endpoints.';
COMMENT ON COLUMN host_check.site IS 'Its registrable domain.';
COMMENT ON COLUMN host_check.begun_day IS 'The day on which the last check began, in days since 1970-01-01 UTC; written before the check.';
COMMENT ON COLUMN host_check.own_day IS 'The last day on which a document named the host whose publisher may use its name; null if none did.';
COMMENT ON COLUMN host_check.history_day IS 'The day of the lowest bit of the next two columns.';
COMMENT ON COLUMN host_check.checked IS 'The days with a check that counts, one bit each.';
COMMENT ON COLUMN host_check.succeeded IS 'The days whose check succeeded, one bit each.';
COMMENT ON COLUMN host_check.outcome IS 'What the last check found: a slug of policy::liveness::HostCheckOutcome; null before the first one ended.';
COMMENT ON COLUMN host_check.checked_at_ms IS 'When the last check ended.';

CREATE INDEX host_check_site ON host_check (site);
COMMENT ON INDEX host_check_site IS 'The hosts of a site.';
