-- The first schema. Times are milliseconds since 1970-01-01 UTC. Names are compared by bytes.

-- The hot table: who is due, and who holds it. Narrow, since every lease and every visit rewrites its row.
CREATE TABLE site (
    -- Registrable domain, in ASCII.
    name TEXT PRIMARY KEY NOT NULL,
    -- Class of the lease order, 0 first: 0 asked for, 1 linked, 2 listed, 3 to 5 by rank.
    priority INTEGER NOT NULL,
    -- When the next visit is planned; 9000000000000000 while the owner opts out.
    next_visit_at_ms BIGINT NOT NULL,
    -- Worker that holds the site; null while nobody does.
    lease_owner TEXT,
    -- When the lease ends; 0 while nobody holds it.
    lease_until_ms BIGINT NOT NULL DEFAULT 0,
    -- Counts the leases; a save with an older fence is refused.
    fence BIGINT NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- What is known of a site beside the lease.
CREATE TABLE site_state (
    -- Registrable domain, as in site.
    name TEXT PRIMARY KEY NOT NULL,
    -- How the site stands: a slug of policy::Status.
    status TEXT NOT NULL,
    -- When it became known.
    first_seen_at_ms BIGINT NOT NULL,
    -- Visits saved.
    visits INTEGER NOT NULL DEFAULT 0,
    -- Visits that found a change.
    changes INTEGER NOT NULL DEFAULT 0,
    -- When the first visit ended.
    first_visit_at_ms BIGINT,
    -- When the last visit ended.
    last_visit_at_ms BIGINT,
    -- Why the last visit ended: a slug of policy::VisitEnd.
    last_end TEXT,
    -- Why the next visit is planned when it is, in words.
    next_visit_reason TEXT,
    -- Visits in a row that failed.
    failures_in_row INTEGER NOT NULL DEFAULT 0,
    -- Visits in a row that found nothing.
    negatives_in_row INTEGER NOT NULL DEFAULT 0,
    -- The path table packed, three bytes a slot: class, day (little endian).
    paths_checked BLOB,
    -- When a link from another site last made it due.
    hinted_at_ms BIGINT,
    -- When a parked visit goes on; null when none is parked.
    parked_until_ms BIGINT,
    -- Why it waits, in words.
    parked_reason TEXT,
    -- The crawler's serialised state of the parked visit, JSON.
    parked_progress TEXT,
    -- Manifests in the index.
    manifests INTEGER NOT NULL DEFAULT 0,
    -- Capabilities in the index.
    capabilities INTEGER NOT NULL DEFAULT 0,
    -- Formats of those manifests, sorted, separated by commas.
    formats TEXT NOT NULL DEFAULT ''
);

-- Hosts of a site with their politeness clocks, written before each request.
CREATE TABLE host (
    -- Host name, in ASCII.
    host TEXT PRIMARY KEY NOT NULL,
    -- The site it belongs to.
    site TEXT NOT NULL,
    -- 1 when it was seeded or linked, 0 when it was met on the way.
    seeded INTEGER NOT NULL,
    -- No request before this.
    next_ok_at_ms BIGINT,
    -- Retry-After: no request before this.
    not_before_ms BIGINT,
    -- Requests sent on requests_day.
    requests_today INTEGER NOT NULL DEFAULT 0,
    -- Day of requests_today, counted from 1970-01-01.
    requests_day INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- What robots.txt of a host came to.
CREATE TABLE robots (
    -- Host name, as in host.
    host TEXT PRIMARY KEY NOT NULL,
    -- The site it belongs to.
    site TEXT NOT NULL,
    -- A slug of policy::RobotsKind.
    kind TEXT NOT NULL,
    -- Why, in words.
    cause TEXT,
    -- HTTP status.
    status INTEGER,
    -- The file, zstd.
    body BLOB,
    -- When it was fetched.
    fetched_at_ms BIGINT NOT NULL,
    -- Until when it may be used unasked.
    expires_at_ms BIGINT NOT NULL,
    -- Attempts in a row that could not read it.
    failures_in_row INTEGER NOT NULL,
    -- Byte for byte.
    etag TEXT,
    -- Byte for byte.
    last_modified TEXT
);

-- Politeness clocks of addresses, which many sites may share.
CREATE TABLE address_clock (
    -- IP address.
    address TEXT PRIMARY KEY NOT NULL,
    -- No request to it before this.
    next_ok_at_ms BIGINT NOT NULL
) WITHOUT ROWID;

-- Bytes as published, once for each content.
CREATE TABLE document (
    -- SHA-256 of the bytes, hex.
    hash TEXT PRIMARY KEY NOT NULL,
    -- The bytes, zstd.
    body BLOB NOT NULL,
    -- Size before compression.
    bytes BIGINT NOT NULL,
    -- When it was first read.
    first_seen_at_ms BIGINT NOT NULL
);

-- URLs that exist, once did, or were linked. A path that was merely tried is a slot of site_state.paths_checked.
CREATE TABLE resource (
    -- Id of the URL, which is also the id of the manifest read from it.
    id TEXT PRIMARY KEY NOT NULL,
    -- The site it belongs to.
    site TEXT NOT NULL,
    -- The URL.
    url TEXT NOT NULL,
    -- A slug of manifest::Discovery.
    discovery TEXT NOT NULL,
    -- URL of the manifest that links to it.
    linked_from TEXT,
    -- What the last fetch came to: a slug of policy::FetchOutcome; null while it is only a hint.
    outcome TEXT,
    -- HTTP status of the last answer.
    status INTEGER,
    -- Byte for byte.
    etag TEXT,
    -- Byte for byte.
    last_modified TEXT,
    -- Serialised freshness policy, JSON.
    cache TEXT,
    -- Until when it need not be requested.
    fresh_until_ms BIGINT,
    -- SHA-256 of the last body read, hex.
    content_hash TEXT,
    -- When it was last fetched.
    fetched_at_ms BIGINT,
    -- When its content last differed.
    changed_at_ms BIGINT,
    -- Visits in a row that did not find it.
    misses_in_row INTEGER NOT NULL DEFAULT 0,
    -- Document kept of a part of a manifest elsewhere, such as its OpenAPI document.
    document_hash TEXT REFERENCES document (hash)
) WITHOUT ROWID;

-- Manifests, those that left the index included.
CREATE TABLE manifest (
    -- Id of the resource.
    id TEXT PRIMARY KEY NOT NULL,
    -- The site that serves it.
    site TEXT NOT NULL,
    -- Where it is served.
    url TEXT NOT NULL,
    -- A slug of manifest::Format, of the current version.
    format TEXT NOT NULL,
    -- How it stands: a slug of policy::Status.
    status TEXT NOT NULL,
    -- Number of the current version, 1 the first.
    version INTEGER NOT NULL,
    -- SHA-256 of the current version's document, hex.
    content_hash TEXT NOT NULL,
    -- Capabilities of the current version.
    capabilities INTEGER NOT NULL,
    -- When any version was first seen.
    first_seen_at_ms BIGINT NOT NULL,
    -- When the current version was last confirmed.
    last_seen_at_ms BIGINT NOT NULL,
    -- When the current version was first seen.
    changed_at_ms BIGINT NOT NULL,
    -- When it left the index; null while it is in it.
    removed_at_ms BIGINT
) WITHOUT ROWID;

-- Every version of every manifest, normalised.
CREATE TABLE manifest_version (
    -- The manifest.
    manifest_id TEXT NOT NULL,
    -- 1 the first.
    version INTEGER NOT NULL,
    -- SHA-256 of the document, hex.
    content_hash TEXT NOT NULL,
    -- The document kept; null where the publisher does not allow it.
    document_hash TEXT REFERENCES document (hash),
    -- The normalised manifest, JSON, zstd.
    model BLOB NOT NULL,
    -- Capabilities in it.
    capabilities INTEGER NOT NULL,
    -- Findings about it.
    findings INTEGER NOT NULL,
    -- When it was first seen.
    first_seen_at_ms BIGINT NOT NULL,
    -- When it was last confirmed.
    last_seen_at_ms BIGINT NOT NULL,
    PRIMARY KEY (manifest_id, version)
);

-- Capabilities in the index: where each is to be found.
CREATE TABLE capability (
    -- Id of the capability.
    id TEXT PRIMARY KEY NOT NULL,
    -- The manifest that declares it.
    manifest_id TEXT NOT NULL,
    -- The site that serves the manifest.
    site TEXT NOT NULL,
    -- Its id as published.
    native_id TEXT NOT NULL,
    -- Its name.
    name TEXT NOT NULL,
    -- A slug of manifest::CapabilityKind.
    kind TEXT NOT NULL
) WITHOUT ROWID;

-- Semantic types of the capabilities in the index.
CREATE TABLE capability_type (
    -- namespace:type.
    name TEXT NOT NULL,
    -- The capability.
    capability_id TEXT NOT NULL,
    -- The manifest that declares it.
    manifest_id TEXT NOT NULL,
    -- The site that serves the manifest.
    site TEXT NOT NULL,
    -- 1 when published, 0 when inferred.
    declared INTEGER NOT NULL,
    PRIMARY KEY (name, capability_id)
) WITHOUT ROWID;

-- The last visits of each site, with the story of their fetches.
CREATE TABLE visit (
    -- Number of the visit.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The site.
    site TEXT NOT NULL,
    -- When it began.
    started_at_ms BIGINT NOT NULL,
    -- When it ended.
    ended_at_ms BIGINT NOT NULL,
    -- Why it ended: a slug of policy::VisitEnd.
    visit_end TEXT NOT NULL,
    -- How the site stood afterwards.
    status TEXT NOT NULL,
    -- When to come back, as decided then.
    next_visit_at_ms BIGINT NOT NULL,
    -- Why then, in words.
    next_visit_reason TEXT NOT NULL,
    -- Requests sent.
    requests INTEGER NOT NULL,
    -- Bytes received.
    bytes_in BIGINT NOT NULL,
    -- Spent on resolving.
    dns_ms INTEGER NOT NULL,
    -- Spent on connecting.
    connect_ms INTEGER NOT NULL,
    -- Spent on TLS handshakes.
    tls_ms INTEGER NOT NULL,
    -- Spent on waiting for first bytes.
    ttfb_ms INTEGER NOT NULL,
    -- Spent on reading bodies.
    body_ms INTEGER NOT NULL,
    -- Outcomes counted, sorted: found=1,not_found=18.
    outcomes TEXT NOT NULL,
    -- Version of the crawler.
    crawler_version TEXT NOT NULL,
    -- The story of each fetch, JSON, zstd.
    fetches BLOB NOT NULL
);

-- Sites whose owner opted out: a tombstone that outlives the content.
CREATE TABLE block (
    -- The site.
    site TEXT PRIMARY KEY NOT NULL,
    -- Why, in words.
    reason TEXT NOT NULL,
    -- Since when.
    blocked_at_ms BIGINT NOT NULL
) WITHOUT ROWID;

-- Changes committed by writers and not yet given a position. One sequencer moves them into feed.
CREATE TABLE feed_pending (
    -- Order of arrival; changes of one manifest arrive in the order in which they happened.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- When it happened.
    at_ms BIGINT NOT NULL,
    -- A slug of store::FeedChange.
    change TEXT NOT NULL,
    -- The site.
    site TEXT NOT NULL,
    -- The manifest.
    manifest_id TEXT NOT NULL,
    -- Why.
    reason TEXT
);

-- The ordered changes. Positions have no holes: they are given after commit, by one sequencer at a time.
CREATE TABLE feed (
    -- 1 the first.
    position INTEGER PRIMARY KEY NOT NULL,
    -- When it happened.
    at_ms BIGINT NOT NULL,
    -- A slug of store::FeedChange.
    change TEXT NOT NULL,
    -- The site.
    site TEXT NOT NULL,
    -- The manifest.
    manifest_id TEXT NOT NULL,
    -- Why.
    reason TEXT
);

-- One row: which feed this is, and how far it goes. A table, so that both survive dump and restore.
CREATE TABLE feed_state (
    -- Always 1.
    id INTEGER PRIMARY KEY NOT NULL,
    -- Random id of the feed, by which an index notices that it was built from another one.
    feed_id TEXT NOT NULL,
    -- Position of the last entry.
    last_position BIGINT NOT NULL,
    CHECK (id = 1)
);

-- Leases are taken in this order.
CREATE INDEX site_due ON site (priority, next_visit_at_ms);
-- Leases of one worker, and how many are out.
CREATE INDEX site_leased ON site (lease_owner) WHERE lease_owner IS NOT NULL;
-- Lists and counts of sites by how they stand.
CREATE INDEX site_state_status ON site_state (status, name);
-- Lists of sites that publish something.
CREATE INDEX site_state_with_manifests ON site_state (name) WHERE manifests > 0;
-- Parked visits by when they go on.
CREATE INDEX site_state_parked ON site_state (parked_until_ms) WHERE parked_until_ms IS NOT NULL;
-- Hosts of the sites of a lease.
CREATE INDEX host_site ON host (site);
-- Purging of a blocked site.
CREATE INDEX robots_site ON robots (site);
-- Resources of the sites of a lease.
CREATE INDEX resource_site ON resource (site);
-- Manifests of a site.
CREATE INDEX manifest_site ON manifest (site);
-- Manifests in the index by format.
CREATE INDEX manifest_format ON manifest (format) WHERE removed_at_ms IS NULL;
-- Whether a document is still referred to.
CREATE INDEX manifest_version_document ON manifest_version (document_hash) WHERE document_hash IS NOT NULL;
-- Whether a document is still referred to.
CREATE INDEX resource_document ON resource (document_hash) WHERE document_hash IS NOT NULL;
-- Capabilities of a manifest.
CREATE INDEX capability_manifest ON capability (manifest_id);
-- Semantic types of a manifest.
CREATE INDEX capability_type_manifest ON capability_type (manifest_id);
-- The last visits of a site.
CREATE INDEX visit_site ON visit (site, id);
-- Visits of the last day.
CREATE INDEX visit_ended ON visit (ended_at_ms);

INSERT INTO feed_state (id, feed_id, last_position) VALUES (1, lower(hex(randomblob(16))), 0);
