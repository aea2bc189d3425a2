-- The first schema. Times are milliseconds since 1970-01-01 UTC. Names are compared by bytes (COLLATE "C"), so that
-- pages and prefixes are the same on every server and on SQLite.

-- The same call as SQLite's: rows of a batch arrive as one JSON array of arrays, so that a statement is written once.
CREATE FUNCTION json_each(batch text) RETURNS TABLE (value json)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 200
AS $$ SELECT element FROM json_array_elements(batch::json) AS elements (element) $$;
COMMENT ON FUNCTION json_each(text) IS 'The elements of a JSON array, under the name that SQLite gives to it.';

CREATE TABLE site (
    name TEXT COLLATE "C" PRIMARY KEY,
    priority INTEGER NOT NULL,
    next_visit_at_ms BIGINT NOT NULL,
    lease_owner TEXT,
    lease_until_ms BIGINT NOT NULL DEFAULT 0,
    fence BIGINT NOT NULL DEFAULT 0
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1
);
COMMENT ON TABLE site IS 'The hot table: who is due, and who holds it. Narrow, since every lease and every visit rewrites its row.';
COMMENT ON COLUMN site.name IS 'Registrable domain, in ASCII.';
COMMENT ON COLUMN site.priority IS 'Class of the lease order, 0 first: 0 asked for, 1 linked, 2 listed, 3 to 5 by rank.';
COMMENT ON COLUMN site.next_visit_at_ms IS 'When the next visit is planned; 9000000000000000 while the owner opts out.';
COMMENT ON COLUMN site.lease_owner IS 'Worker that holds the site; null while nobody does.';
COMMENT ON COLUMN site.lease_until_ms IS 'When the lease ends; 0 while nobody holds it.';
COMMENT ON COLUMN site.fence IS 'Counts the leases; a save with an older fence is refused.';

CREATE TABLE site_state (
    name TEXT COLLATE "C" PRIMARY KEY,
    status TEXT NOT NULL,
    first_seen_at_ms BIGINT NOT NULL,
    visits INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL DEFAULT 0,
    first_visit_at_ms BIGINT,
    last_visit_at_ms BIGINT,
    last_end TEXT,
    next_visit_reason TEXT,
    failures_in_row INTEGER NOT NULL DEFAULT 0,
    negatives_in_row INTEGER NOT NULL DEFAULT 0,
    paths_checked BYTEA,
    hinted_at_ms BIGINT,
    parked_until_ms BIGINT,
    parked_reason TEXT,
    parked_progress TEXT,
    manifests INTEGER NOT NULL DEFAULT 0,
    capabilities INTEGER NOT NULL DEFAULT 0,
    formats TEXT NOT NULL DEFAULT ''
);
COMMENT ON TABLE site_state IS 'What is known of a site beside the lease.';
COMMENT ON COLUMN site_state.name IS 'Registrable domain, as in site.';
COMMENT ON COLUMN site_state.status IS 'How the site stands: a slug of policy::Status.';
COMMENT ON COLUMN site_state.first_seen_at_ms IS 'When it became known.';
COMMENT ON COLUMN site_state.visits IS 'Visits saved.';
COMMENT ON COLUMN site_state.changes IS 'Visits that found a change.';
COMMENT ON COLUMN site_state.first_visit_at_ms IS 'When the first visit ended.';
COMMENT ON COLUMN site_state.last_visit_at_ms IS 'When the last visit ended.';
COMMENT ON COLUMN site_state.last_end IS 'Why the last visit ended: a slug of policy::VisitEnd.';
COMMENT ON COLUMN site_state.next_visit_reason IS 'Why the next visit is planned when it is, in words.';
COMMENT ON COLUMN site_state.failures_in_row IS 'Visits in a row that failed.';
COMMENT ON COLUMN site_state.negatives_in_row IS 'Visits in a row that found nothing.';
COMMENT ON COLUMN site_state.paths_checked IS 'The path table packed, three bytes a slot: class, day (little endian).';
COMMENT ON COLUMN site_state.hinted_at_ms IS 'When a link from another site last made it due.';
COMMENT ON COLUMN site_state.parked_until_ms IS 'When a parked visit goes on; null when none is parked.';
COMMENT ON COLUMN site_state.parked_reason IS 'Why it waits, in words.';
COMMENT ON COLUMN site_state.parked_progress IS 'The crawler''s serialised state of the parked visit, JSON.';
COMMENT ON COLUMN site_state.manifests IS 'Manifests in the index.';
COMMENT ON COLUMN site_state.capabilities IS 'Capabilities in the index.';
COMMENT ON COLUMN site_state.formats IS 'Formats of those manifests, sorted, separated by commas.';

