-- Lists and counts of compacted sites by status. Some seconds a million rows, during which leases wait.
SET LOCAL lock_timeout = '60s';
CREATE INDEX site_compacted_status ON site (compacted_status, name) WHERE compacted_status IS NOT NULL;
COMMENT ON INDEX site_compacted_status IS 'Lists and counts of compacted sites by status.';
