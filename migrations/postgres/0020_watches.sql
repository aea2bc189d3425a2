-- Watches: sites whose changes are delivered to webhooks, the messages that wait, and how many requests their receivers got. An
-- expansion: programs of the schema before deliver nothing.
CREATE TABLE watch (
    id TEXT COLLATE "C" PRIMARY KEY,
    site TEXT COLLATE "C" NOT NULL,
    receiver TEXT NOT NULL,
    receiver_site TEXT COLLATE "C" NOT NULL,
    token_hash TEXT NOT NULL,
    secret TEXT NOT NULL,
    old_secret TEXT,
    old_secret_until_ms BIGINT,
    status TEXT NOT NULL,
    position BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    confirmed_at_ms BIGINT,
    delivered_at_ms BIGINT,
    failing_since_ms BIGINT
);
COMMENT ON TABLE watch IS 'Sites whose changes are delivered to webhooks.';
COMMENT ON COLUMN watch.id IS 'Random, and not secret.';
COMMENT ON COLUMN watch.site IS 'The watched site.';
COMMENT ON COLUMN watch.receiver IS 'URL that receives the changes.';
COMMENT ON COLUMN watch.receiver_site IS 'Registrable domain of the receiver, which has limits of its own.';
COMMENT ON COLUMN watch.token_hash IS 'SHA-256 of the token that reads and changes the watch, hex.';
COMMENT ON COLUMN watch.secret IS 'The secret that signs messages (whsec_...).';
COMMENT ON COLUMN watch.old_secret IS 'The secret before the last rotation, which also signs for a time.';
COMMENT ON COLUMN watch.old_secret_until_ms IS 'Until when it signs.';
COMMENT ON COLUMN watch.status IS 'A slug of policy::webhook::WatchStatus.';
COMMENT ON COLUMN watch.position IS 'Position in the feed of the last entry that is in a message.';
COMMENT ON COLUMN watch.created_at_ms IS 'When it was made.';
COMMENT ON COLUMN watch.confirmed_at_ms IS 'When the receiver last answered a challenge.';
COMMENT ON COLUMN watch.delivered_at_ms IS 'When the receiver last accepted changes.';
COMMENT ON COLUMN watch.failing_since_ms IS 'First failure after that; null if the last attempt succeeded.';

CREATE INDEX watch_site ON watch (site);
COMMENT ON INDEX watch_site IS 'The watches of a site.';
CREATE INDEX watch_receiver_site ON watch (receiver_site);
COMMENT ON INDEX watch_receiver_site IS 'How many watches a receiver has, and those that end with its opt-out.';

CREATE TABLE delivery (
    id TEXT COLLATE "C" PRIMARY KEY,
    watch_id TEXT COLLATE "C" NOT NULL,
    challenge TEXT,
    body TEXT,
    first_position BIGINT,
    last_position BIGINT,
    created_at_ms BIGINT NOT NULL,
    attempts INTEGER NOT NULL,
    next_at_ms BIGINT NOT NULL,
    dead_at_ms BIGINT,
    failure TEXT
);
COMMENT ON TABLE delivery IS 'Messages to webhooks that wait, and those that were given up.';
COMMENT ON COLUMN delivery.id IS 'The webhook-id: random.';
COMMENT ON COLUMN delivery.watch_id IS 'The watch.';
COMMENT ON COLUMN delivery.challenge IS 'What the receiver has to answer; null for changes.';
COMMENT ON COLUMN delivery.body IS 'The message; null for a challenge, and after it was given up.';
COMMENT ON COLUMN delivery.first_position IS 'Position in the feed of the first change; null for a challenge.';
COMMENT ON COLUMN delivery.last_position IS 'Position of the last change.';
COMMENT ON COLUMN delivery.created_at_ms IS 'When it was made.';
COMMENT ON COLUMN delivery.attempts IS 'How often it was sent; counted before each attempt.';
COMMENT ON COLUMN delivery.next_at_ms IS 'When it is sent next; while it is being sent, when another worker may send it.';
COMMENT ON COLUMN delivery.dead_at_ms IS 'When it was given up; null while it waits.';
COMMENT ON COLUMN delivery.failure IS 'Why the last attempt failed, in words.';

CREATE INDEX delivery_watch ON delivery (watch_id);
COMMENT ON INDEX delivery_watch IS 'The messages of a watch.';
CREATE INDEX delivery_due ON delivery (next_at_ms) WHERE dead_at_ms IS NULL;
COMMENT ON INDEX delivery_due IS 'Messages that are due.';

CREATE TABLE receiver_day (
    receiver_site TEXT COLLATE "C" PRIMARY KEY,
    day INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    challenges INTEGER NOT NULL
);
COMMENT ON TABLE receiver_day IS 'How many messages the receivers of a domain got on a day; kept when a watch is deleted.';
COMMENT ON COLUMN receiver_day.receiver_site IS 'Registrable domain, as in watch.';
COMMENT ON COLUMN receiver_day.day IS 'Days since 1970-01-01 UTC.';
COMMENT ON COLUMN receiver_day.requests IS 'Messages of that day, challenges included.';
COMMENT ON COLUMN receiver_day.challenges IS 'Challenges of that day.';
