-- Workflows, their steps and what they store, on MariaDB. Names compare exactly. Times are in UTC.
CREATE TABLE workflow (
    id varchar(191) PRIMARY KEY,
    status ENUM ('pending', 'running', 'paused', 'completed', 'failed', 'cancelled') NOT NULL,
    finished_at datetime(6),              -- when it got its terminal state; NULL again after a restart
    note longtext
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX workflow_finished_at ON workflow (finished_at, id);

CREATE TABLE workflow_step (
    workflow_id varchar(191) NOT NULL REFERENCES workflow (id),
    step varchar(191) NOT NULL,
    attempts integer NOT NULL,
    result longtext,
    PRIMARY KEY (workflow_id, step)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- Anything else an instance keeps, under a name. No foreign key: what is stored may outlive the workflow.
CREATE TABLE workflow_kv (
    instance_id varchar(191) NOT NULL,
    `key` varchar(191) NOT NULL,
    value longtext,
    PRIMARY KEY (instance_id, `key`)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
