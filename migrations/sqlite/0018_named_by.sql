-- Who names each manifest: the site that serves it, or only others. An expansion: programs of the schema before leave it null. A
-- slug of manifest::NamedBy, written by every visit; null until the next one, and policy::naming::named_by_url decides then.
ALTER TABLE manifest ADD COLUMN named_by TEXT;
