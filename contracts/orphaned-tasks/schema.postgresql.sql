-- Orders and the tasks made for them, on PostgreSQL.
CREATE TABLE orders (
    id text PRIMARY KEY,
    created_at timestamptz,
    note text);

CREATE TABLE orders_tasks (
    id text PRIMARY KEY,
    task text NOT NULL,
    source_doc_id text,                   -- the order; no foreign key, as it may be deleted at any time
    status text NOT NULL,
    updated_at timestamptz,               -- when what is watched of the order last changed
    last_finalized_at timestamptz);       -- when a worker last completed or failed the task
CREATE INDEX orders_tasks_task ON orders_tasks (task, id);
