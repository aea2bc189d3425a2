-- Documents that are being read, and documents that ended or stalled a reader. An expansion: crawlers of the schema before
-- read on without it.
CREATE TABLE read_attempt (
    hash TEXT COLLATE "C" PRIMARY KEY,
    reader_version BIGINT NOT NULL,
    site TEXT COLLATE "C" NOT NULL,
    url TEXT NOT NULL,
    began_at_ms BIGINT NOT NULL,
    quarantined_at_ms BIGINT,
    reason TEXT
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE read_attempt IS 'One row for each document that is being read; the row stays when the reader ends before the document is read.';
COMMENT ON COLUMN read_attempt.hash IS 'SHA-256 of the bytes that are read, in hexadecimal.';
COMMENT ON COLUMN read_attempt.reader_version IS 'Version of the reader; another version reads a quarantined document again.';
COMMENT ON COLUMN read_attempt.site IS 'Site whose visit reads it.';
COMMENT ON COLUMN read_attempt.url IS 'Address of the document.';
COMMENT ON COLUMN read_attempt.began_at_ms IS 'When reading began.';
COMMENT ON COLUMN read_attempt.quarantined_at_ms IS 'When the document was quarantined; NULL while it is being read.';
COMMENT ON COLUMN read_attempt.reason IS 'Why it was quarantined.';
CREATE INDEX read_attempt_site ON read_attempt (site);
COMMENT ON INDEX read_attempt_site IS 'The rows of a site that opts out.';
