-- What the publisher says about training models with a manifest, outside the manifest itself.
ALTER TABLE manifest ADD COLUMN training TEXT;
COMMENT ON COLUMN manifest.training IS 'What robots.txt and the last response say about training (Content-Usage, Content-Signal): a slug of manifest::PolicyChoice; null if nothing.';
