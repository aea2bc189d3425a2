-- What people chose for a request; empty unless the operator turned feedback on.
CREATE TABLE feedback (
    -- In the order of arrival.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- When it was said.
    at_ms BIGINT NOT NULL,
    -- The request, on one line.
    query TEXT NOT NULL,
    -- The capability that was chosen.
    capability_id TEXT NOT NULL,
    -- The site that declares it.
    site TEXT NOT NULL,
    -- Its place among the results of the request at that time; the first is 1.
    place INTEGER NOT NULL,
    -- A hash of the address with the salt of its day; says who said the same day what, and nobody's name.
    client TEXT NOT NULL
);
-- Who says a thing twice has said it once; what one client said.
CREATE UNIQUE INDEX feedback_once ON feedback (client, capability_id, query);
-- What was said of one site, and by whom.
CREATE INDEX feedback_site ON feedback (site, client);
-- Requests with what was chosen for them.
CREATE INDEX feedback_pair ON feedback (query, capability_id);

-- The salt of the day, the same for every process; with the end of the day it is gone, and hashes of that day lead nowhere.
CREATE TABLE feedback_salt (
    -- Days since 1970-01-01 UTC.
    day BIGINT PRIMARY KEY NOT NULL,
    -- Random hexadecimal digits.
    salt TEXT NOT NULL
) WITHOUT ROWID;
