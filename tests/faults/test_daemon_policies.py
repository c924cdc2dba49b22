"""One policy in trouble while the daemon runs: its table goes, changes, is locked, refuses. The others go on."""
import contextlib
import shutil
import sqlite3
import subprocess
import time

from daemon_case import *


@every_engine
class Schema(InTrouble):
    """What becomes of the table `bad` while it runs."""

    def trouble(self, change, *words, back=None):
        d = self.daemon()
        self.works(d, *TABLES)
        after, was = d.mark(), self.errors(d)
        self.given(change)
        line = self.said_once(d, *words, policy="bad", after=after)
        self.assertGreater(self.errors(d), was)
        self.assertEqual(line["scheduler"], "main")
        self.works(d, "good", "other")
        self.assertEqual(self.errors(d, "other"), 0)
        self.assertEqual(d.http("/healthz")[0], 200)
        after = d.mark()
        self.given(back)
        self.recovers(d, after, "bad", "good", "other")
        d.stop()
        return d

    CREATE = SCHEMA.split(";")[0] + "; create index bad_at on bad(at_ms); insert into bad(id, at_ms) values " \
        f"(1, {FAR_MS}), (2, null)"

    def test_table_dropped_and_made_again(self):
        self.trouble("drop table bad", "bad", back=self.CREATE)

    def test_column_dropped(self):
        self.trouble("drop index bad_at; alter table bad drop column at_ms", "at_ms",
                     back="alter table bad add column at_ms bigint; create index bad_at on bad(at_ms);"
                          f"update bad set at_ms = {FAR_MS} where id = 1")

    def test_column_renamed(self):
        self.trouble("alter table bad rename column at_ms to until_ms", "at_ms",
                     back="alter table bad rename column until_ms to at_ms")

    def test_primary_key_gone(self):
        again = "drop table bad; create table bad (id integer, at_ms bigint, note text);" \
            f"insert into bad(id, at_ms) values (1, {FAR_MS}), (2, null)"
        gone = self.per_engine(postgres="alter table bad drop constraint bad_pkey", sqlite=again,
                               mariadb="alter table bad drop primary key")
        back = "drop table bad;" + self.CREATE if self.on_sqlite else "alter table bad add primary key (id)"
        self.trouble(gone, "key", back=back)

    def test_another_table_of_the_same_name(self):
        """Made again in another shape: what was known of the old one must not decide. Its times are texts now."""
        d = self.daemon()
        self.works(d, *TABLES)
        self.given("drop table bad; create table bad (id integer primary key, at_ms text, note text);"
                   "create index bad_at on bad(at_ms)")
        self.insert("bad(id, at_ms)", (1, iso(FAR_MS)), (2, None), (3, "soon"), (4, "1"), (5, iso(1000)))
        eventually(lambda: not self.there("bad", [5]), words=lambda: str(d))
        self.works(d, "good", "other")
        self.left("bad", 1, 2, 3, 4)
        self.given("drop table bad;" + self.CREATE)
        self.works(d, *TABLES)
        d.stop()

    def test_a_dependent_appears(self):
        """A foreign key that the contract does not name turns up: `check` refuses that, so does the daemon."""
        d = self.daemon()
        self.works(d, *TABLES)
        after = d.mark()
        self.given("create table child (id integer primary key, bad_id integer references bad(id) on delete cascade)")
        ids = []
        with self.one_transaction():
            ids += self.due("bad", 1)
            self.given(f"insert into child values (1, {ids[0]})")
        self.said_once(d, "child", policy="bad", after=after)
        self.works(d, "good", "other")
        self.left("child", 1)
        after = d.mark()
        self.given("drop table child")
        self.recovers(d, after, "bad")
        d.stop()

    @contextlib.contextmanager
    def one_transaction(self):
        if not self.on_sqlite:
            self.given("begin")
            yield
            self.given("commit")
        else:
            # executescript commits what is open: the parts are seen one after the other, as a careless migration would
            yield


