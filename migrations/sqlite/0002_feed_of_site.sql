-- Changes of one site, latest first, and the changes since a time.
-- Changes of one site by their place.
CREATE INDEX feed_site ON feed (site, position);
-- The place in the feed of a time.
CREATE INDEX feed_at ON feed (at_ms);
