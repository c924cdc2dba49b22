-- Made for --now 2024-06-15T12:00:00Z: the cutoffs are 11:59:00 (completed), 11:55:00 (cancelled) and the day before at
-- 12:00:00 (failed). What must become of each row is its name.
INSERT INTO workflow (id, status, finished_at, note) VALUES
    ('go-completed-long-ago',           'completed', '2024-01-01T00:00:00Z',     'well over every delay'),
    ('go-completed-just-before',        'completed', '2024-06-15T11:58:59.999Z', 'a millisecond over'),
    ('go-completed-exactly',            'completed', '2024-06-15T11:59:00Z',     'now has come'),
    ('keep-completed-just-after',       'completed', '2024-06-15T11:59:00.001Z', 'a millisecond to go'),
    ('keep-completed-this-instant',     'completed', '2024-06-15T12:00:00Z',     'its result can still be read'),
    ('go-failed-just-before',           'failed',    '2024-06-14T11:59:59.999Z', ''),
    ('go-failed-exactly',               'failed',    '2024-06-14T12:00:00Z',     ''),
    ('keep-failed-just-after',          'failed',    '2024-06-14T12:00:00.001Z', ''),
    ('keep-failed-an-hour-ago',         'failed',    '2024-06-15T11:00:00Z',     'a completed one would be gone'),
    ('go-cancelled-just-before',        'cancelled', '2024-06-15T11:54:59.999Z', ''),
    ('go-cancelled-exactly',            'cancelled', '2024-06-15T11:55:00Z',     ''),
    ('keep-cancelled-just-after',       'cancelled', '2024-06-15T11:55:00.001Z', 'a completed one would be gone'),
    ('keep-running',                    'running',   NULL,                       ''),
    ('keep-started-again',              'running',   '2024-01-01T00:00:00Z',     'the time of its first end was left there'),
    ('keep-paused-in-its-resume-alarm', 'paused',    '2024-01-01T00:00:00Z',     ''),
    ('keep-pending',                    'pending',   NULL,                       ''),
    ('keep-no-time',                    'completed', NULL,                       'nobody knows when: never');

INSERT INTO workflow_step (workflow_id, step, attempts, result)
    SELECT id, 'charge', 1, 'ok' FROM workflow UNION ALL
    SELECT id, 'ship',   3, 'ok' FROM workflow WHERE status <> 'pending';

INSERT INTO workflow_kv (instance_id, "key", value)
    SELECT id, 'workflow:status', status FROM workflow UNION ALL
    SELECT id, 'workflow:output', '{}'   FROM workflow WHERE status = 'completed';
INSERT INTO workflow_kv (instance_id, "key", value) VALUES ('keep-of-no-workflow', 'meta:version', '3');
