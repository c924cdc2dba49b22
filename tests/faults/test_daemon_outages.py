"""The whole database goes away under a running daemon: down, restarted, failed over, full, mute. It waits and recovers."""
import contextlib
import os
import shutil
import signal
import subprocess
import time

import psycopg2
import pymysql

from daemon_case import *


class Outage(InTrouble):
    """A server of its own for every test, reached over TCP."""
    settings = {}       # of PostgreSQL, of MariaDB

    def setUp(self):
        settings = self.settings.get(self.engine, {})
        if self.on_mariadb:
            self.server = Mariadb(port=True, settings={"innodb-buffer-pool-size": "16M", **settings})
        else:
            self.server = Postgres(port=True, settings={"shared_buffers": "16MB", "autovacuum": "off", **settings})
        self.addCleanup(self.server.stop)
        self.db = self.server.fresh()
        self.db.dsn = self.server.dsn(self.db.name, tcp=True)
        self.numbers = iter(range(1000, 10 ** 9))
        self.prepare()

    @property
    def ends(self):
        """How a server is asked to end, and how it is made to."""
        return (signal.SIGTERM, signal.SIGKILL) if self.on_mariadb else (signal.SIGINT, signal.SIGQUIT)

    def stopped(self, how=None):
        self.db.close()
        self.server.stop(how or self.ends[0])

    def end_sessions(self, user=None):
        """All but this one, as an administrator does it."""
        if self.on_mariadb:
            for pid, in self.server.admin("select id from information_schema.processlist where db = %s and user like %s",
                                          (self.db.name, user or "%")):
                with contextlib.suppress(pymysql.OperationalError):
                    self.server.admin(f"kill {pid}")
            self.db.close()
        else:
            self.given(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{self.db.name}' "
                       f"and usename like '{user or '%'}' and application_name like 'lapse%' and pid <> pg_backend_pid()")

    def away(self, d, after, scheduler="main"):
        """The daemon has noticed: it says so once, is not ready, counts every try."""
        line = self.said_once(d, scheduler=scheduler, after=after, most=3)
        self.assertNotIn(self.server.PASSWORD, str(d))
        status, body = d.http("/readyz")
        self.assertEqual(status, 503, body)
        self.assertEqual(d.http("/healthz")[0], 200)
        self.assertTrue(body.strip(), "it says why")
        return line


@every_server
class Down(Outage):
    def test_at_the_start(self):
        self.due("good")
        self.stopped()
        d = self.daemon()
        self.away(d, 0)
        d.wait_for("other.lifecycle_tick_failed")
        self.assertEqual(len(d.said("other.lifecycle_tick_failed")), 1, d)
        after = d.mark()
        self.server.start()
        self.recovers(d, after, *TABLES)
        d.wait_for("other.lifecycle_recovered", after=after)
        d.stop()

    def test_stopped_while_it_is_away(self):
        """An orderly stop waits for no database, nor for a pause between two tries."""
        self.stopped()
        d = self.daemon()
        self.away(d, 0)
        start = time.monotonic()
        d.stop()
        self.assertLess(time.monotonic() - start, 20)

    def test_restarted(self):
        d = self.daemon()
        self.works(d, *TABLES)
        for how in self.ends:
            with self.subTest(how=how.name):
                after = d.mark()
                self.stopped(how)
                self.away(d, after)
                after = d.mark()
                self.server.start()
                self.recovers(d, after, *TABLES)
        d.stop()

    def test_away_while_no_tick_is_due(self):
        """Who looks at /readyz hears of it before the next tick does: the gauges are read more often."""
        self.contract = CONTRACT.replace(EVERY, "1h")
        d = self.daemon()
        for scheduler in ("main", "other"):
            d.wait_for(f"{scheduler}.lifecycle_pruned")
        eventually(d.ready, words=lambda: d.http("/readyz"))
        self.stopped()
        d.signal(signal.SIGHUP)         # a contract that is read again is looked at at once
        eventually(lambda: d.http("/readyz") == (503, "not ready\nthe database could not be reached\n"), words=lambda: d.http("/readyz"))
        self.server.start()
        eventually(d.ready, words=lambda: d.http("/readyz"))
        d.stop()

    def test_restarted_between_two_ticks(self):
        """Nothing was lost, so there is nothing to say: a connection that went stale is simply made again."""
        self.contract = CONTRACT.replace(EVERY, "3s")
        d = self.daemon()
        self.works(d, *TABLES)
        time.sleep(0.2)
        self.stopped()
        self.server.start()
        self.works(d, *TABLES)
        d.stop()

    def test_a_connection_is_ended(self):
        """By an administrator, in mid-work or not: the next tick goes on."""
        d = self.daemon()
        self.works(d, *TABLES)
        for _ in range(5):
            self.end_sessions()
            self.works(d, *TABLES)
        d.stop()

    def test_failed_over(self):
        """The port answers again, with another server and the same data."""
        d = self.daemon()
        self.works(d, *TABLES)
        after = d.mark()
        self.stopped()
        self.away(d, after)
        second = self.server.home / "second"
        subprocess.run(["cp", "-a", str(self.server.data), str(second)], check=True)
        shutil.rmtree(self.server.data)
        self.server.data = second
        after = d.mark()
        self.server.start()
        self.recovers(d, after, *TABLES)
        d.stop()

    @not_on("mariadb", "there it is no default, and refused")
    def test_read_only_by_default(self):
        """It asks for transactions that write, so a default does not stop it."""
        d = self.daemon()
        self.works(d, *TABLES)
        self.server.admin("alter system set default_transaction_read_only = on")
        self.server.admin("select pg_reload_conf()")
        self.db.close()
        with contextlib.closing(self.db.connect()) as c, c.cursor() as q:
            q.execute("set default_transaction_read_only = off")
            q.execute("insert into good(id, at_ms) values (500, 1)")
        eventually(lambda: not self.db.rows("select 1 from good where id = 500"), words=lambda: str(d))
        self.assertTrue(d.running())
        d.stop()


