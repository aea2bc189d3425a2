-- Lists and counts of compacted sites by status, and counts of all of them.
CREATE INDEX site_compacted_status ON site (compacted_status, name) WHERE compacted_status IS NOT NULL;
