-- Background tasks that fail: `status` shows them. An expansion: programs of the schema before only log them.
CREATE TABLE task_failure (
    -- The task: a slug of store::BackgroundTask.
    task TEXT NOT NULL,
    -- The name of the machine on which it fails.
    machine TEXT NOT NULL,
    -- When it failed first since its last success.
    since_ms BIGINT NOT NULL,
    -- When it failed last.
    last_ms BIGINT NOT NULL,
    -- How often it has failed since its last success.
    failures INTEGER NOT NULL,
    -- Why it failed last, and what to do.
    reason TEXT NOT NULL,
    PRIMARY KEY (task, machine)
) WITHOUT ROWID;
