"""The benchmark's cases about purges: many that are due, the transactions that schedule them, and many that wait."""
import contextlib
import os
import statistics
import time

from daemon import Daemon, eventually

TABLES = ("step", "note", "event")
ROWS_EACH = 5                                   # of an instance, in each table
PER_PURGE = 10                                  # --rows is so many times the number of purges that are due
PER_TRANSACTION = 500                           # … and of transactions that schedule one
OLD = "2025-06-01T00:00:00.000Z"
LEAST_MS = 0.05                                 # a second: in a short look, an idle daemon may have done nothing at all
IDLE_GOAL = 1.25                                # CPU with --rows purges that wait / with none


class Purges:
    """Instances whose purge is due, five rows each in three tables, beside one set-based DELETE per table."""
    limit = 1.43                                # 0.7 of the rows per second
    deletes = True
    install = True
    command = ("purge", "due")
    contract = "purges: { job: { erases: [" + ", ".join(f"{t}(job)" for t in TABLES) + "] } }"
    by_hand = [f"DELETE FROM {t} WHERE job IN (SELECT instance FROM lapse_purge WHERE space = 'job' AND "
               "scheduled_at < '2025-12-01T00:00:00.000Z')" for t in TABLES] + [
        "DELETE FROM lapse_purge WHERE space = 'job' AND scheduled_at < '2025-12-01T00:00:00.000Z'"]

    @staticmethod
    def schema(rows):
        made = []
        for t in TABLES:
            made += [f"CREATE TABLE {t} (id bigint PRIMARY KEY, job text NOT NULL, payload text)",
                     f"INSERT INTO {t} SELECT n * {ROWS_EACH} + k, 'job-' || n, 'something that was noted of ' || n "
                     f"FROM numbers, (SELECT 0 AS k UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) "
                     f"AS five WHERE n <= {rows // PER_PURGE * 2}",
                     f"CREATE INDEX {t}_job ON {t}(job)"]
        return made + ["INSERT INTO lapse_purge (space, instance, reason, scheduled_at) "
                       f"SELECT 'job', 'job-' || (n * 2), 'completed', '{OLD}' FROM numbers WHERE n <= {rows // PER_PURGE}"]

    @staticmethod
    def expected(rows):
        return rows // PER_PURGE * (len(TABLES) * ROWS_EACH + 1)

    @staticmethod
    def gone(db, rows):
        """What is no longer there; rows that had to stay and went are worse than any time."""
        left = [db.rows(f"SELECT count(*) FROM {t}")[0][0] for t in (*TABLES, "lapse_purge")]
        db.close()
        stay = rows // PER_PURGE * ROWS_EACH
        if any(n < stay for n in left[:-1]):
            raise SystemExit(f"{left} rows are left, where {stay} of each table had to stay")
        return rows // PER_PURGE * (2 * len(TABLES) * ROWS_EACH + 1) - sum(left)


