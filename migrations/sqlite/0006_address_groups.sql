-- Every address has one owner: sites know the group of their address, and groups belong to workers. An embedded database
-- has one crawler, which owns all addresses without saying so; the tables serve the same statements.

-- Group of the address that the site is asked at; null until a visit has resolved its name.
ALTER TABLE site ADD COLUMN address_group INTEGER;

-- Crawlers that speak to addresses. One that is not renewed in time loses its row, and with it every group.
CREATE TABLE worker (
    -- Number of this run of the worker; a worker that comes back gets another.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Until when the others leave its groups to it.
    alive_until_ms BIGINT NOT NULL,
    -- 1 for a worker that takes its share of the groups, 0 for one that came for a single site.
    takes_groups INTEGER NOT NULL,
    -- Name of the worker, as in site.lease_owner.
    name TEXT NOT NULL
);

-- Which worker speaks to the addresses of a group. A group that nobody owns has no row.
CREATE TABLE group_owner (
    -- Number of the group, as policy::groups counts them.
    address_group INTEGER PRIMARY KEY,
    -- Number of the worker.
    worker_id BIGINT NOT NULL
);
