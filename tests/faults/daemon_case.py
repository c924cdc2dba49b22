"""What the suites of a daemon in trouble share: three tables, rows that are due and rows that must stay."""
import time

from daemon import *
from harness import *

FAR_MS = 4_102_444_800_000      # the year 2100: never due in a test
EVERY = "300ms"
TIMEOUTS = "lock: 3s, statement: 10s"         # longer than anything takes that should not end by them …
SHORT = "lock: 200ms, statement: 500ms"       # … and where it should
TABLES = ("bad", "good", "other")
SCHEMA = "".join(f"create table {t} (id integer primary key, at_ms bigint, note text); create index {t}_at on {t}(at_ms);"
                 for t in TABLES)
CONTRACT = f"""
    schedulers:
      main:  {{ every: {EVERY} }}
      other: {{ every: {EVERY} }}
    policies:
      bad:   {{ scheduler: main, table: bad, expires: at_ms, timeouts: {{ {TIMEOUTS} }} }}
      good:  {{ scheduler: main, table: good, expires: at_ms }}
      other: {{ scheduler: other, table: other, expires: at_ms }}
    """


class InTrouble(Case):
    """bad: the table that something happens to; good: beside it in the same scheduler; other: in another one."""
    INSTALL = True
    contract = CONTRACT

    def setUp(self):
        super().setUp()
        self.numbers = iter(range(1000, 10 ** 9))
        self.prepare()

    def prepare(self):
        self.given(SCHEMA)
        if self.engine == "sqlite":
            self.db.execute("pragma journal_mode = wal")
        if self.INSTALL:
            self.lapse(self.contract, "install", code=0)
        for t in TABLES:
            self.keep(t)

    def keep(self, table):
        """Rows that no policy may touch: not due, and without a time."""
        self.insert(f"{table}(id, at_ms)", (1, FAR_MS), (2, None))

    def daemon(self, *options, **how):
        d = Daemon(self.db, self.contract, *options, **how)
        self.addCleanup(lambda: d.kill() if d.running() else None)
        return d

    def due(self, table, n=3):
        """Rows that are due now; their ids."""
        ids = [next(self.numbers) for _ in range(n)]
        self.insert(f"{table}(id, at_ms)", *[(i, 1) for i in ids])
        return ids

    def there(self, table, ids):
        marks = ", ".join(str(i) for i in ids)
        return [r[0] for r in self.db.rows(f"select id from {table} where id in ({marks}) order by id")]

    def works(self, d, *tables, timeout=60):
        """What becomes due goes; what is not stays; it is still the same process."""
        put = {t: self.due(t) for t in tables}
        for t, ids in put.items():
            eventually(lambda: not self.there(t, ids), timeout, words=lambda: f"{t} is swept\n{d}")
            self.assertEqual(self.ids(t), [1, 2], f"{t}\n{d}")
        self.assertTrue(d.running(), d)

    def errors(self, d, scheduler="main"):
        return d.metric("lifecycle_tick_errors_total", scheduler)

    def some_more_ticks(self, d, n=3, scheduler="main"):
        """Waits for so many more ticks that fail."""
        was = self.errors(d, scheduler)
        eventually(lambda: self.errors(d, scheduler) >= was + n,
                   words=lambda: f"errors counted: {was}, then {self.errors(d, scheduler)}\n{d}")

    def said_once(self, d, *words, scheduler="main", policy=None, after=0, failing=True, most=1):
        """One line says what is wrong, however many ticks fail so. Returns it."""
        fields = {} if policy is None else {"policy": policy}
        line = d.wait_for(f"{scheduler}.lifecycle_tick_failed", after=after, **fields)
        if failing:
            self.some_more_ticks(d, scheduler=scheduler)
        lines = d.said(f"{scheduler}.lifecycle_tick_failed", after=after, **fields)
        # a server that goes down says so itself before nobody answers any more: another error, said once as well
        self.assertEqual(len(lines), len({x["error"] for x in lines}), d)
        self.assertLessEqual(len(lines), most, d)
        self.assertIn(line["level"], ("warn", "error"))
        for w in words:
            self.assertIn(w.lower(), line["error"].lower(), d)
        return line

    def recovers(self, d, after, *tables, scheduler="main"):
        self.works(d, *tables)
        line = d.wait_for(f"{scheduler}.lifecycle_recovered", after=after)

        def quiet():        # on a busy machine a statement may be too late for once
            was = self.errors(d, scheduler)
            time.sleep(1)
            return self.errors(d, scheduler) == was

        eventually(quiet, words=lambda: f"no more errors\n{d}")
        eventually(d.ready, words=lambda: f"{d.http('/readyz')}\n{d}")
        return line
