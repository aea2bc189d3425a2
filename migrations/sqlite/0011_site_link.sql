-- What links of strangers may cost is bounded by who made them. An expansion: programs of the schema before write no row, and
-- the links that they follow are not counted.
CREATE TABLE site_link (
    -- Registrable domain of a site that another one links to, as in site.
    site TEXT PRIMARY KEY NOT NULL,
    -- The site whose link came first; empty where it is not known.
    linked_by TEXT NOT NULL,
    -- 1 while the link made the site known and nobody has visited it; 0 otherwise.
    is_open INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX site_link_open ON site_link (linked_by) WHERE is_open = 1;
