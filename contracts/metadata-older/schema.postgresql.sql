-- The tables of the older metadata cleanup, on PostgreSQL.
CREATE TYPE workflow_state AS ENUM ('pending', 'in_progress', 'completed', 'failed');

CREATE TABLE metadata (
    id bigint PRIMARY KEY,
    external_id text NOT NULL UNIQUE,
    name text NOT NULL,
    workflow_state workflow_state NOT NULL,
    start_time timestamptz,
    end_time timestamptz);
CREATE INDEX metadata_start_time ON metadata (start_time, id);

CREATE TABLE work_queue (
    id bigint PRIMARY KEY,
    external_id text NOT NULL UNIQUE,
    metadata_id bigint REFERENCES metadata (id));         -- NULL until it is dispatched
CREATE INDEX work_queue_metadata_id ON work_queue (metadata_id);

CREATE TABLE log (
    id bigint PRIMARY KEY,
    metadata_id bigint NOT NULL REFERENCES metadata (id),
    message text NOT NULL);
CREATE INDEX log_metadata_id ON log (metadata_id);
