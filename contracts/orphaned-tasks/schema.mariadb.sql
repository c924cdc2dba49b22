-- Orders and the tasks made for them, on MariaDB. Names compare exactly. Times are in UTC.
CREATE TABLE orders (
    id varchar(191) PRIMARY KEY,
    created_at datetime(6),
    note longtext
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE orders_tasks (
    id varchar(191) PRIMARY KEY,
    task varchar(191) NOT NULL,
    source_doc_id varchar(191),                   -- the order; no foreign key, as it may be deleted at any time
    status varchar(191) NOT NULL,
    updated_at datetime(6),               -- when what is watched of the order last changed
    last_finalized_at datetime(6)  -- when a worker last completed or failed the task
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX orders_tasks_task ON orders_tasks (task, id);