CREATE TABLE host (
    host TEXT COLLATE "C" PRIMARY KEY,
    site TEXT COLLATE "C" NOT NULL,
    seeded INTEGER NOT NULL,
    next_ok_at_ms BIGINT,
    not_before_ms BIGINT,
    requests_today INTEGER NOT NULL DEFAULT 0,
    requests_day INTEGER NOT NULL DEFAULT 0
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1
);
COMMENT ON TABLE host IS 'Hosts of a site with their politeness clocks, written before each request.';
COMMENT ON COLUMN host.host IS 'Host name, in ASCII.';
COMMENT ON COLUMN host.site IS 'The site it belongs to.';
COMMENT ON COLUMN host.seeded IS '1 when it was seeded or linked, 0 when it was met on the way.';
COMMENT ON COLUMN host.next_ok_at_ms IS 'No request before this.';
COMMENT ON COLUMN host.not_before_ms IS 'Retry-After: no request before this.';
COMMENT ON COLUMN host.requests_today IS 'Requests sent on requests_day.';
COMMENT ON COLUMN host.requests_day IS 'Day of requests_today, counted from 1970-01-01.';

CREATE TABLE robots (
    host TEXT COLLATE "C" PRIMARY KEY,
    site TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    cause TEXT,
    status INTEGER,
    body BYTEA,
    fetched_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    failures_in_row INTEGER NOT NULL,
    etag TEXT,
    last_modified TEXT
);
COMMENT ON TABLE robots IS 'What robots.txt of a host came to.';
COMMENT ON COLUMN robots.host IS 'Host name, as in host.';
COMMENT ON COLUMN robots.site IS 'The site it belongs to.';
COMMENT ON COLUMN robots.kind IS 'A slug of policy::RobotsKind.';
COMMENT ON COLUMN robots.cause IS 'Why, in words.';
COMMENT ON COLUMN robots.status IS 'HTTP status.';
COMMENT ON COLUMN robots.body IS 'The file, zstd.';
COMMENT ON COLUMN robots.fetched_at_ms IS 'When it was fetched.';
COMMENT ON COLUMN robots.expires_at_ms IS 'Until when it may be used unasked.';
COMMENT ON COLUMN robots.failures_in_row IS 'Attempts in a row that could not read it.';
COMMENT ON COLUMN robots.etag IS 'Byte for byte.';
COMMENT ON COLUMN robots.last_modified IS 'Byte for byte.';
ALTER TABLE robots ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE address_clock (
    address TEXT COLLATE "C" PRIMARY KEY,
    next_ok_at_ms BIGINT NOT NULL
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1
);
COMMENT ON TABLE address_clock IS 'Politeness clocks of addresses, which many sites may share.';
COMMENT ON COLUMN address_clock.address IS 'IP address.';
COMMENT ON COLUMN address_clock.next_ok_at_ms IS 'No request to it before this.';

