-- Documents are checked when they are read again. The hash of a manifest that others complete covers those too, so that the
-- bytes kept have one of their own. An expansion: programs of the schema before leave it out.
ALTER TABLE document ADD COLUMN body_hash TEXT COLLATE "C";
COMMENT ON COLUMN document.body_hash IS 'SHA-256 of the bytes kept, hex; null where they were kept before it was written down, and are not checked.';
COMMENT ON COLUMN document.hash IS 'SHA-256 of the bytes, hex; of a manifest that other documents complete, of all of them together.';
