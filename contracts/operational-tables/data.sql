-- Made for --now 2024-06-15T12:00:00Z, which is 1718452800000 ms. What must become of each row is its name.

-- Expired at that instant: TTLs and leases are over from the instant they name.
INSERT INTO presence_entries (tenant_id, instance_id, last_seen_at_ms, expires_at_ms) VALUES
    ('north', 'go-expired-long-ago',    1718400000000, 1718400060000),
    ('north', 'go-expired-just-before', 1718452739999, 1718452799999),
    ('north', 'go-expired-exactly',     1718452740000, 1718452800000),
    ('north', 'keep-just-alive',        1718452740001, 1718452800001),
    ('south', 'keep-alive',             1718452799000, 1718452859000);
-- 502 that are alive, of a tenant that may have 500: the two seen longest ago go. The second and the third were seen at
-- the same time, so their names decide.
INSERT INTO presence_entries (tenant_id, instance_id, last_seen_at_ms, expires_at_ms)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 502)
    SELECT 'crowd', CASE WHEN i <= 2 THEN 'go-over-the-cap-' ELSE 'keep-in-the-cap-' END || i,
           1718452740000 + CASE WHEN i = 3 THEN 2 ELSE i END, 1718452860000 FROM n;

INSERT INTO connections (tenant_id, connection_id, edge_id, expires_at_ms) VALUES
    ('north', 'go-expired-just-before', 'edge-1', 1718452799999),
    ('north', 'go-expired-exactly',     'edge-1', 1718452800000),
    ('north', 'keep-just-alive',        'edge-2', 1718452800001),
    ('south', 'keep-refreshed',         'edge-2', 1718452830000);

INSERT INTO channel_inbound_dedupe (tenant_id, dedupe_key, expires_at_ms) VALUES
    ('north', 'go-expired-just-before', 1718452799999),
    ('north', 'go-expired-exactly',     1718452800000),
    ('north', 'keep-in-its-window',     1718452800001);

INSERT INTO lane_leases (tenant_id, lane, owner, lease_expires_at_ms) VALUES
    ('north', 'go-expired-just-before', 'w1', 1718452799999),
    ('north', 'go-expired-exactly',     'w1', 1718452800000),
    ('north', 'keep-held',              'w2', 1718452800001);

INSERT INTO workspace_leases (tenant_id, workspace_id, owner, lease_expires_at_ms) VALUES
    ('north', 'go-expired-just-before', 'w1', 1718452799999),
    ('north', 'go-expired-exactly',     'w1', 1718452800000),
    ('north', 'keep-held',              'w2', 1718452800001);

INSERT INTO oauth_pending (tenant_id, state, expires_at) VALUES
    ('north', 'go-expired-just-before', '2024-06-15T11:59:59.999Z'),
    ('north', 'go-expired-exactly',     '2024-06-15T12:00:00Z'),
    ('north', 'go-expired-elsewhere',   '2024-06-15T13:59:00+02:00'),
    ('north', 'keep-live-handshake',    '2024-06-15T12:00:00.001Z'),
    ('north', 'keep-live-elsewhere',    '2024-06-15T08:00:00-05:00'),
    ('south', 'keep-without-expiry',    NULL);

INSERT INTO oauth_refresh_leases (tenant_id, account_id, owner, lease_expires_at_ms) VALUES
    ('north', 'go-expired-just-before', 'w1', 1718452799999),
    ('north', 'go-expired-exactly',     'w1', 1718452800000),
    ('north', 'keep-held',              'w2', 1718452800001);

INSERT INTO models_dev_refresh_leases ("key", owner, lease_expires_at_ms) VALUES
    ('go-expired-just-before', 'w1', 1718452799999),
    ('go-expired-exactly',     'w1', 1718452800000),
    ('keep-held',              'w2', 1718452800001);

INSERT INTO models_dev_cache (id, body) VALUES (1, 'keep: a single row for ever');

