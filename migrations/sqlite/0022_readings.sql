-- Who publishes a manifest, and which reader read it. An expansion: programs of the schema before do not write these columns. read_version
-- tells whether such a program has written the manifest since, which then counts as if the other two columns were null.

-- Who publishes the document: a slug of manifest::declaration::Publisher, written by every visit; null until the next one, which then
-- groups the declarations of the site.
ALTER TABLE manifest ADD COLUMN publisher TEXT;
-- manifest::READER_VERSION of the last reading; null for an earlier one. Visits read documents of earlier readers again.
ALTER TABLE manifest ADD COLUMN reader_version BIGINT;
-- The value of version when publisher and reader_version were written. They count as null if version is another one.
ALTER TABLE manifest ADD COLUMN read_version INTEGER;
