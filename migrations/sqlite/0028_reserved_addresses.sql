-- Times at addresses that workers reserve without owning the address. An expansion: programs of the schema before reserve none.
-- End of the last time that a worker reserved without owning the address; 0 if none did.
ALTER TABLE address_clock ADD COLUMN reserved_until_ms BIGINT NOT NULL DEFAULT 0;
