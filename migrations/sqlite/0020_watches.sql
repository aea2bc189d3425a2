-- Watches: sites whose changes are delivered to webhooks, the messages that wait, and how many requests their receivers got. An
-- expansion: programs of the schema before deliver nothing.

-- Sites whose changes are delivered to webhooks.
CREATE TABLE watch (
    -- Random, and not secret.
    id TEXT PRIMARY KEY NOT NULL,
    -- The watched site.
    site TEXT NOT NULL,
    -- URL that receives the changes.
    receiver TEXT NOT NULL,
    -- Registrable domain of the receiver, which has limits of its own.
    receiver_site TEXT NOT NULL,
    -- SHA-256 of the token that reads and changes the watch, hex.
    token_hash TEXT NOT NULL,
    -- The secret that signs messages (whsec_...).
    secret TEXT NOT NULL,
    -- The secret before the last rotation, which also signs for a time.
    old_secret TEXT,
    -- Until when it signs.
    old_secret_until_ms BIGINT,
    -- A slug of policy::webhook::WatchStatus.
    status TEXT NOT NULL,
    -- Position in the feed of the last entry that is in a message.
    position BIGINT NOT NULL,
    -- When it was made.
    created_at_ms BIGINT NOT NULL,
    -- When the receiver last answered a challenge.
    confirmed_at_ms BIGINT,
    -- When the receiver last accepted changes.
    delivered_at_ms BIGINT,
    -- First failure after that; null if the last attempt succeeded.
    failing_since_ms BIGINT
) WITHOUT ROWID;
-- The watches of a site.
CREATE INDEX watch_site ON watch (site);
-- How many watches a receiver has, and those that end with its opt-out.
CREATE INDEX watch_receiver_site ON watch (receiver_site);

-- Messages to webhooks that wait, and those that were given up.
CREATE TABLE delivery (
    -- The webhook-id: random.
    id TEXT PRIMARY KEY NOT NULL,
    -- The watch.
    watch_id TEXT NOT NULL,
    -- What the receiver has to answer; null for changes.
    challenge TEXT,
    -- The message; null for a challenge, and after it was given up.
    body TEXT,
    -- Position in the feed of the first change; null for a challenge.
    first_position BIGINT,
    -- Position of the last change.
    last_position BIGINT,
    -- When it was made.
    created_at_ms BIGINT NOT NULL,
    -- How often it was sent; counted before each attempt.
    attempts INTEGER NOT NULL,
    -- When it is sent next; while it is being sent, when another worker may send it.
    next_at_ms BIGINT NOT NULL,
    -- When it was given up; null while it waits.
    dead_at_ms BIGINT,
    -- Why the last attempt failed, in words.
    failure TEXT
) WITHOUT ROWID;
-- The messages of a watch.
CREATE INDEX delivery_watch ON delivery (watch_id);
-- Messages that are due.
CREATE INDEX delivery_due ON delivery (next_at_ms) WHERE dead_at_ms IS NULL;

-- How many messages the receivers of a domain got on a day; kept when a watch is deleted.
CREATE TABLE receiver_day (
    -- Registrable domain, as in watch.
    receiver_site TEXT PRIMARY KEY NOT NULL,
    -- Days since 1970-01-01 UTC.
    day INTEGER NOT NULL,
    -- Messages of that day, challenges included.
    requests INTEGER NOT NULL,
    -- Challenges of that day.
    challenges INTEGER NOT NULL
) WITHOUT ROWID;