class PurgesSchedule:
    """An application's transaction that schedules a purge, beside the same that writes a row of its own table with such a key."""
    limit = 1.2
    install = True
    contract = Purges.contract
    ways = {"hand": "INSERT INTO ended (id, space, instance, reason) VALUES ({n}, 'job', 'job-{n}', 'completed')",
            "lapse": "INSERT INTO lapse_purge (space, instance, reason) VALUES ('job', 'job-{n}', 'completed')"}

    @staticmethod
    def schema(rows):
        return [f"CREATE TABLE {t} (id bigint PRIMARY KEY, job text NOT NULL)" for t in TABLES] + [
            "CREATE TABLE work (id integer PRIMARY KEY, state text)",
            "CREATE TABLE ended (id bigint PRIMARY KEY, space text NOT NULL, instance text NOT NULL, reason text, "
            "scheduled_at text DEFAULT CURRENT_TIMESTAMP)",
            f"INSERT INTO work SELECT n, 'running' FROM numbers WHERE n <= {max(1, rows // PER_TRANSACTION)}"]

    @classmethod
    def compare(cls, place, rows, repeats):
        """Times of all transactions of each way, which take turns."""
        n = max(1, rows // PER_TRANSACTION)
        times = {name: [] for name in cls.ways}
        with contextlib.closing(place.application()) as c:
            for turn in range(repeats + 1):
                spent = dict.fromkeys(cls.ways, 0.0)
                for i in range(1, n + 1):
                    for name in (list(cls.ways) if i % 2 else reversed(cls.ways)):
                        start = time.monotonic()
                        for sql in ("BEGIN", f"UPDATE work SET state = '{name} {turn}' WHERE id = {i}",
                                    cls.ways[name].format(n=turn * n + i), "COMMIT"):
                            c.cursor().execute(sql)
                        spent[name] += time.monotonic() - start
                for name in spent if turn else ():
                    times[name].append(spent[name])
        return times


# --- the daemon, while purges wait

class Waiting:
    """Purges that are scheduled, and not due for as long as it takes."""
    install = True
    contract = "purges: { job: { delay: 9000d, erases: [" + ", ".join(f"{t}(job)" for t in TABLES) + "] } }"

    @staticmethod
    def schema(rows):
        return [f"CREATE TABLE {t} (id bigint PRIMARY KEY, job text NOT NULL)" for t in TABLES] + [
            f"CREATE INDEX {t}_job ON {t}(job)" for t in TABLES] + [
            "INSERT INTO lapse_purge (space, instance, reason) SELECT 'job', 'job-' || n, "
            f"CASE n % 3 WHEN 0 THEN 'completed' WHEN 1 THEN 'failed' END FROM numbers WHERE n <= {rows}"]


def cpu_s(pids):
    """CPU time until now of these processes and of all their threads, to the nanosecond."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):              # it may have ended
            for task in os.listdir(f"/proc/{pid}/task"):
                total += int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0])
    return total / 1e9


def family(pid):
    """A process and those below it."""
    found = {pid}
    for p in sorted(int(p) for p in os.listdir("/proc") if p.isdigit()):
        with contextlib.suppress(OSError):
            if int(open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[1]) in found:
                found.add(p)
    return found


def window(db, seconds):
    """CPU of the daemon and of its server in so long a time, in milliseconds a second."""
    server = getattr(db, "server", None)
    with Daemon(db, Waiting.contract) as d:
        eventually(lambda: d.metric("lapse_purges_pending") is not None, 60, 0.05, lambda: str(d))
        time.sleep(1)
        pids = {d.pid} | (family(server.process.pid) if server else set())
        start, before = time.monotonic(), cpu_s(pids)
        time.sleep(seconds)
        return 1000 * (cpu_s(pids) - before) / (time.monotonic() - start)


def idle(places, rows, repeats, seconds):
    """Prints a row per engine; returns what missed its goal."""
    missed = []
    print(f"\nAn idle daemon, and its server, with {rows} purges that wait and with none: CPU, ms a second.\n")
    print("| case | engine | none | waiting | waiting / none | goal |\n|---|---|---|---|---|---|", flush=True)
    for engine, place in places.items():
        dbs = {"waiting": place(Waiting, rows).db, "none": place(Waiting, 0).db}
        used = {name: [] for name in dbs}
        for turn in range(repeats):
            for name in (list(dbs) if turn % 2 else reversed(dbs)):
                used[name].append(window(dbs[name], seconds))
        ratio = statistics.median(used["waiting"]) / max(statistics.median(used["none"]), LEAST_MS)
        shown = [f"{min(used[name]):.2f} to {max(used[name]):.2f}" for name in ("none", "waiting")]
        print(f"| purges-idle | {engine} | {shown[0]} | {shown[1]} | {ratio:.2f} | ≤ {IDLE_GOAL} |", flush=True)
        if ratio > IDLE_GOAL:
            missed.append(f"purges-idle on {engine}: {ratio:.2f} > {IDLE_GOAL}")
    return missed
