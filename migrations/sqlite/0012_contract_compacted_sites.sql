-- Statements select compacted sites by columns, and `packed` is opaque to SQL. Its first byte is the version of its encoding:
-- this copies what statements read of version 1; programs of this schema write version 2 and read both. Crawlers of earlier
-- schemas cannot read version 2: stop them first.

-- Status of a compacted site: a slug of policy::Status.
ALTER TABLE site ADD COLUMN compacted_status TEXT;
-- Failed visits in a row of a compacted site; null for none.
ALTER TABLE site ADD COLUMN compacted_failures INTEGER;
-- When the last visit of a compacted site ended.
ALTER TABLE site ADD COLUMN compacted_last_visit_at_ms BIGINT;
-- JSON5 reads hexadecimal numbers.
UPDATE site SET
    compacted_status = json_array('pending', 'fresh', 'stale', 'unreachable', 'gone', 'denied', 'opted_out', 'invalid', 'catch_all')
        ->> (('[0x' || hex(substr(packed, 2, 1)) || ']') ->> 0),
    compacted_failures = NULLIF(('[0x' || hex(substr(packed, 3, 2)) || ']') ->> 0, 0),
    compacted_last_visit_at_ms = NULLIF((('[0x' || hex(substr(packed, 5, 4)) || ']') ->> 0) * 1000, 0)
WHERE length(packed) > 0;
