-- Who publishes a manifest, and which reader read it. An expansion: programs of the schema before leave both null.
ALTER TABLE manifest ADD COLUMN publisher TEXT;
COMMENT ON COLUMN manifest.publisher IS 'Who publishes the document: a slug of manifest::declaration::Publisher, written by every visit; null until the next one, which then groups the declarations of the site.';
ALTER TABLE manifest ADD COLUMN reader_version BIGINT;
COMMENT ON COLUMN manifest.reader_version IS 'manifest::READER_VERSION of the last reading; null for an earlier one. Visits read documents of earlier readers again.';
