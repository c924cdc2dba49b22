"""Ctrl-C and SIGTERM while a command reads, counts or waits: it answers at once and ends soon, however long that would take."""
import os
import socket
from signal import SIGINT, SIGTERM

from daemon import eventually
from harness import *

SOON_S = 5      # on a machine that is busy; what it waits for takes 30 s or more
CONTRACT = """
policies:
  events: {table: events, age: at_ms, keep: 1h, timeouts: {lock: 60s, statement: 60s}}
"""


class Stopping(Case):
    def setUp(self):
        super().setUp()
        self.given("create table events (id integer primary key, at_ms bigint not null)")
        self.insert("events(id, at_ms)", *[(i, MS - DAY) for i in range(1, 6)])

    def stops(self, *args, number=SIGINT, contract=CONTRACT, waits=None):
        p = Lapse.start(self.db, contract, *args)
        eventually(lambda: (waits or self.waits)(p) or not p.running(), words=lambda: "".join(p.so_far()))
        self.assertTrue(p.running(), p.so_far())
        p.signal(number)
        r = p.wait(SOON_S)
        self.assertEqual(r.code, 6, r)
        self.assertIn("stopping …", r.err)
        return r


@every_engine
class WhileItWaits(Stopping):
    """For a table that another session has locked whole."""

    def setUp(self):
        super().setUp()
        self.other = self.db.connect()
        self.addCleanup(self.other.close)
        c = self.other.cursor()
        for sql in self.per_engine(sqlite=["begin exclusive"], postgres=["begin", "lock table events in access exclusive mode"],
                                   mariadb=["lock tables events write"]):
            c.execute(sql)

    def waits(self, p):
        if self.on_sqlite:      # the file is open: the next it does is wait
            fds = f"/proc/{p.pid}/fd"
            names = [os.readlink(f"{fds}/{n}") for n in os.listdir(fds) if os.path.lexists(f"{fds}/{n}")]
            return any(name.startswith(str(self.db.path)) for name in names)
        if self.on_postgres:
            return self.db.rows("select 1 from pg_stat_activity where wait_event_type = 'Lock' and pid <> pg_backend_pid() "
                                "and datname = current_database()")
        return self.db.rows("select 1 from information_schema.processlist where state like 'Waiting for table%' and db = database()")

    def test_plan(self):
        r = self.stops("plan")
        self.assertRegex(r.out + r.err, "stopped when asked to|asked to stop")
        self.assertNotIn("0 rows would go", r.out)

    def test_plan_for_machines(self):
        r = self.stops("plan", "--json", number=SIGTERM)
        self.assertEqual(r.json["exit"], 6)

    def test_check(self):
        self.stops("check")

    def test_explain(self):
        self.stops("explain", "events", "1")

    def test_sweep(self):
        self.stops("sweep", number=SIGTERM)


@every_server
class WhileItConnects(Stopping):
    """To a server that takes connections and never says a word."""

    def setUp(self):
        super().setUp()
        self.silent = socket.socket()
        self.addCleanup(self.silent.close)
        self.silent.bind(("127.0.0.1", 0))
        self.silent.listen(8)
        self.silent.setblocking(False)
        self.taken = []
        port = self.silent.getsockname()[1]
        self.dsn = self.per_engine(postgres=f"postgresql://x@127.0.0.1:{port}/x?connect_timeout=60",
                                   mariadb=f"mariadb://x@127.0.0.1:{port}/x?connect_timeout=60")

    def waits(self, p):
        try:
            self.taken.append(self.silent.accept()[0])
        except BlockingIOError:
            return False
        self.addCleanup(self.taken[-1].close)
        return True

    def test_a_command_with_a_contract(self):
        self.stops("status", contract=f"store: {self.dsn}\n{CONTRACT}")

    def test_init(self):
        self.stops("init", self.dsn, contract=None)


@every_engine
class WhileItCounts(Stopping):
    """Five rows, and ten seconds for each."""

    def setUp(self):
        super().setUp()
        slow = self.per_engine(
            sqlite="(with recursive c(i) as (select 1 union all select i + 1 from c where i < 900000000 + this.id) "
                   "select count(*) from c) > 0",
            postgres="pg_sleep(10 + this.id * 0) is not null", mariadb="sleep(10 + this.id * 0) = 0")
        self.contract = f"""
policies:
  first: {{table: events, rows: {{id: 77}}, age: at_ms, keep: 1h}}
  events: {{table: events, where: "{slow}", age: at_ms, keep: 1h, timeouts: {{statement: 100s}}}}
  last: {{table: events, age: at_ms, keep: 1h}}
"""

    def waits(self, p):
        if self.on_postgres:
            return self.db.rows("select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()")
        if self.on_mariadb:
            return self.db.rows("select 1 from information_schema.processlist where state = 'User sleep' and db = database()")
        with open(f"/proc/{p.pid}/stat") as f:      # it computes
            return int(f.read().rsplit(") ", 1)[1].split()[11]) > 50

    def test_plan_says_what_was_not_counted(self):
        r = self.stops("plan", contract=self.contract)
        self.assertNotIn("0 rows would go", r.out)

    def test_the_server_does_not_go_on(self):
        self.stops("plan", "--json", contract=self.contract)
        if not self.on_sqlite:
            eventually(lambda: not self.waits(None))


if __name__ == "__main__":
    main()
