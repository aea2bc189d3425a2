-- Places that a suspension is about, and what the owner of the site answers. An expansion: programs of the schema before show neither, and
-- delete the claim of a site that they suspend.
SET LOCAL lock_timeout = '10s';
ALTER TABLE suspension ADD COLUMN places TEXT;
COMMENT ON COLUMN suspension.places IS 'Documents and capabilities that the operator names, as a JSON array of texts; null if there are none.';
ALTER TABLE suspension ADD COLUMN objection TEXT;
COMMENT ON COLUMN suspension.objection IS 'The objection of the owner, at most 1,000 characters; null if there is none. A later one replaces it.';
ALTER TABLE suspension ADD COLUMN objected_at_ms BIGINT;
COMMENT ON COLUMN suspension.objected_at_ms IS 'When it arrived.';
ALTER TABLE suspension ADD COLUMN answer TEXT;
COMMENT ON COLUMN suspension.answer IS 'The answer of the operator to this objection; null until there is one.';
ALTER TABLE suspension ADD COLUMN answered_at_ms BIGINT;
COMMENT ON COLUMN suspension.answered_at_ms IS 'When it was given.';
