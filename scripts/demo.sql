-- The demo's database: about 270,000 rows. All times are relative to now, and none is about to become due: a second
-- sweep finds nothing.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
BEGIN;

CREATE TABLE metadata (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    train_state TEXT NOT NULL,
    start_time TEXT,
    parent_id INTEGER REFERENCES metadata(id));
CREATE TABLE work_queue (id INTEGER PRIMARY KEY, metadata_id INTEGER NOT NULL REFERENCES metadata(id));
CREATE TABLE log (id INTEGER PRIMARY KEY, metadata_id INTEGER NOT NULL REFERENCES metadata(id), message TEXT);
CREATE TABLE dead_letter (id INTEGER PRIMARY KEY, retry_metadata_id INTEGER REFERENCES metadata(id), why TEXT);

-- A train every five seconds over the last three days, one name in five not on the list, some still running.
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
INSERT INTO metadata
SELECT i,
       CASE i % 5 WHEN 0 THEN 'BillingTrain' WHEN 1 THEN 'JobDispatcherTrain' WHEN 2 THEN 'MetadataCleanupTrain'
                  ELSE 'ManifestManagerTrain' END,
       CASE WHEN i % 97 = 0 THEN 'in_progress' WHEN i % 23 = 0 THEN 'failed' WHEN i % 31 = 0 THEN 'cancelled'
            ELSE 'completed' END,
       CASE WHEN i % 5003 > 0 THEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now', -(ago + (ago > 1200) * 1200) || ' seconds') END,
       CASE WHEN i % 50 = 0 THEN i - 1 END
  FROM (SELECT i, (50000 - i) * 5 AS ago FROM n);
INSERT INTO log SELECT 2 * id, id, 'started' FROM metadata;
INSERT INTO log SELECT 2 * id + 1, id, 'ended: ' || train_state FROM metadata WHERE id % 3 = 0;
INSERT INTO work_queue SELECT id, id FROM metadata WHERE id % 4 = 0;
INSERT INTO dead_letter SELECT id, id, 'gave up after 5 attempts' FROM metadata WHERE train_state = 'failed' AND id % 3 = 0;

CREATE TABLE presence_entries (instance_id TEXT, tenant_id TEXT, expires_at_ms INTEGER NOT NULL,
                               PRIMARY KEY (tenant_id, instance_id)) WITHOUT ROWID;
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO presence_entries
SELECT printf('device-%05d', i), 'tenant-' || (i % 12), 
       (unixepoch() + CASE WHEN i <= 600 THEN 3600 ELSE -i END) * 1000 FROM n;

CREATE TABLE connections (id INTEGER PRIMARY KEY, node TEXT, expires_at_ms INTEGER NOT NULL);
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 15000)
INSERT INTO connections SELECT i, 'edge-' || (i % 8), (unixepoch() + CASE WHEN i <= 300 THEN 3600 ELSE -i END) * 1000
  FROM n;

CREATE TABLE lane_leases (lane TEXT PRIMARY KEY NOT NULL, owner TEXT, lease_expires_at_ms INTEGER NOT NULL);
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO lane_leases SELECT 'lane-' || i, 'worker-' || (i % 5), (unixepoch() + CASE WHEN i <= 60 THEN 3600 ELSE -i END) * 1000
  FROM n;

CREATE TABLE oauth_pending (state TEXT PRIMARY KEY NOT NULL, expires_at TEXT);
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO oauth_pending
SELECT printf('%032x', i), CASE WHEN i % 1000 = 0 THEN 'soon'
                                ELSE strftime('%Y-%m-%dT%H:%M:%SZ', 'now', CASE WHEN i <= 600 THEN 3600 ELSE -i END || ' seconds')
                            END
  FROM n;

CREATE TABLE channel_inbox (tenant_id TEXT NOT NULL, inbox_id INTEGER NOT NULL, status TEXT NOT NULL,
                            received_at_ms INTEGER NOT NULL, PRIMARY KEY (tenant_id, inbox_id));
CREATE TABLE channel_outbox (id INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL, inbox_id INTEGER NOT NULL,
                             status TEXT NOT NULL, created_at_ms INTEGER NOT NULL);
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO channel_inbox
SELECT 'tenant-' || (i % 12), i, CASE i % 10 WHEN 0 THEN 'failed' WHEN 1 THEN 'queued' ELSE 'completed' END,
       (unixepoch() - i * 60 - (i > 10000) * 7200) * 1000 FROM n;
