-- The tables of the metadata cleanup, on MariaDB. Names compare exactly. Times are in UTC.
CREATE TABLE metadata (
    id bigint PRIMARY KEY,
    external_id varchar(191) NOT NULL UNIQUE,
    parent_id bigint REFERENCES metadata (id),
    name varchar(191) NOT NULL,
    train_state ENUM ('pending', 'in_progress', 'completed', 'failed', 'cancelled') NOT NULL,
    start_time datetime(6),
    end_time datetime(6)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX metadata_start_time ON metadata (start_time, id);
CREATE INDEX metadata_parent_id ON metadata (parent_id);

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

CREATE TABLE dead_letter (
    id bigint PRIMARY KEY,
    reason varchar(191) NOT NULL,
    retry_metadata_id bigint REFERENCES metadata (id)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX dead_letter_retry_metadata_id ON dead_letter (retry_metadata_id);
