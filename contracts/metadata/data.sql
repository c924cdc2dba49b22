-- Made for --now 2024-06-15T12:00:00Z, so the cutoff is 11:30:00. What must become of each row is its name; a row that
-- loses its reference (detach) is called so.
INSERT INTO metadata (id, external_id, parent_id, name, train_state, start_time, end_time) VALUES
    ( 1, 'go-completed-long-ago',        NULL, 'ManifestManagerTrain', 'completed',   '2024-01-01T00:00:00Z',     '2024-01-01T00:00:01Z'),
    ( 2, 'go-just-before-the-cutoff',    NULL, 'ManifestManagerTrain', 'completed',   '2024-06-15T11:29:59.999Z', '2024-06-15T11:30:01Z'),
    ( 3, 'go-failed',                    NULL, 'MetadataCleanupTrain', 'failed',      '2024-06-15T11:00:00Z',     '2024-06-15T11:00:01Z'),
    ( 4, 'go-cancelled',                 NULL, 'ManifestManagerTrain', 'cancelled',   '2024-06-15T11:00:00Z',     '2024-06-15T11:00:01Z'),
    ( 5, 'go-by-start-not-by-end',       NULL, 'MetadataCleanupTrain', 'completed',   '2024-06-15T11:00:00Z',     '2024-06-15T11:59:59Z'),
    ( 6, 'go-child-of-one-that-goes',    1,    'ManifestManagerTrain', 'completed',   '2024-01-01T00:00:00Z',     '2024-01-01T00:00:01Z'),
    ( 7, 'go-child-of-one-that-stays',   12,   'ManifestManagerTrain', 'completed',   '2024-01-01T00:00:00Z',     '2024-01-01T00:00:01Z'),
    ( 8, 'keep-exactly-at-the-cutoff',   NULL, 'ManifestManagerTrain', 'completed',   '2024-06-15T11:30:00Z',     '2024-06-15T11:30:01Z'),
    ( 9, 'keep-just-after-the-cutoff',   NULL, 'MetadataCleanupTrain', 'cancelled',   '2024-06-15T11:30:00.001Z', '2024-06-15T11:30:01Z'),
    (10, 'keep-pending-at-any-age',      NULL, 'ManifestManagerTrain', 'pending',     '2024-01-01T00:00:00Z',     NULL),
    (11, 'keep-in-progress-at-any-age',  NULL, 'MetadataCleanupTrain', 'in_progress', '2024-01-01T00:00:00Z',     NULL),
    (12, 'keep-name-not-on-the-list',    NULL, 'JobDispatcherTrain',   'completed',   '2024-01-01T00:00:00Z',     '2024-01-01T00:00:01Z'),
    (13, 'keep-name-shorter-than-listed', NULL, 'ManifestManager',     'completed',   '2024-01-01T00:00:00Z',     '2024-01-01T00:00:01Z'),
    (14, 'keep-never-started',           NULL, 'ManifestManagerTrain', 'failed',      NULL,                       NULL),
    (15, 'keep-loses-its-parent',        1,    'ManifestManagerTrain', 'in_progress', '2024-06-15T11:59:00Z',     NULL),
    (16, 'keep-has-its-parent-still',    12,   'BillingTrain',         'pending',     '2024-06-15T11:59:00Z',     NULL);

INSERT INTO work_queue (id, external_id, metadata_id) VALUES
    (1, 'go-with-its-metadata',     1),
    (2, 'go-too-with-its-metadata', 1),
    (3, 'go-with-a-cancelled-one',  4),
    (4, 'keep-metadata-stays',      8),
    (5, 'keep-metadata-pending',    10),
    (6, 'keep-not-dispatched-yet',  NULL);

INSERT INTO log (id, metadata_id, message) VALUES
    (1,  1, 'go: started'),
    (2,  1, 'go: ended'),
    (3,  2, 'go: its metadata is due, however young the line'),
    (4,  6, 'go: a child''s line'),
    (5,  9, 'keep: its metadata is too young'),
    (6, 11, 'keep: its metadata is in progress'),
    (7, 12, 'keep: its metadata is not on the list');

INSERT INTO dead_letter (id, reason, retry_metadata_id) VALUES
    (1, 'keep-loses-its-retry',     3),
    (2, 'keep-has-its-retry-still', 8),
    (3, 'keep-was-never-retried',   NULL);