CREATE TABLE document (
    hash TEXT COLLATE "C" PRIMARY KEY,
    body BYTEA NOT NULL,
    bytes BIGINT NOT NULL,
    first_seen_at_ms BIGINT NOT NULL
);
COMMENT ON TABLE document IS 'Bytes as published, once for each content.';
COMMENT ON COLUMN document.hash IS 'SHA-256 of the bytes, hex.';
COMMENT ON COLUMN document.body IS 'The bytes, zstd.';
COMMENT ON COLUMN document.bytes IS 'Size before compression.';
COMMENT ON COLUMN document.first_seen_at_ms IS 'When it was first read.';
ALTER TABLE document ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE resource (
    id TEXT COLLATE "C" PRIMARY KEY,
    site TEXT COLLATE "C" NOT NULL,
    url TEXT NOT NULL,
    discovery TEXT NOT NULL,
    linked_from TEXT,
    outcome TEXT,
    status INTEGER,
    etag TEXT,
    last_modified TEXT,
    cache TEXT,
    fresh_until_ms BIGINT,
    content_hash TEXT,
    fetched_at_ms BIGINT,
    changed_at_ms BIGINT,
    misses_in_row INTEGER NOT NULL DEFAULT 0,
    document_hash TEXT COLLATE "C" REFERENCES document (hash)
);
COMMENT ON TABLE resource IS 'URLs that exist, once did, or were linked. A path that was merely tried is a slot of site_state.paths_checked.';
COMMENT ON COLUMN resource.id IS 'Id of the URL, which is also the id of the manifest read from it.';
COMMENT ON COLUMN resource.site IS 'The site it belongs to.';
COMMENT ON COLUMN resource.url IS 'The URL.';
COMMENT ON COLUMN resource.discovery IS 'A slug of manifest::Discovery.';
COMMENT ON COLUMN resource.linked_from IS 'URL of the manifest that links to it.';
COMMENT ON COLUMN resource.outcome IS 'What the last fetch came to: a slug of policy::FetchOutcome; null while it is only a hint.';
COMMENT ON COLUMN resource.status IS 'HTTP status of the last answer.';
COMMENT ON COLUMN resource.etag IS 'Byte for byte.';
COMMENT ON COLUMN resource.last_modified IS 'Byte for byte.';
COMMENT ON COLUMN resource.cache IS 'Serialised freshness policy, JSON.';
COMMENT ON COLUMN resource.fresh_until_ms IS 'Until when it need not be requested.';
COMMENT ON COLUMN resource.content_hash IS 'SHA-256 of the last body read, hex.';
COMMENT ON COLUMN resource.fetched_at_ms IS 'When it was last fetched.';
COMMENT ON COLUMN resource.changed_at_ms IS 'When its content last differed.';
COMMENT ON COLUMN resource.misses_in_row IS 'Visits in a row that did not find it.';
COMMENT ON COLUMN resource.document_hash IS 'Document kept of a part of a manifest elsewhere, such as its OpenAPI document.';

CREATE TABLE manifest (
    id TEXT COLLATE "C" PRIMARY KEY,
    site TEXT COLLATE "C" NOT NULL,
    url TEXT NOT NULL,
    format TEXT NOT NULL,
    status TEXT NOT NULL,
    version INTEGER NOT NULL,
    content_hash TEXT COLLATE "C" NOT NULL,
    capabilities INTEGER NOT NULL,
    first_seen_at_ms BIGINT NOT NULL,
    last_seen_at_ms BIGINT NOT NULL,
    changed_at_ms BIGINT NOT NULL,
    removed_at_ms BIGINT
);
COMMENT ON TABLE manifest IS 'Manifests, those that left the index included.';
COMMENT ON COLUMN manifest.id IS 'Id of the resource.';
COMMENT ON COLUMN manifest.site IS 'The site that serves it.';
COMMENT ON COLUMN manifest.url IS 'Where it is served.';
COMMENT ON COLUMN manifest.format IS 'A slug of manifest::Format, of the current version.';
COMMENT ON COLUMN manifest.status IS 'How it stands: a slug of policy::Status.';
COMMENT ON COLUMN manifest.version IS 'Number of the current version, 1 the first.';
COMMENT ON COLUMN manifest.content_hash IS 'SHA-256 of the current version''s document, hex.';
COMMENT ON COLUMN manifest.capabilities IS 'Capabilities of the current version.';
COMMENT ON COLUMN manifest.first_seen_at_ms IS 'When any version was first seen.';
COMMENT ON COLUMN manifest.last_seen_at_ms IS 'When the current version was last confirmed.';
COMMENT ON COLUMN manifest.changed_at_ms IS 'When the current version was first seen.';
COMMENT ON COLUMN manifest.removed_at_ms IS 'When it left the index; null while it is in it.';

