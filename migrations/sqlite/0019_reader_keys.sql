-- Keys of readers of the API with limits of their own. An expansion: programs of the schema before know no keys.
CREATE TABLE reader_key (
    -- The operator's name for the reader.
    name TEXT PRIMARY KEY NOT NULL,
    -- SHA-256 of the key, hex.
    key_hash TEXT NOT NULL UNIQUE,
    -- Requests a second, sustained.
    reads_per_second INTEGER NOT NULL,
    -- When the key was made.
    created_at_ms BIGINT NOT NULL
) WITHOUT ROWID;
