-- Keys of readers of the API with limits of their own. An expansion: programs of the schema before know no keys.
CREATE TABLE reader_key (
    name TEXT COLLATE "C" PRIMARY KEY,
    key_hash TEXT NOT NULL UNIQUE,
    reads_per_second INTEGER NOT NULL,
    created_at_ms BIGINT NOT NULL
);
COMMENT ON TABLE reader_key IS 'Keys of readers of the API with limits of their own.';
COMMENT ON COLUMN reader_key.name IS 'The operator''s name for the reader.';
COMMENT ON COLUMN reader_key.key_hash IS 'SHA-256 of the key, hex.';
COMMENT ON COLUMN reader_key.reads_per_second IS 'Requests a second, sustained.';
COMMENT ON COLUMN reader_key.created_at_ms IS 'When the key was made.';
COMMENT ON INDEX reader_key_key_hash_key IS 'No two readers have the same key.';