CREATE TABLE manifest_version (
    manifest_id TEXT COLLATE "C" NOT NULL,
    version INTEGER NOT NULL,
    content_hash TEXT COLLATE "C" NOT NULL,
    document_hash TEXT COLLATE "C" REFERENCES document (hash),
    model BYTEA NOT NULL,
    capabilities INTEGER NOT NULL,
    findings INTEGER NOT NULL,
    first_seen_at_ms BIGINT NOT NULL,
    last_seen_at_ms BIGINT NOT NULL,
    PRIMARY KEY (manifest_id, version)
);
COMMENT ON TABLE manifest_version IS 'Every version of every manifest, normalised.';
COMMENT ON COLUMN manifest_version.manifest_id IS 'The manifest.';
COMMENT ON COLUMN manifest_version.version IS '1 the first.';
COMMENT ON COLUMN manifest_version.content_hash IS 'SHA-256 of the document, hex.';
COMMENT ON COLUMN manifest_version.document_hash IS 'The document kept; null where the publisher does not allow it.';
COMMENT ON COLUMN manifest_version.model IS 'The normalised manifest, JSON, zstd.';
COMMENT ON COLUMN manifest_version.capabilities IS 'Capabilities in it.';
COMMENT ON COLUMN manifest_version.findings IS 'Findings about it.';
COMMENT ON COLUMN manifest_version.first_seen_at_ms IS 'When it was first seen.';
COMMENT ON COLUMN manifest_version.last_seen_at_ms IS 'When it was last confirmed.';
ALTER TABLE manifest_version ALTER COLUMN model SET STORAGE EXTERNAL;

CREATE TABLE capability (
    id TEXT COLLATE "C" PRIMARY KEY,
    manifest_id TEXT COLLATE "C" NOT NULL,
    site TEXT COLLATE "C" NOT NULL,
    native_id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL
);
COMMENT ON TABLE capability IS 'Capabilities in the index: where each is to be found.';
COMMENT ON COLUMN capability.id IS 'Id of the capability.';
COMMENT ON COLUMN capability.manifest_id IS 'The manifest that declares it.';
COMMENT ON COLUMN capability.site IS 'The site that serves the manifest.';
COMMENT ON COLUMN capability.native_id IS 'Its id as published.';
COMMENT ON COLUMN capability.name IS 'Its name.';
COMMENT ON COLUMN capability.kind IS 'A slug of manifest::CapabilityKind.';

CREATE TABLE capability_type (
    name TEXT COLLATE "C" NOT NULL,
    capability_id TEXT COLLATE "C" NOT NULL,
    manifest_id TEXT COLLATE "C" NOT NULL,
    site TEXT COLLATE "C" NOT NULL,
    declared INTEGER NOT NULL,
    PRIMARY KEY (name, capability_id)
);
COMMENT ON TABLE capability_type IS 'Semantic types of the capabilities in the index.';
COMMENT ON COLUMN capability_type.name IS 'namespace:type.';
COMMENT ON COLUMN capability_type.capability_id IS 'The capability.';
COMMENT ON COLUMN capability_type.manifest_id IS 'The manifest that declares it.';
COMMENT ON COLUMN capability_type.site IS 'The site that serves the manifest.';
COMMENT ON COLUMN capability_type.declared IS '1 when published, 0 when inferred.';