-- The terminal window is 7 days: 2024-06-08T12:00:00Z is 1717848000000.
INSERT INTO channel_inbox (tenant_id, inbox_id, status, received_at_ms, terminal_at_ms, body) VALUES
    ('north',  1, 'failed',     1717000000000, 1717000000000, 'go: failed long ago'),
    ('north',  2, 'failed',     1717000000000, 1717847999999, 'go: failed just before the window'),
    ('north',  3, 'failed',     1717000000000, 1717848000000, 'keep: failed 7 days ago exactly'),
    ('north',  4, 'failed',     1717000000000, 1718452700000, 'keep: received long ago, failed just now'),
    ('north',  5, 'failed',     1717000000000, 1717000000000, 'go: failed, whatever became of its answers'),
    ('north',  6, 'completed',  1717000000000, 1717847999999, 'go: completed just before the window, nothing depends on it'),
    ('north',  7, 'completed',  1717000000000, 1717848000000, 'keep: completed 7 days ago exactly'),
    ('north',  8, 'completed',  1717000000000, 1717000000000, 'keep: an answer of it is still queued'),
    ('north',  9, 'completed',  1717000000000, 1717000000000, 'keep: an answer of it failed and is still in its window'),
    ('north', 10, 'completed',  1717000000000, 1717000000000, 'go: its failed answer goes in the same run'),
    ('south',  8, 'completed',  1717000000000, 1717000000000, 'go: the queued answer is another tenant''s'),
    ('north', 11, 'queued',     1717000000000, NULL,          'keep: queued at any age'),
    ('north', 14, 'queued',     1717000000000, 1717000000000, 'keep: put back into the queue'),
    ('north', 12, 'processing', 1717000000000, 1717000000000, 'keep: being worked on again'),
    ('north', 13, 'completed',  1717000000000, NULL,          'keep: nobody knows since when');

INSERT INTO channel_outbox (tenant_id, outbox_id, inbox_id, status, created_at_ms, terminal_at_ms, body) VALUES
    ('north', 1,  5, 'queued',  1717000000000, NULL,          'keep: not sent yet'),
    ('north', 2,  8, 'queued',  1717000000000, NULL,          'keep: not sent yet'),
    ('north', 3,  9, 'failed',  1717000000000, 1717848000000, 'keep: failed 7 days ago exactly'),
    ('north', 4, 10, 'failed',  1717000000000, 1717847999999, 'go: failed just before the window'),
    ('north', 5,  3, 'failed',  1717000000000, 1717000000000, 'go: failed long ago'),
    ('north', 6, 12, 'sending', 1717000000000, 1717000000000, 'keep: being sent again'),
    ('north', 7, 12, 'sent',    1717000000000, 1717000000000, 'keep: the delivery path deletes it'),
    ('north', 8, 12, 'failed',  1717000000000, NULL,          'keep: nobody knows since when');

-- A day of replay history: 2024-06-14T12:00:00Z.
INSERT INTO outbox (id, topic, payload, created_at) VALUES
    (1, 'ws', 'go: long ago',               '2024-06-01T00:00:00Z'),
    (2, 'ws', 'go: just before the window', '2024-06-14T11:59:59.999Z'),
    (3, 'ws', 'keep: a day exactly',        '2024-06-14T12:00:00Z'),
    (4, 'ws', 'keep: just now',             '2024-06-15T11:59:59Z');

INSERT INTO outbox_consumers (tenant_id, consumer_id, last_outbox_id, updated_at) VALUES
    ('north', 'go-gone-for-good',      1, '2024-05-01T00:00:00Z'),
    ('north', 'go-just-stale',         4, '2024-06-14T11:59:59.999Z'),
    ('north', 'keep-exactly-a-day',    1, '2024-06-14T12:00:00Z'),
    ('north', 'keep-advances',         4, '2024-06-15T11:59:59Z'),
    ('south', 'keep-never-advanced',   0, NULL);
