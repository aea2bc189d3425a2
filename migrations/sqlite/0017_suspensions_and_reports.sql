-- Sites that an operator suspended, and what clients report about sites. An expansion: programs of the schema before do not read
-- the tables, and the planned time of a suspended site keeps them from visiting it.

-- Sites that an operator suspended; each stays until it is lifted, and its content is deleted.
CREATE TABLE suspension (
    -- The site.
    site TEXT PRIMARY KEY NOT NULL,
    -- A slug of policy::AbuseReason.
    reason TEXT NOT NULL,
    -- The operator's explanation, shown with the reason; empty where there is none.
    note TEXT NOT NULL,
    -- Since when.
    suspended_at_ms BIGINT NOT NULL
) WITHOUT ROWID;

-- What clients report about sites, without anything about the client; deleted by age and when it is dismissed.
CREATE TABLE report (
    -- In the order of arrival.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- When it arrived.
    at_ms BIGINT NOT NULL,
    -- The site that it is about.
    site TEXT NOT NULL,
    -- The capability that it is about; null if it is about the whole site.
    capability_id TEXT,
    -- A slug of policy::AbuseReason.
    reason TEXT NOT NULL,
    -- The words of the client, at most 1,000 characters; may be empty.
    note TEXT NOT NULL
);
-- Reports of one site, and their number.
CREATE INDEX report_site ON report (site, id);