CREATE TABLE visit (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    site TEXT COLLATE "C" NOT NULL,
    started_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT NOT NULL,
    visit_end TEXT NOT NULL,
    status TEXT NOT NULL,
    next_visit_at_ms BIGINT NOT NULL,
    next_visit_reason TEXT NOT NULL,
    requests INTEGER NOT NULL,
    bytes_in BIGINT NOT NULL,
    dns_ms INTEGER NOT NULL,
    connect_ms INTEGER NOT NULL,
    tls_ms INTEGER NOT NULL,
    ttfb_ms INTEGER NOT NULL,
    body_ms INTEGER NOT NULL,
    outcomes TEXT NOT NULL,
    crawler_version TEXT NOT NULL,
    fetches BYTEA NOT NULL
);
COMMENT ON TABLE visit IS 'The last visits of each site, with the story of their fetches.';
COMMENT ON COLUMN visit.id IS 'Number of the visit.';
COMMENT ON COLUMN visit.site IS 'The site.';
COMMENT ON COLUMN visit.started_at_ms IS 'When it began.';
COMMENT ON COLUMN visit.ended_at_ms IS 'When it ended.';
COMMENT ON COLUMN visit.visit_end IS 'Why it ended: a slug of policy::VisitEnd.';
COMMENT ON COLUMN visit.status IS 'How the site stood afterwards.';
COMMENT ON COLUMN visit.next_visit_at_ms IS 'When to come back, as decided then.';
COMMENT ON COLUMN visit.next_visit_reason IS 'Why then, in words.';
COMMENT ON COLUMN visit.requests IS 'Requests sent.';
COMMENT ON COLUMN visit.bytes_in IS 'Bytes received.';
COMMENT ON COLUMN visit.dns_ms IS 'Spent on resolving.';
COMMENT ON COLUMN visit.connect_ms IS 'Spent on connecting.';
COMMENT ON COLUMN visit.tls_ms IS 'Spent on TLS handshakes.';
COMMENT ON COLUMN visit.ttfb_ms IS 'Spent on waiting for first bytes.';
COMMENT ON COLUMN visit.body_ms IS 'Spent on reading bodies.';
COMMENT ON COLUMN visit.outcomes IS 'Outcomes counted, sorted: found=1,not_found=18.';
COMMENT ON COLUMN visit.crawler_version IS 'Version of the crawler.';
COMMENT ON COLUMN visit.fetches IS 'The story of each fetch, JSON, zstd.';
ALTER TABLE visit ALTER COLUMN fetches SET STORAGE EXTERNAL;

CREATE TABLE block (
    site TEXT COLLATE "C" PRIMARY KEY,
    reason TEXT NOT NULL,
    blocked_at_ms BIGINT NOT NULL
);
COMMENT ON TABLE block IS 'Sites whose owner opted out: a tombstone that outlives the content.';
COMMENT ON COLUMN block.site IS 'The site.';
COMMENT ON COLUMN block.reason IS 'Why, in words.';
COMMENT ON COLUMN block.blocked_at_ms IS 'Since when.';

CREATE TABLE feed_pending (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    change TEXT NOT NULL,
    site TEXT COLLATE "C" NOT NULL,
    manifest_id TEXT COLLATE "C" NOT NULL,
    reason TEXT
) WITH (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1
);
COMMENT ON TABLE feed_pending IS 'Changes committed by writers and not yet given a position. One sequencer moves them into feed.';
COMMENT ON COLUMN feed_pending.id IS 'Order of arrival; changes of one manifest arrive in the order in which they happened.';
COMMENT ON COLUMN feed_pending.at_ms IS 'When it happened.';
COMMENT ON COLUMN feed_pending.change IS 'A slug of store::FeedChange.';
COMMENT ON COLUMN feed_pending.site IS 'The site.';
COMMENT ON COLUMN feed_pending.manifest_id IS 'The manifest.';
COMMENT ON COLUMN feed_pending.reason IS 'Why.';