@every_engine
class Refusing(InTrouble):
    def refusal(self, table, message, when="true"):
        """DDL: deleting from the table raises this."""
        if self.on_postgres:
            return f"""create function refuse_{table}() returns trigger language plpgsql as
                       $$ begin if {when} then raise exception '{message}'; end if; return old; end $$;
                       create trigger refuse_{table} before delete on {table} for each row execute function refuse_{table}()"""
        return f"""create trigger refuse_{table} before delete on {table} when {when}
                   begin select raise(abort, '{message}'); end"""

    def allow(self, table):
        return f"drop trigger refuse_{table}" + (f" on {table}; drop function refuse_{table}" if self.on_postgres else "")

    def test_always(self):
        """Some rows are refused, always: said once, counted at every tick, the rest goes."""
        self.given(self.refusal("bad", "not while I live", "old.note = 'precious'"))
        d = self.daemon()
        self.works(d, *TABLES)
        after = d.mark()
        self.insert("bad(id, at_ms, note)", (10, 1, "precious"), (11, 1, "precious"))
        plain = self.due("bad")
        self.said_once(d, "not while I live", policy="bad", after=after)
        eventually(lambda: not self.there("bad", plain))
        self.works(d, "good", "other")
        self.left("bad", 1, 2, 10, 11)
        self.assertGreater(d.metric("lapse_rows_skipped_total", "main", "bad"), 1)
        self.assertEqual(self.errors(d, "other"), 0)
        after = d.mark()
        self.given(self.allow("bad"))
        self.recovers(d, after, "bad")
        self.left("bad", 1, 2)
        d.stop()

    def test_another_error_is_said_anew(self):
        self.given(self.refusal("bad", "first reason"))
        self.due("bad")
        d = self.daemon()
        self.said_once(d, "first reason", policy="bad")
        after = d.mark()
        self.given(self.allow("bad"))
        self.given(self.refusal("bad", "second reason"))
        eventually(lambda: d.said("lifecycle_tick_failed", after=after, error=lambda e: "second reason" in e),
                   words=lambda: str(d))
        self.works(d, "good", "other")
        d.stop()


@every_engine
class Full(InTrouble):
    def test_disk_full(self):
        if self.on_mariadb:
            self.given("""create trigger full_disk after delete on bad begin
                          signal sqlstate 'HY000' set mysql_errno = 1021, message_text = 'Disk full; waiting for someone'; end""")
            d = self.daemon()
            ids = self.due("bad")
            self.said_once(d, "Disk full", policy="bad")
            self.works(d, "good", "other")
            self.assertEqual(self.there("bad", ids), ids)
            after = d.mark()
            self.given("drop trigger full_disk")
        elif self.on_postgres:
            # the error of a full disk, from the server, in the middle of a batch
            self.given("""create function full_disk() returns trigger language plpgsql as $$ begin
                          raise exception 'could not extend file: No space left on device' using errcode = '53100';
                          end $$; create trigger full_disk after delete on bad for each statement execute function full_disk()""")
            d = self.daemon()
            ids = self.due("bad")
            self.said_once(d, "No space left", policy="bad")
            self.works(d, "good", "other")
            self.assertEqual(self.there("bad", ids), ids)
            after = d.mark()
            self.given("drop trigger full_disk on bad")
        else:
            d, ids, after = self.small_disk()
        eventually(lambda: not self.there("bad", ids), words=lambda: str(d))
        self.recovers(d, after, "bad", "good", "other")
        d.stop()

    def small_disk(self):
        """A file system of its own that is full while something becomes due."""
        place = new_path("disk")
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(place)], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", str(place)], check=True)
        self.db.close()
        self.db = Sqlite(place / "db.sqlite")
        self.addCleanup(self.db.drop)
        self.prepare()
        d = self.daemon()
        self.works(d, *TABLES)
        after = d.mark()
        ids = [50000 + i for i in range(2000)]      # its deletion needs more pages than are left
        self.insert("bad(id, at_ms, note)", *[(i, FAR_MS - 1, "x" * 100) for i in ids])
        self.db.execute("pragma wal_checkpoint(truncate)")
        self.db.execute("update bad set at_ms = 1 where id between 50000 and 51999")
        filler = place / "filler"
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as f:
            while True:
                f.write(b"x" * 4096)
        return self.until_full(d, filler, ids, after)

    def until_full(self, d, filler, ids, after):
        line = d.wait_for("main.lifecycle_tick_failed", after=after)
        self.assertRegex(line["error"].lower(), "full|no space|i/o error")
        self.some_more_ticks(d)
        self.assertTrue(d.running())
        after = d.mark()
        filler.unlink()
        return d, ids, after