INSERT INTO channel_outbox
SELECT inbox_id, tenant_id, inbox_id, 'queued', received_at_ms + 500 FROM channel_inbox WHERE inbox_id % 20 = 2;
INSERT INTO channel_outbox
SELECT inbox_id + 20000, tenant_id, inbox_id + 20000, 'failed', received_at_ms + 500 FROM channel_inbox WHERE inbox_id % 20 = 3;

CREATE TABLE workflow (id TEXT PRIMARY KEY NOT NULL, status TEXT NOT NULL, finished_at INTEGER, incident TEXT);
CREATE TABLE workflow_step (workflow_id TEXT NOT NULL REFERENCES workflow(id), step INTEGER NOT NULL, result TEXT,
                            PRIMARY KEY (workflow_id, step));
CREATE TABLE workflow_kv (workflow_id TEXT NOT NULL REFERENCES workflow(id), key TEXT NOT NULL, value TEXT,
                          PRIMARY KEY (workflow_id, key));
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
INSERT INTO workflow
SELECT printf('wf-%05d', i), CASE i % 8 WHEN 0 THEN 'running' WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled' ELSE 'completed' END,
       CASE WHEN i % 8 > 0 THEN unixepoch() - i * 600 - 300 END, CASE WHEN i % 700 = 1 THEN 'INC-' || i END FROM n;
INSERT INTO workflow_step
SELECT w.id, s.value, 'ok' FROM workflow w, json_each('[1,2,3]') s;
INSERT INTO workflow_kv SELECT id, 'workflow:output', '{}' FROM workflow WHERE status = 'completed';

CREATE TABLE outbox (id INTEGER PRIMARY KEY, topic TEXT, created_at TEXT NOT NULL);
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO outbox SELECT i, 'events', datetime('now', -(ago + (ago > 80000) * 12000) || ' seconds')
  FROM (SELECT i, (20000 - i) * 10 AS ago FROM n);

-- What was sent to each session, to be sent again after a reconnect: 10 sessions, 100 to 190 events each.
CREATE TABLE replay_event (session TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT, PRIMARY KEY (session, seq)) WITHOUT ROWID;
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 190)
INSERT INTO replay_event SELECT 'session-' || s.value, i, '{}' FROM n, json_each('[1,2,3,4,5,6,7,8,9,10]') s WHERE i <= 90 + s.value * 10;

-- Reminders of orders, one in twenty of which is gone.
CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE reminder (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, updated_at TEXT NOT NULL);
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
INSERT INTO orders SELECT i, 'open' FROM n WHERE i % 20 > 0;
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
INSERT INTO reminder SELECT i, i, datetime('now', CASE WHEN i % 40 > 0 THEN '-3 days' ELSE '-1 hour' END) FROM n;

CREATE TABLE models_dev_cache (id INTEGER PRIMARY KEY CHECK (id = 1), body TEXT);
INSERT INTO models_dev_cache VALUES (1, '{}');

CREATE INDEX metadata_start_time ON metadata(start_time);
CREATE INDEX metadata_parent ON metadata(parent_id);
CREATE INDEX work_queue_metadata ON work_queue(metadata_id);
CREATE INDEX log_metadata ON log(metadata_id);
CREATE INDEX dead_letter_metadata ON dead_letter(retry_metadata_id);
CREATE INDEX presence_expires ON presence_entries(expires_at_ms);
CREATE INDEX connections_expires ON connections(expires_at_ms);
CREATE INDEX lane_leases_expires ON lane_leases(lease_expires_at_ms);
CREATE INDEX oauth_pending_expires ON oauth_pending(expires_at);
CREATE INDEX channel_inbox_received ON channel_inbox(received_at_ms);
CREATE INDEX channel_outbox_created ON channel_outbox(created_at_ms);
CREATE INDEX channel_outbox_inbox ON channel_outbox(tenant_id, inbox_id);
CREATE INDEX workflow_finished ON workflow(finished_at);
CREATE INDEX reminder_order ON reminder(order_id);
COMMIT;