@every_server
class OutOfConnections(Outage):
    settings = {"postgres": {"max_connections": "9", "superuser_reserved_connections": "3", "max_wal_senders": "0"},
                "mariadb": {"max-connections": "10"}}       # and one for an administrator

    def test_all_taken(self):
        """The server refuses the user's connections (53300, 1040); administrators still get in."""
        if self.on_mariadb:
            self.given("create user app; grant select, insert, update, delete on * to app")
        else:
            self.given("create role app login; grant all on all tables in schema public to app")
        self.db.dsn = self.server.dsn(self.db.name, user="app", tcp=True)
        taken = []

        def take():
            with contextlib.suppress(psycopg2.OperationalError, pymysql.OperationalError):
                while True:
                    taken.append(self.server.connect(self.db.name, user="app") if self.on_mariadb
                                 else psycopg2.connect(self.db.dsn))
        take()
        self.addCleanup(lambda: [c.close() for c in taken])
        d = self.daemon()
        self.away(d, 0)
        self.assertRegex(d.said("main.lifecycle_tick_failed")[0]["error"].lower(), "slots|too many")
        after = d.mark()
        while taken:
            taken.pop().close()
        self.recovers(d, after, *TABLES)
        after = d.mark()
        take()
        self.end_sessions("app")
        taken = [c for c in taken if not self.on_mariadb]
        take()
        if d.metric("lifecycle_tick_errors_total", "main"):
            time.sleep(1)
        self.assertTrue(d.running(), d)
        while taken:
            taken.pop().close()
        self.works(d, *TABLES)
        d.stop()


@every_server
class Mute(Outage):
    def test_the_server_hangs(self):
        """Its processes are frozen: health still answers, the stop still comes."""
        d = self.daemon()
        self.works(d, *TABLES)
        backends = [self.server.process.pid] if self.on_mariadb else [p for p, in self.db.rows(
            f"select pid from pg_stat_activity where datname = '{self.db.name}' and pid <> pg_backend_pid()")]
        self.assertTrue(backends)
        for p in backends:
            os.kill(p, signal.SIGSTOP)
        try:
            time.sleep(2.5)
            self.assertTrue(d.running())
            self.assertEqual(d.http("/healthz")[0], 200)
            eventually(lambda: d.http("/readyz")[0] == 503, words="late by more than twice its interval")
        finally:
            for p in backends:
                os.kill(p, signal.SIGCONT)
        self.works(d, *TABLES)
        eventually(d.ready, words=lambda: d.http("/readyz"))
        d.stop()


class Lasting(Outage, PostgresTest):
    def test_said_again_after_a_minute(self):
        """What is wrong is said once, then how long it lasts."""
        self.stopped()
        self.contract = CONTRACT.replace(EVERY, "5s")
        d = self.daemon()
        d.wait_for("main.lifecycle_tick_failed")
        still = d.wait_for("main.lifecycle_still_failing", 90)
        self.assertEqual(len(d.said("main.lifecycle_tick_failed")), 1, d)
        self.assertGreaterEqual(max(v for v in still.values() if isinstance(v, (int, float))), 55, still)
        after = d.mark()
        self.server.start()
        self.recovers(d, after, *TABLES)
        self.assertEqual(len(d.said("main.lifecycle_still_failing")), 1, d)
        d.stop()

    def test_it_backs_off(self):
        """Between two ticks that are far apart it tries again: after a second, then later and later, never in step."""
        self.stopped()
        self.contract = CONTRACT.replace(EVERY, "10m")
        d = self.daemon()
        tries = []
        end = time.monotonic() + 14
        while time.monotonic() < end:
            n = self.errors(d)
            while len(tries) < n:
                tries.append(time.monotonic())
            time.sleep(0.02)
        gaps = [b - a for a, b in zip(tries, tries[1:])]
        self.assertIn(len(tries), range(3, 9), f"{gaps}\n{d}")
        self.assertGreater(gaps[0] + gaps[1], 1, gaps)
        self.assertGreater(gaps[-1], gaps[0], gaps)
        after = d.mark()
        self.server.start()
        d.wait_for("main.lifecycle_recovered", after=after)
        d.stop()
