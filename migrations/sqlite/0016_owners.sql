-- Owners of sites: who proved control of a domain, what the last check found, and how many searches showed their capabilities. An
-- expansion: programs of the schema before check no claim and count nothing.
CREATE TABLE site_claim (
    -- Registrable domain, as in site.
    site TEXT PRIMARY KEY NOT NULL,
    -- When a check was last requested; null where none was.
    asked_at_ms BIGINT,
    -- SHA-256 of the owner's key, hex; null while nobody is the owner.
    key_hash TEXT,
    -- Where the proof is: a slug of policy::claim::Proof.
    proof TEXT,
    -- Since when this key counts.
    since_ms BIGINT,
    -- When the proof was last found.
    proven_at_ms BIGINT,
    -- Since when checks miss the proof; null while it is found.
    missing_since_ms BIGINT,
    -- When the last check ended.
    checked_at_ms BIGINT,
    -- What it found, in words.
    finding TEXT
) WITHOUT ROWID;
-- The sites that have owners.
CREATE INDEX site_claim_owned ON site_claim (site) WHERE key_hash IS NOT NULL;

-- One row: the secret of the MAC in the tokens that owners publish. A table, so that every program of an instance has the same.
CREATE TABLE claim_secret (
    -- Always 1.
    id INTEGER PRIMARY KEY NOT NULL,
    -- Random hexadecimal digits.
    secret TEXT NOT NULL
);

-- How many searches showed a capability of a site that has an owner.
CREATE TABLE search_count (
    -- Registrable domain, as in site_claim.
    site TEXT NOT NULL,
    -- Days since 1970-01-01 UTC.
    day INTEGER NOT NULL,
    -- Searches of that day.
    searches BIGINT NOT NULL,
    PRIMARY KEY (site, day)
) WITHOUT ROWID;
-- Counts that are too old to be kept.
CREATE INDEX search_count_day ON search_count (day);
