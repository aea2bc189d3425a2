-- Documents are checked when they are read again. The hash of a manifest that others complete covers those too, so that the
-- bytes kept have one of their own. An expansion: programs of the schema before leave it out.
-- SHA-256 of the bytes kept, hex; null where they were kept before it was written down, and are not checked.
ALTER TABLE document ADD COLUMN body_hash TEXT;
