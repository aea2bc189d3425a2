-- Daily checks of the hosts that endpoints name: whether the name resolves and a TLS handshake is completed. An expansion: programs of the
-- schema before check no hosts.
CREATE TABLE host_check (
    -- The host of endpoints.
    host TEXT PRIMARY KEY NOT NULL,
    -- Its registrable domain.
    site TEXT NOT NULL,
    -- The day on which the last check began, in days since 1970-01-01 UTC; written before the check.
    begun_day INTEGER NOT NULL,
    -- The last day on which a document named the host whose publisher may use its name; null if none did.
    own_day INTEGER,
    -- The day of the lowest bit of the two columns below.
    history_day INTEGER NOT NULL,
    -- The days with a check that counts, one bit each.
    checked INTEGER NOT NULL,
    -- The days whose check succeeded, one bit each.
    succeeded INTEGER NOT NULL,
    -- What the last check found: a slug of policy::liveness::HostCheckOutcome; null before the first one ended.
    outcome TEXT,
    -- When the last check ended.
    checked_at_ms BIGINT
) WITHOUT ROWID;
-- The hosts of a site.
CREATE INDEX host_check_site ON host_check (site);
