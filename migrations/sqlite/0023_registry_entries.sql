-- What other registries list about sites, and how far each registry has been read. An expansion: programs of the schema before list nothing.

-- Entries of registries that are followed: one row for each site that an entry names.
CREATE TABLE registry_entry (
    -- URL of the registry.
    registry TEXT NOT NULL,
    -- Name of the server or identifier of the agent, as the registry lists it.
    identifier TEXT NOT NULL,
    -- The site.
    site TEXT NOT NULL,
    -- The listed name for people.
    name TEXT,
    -- The listed endpoint or document.
    url TEXT,
    -- The listed version.
    version TEXT,
    -- When the entry changed, according to the registry.
    updated_at_ms BIGINT,
    -- When a page of the registry last had it.
    seen_at_ms BIGINT NOT NULL,
    PRIMARY KEY (registry, identifier, site)
) WITHOUT ROWID;
-- The entries about a site.
CREATE INDEX registry_entry_site ON registry_entry (site);

-- How far registries have been read.
CREATE TABLE registry_position (
    -- URL of the registry, as in registry_entry.
    registry TEXT PRIMARY KEY NOT NULL,
    -- Latest change that the registry has stated in a reading that reached the end; null if there is none.
    changed_until_ms BIGINT,
    -- When the last reading of all entries that reached the end began; null if there is none.
    read_whole_at_ms BIGINT,
    -- When the unfinished reading began; null if there is none, like the next two columns.
    began_at_ms BIGINT,
    -- Token of the page with which it continues.
    next_page TEXT,
    -- Latest change that the registry has stated in it; may be null.
    latest_ms BIGINT
) WITHOUT ROWID;
