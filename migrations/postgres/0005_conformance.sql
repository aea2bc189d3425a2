-- How well each manifest keeps to its dialect, and which sites are new in the index.
ALTER TABLE manifest ADD COLUMN conformance TEXT;
COMMENT ON COLUMN manifest.conformance IS 'A slug of manifest::ConformanceLevel, of the current version; null until its next version where it was read before.';
CREATE INDEX manifest_first_seen ON manifest (first_seen_at_ms) WHERE removed_at_ms IS NULL;
COMMENT ON INDEX manifest_first_seen IS 'The newest manifests.';
