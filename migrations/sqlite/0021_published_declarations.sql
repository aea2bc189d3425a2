-- Whether the site itself publishes the document of a declaration. An expansion: programs of the schema before write 1.
-- 0 where a user of the site may have written it: its values are compared with those of the leading declaration, and not used.
ALTER TABLE declaration ADD COLUMN is_published INTEGER NOT NULL DEFAULT 1;