CREATE TABLE feed (
    position BIGINT PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    change TEXT NOT NULL,
    site TEXT COLLATE "C" NOT NULL,
    manifest_id TEXT COLLATE "C" NOT NULL,
    reason TEXT
);
COMMENT ON TABLE feed IS 'The ordered changes. Positions have no holes: they are given after commit, by one sequencer at a time.';
COMMENT ON COLUMN feed.position IS '1 the first.';
COMMENT ON COLUMN feed.at_ms IS 'When it happened.';
COMMENT ON COLUMN feed.change IS 'A slug of store::FeedChange.';
COMMENT ON COLUMN feed.site IS 'The site.';
COMMENT ON COLUMN feed.manifest_id IS 'The manifest.';
COMMENT ON COLUMN feed.reason IS 'Why.';

CREATE TABLE feed_state (
    id INTEGER PRIMARY KEY,
    feed_id TEXT NOT NULL,
    last_position BIGINT NOT NULL,
    CHECK (id = 1)
);
COMMENT ON TABLE feed_state IS 'One row: which feed this is, and how far it goes. A table, so that both survive dump and restore.';
COMMENT ON COLUMN feed_state.id IS 'Always 1.';
COMMENT ON COLUMN feed_state.feed_id IS 'Random id of the feed, by which an index notices that it was built from another one.';
COMMENT ON COLUMN feed_state.last_position IS 'Position of the last entry.';

CREATE INDEX site_due ON site (priority, next_visit_at_ms);
COMMENT ON INDEX site_due IS 'Leases are taken in this order.';
CREATE INDEX site_leased ON site (lease_owner) WHERE lease_owner IS NOT NULL;
COMMENT ON INDEX site_leased IS 'Leases of one worker, and how many are out.';
CREATE INDEX site_state_status ON site_state (status, name);
COMMENT ON INDEX site_state_status IS 'Lists and counts of sites by how they stand.';
CREATE INDEX site_state_with_manifests ON site_state (name) WHERE manifests > 0;
COMMENT ON INDEX site_state_with_manifests IS 'Lists of sites that publish something.';
CREATE INDEX site_state_parked ON site_state (parked_until_ms) WHERE parked_until_ms IS NOT NULL;
COMMENT ON INDEX site_state_parked IS 'Parked visits by when they go on.';
CREATE INDEX host_site ON host (site);
COMMENT ON INDEX host_site IS 'Hosts of the sites of a lease.';
CREATE INDEX robots_site ON robots (site);
COMMENT ON INDEX robots_site IS 'Purging of a blocked site.';
CREATE INDEX resource_site ON resource (site);
COMMENT ON INDEX resource_site IS 'Resources of the sites of a lease.';
CREATE INDEX manifest_site ON manifest (site);
COMMENT ON INDEX manifest_site IS 'Manifests of a site.';
CREATE INDEX manifest_format ON manifest (format) WHERE removed_at_ms IS NULL;
COMMENT ON INDEX manifest_format IS 'Manifests in the index by format.';
CREATE INDEX manifest_version_document ON manifest_version (document_hash) WHERE document_hash IS NOT NULL;
COMMENT ON INDEX manifest_version_document IS 'Whether a document is still referred to.';
CREATE INDEX resource_document ON resource (document_hash) WHERE document_hash IS NOT NULL;
COMMENT ON INDEX resource_document IS 'Whether a document is still referred to.';
CREATE INDEX capability_manifest ON capability (manifest_id);
COMMENT ON INDEX capability_manifest IS 'Capabilities of a manifest.';
CREATE INDEX capability_type_manifest ON capability_type (manifest_id);
COMMENT ON INDEX capability_type_manifest IS 'Semantic types of a manifest.';
CREATE INDEX visit_site ON visit (site, id);
COMMENT ON INDEX visit_site IS 'The last visits of a site.';
CREATE INDEX visit_ended ON visit USING brin (ended_at_ms);
COMMENT ON INDEX visit_ended IS 'Visits of the last day.';

INSERT INTO feed_state (id, feed_id, last_position) VALUES (1, gen_random_uuid()::text, 0);
