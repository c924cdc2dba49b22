-- The tables of the older metadata cleanup, on MariaDB. Names compare exactly. Times are in UTC.
CREATE TABLE metadata (
    id bigint PRIMARY KEY,
    external_id varchar(191) NOT NULL UNIQUE,
    name varchar(191) NOT NULL,
    workflow_state ENUM ('pending', 'in_progress', 'completed', 'failed') NOT NULL,
    start_time datetime(6),
    end_time datetime(6)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX metadata_start_time ON metadata (start_time, id);

CREATE TABLE work_queue (
    id bigint PRIMARY KEY,
    external_id varchar(191) NOT NULL UNIQUE,
    metadata_id bigint REFERENCES metadata (id)  -- NULL until it is dispatched
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX work_queue_metadata_id ON work_queue (metadata_id);

CREATE TABLE log (
    id bigint PRIMARY KEY,
    metadata_id bigint NOT NULL REFERENCES metadata (id),
    message varchar(191) NOT NULL
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX log_metadata_id ON log (metadata_id);
