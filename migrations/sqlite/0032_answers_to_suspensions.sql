-- Places that a suspension is about, and what the owner of the site answers. An expansion: programs of the schema before show neither, and
-- delete the claim of a site that they suspend.

-- Documents and capabilities that the operator names, as a JSON array of texts; null if there are none.
ALTER TABLE suspension ADD COLUMN places TEXT;
-- The objection of the owner, at most 1,000 characters; null if there is none. A later one replaces it.
ALTER TABLE suspension ADD COLUMN objection TEXT;
-- When it arrived.
ALTER TABLE suspension ADD COLUMN objected_at_ms BIGINT;
-- The answer of the operator to this objection; null until there is one.
ALTER TABLE suspension ADD COLUMN answer TEXT;
-- When it was given.
ALTER TABLE suspension ADD COLUMN answered_at_ms BIGINT;
