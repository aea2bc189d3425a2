-- How well each manifest keeps to its dialect, and which sites are new in the index.
-- A slug of manifest::ConformanceLevel, of the current version; null until its next version where it was read before.
ALTER TABLE manifest ADD COLUMN conformance TEXT;
-- The newest manifests.
CREATE INDEX manifest_first_seen ON manifest (first_seen_at_ms) WHERE removed_at_ms IS NULL;
