-- Readers of the change feed that retention waits for, and the place where the feed begins.
CREATE TABLE feed_reader (
    name TEXT COLLATE "C" PRIMARY KEY,
    position BIGINT NOT NULL,
    seen_at_ms BIGINT NOT NULL
);
COMMENT ON TABLE feed_reader IS 'Readers of the change feed. Entries that one of them has not read are not removed.';
COMMENT ON COLUMN feed_reader.name IS 'Name of the reader, such as an indexer''s host and directory.';
COMMENT ON COLUMN feed_reader.position IS 'The last entry that it has taken for good.';
COMMENT ON COLUMN feed_reader.seen_at_ms IS 'When it last said so.';

ALTER TABLE feed_state ADD COLUMN first_position BIGINT NOT NULL DEFAULT 1;
COMMENT ON COLUMN feed_state.first_position IS 'Position of the first entry that is kept; a reader before it has missed something.';

CREATE INDEX manifest_version_seen ON manifest_version (last_seen_at_ms);
COMMENT ON INDEX manifest_version_seen IS 'Versions that retention removes.';
