-- Who publishes a manifest, and which reader read it. An expansion: programs of the schema before do not write these columns. read_version
-- tells whether such a program has written the manifest since, which then counts as if the other two columns were null.
SET LOCAL lock_timeout = '10s';
ALTER TABLE manifest ADD COLUMN publisher TEXT, ADD COLUMN reader_version BIGINT, ADD COLUMN read_version INTEGER;
COMMENT ON COLUMN manifest.publisher IS 'Who publishes the document: a slug of manifest::declaration::Publisher, written by every visit; null until the next one, which then groups the declarations of the site.';
COMMENT ON COLUMN manifest.reader_version IS 'manifest::READER_VERSION of the last reading; null for an earlier one. Visits read documents of earlier readers again.';
COMMENT ON COLUMN manifest.read_version IS 'The value of version when publisher and reader_version were written. They count as null if version is another one.';
