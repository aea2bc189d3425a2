-- Changes of one site, latest first, and the changes since a time.
CREATE INDEX feed_site ON feed (site, position);
COMMENT ON INDEX feed_site IS 'Changes of one site by their place.';
CREATE INDEX feed_at ON feed (at_ms);
COMMENT ON INDEX feed_at IS 'The place in the feed of a time.';
