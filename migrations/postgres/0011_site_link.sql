-- What links of strangers may cost is bounded by who made them. An expansion: programs of the schema before write no row, and
-- the links that they follow are not counted.
CREATE TABLE site_link (
    site TEXT COLLATE "C" PRIMARY KEY,
    linked_by TEXT COLLATE "C" NOT NULL,
    is_open INTEGER NOT NULL
);
COMMENT ON TABLE site_link IS 'Sites that other sites link to.';
COMMENT ON COLUMN site_link.site IS 'Registrable domain of a site that another one links to, as in site.';
COMMENT ON COLUMN site_link.linked_by IS 'The site whose link came first; empty where it is not known.';
COMMENT ON COLUMN site_link.is_open IS '1 while the link made the site known and nobody has visited it; 0 otherwise.';
COMMENT ON COLUMN site.priority IS 'Class of the lease order: 0 asked for, then 2 listed and 3 to 5 by rank, last 1 linked, which has a share of every batch.';

CREATE INDEX site_link_open ON site_link (linked_by) WHERE is_open = 1;
