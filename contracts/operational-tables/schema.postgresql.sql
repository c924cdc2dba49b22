-- The operational tables of a state store, on PostgreSQL.
CREATE TABLE presence_entries (
    tenant_id text NOT NULL,
    instance_id text NOT NULL,
    last_seen_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, instance_id));
CREATE INDEX presence_entries_expires_at_ms ON presence_entries (expires_at_ms, tenant_id, instance_id);
CREATE INDEX presence_entries_newest ON presence_entries (tenant_id, last_seen_at_ms, instance_id);

CREATE TABLE connections (
    tenant_id text NOT NULL,
    connection_id text NOT NULL,
    edge_id text NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, connection_id));
CREATE INDEX connections_expires_at_ms ON connections (expires_at_ms, tenant_id, connection_id);

CREATE TABLE channel_inbound_dedupe (
    tenant_id text NOT NULL,
    dedupe_key text NOT NULL,
    expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, dedupe_key));
CREATE INDEX channel_inbound_dedupe_expires_at_ms ON channel_inbound_dedupe (expires_at_ms, tenant_id, dedupe_key);

CREATE TABLE channel_inbox (
    tenant_id text NOT NULL,
    inbox_id bigint NOT NULL,
    status text NOT NULL CHECK (status IN ('queued', 'processing', 'completed', 'failed')),
    received_at_ms bigint NOT NULL,
    terminal_at_ms bigint,                -- when it was completed or failed for good
    body text,
    PRIMARY KEY (tenant_id, inbox_id));
CREATE INDEX channel_inbox_terminal_at_ms ON channel_inbox (status, terminal_at_ms, tenant_id, inbox_id);

-- No foreign key: a failed message ages out whatever became of its answers.
CREATE TABLE channel_outbox (
    tenant_id text NOT NULL,
    outbox_id bigint NOT NULL,
    inbox_id bigint NOT NULL,
    status text NOT NULL CHECK (status IN ('queued', 'sending', 'sent', 'failed')),
    created_at_ms bigint NOT NULL,
    terminal_at_ms bigint,                -- when it failed for good
    body text,
    PRIMARY KEY (tenant_id, outbox_id));
CREATE INDEX channel_outbox_terminal_at_ms ON channel_outbox (status, terminal_at_ms, tenant_id, outbox_id);
CREATE INDEX channel_outbox_inbox_id ON channel_outbox (tenant_id, inbox_id);

CREATE TABLE lane_leases (
    tenant_id text NOT NULL,
    lane text NOT NULL,
    owner text NOT NULL,
    lease_expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, lane));
CREATE INDEX lane_leases_expire ON lane_leases (lease_expires_at_ms, tenant_id, lane);

CREATE TABLE workspace_leases (
    tenant_id text NOT NULL,
    workspace_id text NOT NULL,
    owner text NOT NULL,
    lease_expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, workspace_id));
CREATE INDEX workspace_leases_expire ON workspace_leases (lease_expires_at_ms, tenant_id, workspace_id);

CREATE TABLE oauth_pending (
    tenant_id text NOT NULL,
    state text NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (tenant_id, state));
CREATE INDEX oauth_pending_expires_at ON oauth_pending (expires_at, tenant_id, state);

CREATE TABLE oauth_refresh_leases (
    tenant_id text NOT NULL,
    account_id text NOT NULL,
    owner text NOT NULL,
    lease_expires_at_ms bigint NOT NULL,
    PRIMARY KEY (tenant_id, account_id));
CREATE INDEX oauth_refresh_leases_expire ON oauth_refresh_leases (lease_expires_at_ms, tenant_id, account_id);

CREATE TABLE models_dev_refresh_leases (
    key text PRIMARY KEY NOT NULL,
    owner text NOT NULL,
    lease_expires_at_ms bigint NOT NULL);
CREATE INDEX models_dev_refresh_leases_expire ON models_dev_refresh_leases (lease_expires_at_ms, key);

CREATE TABLE models_dev_cache (
    id bigint PRIMARY KEY NOT NULL CHECK (id = 1),
    body text);

CREATE TABLE outbox (
    id bigint PRIMARY KEY NOT NULL,
    topic text NOT NULL,
    payload text NOT NULL,
    created_at timestamptz NOT NULL);
CREATE INDEX outbox_created_at ON outbox (created_at, id);

CREATE TABLE outbox_consumers (
    tenant_id text NOT NULL,
    consumer_id text NOT NULL,
    last_outbox_id bigint NOT NULL,
    updated_at timestamptz,
    PRIMARY KEY (tenant_id, consumer_id));
CREATE INDEX outbox_consumers_updated_at ON outbox_consumers (updated_at, tenant_id, consumer_id);