@every_server
class Servers(InTrouble):
    """What only a server can do to a policy."""

    def test_statements_time_out(self):
        """A trigger that takes longer than the policy's statements may."""
        self.slow("bad", 5)
        ids = self.due("bad")
        self.contract = CONTRACT.replace(TIMEOUTS, SHORT)
        d = self.daemon()
        self.said_once(d, "timeout", policy="bad")
        self.works(d, "good", "other")
        self.assertEqual(self.there("bad", ids), ids)
        after = d.mark()
        self.given("drop trigger slow" + (" on bad" if self.on_postgres else ""))
        eventually(lambda: not self.there("bad", ids))
        self.recovers(d, after, "bad")
        d.stop()

    def test_locked_by_another(self):
        ids = self.due("bad")
        self.contract = CONTRACT.replace(TIMEOUTS, SHORT)
        with contextlib.closing(self.db.connect()) as c, c.cursor() as q:
            q.execute("begin; lock table bad in access exclusive mode" if self.on_postgres else "lock tables bad write")
            d = self.daemon()
            self.said_once(d, policy="bad")
            self.works(d, "good", "other")
            after = d.mark()
            q.execute("rollback" if self.on_postgres else "unlock tables")
        self.assertFalse(self.there("bad", ids) != ids and self.there("bad", ids))
        eventually(lambda: not self.there("bad", ids))
        self.recovers(d, after, "bad")
        d.stop()

    def as_a_role(self):
        """A daemon that works, as a user with no more rights than it needs."""
        who = f"app_{self.db.name}"
        if self.on_mariadb:
            dsn = self.db.server.user(self.db.name, "app", *(f"select, insert, update, delete on {last_part(t)}"
                                                             for t in self.db.tables()), "references on *.*")
            d = Daemon(dsn, self.contract)
            self.addCleanup(d.kill)
            self.works(d, *TABLES)
            return who, d, d.mark()
        self.given(f"create role {who} login; grant all on all tables in schema public to {who}")
        self.addCleanup(self.db.server.admin, f"drop role {who}")
        self.addCleanup(self.db.execute, f"drop owned by {who}")
        d = Daemon(self.db.server.dsn(self.db.name, user=who), self.contract)
        self.addCleanup(d.kill)
        self.works(d, *TABLES)
        return who, d, d.mark()

    def test_permission_revoked(self):
        who, d, after = self.as_a_role()
        self.given(f"revoke delete on bad from {who}")
        ids = self.due("bad")
        line = self.said_once(d, "delete", policy="bad", after=after)
        self.assertIn("bad", line["error"])
        self.works(d, "good", "other")
        self.assertEqual(self.there("bad", ids), ids)
        after = d.mark()
        self.given(f"grant delete on bad to {who}")
        eventually(lambda: not self.there("bad", ids))
        self.recovers(d, after, "bad")
        d.stop()

    @not_on("mariadb", "it has no row security")
    def test_row_security_turned_on(self):
        """Hidden rows are an error, not fewer rows."""
        _, d, after = self.as_a_role()
        self.given("create policy halves on bad using (id % 2 = 0); alter table bad enable row level security")
        ids = self.due("bad", 4)
        self.said_once(d, "row", policy="bad", after=after)
        self.assertEqual(self.there("bad", ids), ids)
        self.works(d, "good", "other")
        after = d.mark()
        self.given("alter table bad disable row level security")
        eventually(lambda: not self.there("bad", ids))
        self.recovers(d, after, "bad")
        d.stop()


class Files(InTrouble, SqliteTest):
    """What only a file can suffer."""

    def test_locked_for_long(self):
        d = self.daemon()
        self.works(d, *TABLES)
        after = d.mark()
        ids = self.due("bad") + self.due("other")
        with contextlib.closing(sqlite3.connect(self.db.path, isolation_level=None)) as c:
            self.wait_lock(c)
            time.sleep(4)
            self.assertTrue(d.running(), d)
            self.assertEqual(d.http("/healthz")[0], 200)
            c.execute("rollback")
        eventually(lambda: not self.there("bad", ids) and not self.there("other", ids), words=lambda: str(d))
        self.assertLessEqual(len(d.said("main.lifecycle_tick_failed", after=after)), 3, d)
        self.works(d, *TABLES)
        d.stop()

    @staticmethod
    def wait_lock(c):
        def locked():
            with contextlib.suppress(sqlite3.OperationalError):
                c.execute("begin immediate")
                return True
        eventually(locked)

    def test_file_deleted_and_put_back(self):
        """A file that is gone is not made anew; the file that comes is the one that is swept."""
        self.db.execute("pragma journal_mode = delete")
        d = self.daemon()
        self.works(d, *TABLES)
        self.db.close()
        aside = self.db.path.with_suffix(".aside")
        after = d.mark()
        self.db.path.rename(aside)
        d.wait_for("main.lifecycle_tick_failed", after=after)
        self.some_more_ticks(d)
        self.assertFalse(self.db.path.exists(), "a database that is not there is not made")
        self.assertEqual(d.http("/readyz")[0], 503)
        after = d.mark()
        aside.rename(self.db.path)
        self.recovers(d, after, *TABLES)
        d.stop()

    def test_file_replaced(self):
        """Another database takes the place of the file: the new one is swept, the old one no more."""
        self.db.execute("pragma journal_mode = delete")
        d = self.daemon()
        self.works(d, *TABLES)
        self.db.close()
        aside = self.db.path.with_suffix(".aside")
        shutil.copyfile(self.db.path, aside)
        old = self.db.path.with_suffix(".old")
        self.db.path.rename(old)
        aside.rename(self.db.path)
        self.works(d, *TABLES)
        before = Sqlite(old)
        before.execute("insert into good(id, at_ms) values (99, 1)")
        time.sleep(1.5)
        self.assertEqual(before.rows("select id from good where id = 99"), [(99,)], "the file that was moved away is left alone")
        before.drop()
        d.stop()
