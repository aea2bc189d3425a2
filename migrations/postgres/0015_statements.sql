-- What a declaration states is kept beside its manifest, so that merging the declarations of one capability reads one manifest. An
-- expansion: programs of the schema before leave the column null; the next visit of a site fills it in.
SET LOCAL lock_timeout = '10s';
ALTER TABLE capability ADD COLUMN statement TEXT;
COMMENT ON COLUMN capability.statement IS 'What the declaration states, as JSON of at most 64 KiB; null where the site has one manifest, where it is not filled in yet, and empty where the manifest cannot be read.';
