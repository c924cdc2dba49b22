-- The tables of the older metadata cleanup, on SQLite. Times are ISO text.
CREATE TABLE metadata (
    id INTEGER PRIMARY KEY,
    external_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    workflow_state TEXT NOT NULL CHECK (workflow_state IN ('pending', 'in_progress', 'completed', 'failed')),
    start_time TEXT,
    end_time TEXT);
CREATE INDEX metadata_start_time ON metadata (start_time, id);

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
