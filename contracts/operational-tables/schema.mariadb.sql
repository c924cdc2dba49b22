-- The operational tables of a state store, on MariaDB. Names compare exactly. Times are in UTC where they are not milliseconds.
CREATE TABLE presence_entries (
    tenant_id varchar(191) NOT NULL,
    instance_id varchar(191) NOT NULL,
    last_seen_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, instance_id)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX presence_entries_expires_at_ms ON presence_entries (expires_at_ms, tenant_id, instance_id);
CREATE INDEX presence_entries_newest ON presence_entries (tenant_id, last_seen_at_ms, instance_id);

CREATE TABLE connections (
    tenant_id varchar(191) NOT NULL,
    connection_id varchar(191) NOT NULL,
    edge_id varchar(191) NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, connection_id)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX connections_expires_at_ms ON connections (expires_at_ms, tenant_id, connection_id);

CREATE TABLE channel_inbound_dedupe (
    tenant_id varchar(191) NOT NULL,
    dedupe_key varchar(191) NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, dedupe_key)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX channel_inbound_dedupe_expires_at_ms ON channel_inbound_dedupe (expires_at_ms, tenant_id, dedupe_key);

CREATE TABLE channel_inbox (
    tenant_id varchar(191) NOT NULL,
    inbox_id bigint NOT NULL,
    status ENUM ('queued', 'processing', 'completed', 'failed') NOT NULL,
    received_at_ms bigint NOT NULL,
    terminal_at_ms bigint,                -- when it was completed or failed for good
    body longtext,
    PRIMARY KEY (tenant_id, inbox_id)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX channel_inbox_terminal_at_ms ON channel_inbox (status, terminal_at_ms, tenant_id, inbox_id);

-- No foreign key: a failed message ages out whatever became of its answers.
CREATE TABLE channel_outbox (
    tenant_id varchar(191) NOT NULL,
    outbox_id bigint NOT NULL,
    inbox_id bigint NOT NULL,
    status ENUM ('queued', 'sending', 'sent', 'failed') NOT NULL,
    created_at_ms bigint NOT NULL,
    terminal_at_ms bigint,                -- when it failed for good
    body longtext,
    PRIMARY KEY (tenant_id, outbox_id)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX channel_outbox_terminal_at_ms ON channel_outbox (status, terminal_at_ms, tenant_id, outbox_id);
CREATE INDEX channel_outbox_inbox_id ON channel_outbox (tenant_id, inbox_id);

CREATE TABLE lane_leases (
    tenant_id varchar(191) NOT NULL,
    lane varchar(191) NOT NULL,
    owner varchar(191) NOT NULL,
    lease_expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, lane)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX lane_leases_expire ON lane_leases (lease_expires_at_ms, tenant_id, lane);

CREATE TABLE workspace_leases (
    tenant_id varchar(191) NOT NULL,
    workspace_id varchar(191) NOT NULL,
    owner varchar(191) NOT NULL,
    lease_expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, workspace_id)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX workspace_leases_expire ON workspace_leases (lease_expires_at_ms, tenant_id, workspace_id);

CREATE TABLE oauth_pending (
    tenant_id varchar(191) NOT NULL,
    state varchar(191) NOT NULL,
    expires_at datetime(6),
    PRIMARY KEY (tenant_id, state)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX oauth_pending_expires_at ON oauth_pending (expires_at, tenant_id, state);

CREATE TABLE oauth_refresh_leases (
    tenant_id varchar(191) NOT NULL,
    account_id varchar(191) NOT NULL,
    owner varchar(191) NOT NULL,
    lease_expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, account_id)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX oauth_refresh_leases_expire ON oauth_refresh_leases (lease_expires_at_ms, tenant_id, account_id);

CREATE TABLE models_dev_refresh_leases (
    `key` varchar(191) PRIMARY KEY NOT NULL,
    owner varchar(191) NOT NULL,
    lease_expires_at_ms bigint NOT NULL
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX models_dev_refresh_leases_expire ON models_dev_refresh_leases (lease_expires_at_ms, `key`);

CREATE TABLE models_dev_cache (
    id bigint PRIMARY KEY NOT NULL CHECK (id = 1),
    body longtext
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE outbox (
    id bigint PRIMARY KEY NOT NULL,
    topic varchar(191) NOT NULL,
    payload longtext NOT NULL,
    created_at datetime(6) NOT NULL
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX outbox_created_at ON outbox (created_at, id);

CREATE TABLE outbox_consumers (
    tenant_id varchar(191) NOT NULL,
    consumer_id varchar(191) NOT NULL,
    last_outbox_id bigint NOT NULL,
    updated_at datetime(6),
    PRIMARY KEY (tenant_id, consumer_id)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
CREATE INDEX outbox_consumers_updated_at ON outbox_consumers (updated_at, tenant_id, consumer_id);
