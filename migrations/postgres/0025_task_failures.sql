-- Background tasks that fail: `status` shows them. An expansion: programs of the schema before only log them.
CREATE TABLE task_failure (
    task TEXT COLLATE "C" NOT NULL,
    machine TEXT COLLATE "C" NOT NULL,
    since_ms BIGINT NOT NULL,
    last_ms BIGINT NOT NULL,
    failures INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (task, machine)
);
COMMENT ON TABLE task_failure IS 'Background tasks that fail.';
COMMENT ON COLUMN task_failure.task IS 'The task: a slug of store::BackgroundTask.';
COMMENT ON COLUMN task_failure.machine IS 'The name of the machine on which it fails.';
COMMENT ON COLUMN task_failure.since_ms IS 'When it failed first since its last success.';
COMMENT ON COLUMN task_failure.last_ms IS 'When it failed last.';
COMMENT ON COLUMN task_failure.failures IS 'How often it has failed since its last success.';
COMMENT ON COLUMN task_failure.reason IS 'Why it failed last, and what to do.';
