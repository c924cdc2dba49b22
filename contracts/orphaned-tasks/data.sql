-- Made for --now 2024-06-15T12:00:00Z. What must become of each task is its name. Every order is kept.
INSERT INTO orders (id, created_at, note) VALUES
    ('o-old',     '2024-06-01T00:00:00Z',     'matches: older than a day'),
    ('o-over',    '2024-06-14T11:59:59.999Z', 'matches: just over a day'),
    ('o-exactly', '2024-06-14T12:00:00Z',     'does not match: a day exactly is not more than a day'),
    ('o-young',   '2024-06-15T00:00:00Z',     'does not match'),
    ('o-no-time', NULL,                       'unknown, which is not matching');

-- sync-order: the order must be gone, and a day must have passed since the later of both times (14 June, 12:00:00).
INSERT INTO orders_tasks (id, task, source_doc_id, status, updated_at, last_finalized_at) VALUES
    ('go-both-times-old',            'sync-order', 'o-deleted', 'completed', '2024-06-01T00:00:00Z',     '2024-06-02T00:00:00Z'),
    ('go-just-over-by-update',       'sync-order', 'o-deleted', 'completed', '2024-06-14T11:59:59.999Z', '2024-06-01T00:00:00Z'),
    ('go-just-over-by-work',         'sync-order', 'o-deleted', 'failed',    '2024-06-01T00:00:00Z',     '2024-06-14T11:59:59.999Z'),
    ('go-never-worked-on',           'sync-order', 'o-deleted', 'pending',   '2024-06-01T00:00:00Z',     NULL),
    ('go-no-update-known',           'sync-order', 'o-deleted', 'completed', NULL,                       '2024-06-01T00:00:00Z'),
    ('keep-exactly-a-day-by-update', 'sync-order', 'o-deleted', 'completed', '2024-06-14T12:00:00Z',     '2024-06-01T00:00:00Z'),
    ('keep-exactly-a-day-by-work',   'sync-order', 'o-deleted', 'completed', '2024-06-01T00:00:00Z',     '2024-06-14T12:00:00Z'),
    ('keep-changed-recently',        'sync-order', 'o-deleted', 'completed', '2024-06-15T11:00:00Z',     '2024-06-01T00:00:00Z'),
    ('keep-worked-on-recently',      'sync-order', 'o-deleted', 'failed',    '2024-06-01T00:00:00Z',     '2024-06-15T11:00:00Z'),
    ('keep-no-times',                'sync-order', 'o-deleted', 'pending',   NULL,                       NULL),
    ('keep-order-is-there',          'sync-order', 'o-old',     'completed', '2024-06-01T00:00:00Z',     '2024-06-02T00:00:00Z'),
    ('keep-mismatch-is-ignored',     'sync-order', 'o-young',   'completed', '2024-06-01T00:00:00Z',     '2024-06-02T00:00:00Z'),
    ('keep-of-no-order',             'sync-order', NULL,        'completed', '2024-06-01T00:00:00Z',     '2024-06-02T00:00:00Z');

-- remind-pending-order: the order is gone or no longer older than a day, and an hour has passed (11:00:00).
INSERT INTO orders_tasks (id, task, source_doc_id, status, updated_at, last_finalized_at) VALUES
    ('go-reminder-order-deleted',    'remind-pending-order', 'o-deleted', 'completed', '2024-06-15T10:59:59.999Z', '2024-06-15T10:00:00Z'),
    ('go-reminder-young-order',      'remind-pending-order', 'o-young',   'completed', '2024-06-15T10:00:00Z',     '2024-06-15T10:59:59.999Z'),
    ('go-reminder-order-of-a-day',   'remind-pending-order', 'o-exactly', 'pending',   '2024-06-15T10:00:00Z',     NULL),
    ('go-reminder-unknown-match',    'remind-pending-order', 'o-no-time', 'pending',   '2024-06-15T10:00:00Z',     NULL),
    ('keep-reminder-exactly-1h',     'remind-pending-order', 'o-young',   'completed', '2024-06-15T11:00:00Z',     '2024-06-15T10:00:00Z'),
    ('keep-reminder-just-worked-on', 'remind-pending-order', 'o-deleted', 'completed', '2024-06-15T10:00:00Z',     '2024-06-15T11:00:00.001Z'),
    ('keep-reminder-matches',        'remind-pending-order', 'o-old',     'completed', '2024-06-01T00:00:00Z',     '2024-06-02T00:00:00Z'),
    ('keep-reminder-matches-barely', 'remind-pending-order', 'o-over',    'completed', '2024-06-15T10:00:00Z',     '2024-06-15T10:00:00Z'),
    ('keep-reminder-of-no-order',    'remind-pending-order', NULL,        'pending',   '2024-06-01T00:00:00Z',     NULL);

-- audit-order is never deleted, and a task that no policy names is nobody's.
INSERT INTO orders_tasks (id, task, source_doc_id, status, updated_at, last_finalized_at) VALUES
    ('keep-audit-order-deleted',     'audit-order',   'o-deleted', 'completed', '2024-01-01T00:00:00Z', '2024-01-01T00:00:00Z'),
    ('keep-audit-order-there',       'audit-order',   'o-old',     'completed', '2024-01-01T00:00:00Z', '2024-01-01T00:00:00Z'),
    ('keep-task-that-is-not-listed', 'invoice-order', 'o-deleted', 'completed', '2024-01-01T00:00:00Z', '2024-01-01T00:00:00Z');
