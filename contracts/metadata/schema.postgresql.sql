-- The tables of the metadata cleanup, on PostgreSQL, in a schema of their own.
CREATE SCHEMA trax;
SET search_path TO trax;

CREATE TYPE train_state AS ENUM ('pending', 'in_progress', 'completed', 'failed', 'cancelled');

CREATE TABLE metadata (
    id bigint PRIMARY KEY,
    external_id text NOT NULL UNIQUE,
    parent_id bigint REFERENCES metadata (id),
    name text NOT NULL,
    train_state train_state NOT NULL,
    start_time timestamptz,
    end_time timestamptz);
CREATE INDEX metadata_start_time ON metadata (start_time, id);
CREATE INDEX metadata_parent_id ON metadata (parent_id);

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

CREATE TABLE dead_letter (
    id bigint PRIMARY KEY,
    reason text NOT NULL,
    retry_metadata_id bigint REFERENCES metadata (id));
CREATE INDEX dead_letter_retry_metadata_id ON dead_letter (retry_metadata_id);
