-- Times at addresses that workers reserve without owning the address. An expansion: programs of the schema before reserve none.
SET LOCAL lock_timeout = '10s';
ALTER TABLE address_clock ADD COLUMN reserved_until_ms BIGINT NOT NULL DEFAULT 0;
COMMENT ON COLUMN address_clock.reserved_until_ms IS 'End of the last time that a worker reserved without owning the address; 0 if none did.';
