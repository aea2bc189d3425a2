-- Documents that are being read, and documents that ended or stalled a reader. An expansion: crawlers of the schema before
-- read on without it.
-- One row for each document that is being read; the row stays when the reader ends before the document is read.
CREATE TABLE read_attempt (
    -- SHA-256 of the bytes that are read, in hexadecimal.
    hash TEXT PRIMARY KEY NOT NULL,
    -- Version of the reader; another version reads a quarantined document again.
    reader_version BIGINT NOT NULL,
    -- Site whose visit reads it.
    site TEXT NOT NULL,
    -- Address of the document.
    url TEXT NOT NULL,
    -- When reading began.
    began_at_ms BIGINT NOT NULL,
    -- When the document was quarantined; NULL while it is being read.
    quarantined_at_ms BIGINT,
    -- Why it was quarantined.
    reason TEXT
) WITHOUT ROWID;
-- The rows of a site that opts out.
CREATE INDEX read_attempt_site ON read_attempt (site);
