-- What the publisher says about training models with a manifest, outside the manifest itself: what robots.txt and the last
-- response say (Content-Usage, Content-Signal), a slug of manifest::PolicyChoice; null if nothing.
ALTER TABLE manifest ADD COLUMN training TEXT;
