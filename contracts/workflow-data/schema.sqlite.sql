-- Workflows, their steps and what they store, on SQLite. Times are ISO text.
CREATE TABLE workflow (
    id TEXT PRIMARY KEY NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'paused', 'completed', 'failed', 'cancelled')),
    finished_at TEXT,                     -- when it got its terminal state; NULL again after a restart
    note TEXT);
CREATE INDEX workflow_finished_at ON workflow (finished_at, id);

CREATE TABLE workflow_step (
    workflow_id TEXT NOT NULL REFERENCES workflow (id),
    step TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    result TEXT,
    PRIMARY KEY (workflow_id, step));

-- Anything else an instance keeps, under a name. No foreign key: what is stored may outlive the workflow.
CREATE TABLE workflow_kv (
    instance_id TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT,
    PRIMARY KEY (instance_id, key));
