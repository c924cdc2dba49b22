-- Made for --now 2024-06-15T12:00:00Z, so the cutoff is 11:00:00. What must become of each row is its name.
INSERT INTO metadata (id, external_id, name, workflow_state, start_time, end_time) VALUES
    ( 1, 'go-completed-long-ago',        'ManifestManagerWorkflow', 'completed',   '2024-01-01T00:00:00Z',     '2024-01-01T00:00:01Z'),
    ( 2, 'go-just-before-the-cutoff',    'ManifestManagerWorkflow', 'completed',   '2024-06-15T10:59:59.999Z', '2024-06-15T11:00:01Z'),
    ( 3, 'go-failed',                    'JobDispatcherWorkflow',   'failed',      '2024-06-15T10:00:00Z',     '2024-06-15T10:00:01Z'),
    ( 4, 'go-the-cleanups-own',          'MetadataCleanupWorkflow', 'completed',   '2024-06-15T10:59:00Z',     '2024-06-15T10:59:01Z'),
    ( 5, 'go-by-start-not-by-end',       'JobDispatcherWorkflow',   'completed',   '2024-06-15T10:30:00Z',     '2024-06-15T11:59:59Z'),
    ( 6, 'keep-exactly-at-the-cutoff',   'ManifestManagerWorkflow', 'completed',   '2024-06-15T11:00:00Z',     '2024-06-15T11:00:01Z'),
    ( 7, 'keep-just-after-the-cutoff',   'JobDispatcherWorkflow',   'failed',      '2024-06-15T11:00:00.001Z', '2024-06-15T11:00:01Z'),
    ( 8, 'keep-pending-at-any-age',      'ManifestManagerWorkflow', 'pending',     '2024-01-01T00:00:00Z',     NULL),
    ( 9, 'keep-in-progress-at-any-age',  'MetadataCleanupWorkflow', 'in_progress', '2024-01-01T00:00:00Z',     NULL),
    (10, 'keep-name-not-on-the-list',    'BillingWorkflow',         'completed',   '2024-01-01T00:00:00Z',     '2024-01-01T00:00:01Z'),
    (11, 'keep-name-longer-than-listed', 'ManifestManagerWorkflow2', 'completed',  '2024-01-01T00:00:00Z',     '2024-01-01T00:00:01Z'),
    (12, 'keep-name-in-another-case',    'manifestmanagerworkflow', 'failed',      '2024-01-01T00:00:00Z',     '2024-01-01T00:00:01Z'),
    (13, 'keep-never-started',           'ManifestManagerWorkflow', 'failed',      NULL,                       NULL);

INSERT INTO work_queue (id, external_id, metadata_id) VALUES
    (1, 'go-with-its-metadata',     1),
    (2, 'go-too-with-its-metadata', 1),
    (3, 'go-with-failed-metadata',  3),
    (4, 'keep-metadata-stays',      6),
    (5, 'keep-metadata-pending',    8),
    (6, 'keep-not-dispatched-yet',  NULL);

INSERT INTO log (id, metadata_id, message) VALUES
    (1,  1, 'go: started'),
    (2,  1, 'go: ended'),
    (3,  2, 'go: its metadata is due, however young the line'),
    (4,  5, 'go: still running at 11:59'),
    (5,  7, 'keep: its metadata is too young'),
    (6,  9, 'keep: its metadata is in progress'),
    (7, 10, 'keep: its metadata is not on the list');
