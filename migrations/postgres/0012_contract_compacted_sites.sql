-- Statements select compacted sites by columns, and `packed` is opaque to SQL. Its first byte is the version of its encoding:
-- this copies what statements read of version 1; programs of this schema write version 2 and read both.
--
-- Rewrites the rows of compacted sites: some seconds a million rows. Crawlers of earlier schemas cannot read version 2: stop
-- them first.
SET LOCAL lock_timeout = '60s';
ALTER TABLE site
    ADD COLUMN compacted_status TEXT,
    ADD COLUMN compacted_failures INTEGER,
    ADD COLUMN compacted_last_visit_at_ms BIGINT;
UPDATE site SET
    compacted_status = (ARRAY['pending', 'fresh', 'stale', 'unreachable', 'gone', 'denied', 'opted_out', 'invalid', 'catch_all'])
        [get_byte(packed, 1) + 1],
    compacted_failures = NULLIF(get_byte(packed, 2) * 256 + get_byte(packed, 3), 0),
    compacted_last_visit_at_ms = NULLIF(((CAST(get_byte(packed, 4) AS BIGINT) << 24) + (get_byte(packed, 5) << 16)
        + (get_byte(packed, 6) << 8) + get_byte(packed, 7)) * 1000, 0)
WHERE length(packed) > 0;
COMMENT ON COLUMN site.packed IS 'The state of a compacted site, which has no rows in other tables; null while it has.';
COMMENT ON COLUMN site.visits_at_rest IS 'Visits of a compacted site.';
COMMENT ON COLUMN site.compacted_status IS 'Status of a compacted site: a slug of policy::Status.';
COMMENT ON COLUMN site.compacted_failures IS 'Failed visits in a row of a compacted site; null for none.';
COMMENT ON COLUMN site.compacted_last_visit_at_ms IS 'When the last visit of a compacted site ended.';
