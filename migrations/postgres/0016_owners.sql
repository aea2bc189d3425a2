-- Owners of sites: who proved control of a domain, what the last check found, and how many searches showed their capabilities. An
-- expansion: programs of the schema before check no claim and count nothing.
CREATE TABLE site_claim (
    site TEXT COLLATE "C" PRIMARY KEY,
    asked_at_ms BIGINT,
    key_hash TEXT,
    proof TEXT,
    since_ms BIGINT,
    proven_at_ms BIGINT,
    missing_since_ms BIGINT,
    checked_at_ms BIGINT,
    finding TEXT
);
COMMENT ON TABLE site_claim IS 'Claims to sites, with the owners that proved control of the domain.';
COMMENT ON COLUMN site_claim.site IS 'Registrable domain, as in site.';
COMMENT ON COLUMN site_claim.asked_at_ms IS 'When a check was last requested; null where none was.';
COMMENT ON COLUMN site_claim.key_hash IS 'SHA-256 of the owner''s key, hex; null while nobody is the owner.';
COMMENT ON COLUMN site_claim.proof IS 'Where the proof is: a slug of policy::claim::Proof.';
COMMENT ON COLUMN site_claim.since_ms IS 'Since when this key counts.';
COMMENT ON COLUMN site_claim.proven_at_ms IS 'When the proof was last found.';
COMMENT ON COLUMN site_claim.missing_since_ms IS 'Since when checks miss the proof; null while it is found.';
COMMENT ON COLUMN site_claim.checked_at_ms IS 'When the last check ended.';
COMMENT ON COLUMN site_claim.finding IS 'What it found, in words.';

CREATE INDEX site_claim_owned ON site_claim (site) WHERE key_hash IS NOT NULL;
COMMENT ON INDEX site_claim_owned IS 'The sites that have owners.';

CREATE TABLE claim_secret (
    id INTEGER PRIMARY KEY,
    secret TEXT NOT NULL
);
COMMENT ON TABLE claim_secret IS 'One row: the secret of the MAC in the tokens that owners publish, for every program of an instance.';
COMMENT ON COLUMN claim_secret.id IS 'Always 1.';
COMMENT ON COLUMN claim_secret.secret IS 'Random hexadecimal digits.';

CREATE TABLE search_count (
    site TEXT COLLATE "C" NOT NULL,
    day INTEGER NOT NULL,
    searches BIGINT NOT NULL,
    PRIMARY KEY (site, day)
);
COMMENT ON TABLE search_count IS 'How many searches showed a capability of a site that has an owner.';
COMMENT ON COLUMN search_count.site IS 'Registrable domain, as in site_claim.';
COMMENT ON COLUMN search_count.day IS 'Days since 1970-01-01 UTC.';
COMMENT ON COLUMN search_count.searches IS 'Searches of that day.';

CREATE INDEX search_count_day ON search_count (day);
COMMENT ON INDEX search_count_day IS 'Counts that are too old to be kept.';
