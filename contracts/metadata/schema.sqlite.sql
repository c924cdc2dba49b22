-- The tables of the metadata cleanup, on SQLite. Times are ISO text.
CREATE TABLE metadata (
    id INTEGER PRIMARY KEY,
    external_id TEXT NOT NULL UNIQUE,
    parent_id INTEGER REFERENCES metadata (id),
    name TEXT NOT NULL,
    train_state TEXT NOT NULL
        CHECK (train_state IN ('pending', 'in_progress', 'completed', 'failed', 'cancelled')),
    start_time TEXT,
    end_time TEXT);
CREATE INDEX metadata_start_time ON metadata (start_time, id);
CREATE INDEX metadata_parent_id ON metadata (parent_id);

CREATE TABLE work_queue (
    id INTEGER PRIMARY KEY,
    external_id TEXT NOT NULL UNIQUE,
    metadata_id INTEGER REFERENCES metadata (id));        -- NULL until it is dispatched
CREATE INDEX work_queue_metadata_id ON work_queue (metadata_id);

CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    metadata_id INTEGER NOT NULL REFERENCES metadata (id),
    message TEXT NOT NULL);
CREATE INDEX log_metadata_id ON log (metadata_id);

CREATE TABLE dead_letter (
    id INTEGER PRIMARY KEY,
    reason TEXT NOT NULL,
    retry_metadata_id INTEGER REFERENCES metadata (id));
CREATE INDEX dead_letter_retry_metadata_id ON dead_letter (retry_metadata_id);
