-- Documents that a site only links to share no capabilities any more. The next visit decides again for those that did: a declaration
-- without a fullness gets it then, and the site is grouped again.
UPDATE capability SET fullness = NULL WHERE manifest_id IN (
    SELECT declaration.manifest_id FROM declaration JOIN resource ON resource.id = declaration.manifest_id
    WHERE resource.discovery IN ('catalog_entry', 'pointer', 'submitted'));
