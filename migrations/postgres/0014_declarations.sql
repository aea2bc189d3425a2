-- Documents of a site may declare one capability several times. An expansion: programs of the schema before leave the columns
-- null and do not know the table; the next visit of a site fills both in.
SET LOCAL lock_timeout = '10s';
ALTER TABLE capability ADD COLUMN operation TEXT COLLATE "C", ADD COLUMN fullness INTEGER;
COMMENT ON COLUMN capability.operation IS 'Key of the operation that the declaration calls; null where it has none.';
COMMENT ON COLUMN capability.fullness IS 'How much the declaration states, the more the larger; null where a program of the schema before wrote the row.';

CREATE TABLE declaration (
    id TEXT COLLATE "C" PRIMARY KEY,
    capability_id TEXT COLLATE "C" NOT NULL,
    site TEXT COLLATE "C" NOT NULL,
    manifest_id TEXT COLLATE "C",
    place INTEGER NOT NULL
);
COMMENT ON TABLE declaration IS 'Declarations that are one capability together, and ids that another capability answers. A capability with one declaration and the id of that has no row.';
COMMENT ON COLUMN declaration.id IS 'Id of a declaration, as in capability.';
COMMENT ON COLUMN declaration.capability_id IS 'Id of the capability that it belongs to.';
COMMENT ON COLUMN declaration.site IS 'The site.';
COMMENT ON COLUMN declaration.manifest_id IS 'The manifest of the declaration; null where the declaration is gone and its id is still answered.';
COMMENT ON COLUMN declaration.place IS '0 leads, the others follow by fullness.';
CREATE INDEX declaration_capability ON declaration (capability_id, place);
COMMENT ON INDEX declaration_capability IS 'The declarations of a capability in their order.';
CREATE INDEX declaration_site ON declaration (site);
COMMENT ON INDEX declaration_site IS 'What a visit replaces.';
CREATE INDEX declaration_manifest ON declaration (manifest_id) WHERE manifest_id IS NOT NULL;
COMMENT ON INDEX declaration_manifest IS 'The capabilities that a manifest shares with others.';
