-- Turns at private suffixes of the Public Suffix List (github.io). An embedded database has one crawler, whose turns outlive it here.

-- Politeness clocks of private suffixes.
CREATE TABLE suffix_clock (
    -- The suffix, in ASCII.
    suffix TEXT PRIMARY KEY NOT NULL,
    -- No request below it leaves before this, unless it has its turn already.
    next_ok_at_ms BIGINT NOT NULL
) WITHOUT ROWID;

-- Requests below private suffixes that are under way or have their turn; removed when they end.
CREATE TABLE suffix_turn (
    -- Names the turn.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Of which suffix.
    suffix TEXT NOT NULL,
    -- When it counts as ended, whatever became of the worker.
    until_ms BIGINT NOT NULL
);
-- The turns of one suffix.
CREATE INDEX suffix_turn_suffix ON suffix_turn (suffix);
