-- Documents of a site may declare one capability several times. An expansion: programs of the schema before leave the columns
-- null and do not know the table; the next visit of a site fills both in.

-- Key of the operation that the declaration calls; null where it has none.
ALTER TABLE capability ADD COLUMN operation TEXT;
-- How much the declaration states, the more the larger; null where a program of the schema before wrote the row.
ALTER TABLE capability ADD COLUMN fullness INTEGER;

-- Declarations that are one capability together, and ids that another capability answers. A capability with one declaration
-- and the id of that has no row.
CREATE TABLE declaration (
    -- Id of a declaration, as in capability.
    id TEXT PRIMARY KEY NOT NULL,
    -- Id of the capability that it belongs to.
    capability_id TEXT NOT NULL,
    -- The site.
    site TEXT NOT NULL,
    -- The manifest of the declaration; null where the declaration is gone and its id is still answered.
    manifest_id TEXT,
    -- 0 leads, the others follow by fullness.
    place INTEGER NOT NULL
) WITHOUT ROWID;
-- The declarations of a capability in their order.
CREATE INDEX declaration_capability ON declaration (capability_id, place);
-- What a visit replaces.
CREATE INDEX declaration_site ON declaration (site);
-- The capabilities that a manifest shares with others.
CREATE INDEX declaration_manifest ON declaration (manifest_id) WHERE manifest_id IS NOT NULL;
