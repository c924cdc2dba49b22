-- The operational tables of a state store, on SQLite. Times are ISO text where they are not milliseconds.
CREATE TABLE presence_entries (
    tenant_id TEXT NOT NULL,
    instance_id TEXT NOT NULL,
    last_seen_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, instance_id));
CREATE INDEX presence_entries_expires_at_ms ON presence_entries (expires_at_ms, tenant_id, instance_id);
CREATE INDEX presence_entries_newest ON presence_entries (tenant_id, last_seen_at_ms, instance_id);

CREATE TABLE connections (
    tenant_id TEXT NOT NULL,
    connection_id TEXT NOT NULL,
    edge_id TEXT NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, connection_id));
CREATE INDEX connections_expires_at_ms ON connections (expires_at_ms, tenant_id, connection_id);

CREATE TABLE channel_inbound_dedupe (
    tenant_id TEXT NOT NULL,
    dedupe_key TEXT NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, dedupe_key));
CREATE INDEX channel_inbound_dedupe_expires_at_ms ON channel_inbound_dedupe (expires_at_ms, tenant_id, dedupe_key);

CREATE TABLE channel_inbox (
    tenant_id TEXT NOT NULL,
    inbox_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'processing', 'completed', 'failed')),
    received_at_ms INTEGER NOT NULL,
    terminal_at_ms INTEGER,                -- when it was completed or failed for good
    body TEXT,
    PRIMARY KEY (tenant_id, inbox_id));
CREATE INDEX channel_inbox_terminal_at_ms ON channel_inbox (status, terminal_at_ms, tenant_id, inbox_id);

-- No foreign key: a failed message ages out whatever became of its answers.
CREATE TABLE channel_outbox (
    tenant_id TEXT NOT NULL,
    outbox_id INTEGER NOT NULL,
    inbox_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('queued', 'sending', 'sent', 'failed')),
    created_at_ms INTEGER NOT NULL,
    terminal_at_ms INTEGER,                -- when it failed for good
    body TEXT,
    PRIMARY KEY (tenant_id, outbox_id));
CREATE INDEX channel_outbox_terminal_at_ms ON channel_outbox (status, terminal_at_ms, tenant_id, outbox_id);
CREATE INDEX channel_outbox_inbox_id ON channel_outbox (tenant_id, inbox_id);

CREATE TABLE lane_leases (
    tenant_id TEXT NOT NULL,
    lane TEXT NOT NULL,
    owner TEXT NOT NULL,
    lease_expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, lane));
CREATE INDEX lane_leases_expire ON lane_leases (lease_expires_at_ms, tenant_id, lane);

CREATE TABLE workspace_leases (
    tenant_id TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    lease_expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, workspace_id));
CREATE INDEX workspace_leases_expire ON workspace_leases (lease_expires_at_ms, tenant_id, workspace_id);

CREATE TABLE oauth_pending (
    tenant_id TEXT NOT NULL,
    state TEXT NOT NULL,
    expires_at TEXT,
    PRIMARY KEY (tenant_id, state));
CREATE INDEX oauth_pending_expires_at ON oauth_pending (expires_at, tenant_id, state);

CREATE TABLE oauth_refresh_leases (
    tenant_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    lease_expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, account_id));
CREATE INDEX oauth_refresh_leases_expire ON oauth_refresh_leases (lease_expires_at_ms, tenant_id, account_id);

CREATE TABLE models_dev_refresh_leases (
    key TEXT PRIMARY KEY NOT NULL,
    owner TEXT NOT NULL,
    lease_expires_at_ms INTEGER NOT NULL);
CREATE INDEX models_dev_refresh_leases_expire ON models_dev_refresh_leases (lease_expires_at_ms, key);

CREATE TABLE models_dev_cache (
    id INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
    body TEXT);

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY NOT NULL,
    topic TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at TEXT NOT NULL);
CREATE INDEX outbox_created_at ON outbox (created_at, id);

CREATE TABLE outbox_consumers (
    tenant_id TEXT NOT NULL,
    consumer_id TEXT NOT NULL,
    last_outbox_id INTEGER NOT NULL,
    updated_at TEXT,
    PRIMARY KEY (tenant_id, consumer_id));
CREATE INDEX outbox_consumers_updated_at ON outbox_consumers (updated_at, tenant_id, consumer_id);
