-- Orders and the tasks made for them, on SQLite. Times are ISO text.
CREATE TABLE orders (
    id TEXT PRIMARY KEY NOT NULL,
    created_at TEXT,
    note TEXT);

CREATE TABLE orders_tasks (
    id TEXT PRIMARY KEY NOT NULL,
    task TEXT NOT NULL,
    source_doc_id TEXT,                   -- the order; no foreign key, as it may be deleted at any time
    status TEXT NOT NULL,
    updated_at TEXT,                      -- when what is watched of the order last changed
    last_finalized_at TEXT);              -- when a worker last completed or failed the task
CREATE INDEX orders_tasks_task ON orders_tasks (task, id);
