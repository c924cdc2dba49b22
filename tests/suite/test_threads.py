"""The daemon under ThreadSanitizer, and under valgrind: several schedulers, reloads, scrapes, a stop; no report."""
import concurrent.futures
import signal
import time

from daemon import *
from harness import *

# Addresses that are not random: a newer kernel spreads them further than this sanitizer can map.
TSAN = ("setarch", "-R")
# The clients of the databases and the HTTP library are not built with the sanitizer: it sees their locks, but not their
# atomics.
TSAN_OPTIONS = "exitcode=66:halt_on_error=0:second_deadlock_stack=1:history_size=4"
VALGRIND = ("valgrind", "-q", "--error-exitcode=77", "--leak-check=full", "--show-leak-kinds=definite,indirect,possible",
            "--errors-for-leak-kinds=definite,indirect,possible", "--child-silent-after-fork=yes")

SCHEMA_SQL = """create table job (id integer primary key, at_ms bigint); create index job_at on job(at_ms);
    create table step (id integer primary key, job_id integer not null); create index step_job on step(job_id);
    create table note (id integer primary key, at_ms bigint); create index note_at on note(at_ms);
    create table seen (id integer primary key, host integer not null, at_ms bigint);
    create table flow (id text primary key); create table flow_step (flow_id text, n integer);
    create index flow_step_flow on flow_step(flow_id)"""
CONTRACT = """
    schedulers:
      fast: { every: 50ms }
      mine: { every: 70ms, exclusive: true, lease: 2s }
      slow: { every: 300ms, jitter: 50ms, budget: { rows: 5 } }
      gone: { every: 90ms }
    policies:
      job:  { scheduler: fast, table: job, expires: at_ms, batch: 5, workers: 3, with: [ step(job_id) ] }
      note: { scheduler: mine, table: note, expires: at_ms, batch: 7 }
      seen: { scheduler: slow, table: seen, cap: { rows: 3, per: [host], newest: [at_ms] } }
      gone: { scheduler: gone, table: gone, expires: at_ms }
    purges:
      flow: { delay: 20ms, retention: { failed: 1h }, erases: [ flow_step(flow_id), flow(id) ]NOTIFY }
    """
CHANGED = CONTRACT.replace("every: 70ms", "every: 60ms").replace("batch: 5", "batch: 4").replace("gone: { every: 90ms }", "late: { every: 40ms }") \
                  .replace("gone: { scheduler: gone", "gone: { scheduler: late")
BROKEN = "policies: { job: { tabel: job } }"


class Busy(Case):
    """What a daemon can be asked at once."""

    def feed(self, first, n=60):
        db = self.db
        db.executemany("insert into step values (?, ?)", [(first + i, first + i) for i in range(n)])
        for table in ("job", "note"):
            db.executemany(f"insert into {table} values (?, ?)", [(first + i, 1 + i) for i in range(n)])
        db.executemany("insert into seen values (?, ?, ?)", [(first + i, i % 4, i) for i in range(n)])
        db.executemany("insert into flow values (?)", [(f"f{first + i}",) for i in range(n)])
        db.executemany("insert into flow_step values (?, ?)", [(f"f{first + i}", k) for i in range(n) for k in (1, 2)])
        db.executemany("insert into lapse_purge (space, instance, reason) values (?, ?, ?)",
                       [(("flow", "other")[i % 50 == 49], f"f{first + i}", "completed") for i in range(n)])
        if self.on_postgres:
            db.execute("notify lapse_purge")

    def count(self, table):
        return self.db.rows(f"select count(*) from {table}")[0][0]

    def worked(self, rounds, **how):
        self.given(SCHEMA_SQL)
        if self.on_sqlite:
            self.db.execute("pragma journal_mode = wal")
        notify = ", notify: true" if self.on_postgres else ""      # one more thread, with a connection of its own
        first, changed = (c.replace("NOTIFY", notify) for c in (CONTRACT, CHANGED.replace("delay: 20ms", "delay: 10ms")))
        self.lapse(first, "install", code=0)
        stop = False
        with Daemon(self.db, first, **how) as d, concurrent.futures.ThreadPoolExecutor(3) as pool:
            d.serving(60)

            def scrape(path):
                while not stop:
                    d.http(path, timeout=60)

            eventually(lambda: d.metric("lifecycle_tick_errors_total", "gone") > 3, 60, words=lambda: str(d))
            asking = [pool.submit(scrape, p) for p in ("/metrics", "/readyz", "/api/status")]
            try:
                for turn in range(rounds):
                    self.feed(1000 * (turn + 1))
                    contract = (changed, BROKEN, first)[turn % 3]
                    after = d.mark()
                    d.rewrite(self.db, contract)
                    d.signal(signal.SIGHUP)
                    d.wait_for("contract_refused" if contract is BROKEN else "contract_reloaded", 60, after)
                    if turn == 1:
                        self.given("create table gone (id integer primary key, at_ms bigint)")
                        self.insert("gone(id, at_ms)", (1, 1))
                eventually(lambda: not self.count("job") and not self.count("note") and not self.count("step"), 180,
                           words=lambda: str(d))
                eventually(lambda: not self.db.rows("select 1 from lapse_purge where space = 'flow'"), 60, words=lambda: str(d))
                self.assertEqual(self.count("flow_step"), 2 * self.count("flow"))      # those of the other space
                self.assertEqual(self.count("flow"), rounds)
                if rounds > 2:
                    eventually(lambda: not self.count("gone"), 60, words=lambda: str(d))
            finally:
                stop = True
            for a in asking:
                a.result()
            self.feed(90000, 2000)      # it is asked to stop in mid-work
            d.signal(signal.SIGTERM)
        self.assertTrue(d.said("lapse.stopped"), d)
        return d


@every_engine
class Threads(Busy):
    def test_no_race(self):
        self.worked(6, binary=built("LAPSE_BUILD_TSAN"), wrap=TSAN, env={"TSAN_OPTIONS": TSAN_OPTIONS})

    def test_stopped_at_once(self):
        """Two signals: the statement that is running is interrupted from another thread."""
        self.given(SCHEMA_SQL)
        contract = CONTRACT.replace("NOTIFY", ", notify: true" if self.on_postgres else "")
        self.lapse(contract, "install", code=0)
        self.feed(1, 3000)
        d = Daemon(self.db, contract, binary=built("LAPSE_BUILD_TSAN"), wrap=TSAN, env={"TSAN_OPTIONS": TSAN_OPTIONS})
        d.wait_for("lapse.started", 60)
        time.sleep(0.3)
        d.signal(signal.SIGTERM)
        d.signal(signal.SIGINT)
        d.stop(0)


class Memory(Busy, SqliteTest):
    def test_no_error_and_no_leak(self):
        self.worked(3, binary=built("LAPSE_BUILD_PLAIN"), wrap=VALGRIND)
