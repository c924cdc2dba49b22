"""What a daemon costs that has nothing to do: CPU, memory, statements. Part of bench/bench.py (case `daemon`).

A tick of `every: 1m` comes too seldom to be measured, so the daemon ticks more often, and its CPU time is scaled:

    CPU at every: 1m = (CPU in the window - what passes without ticks) / ticks in the window / 60 s + what passes without

where `what passes without` is the CPU rate of the same daemon with `every: 1h`, after its first tick, in a window that
has its share of the gauges. Memory is read at the end of the window. Statements are counted where they arrive: PostgreSQL
through the proxy of the tests, SQLite through a library put before its own; those of the gauges, which have an interval of
their own, are not a tick's.
"""
import contextlib
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "faults"))
import harness
from daemon import Daemon, eventually
from proxy import Proxy

FAR_MS = 4_102_444_800_000
CPU_GOAL, RSS_GOAL, GROWTH_GOAL, PROBE_GOAL, TIME_GOAL = 1.0, 30.0, 1.05, 1.1, 4.0

GAUGE = "SELECT count(*), min(t)"       # how a question of the gauges begins

# Counts how often a statement begins, in a file that others can read meanwhile.
COUNTER_C = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
struct sqlite3_stmt;
int sqlite3_stmt_busy(struct sqlite3_stmt *);
const char *sqlite3_sql(struct sqlite3_stmt *);
static unsigned long long *count;
static int (*real)(struct sqlite3_stmt *);
__attribute__((constructor)) static void begin(void)
{
    int fd = open(getenv("COUNT_FILE"), O_RDWR);
    count = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    real = (int (*)(struct sqlite3_stmt *))dlsym(RTLD_NEXT, "sqlite3_step");
}
int sqlite3_step(struct sqlite3_stmt *s)
{
    const char *sql = sqlite3_sql(s);
    if (!sqlite3_stmt_busy(s) && !(sql && strstr(sql, "GAUGE")))
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    return real(s);
}
"""


class SqliteCounter:
    """A daemon's statements on SQLite."""

    def __init__(self, db):
        home = harness.new_path("counter")
        home.mkdir()
        (home / "count.c").write_text(COUNTER_C.replace("GAUGE", GAUGE))
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", home / "count.so", home / "count.c", "-ldl"], check=True)
        self.file = home / "count"
        self.file.write_bytes(bytes(8))
        self.db, self.env = db, {"LD_PRELOAD": str(home / "count.so"), "COUNT_FILE": str(self.file),
                                 "ASAN_OPTIONS": "verify_asan_link_order=0"}       # where the tests run it

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def count(self):
        return struct.unpack("Q", self.file.read_bytes())[0]


class PostgresCounter(Proxy):
    env = None

    def __init__(self, db):
        super().__init__(db)
        self.db = self.dsn

    def count(self):
        seen = list(self.seen)
        gauges = {s.connection for s in seen if s.sql.startswith(GAUGE)}
        return sum(s.connection not in gauges for s in seen)


class Place:
    """N tables of a few rows that are not due, each with the index that its policy wants."""

    def __init__(self, engine, n):
        self.engine, self.n = engine, n
        self.db = harness.Sqlite() if engine == "sqlite" else harness.Postgres().fresh()
        rows = ", ".join(f"({i}, {FAR_MS})" for i in range(10))
        ddl = "".join(f"create table t{i} (id integer primary key, at_ms bigint); create index t{i}_at on t{i}(at_ms);"
                      f"insert into t{i} values {rows};" for i in range(n))
        if engine == "sqlite":
            self.db.execute("pragma journal_mode = wal")
            self.db.script(f"begin; {ddl} commit")
        else:
            self.db.script(ddl)
        installed = harness.lapse(self.db, self.contract("1h"), "install")
        if installed.code:
            sys.exit(str(installed))
        self.counter = SqliteCounter if engine == "sqlite" else PostgresCounter

    def contract(self, every):
        policies = "".join(f"  t{i}: {{ scheduler: main, table: t{i}, expires: at_ms }}\n" for i in range(self.n))
        return f"schedulers: {{ main: {{ every: {every}, run_on_start: true }} }}\npolicies:\n{policies}"

    def by_hand(self):
        """Seconds for the N probes that one would write."""
        with contextlib.closing(self.db.connect()) as c:
            cursor = c.cursor()
            start = time.monotonic()
            for i in range(self.n):
                cursor.execute(f"select 1 from t{i} where at_ms <= {int(time.time() * 1000)} limit 1")
                if cursor.fetchall():
                    sys.exit(f"t{i} has something due")
            return time.monotonic() - start


def ticks(d):
    return d.metric("lapse_tick_duration_seconds_count", "main")


def tick_seconds(d):
    return d.metric("lapse_tick_duration_seconds_sum", "main")


