"""pg_cron running the common loop inside the server, as a job of its schedule."""
import contextlib
import sys
import time
from pathlib import Path

from missing import Missing

LIBRARY = "pg_cron"


def installed():
    return any(Path("/usr/lib/postgresql").glob("*/lib/pg_cron.so"))


def settings():
    """What the server needs before it starts. Jobs run in the server's own workers: nobody has to log in."""
    return {"shared_preload_libraries": LIBRARY, "cron.use_background_workers": "on", "cron.timezone": "UTC"} if installed() else {}


def procedure(statements):
    """A procedure that runs these until the last of them finds nothing, commits after each round, and notes how long it took:
    the times that pg_cron itself notes are those at which it came to look."""
    body = ";\n        ".join(statements)
    return f"""CREATE TABLE sweep_took (whole interval, longest interval);
CREATE PROCEDURE sweep_by_loop() LANGUAGE plpgsql AS $$
DECLARE
    begun timestamptz := clock_timestamp();
    this timestamptz;
    longest interval := '0';
BEGIN
    LOOP
        this := clock_timestamp();
        {body};
        EXIT WHEN NOT FOUND;
        COMMIT;
        longest := greatest(longest, clock_timestamp() - this);
    END LOOP;
    INSERT INTO sweep_took VALUES (clock_timestamp() - begun, longest);
END $$"""


def run(place, case, _rows):
    if not installed():
        raise Missing("pg_cron is not installed: run scripts/setup bench")
    place.db.execute(procedure(case.loop_sql(place.engine, 1000)))
    place.db.close()
    with contextlib.closing(place.server.connect("postgres")) as c, c.cursor() as cursor:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_cron")
        cursor.execute("SELECT cron.schedule_in_database('bench', '* * * * *', 'CALL sweep_by_loop()', %s)", (place.db.name,))
        job, = cursor.fetchone()
        try:
            wait_for(cursor, job)
        finally:
            cursor.execute("SELECT cron.unschedule(%s)", (job,))
    (seconds, longest), = place.db.rows("SELECT extract(epoch FROM whole), extract(epoch FROM longest) FROM sweep_took "
                                         "ORDER BY whole DESC LIMIT 1")
    place.db.close()
    return {"seconds": float(seconds), "longest_s": float(longest)}


def wait_for(cursor, job):
    """Until the first run of the job is over."""
    while True:
        cursor.execute("SELECT status, return_message FROM cron.job_run_details WHERE jobid = %s AND end_time IS NOT NULL "
                       "ORDER BY runid LIMIT 1", (job,))
        done = cursor.fetchone()
        if done is None:
            time.sleep(0.2)
        elif done[0] == "succeeded":
            return
        else:
            sys.exit(f"pg_cron's job {done[0]}: {done[1]}")
