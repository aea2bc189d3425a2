-- Readers of the change feed. Entries that one of them has not read are not removed.
CREATE TABLE feed_reader (
    -- Name of the reader, such as an indexer's host and directory.
    name TEXT PRIMARY KEY NOT NULL,
    -- The last entry that it has taken for good.
    position BIGINT NOT NULL,
    -- When it last said so.
    seen_at_ms BIGINT NOT NULL
) WITHOUT ROWID;

-- Position of the first entry that is kept; a reader before it has missed something.
ALTER TABLE feed_state ADD COLUMN first_position BIGINT NOT NULL DEFAULT 1;

-- Versions that retention removes.
CREATE INDEX manifest_version_seen ON manifest_version (last_seen_at_ms);