def window(d, seconds):
    """(CPU, ticks, seconds in ticks) of so long a time, from the end of one tick to the end of another."""
    def edge():
        was = ticks(d)
        eventually(lambda: ticks(d) > was, 120, 0.01)
        return d.cpu_s(), ticks(d), tick_seconds(d)
    a = edge()
    time.sleep(seconds)
    b = edge()
    return tuple(y - x for x, y in zip(a, b))


def resting(place, seconds):
    """CPU per second of a daemon that does not tick."""
    with Daemon(place.db, place.contract("1h")) as d:
        eventually(lambda: ticks(d) >= 1, 300, 0.1, lambda: str(d))
        before, start = d.cpu_s(), time.monotonic()
        time.sleep(seconds)
        return (d.cpu_s() - before) / (time.monotonic() - start)


def idle(engine, policies, every_s, seconds):
    """{what: number} of a daemon with nothing to do."""
    place = Place(engine, policies)
    rest = resting(place, seconds)
    hand = []
    with Daemon(place.db, place.contract(f"{every_s}s")) as d:
        eventually(lambda: ticks(d) >= 2, 300, 0.1, lambda: str(d))
        hand.append(place.by_hand())
        start = time.monotonic()
        cpu, n, tick_s = window(d, seconds)
        passed = time.monotonic() - start
        hand.append(place.by_hand())
        rss = d.rss_kb() / 1024
    with place.counter(place.db) as counter:
        with Daemon(counter.db, place.contract(f"{every_s}s"), env=counter.env) as d:
            eventually(lambda: ticks(d) >= 2, 300, 0.1, lambda: str(d))
            was, first = ticks(d), counter.count()
            eventually(lambda: ticks(d) >= was + 2, 300, 0.05, lambda: str(d))
            statements = (counter.count() - first) / (ticks(d) - was)
    per_tick = max(0.0, cpu - rest * passed) / n
    return {"cpu_percent": 100 * (per_tick / 60 + rest), "tick_cpu_ms": 1000 * per_tick, "rss_mb": rss,
            "statements": statements / policies, "ratio": tick_s / n / statistics.median(hand)}


def growth(engine, total):
    """(MB after a tenth of so many ticks, MB after all of them), through everything that a daemon does."""
    db = harness.Sqlite() if engine == "sqlite" else harness.Postgres().fresh()
    db.script("create table a (id integer primary key, at_ms bigint); create index a_at on a(at_ms);"
              "create table b (id integer primary key, at_ms bigint); create index b_at on b(at_ms)")
    if engine == "sqlite":
        db.execute("pragma journal_mode = wal")
    # one has something to do at every tick, one nothing, one always fails
    contract = """
schedulers: { work: { every: 10ms }, idle: { every: 10ms }, fail: { every: 10ms } }
policies:
  a: { scheduler: work, table: a, expires: at_ms }
  b: { scheduler: idle, table: b, expires: at_ms }
  c: { scheduler: fail, table: nowhere, expires: at_ms }
"""
    harness.lapse(db, contract, "install")
    with Daemon(db, contract, "--log-level", "info") as d:
        number, sizes = 0, []
        for goal in (total // 10, total):
            while d.metric("lapse_tick_duration_seconds_count") < goal:
                number += 1
                db.execute(f"insert into a values ({number}, 1)")
                d.http("/api/status")
                time.sleep(0.02)
            sizes.append(d.rss_kb() / 1024)
    return sizes


def main(engines, policies, every_s, seconds, total):
    """Prints the table; returns what missed its goal."""
    missed = []

    def row(engine, what, value, goal, shown):
        print(f"| daemon | {engine} | {what} | {shown % value} | ≤ {goal:g} |", flush=True)
        if value > goal:
            missed.append(f"daemon on {engine}: {what}: {shown % value} > {goal:g}")

    print(f"\nA daemon with {policies} policies and nothing due (every: {every_s}s, CPU scaled to every: 1m), "
          f"and memory over {total} ticks.\n")
    print("| case | engine | what | measured | goal |\n|---|---|---|---|---|")
    for engine in engines:
        m = idle(engine, policies, every_s, seconds)
        row(engine, "CPU of one core, %", m["cpu_percent"], CPU_GOAL, "%.2f")
        row(engine, "memory, MB", m["rss_mb"], RSS_GOAL, "%.1f")
        row(engine, "statements per policy and tick", m["statements"], PROBE_GOAL, "%.2f")
        row(engine, "tick / probes by hand", m["ratio"], TIME_GOAL, "%.2f")
        early, late = growth(engine, total)
        row(engine, f"memory after {total} ticks / after {total // 10} ({late:.1f} / {early:.1f} MB)", late / early,
            GROWTH_GOAL, "%.3f")
    return missed
