-- Who names each manifest: the site that serves it, or only others. An expansion: programs of the schema before leave it null.
ALTER TABLE manifest ADD COLUMN named_by TEXT;
COMMENT ON COLUMN manifest.named_by IS 'Who names the document: a slug of manifest::NamedBy, written by every visit; null until the next one, and policy::naming::named_by_url decides then.';
