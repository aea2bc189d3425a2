-- Whether the site itself publishes the document of a declaration. An expansion: programs of the schema before write 1.
ALTER TABLE declaration ADD COLUMN is_published INTEGER NOT NULL DEFAULT 1;
COMMENT ON COLUMN declaration.is_published IS '0 where a user of the site may have written the document: its values are compared with those of the leading declaration, and not used.';
