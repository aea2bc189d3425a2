-- What other registries list about sites, and how far each registry has been read. An expansion: programs of the schema before list nothing.
CREATE TABLE registry_entry (
    registry TEXT COLLATE "C" NOT NULL,
    identifier TEXT COLLATE "C" NOT NULL,
    site TEXT COLLATE "C" NOT NULL,
    name TEXT,
    url TEXT,
    version TEXT,
    updated_at_ms BIGINT,
    seen_at_ms BIGINT NOT NULL,
    PRIMARY KEY (registry, identifier, site)
);
COMMENT ON TABLE registry_entry IS 'Entries of registries that are followed: one row for each site that an entry names.';
COMMENT ON COLUMN registry_entry.registry IS 'URL of the registry.';
COMMENT ON COLUMN registry_entry.identifier IS 'Name of the server or identifier of the agent, as the registry lists it.';
COMMENT ON COLUMN registry_entry.site IS 'The site.';
COMMENT ON COLUMN registry_entry.name IS 'The listed name for people.';
COMMENT ON COLUMN registry_entry.url IS 'The listed endpoint or document.';
COMMENT ON COLUMN registry_entry.version IS 'The listed version.';
COMMENT ON COLUMN registry_entry.updated_at_ms IS 'When the entry changed, according to the registry.';
COMMENT ON COLUMN registry_entry.seen_at_ms IS 'When a page of the registry last had it.';
CREATE INDEX registry_entry_site ON registry_entry (site);
COMMENT ON INDEX registry_entry_site IS 'The entries about a site.';

CREATE TABLE registry_position (
    registry TEXT COLLATE "C" PRIMARY KEY,
    changed_until_ms BIGINT,
    read_whole_at_ms BIGINT,
    began_at_ms BIGINT,
    next_page TEXT,
    latest_ms BIGINT
);
COMMENT ON TABLE registry_position IS 'How far registries have been read.';
COMMENT ON COLUMN registry_position.registry IS 'URL of the registry, as in registry_entry.';
COMMENT ON COLUMN registry_position.changed_until_ms IS 'Latest change that the registry has stated in a reading that reached the end; null if there is none.';
COMMENT ON COLUMN registry_position.read_whole_at_ms IS 'When the last reading of all entries that reached the end began; null if there is none.';
COMMENT ON COLUMN registry_position.began_at_ms IS 'When the unfinished reading began; null if there is none, like the next two columns.';
COMMENT ON COLUMN registry_position.next_page IS 'Token of the page with which it continues.';
COMMENT ON COLUMN registry_position.latest_ms IS 'Latest change that the registry has stated in it; may be null.';
