-- Workflows, their steps and what they store, on PostgreSQL.
CREATE TABLE workflow (
    id text PRIMARY KEY,
    status text NOT NULL CHECK (status IN ('pending', 'running', 'paused', 'completed', 'failed', 'cancelled')),
    finished_at timestamptz,              -- when it got its terminal state; NULL again after a restart
    note text);
CREATE INDEX workflow_finished_at ON workflow (finished_at, id);

CREATE TABLE workflow_step (
    workflow_id text NOT NULL REFERENCES workflow (id),
    step text NOT NULL,
    attempts integer NOT NULL,
    result text,
    PRIMARY KEY (workflow_id, step));

-- Anything else an instance keeps, under a name. No foreign key: what is stored may outlive the workflow.
CREATE TABLE workflow_kv (
    instance_id text NOT NULL,
    key text NOT NULL,
    value text,
    PRIMARY KEY (instance_id, key));
