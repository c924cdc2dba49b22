"""lapse's own tables: installing them, by many at once; what they look like; versions; the least privileges."""
import json
import re
import time

from harness import *

PLAIN = "policies: {s: {table: s, expires: at_ms}}"
LIMITED = "policies: {s: {table: s, expires: at_ms, limits: {rows: 10}}}"
OWN = ["lapse_fuse", "lapse_lease", "lapse_pause", "lapse_purge", "lapse_run", "lapse_version"]
VERSION = 5


class Own(Case):
    def setUp(self):
        super().setUp()
        self.given("create table s (id integer primary key, at_ms bigint)")
        self.insert("s", (1, 0), (2, MS + 1))

    def own_tables(self, schema=None):
        names = [t.replace('"', "") for t in self.db.tables()]
        wanted = f"{schema}." if schema else "public." if self.on_postgres else ""
        return sorted(n.removeprefix(wanted) for n in names if n.startswith(wanted + "lapse_"))

    def install(self, contract=PLAIN, *options, code=0):
        return self.lapse(contract, "install", *options, "--json", code=code)


@every_engine
class Installing(Own):
    def test_twice(self):
        first, second = self.install(), self.install()
        self.assertEqual(self.own_tables(), OWN)
        self.assertEqual((first.json["from"], first.json["version"]), (0, VERSION))
        self.assertEqual((second.json["from"], second.json["version"]), (VERSION, VERSION))
        self.assertEqual(self.db.rows("select max(version), count(*) from lapse_version"), [(VERSION, VERSION)])

    def test_what_it_says(self):
        self.assertIn("installed lapse's own tables", self.lapse(PLAIN, "install", code=0).out)
        self.assertIn("up to date", self.lapse(PLAIN, "install", code=0).out)

    def test_eight_at_once(self):
        for _ in range(3):
            running = [Lapse.start(self.db, PLAIN, "install", "--json") for _ in range(8)]
            done = [p.wait() for p in running]
            self.assertEqual([r.code for r in done], [0] * 8, "\n".join(map(str, done)))
            self.assertEqual([r.json["from"] for r in done].count(0), 1, "only one of them installs")
            self.assertEqual(self.db.rows("select max(version), count(*) from lapse_version"), [(VERSION, VERSION)])
            self.given("drop table lapse_fuse; drop table lapse_pause; drop table lapse_lease; "
                       "drop table lapse_run; drop table lapse_purge; drop table lapse_version")

    def test_times_are_readable(self):
        self.install()
        self.lapse(PLAIN, "pause", "--for", "2h", code=0)
        if self.on_postgres:
            self.assertEqual(self.db.rows("select until > now() + interval '119 minutes' and until < now() + "
                                          "interval '121 minutes', paused_at <= now() from lapse_pause"),
                             [(True, True)])
        elif self.on_mariadb:
            self.assertEqual(self.db.rows("select until > now() + interval 119 minute and until < now() + "
                                          "interval 121 minute, paused_at <= now(6) from lapse_pause"), [(1, 1)])
        else:
            until, = self.db.rows("select until from lapse_pause")[0]
            self.assertRegex(until, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
            self.assertEqual(self.db.rows("select abs(strftime('%s', until) - strftime('%s', 'now') - 7200) < 60, "
                                          "paused_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now') from lapse_pause"),
                             [(1, 1)])

    def test_print_touches_nothing(self):
        with self.untouched():
            r = self.install(PLAIN, "--print")
        self.assertEqual(self.own_tables(), [])
        self.assertTrue(any("lapse_fuse" in s for s in r.json["statements"]), r)

    def test_what_is_printed_installs(self):
        sql = self.lapse(PLAIN, "install", "--print", code=0).out
        self.given(sql)
        self.assertEqual(self.own_tables(), OWN)
        self.assertEqual(self.install().json["from"], VERSION)
        self.assertIn("nothing to do", self.lapse(PLAIN, "install", "--print", code=0).out)
        self.assertEqual(self.install(PLAIN, "--print").json["statements"], [])

    def test_print_needs_no_right_to_write(self):
        if self.on_postgres:
            self.given("revoke create on schema public from public; drop role if exists reader; create role reader login")
            dsn = postgres().dsn(self.db.name, user="reader")
            r = lapse(dsn, PLAIN, "install", "--print")
            self.assertEqual(r.code, 0, r)
            refused = lapse(dsn, PLAIN, "install")
            self.assertEqual(refused.code, 1, refused)
            self.assertIn("permission denied", refused.err)
            self.given("drop role reader")
        elif self.on_mariadb:
            dsn = self.db.server.user(self.db.name, "reader", "select on s")
            r = lapse(dsn, PLAIN, "install", "--print")
            self.assertEqual(r.code, 0, r)
            refused = lapse(dsn, PLAIN, "install")
            self.assertEqual(refused.code, 1, refused)
            self.assertIn("denied", refused.err)
        else:
            self.db.close()
            self.db.path.chmod(0o444)
            self.assertIn("CREATE TABLE", self.lapse(PLAIN, "install", "--print", code=0).out)

    def test_a_plain_sweep_needs_none(self):
        r = self.sweep(PLAIN)
        self.assertTrue(any("no history" in x for x in r.json["remarks"]), r)
        self.left("s", 2)
        self.assertEqual(self.own_tables(), [])

    def test_a_sweep_with_them_says_nothing_of_it(self):
        self.install()
        r = self.sweep(PLAIN)
        self.assertFalse(any("not installed" in x for x in r.json["remarks"]), r)
        self.left("s", 2)

    def test_what_needs_them_says_so(self):
        for command in (["pause"], ["resume"], ["pause", "s"], ["ack", "s"]):
            r = self.lapse(LIMITED, *command, code=2)
            self.assertIn("run lapse install", r.err)
        r = self.check(LIMITED, code=3)
        self.finding(r, "error", "limits", "lapse install", policy="s")
        self.assertEqual(self.plan(LIMITED, code=3).policy("s")["outcome"], "refused")
        with self.untouched():
            self.assertIn("lapse install", self.sweep(LIMITED, code=3).policy("s")["error"])

    def test_policies_without_limits_run_beside_one_with(self):
        self.given("create table t (id integer primary key, at_ms bigint)")
        self.insert("t", (1, 0))
        r = self.sweep("policies: {s: {table: s, expires: at_ms, limits: {rows: 10}}, t: {table: t, expires: at_ms}}",
                       code=3)
        self.assertEqual([p["outcome"] for p in r.json["policies"]], ["refused", "done"])
        self.left("s", 1, 2)

    def test_bad_usage(self):
        self.lapse(PLAIN, "install", "s", code=2)
        self.lapse(PLAIN, "install", "--for", "2h", code=2)
        self.lapse(PLAIN, "install", "--grants", code=2)
        self.assertEqual(self.own_tables(), [])

    def test_coverage_does_not_ask_for_them(self):
        self.install()
        r = self.check(PLAIN, "--strict")
        self.no_finding(r, "lapse_")


@every_engine
class Versions(Own):
    def test_an_older_program_refuses(self):
        self.install(LIMITED)
        self.given("insert into lapse_version select max(version) + 1, max(installed_at) from lapse_version")
        for command in (["check"], ["plan"], ["sweep"], ["pause"], ["resume"], ["ack", "s"], ["install"],
                        ["install", "--print"]):
            with self.untouched():
                r = self.lapse(LIMITED, *command, code=2)
            self.assertIn("newer lapse", r.err)
            self.assertIn(f"version {VERSION + 1}", r.err)
        self.left("s", 1, 2)

    def as_of_version_1(self):
        self.install(LIMITED)
        self.forget_who()
        self.given("drop table lapse_lease; drop table lapse_run; drop table lapse_purge; delete from lapse_version where version > 1")

    def test_what_an_earlier_version_has_still_works(self):
        self.as_of_version_1()
        self.lapse(LIMITED, "pause", code=0)
        self.assertEqual(self.sweep(LIMITED, code=6).policy("s")["outcome"], "paused")
        self.lapse(LIMITED, "resume", code=0)
        self.insert("s", (3, 0))
        tight = LIMITED.replace("rows: 10", "rows: 1")
        self.assertEqual(self.sweep(tight, code=4).policy("s")["outcome"], "fuse")
        self.lapse(tight, "ack", "s", code=0)
        self.assertEqual(self.sweep(tight).policy("s")["rows"], 2)
        self.assertEqual(self.own_tables(), ["lapse_fuse", "lapse_pause", "lapse_version"])

    def test_an_upgrade(self):
        self.as_of_version_1()
        self.lapse(LIMITED, "pause", "s", code=0)
        self.assertEqual(len(self.install(PLAIN, "--print").json["statements"]), self.per_engine(postgres=23, sqlite=22, mariadb=22))
        self.assertEqual(self.install().json["from"], 1)
        self.assertEqual(self.own_tables(), OWN)
        self.assertEqual(self.sweep(LIMITED, code=6).policy("s")["outcome"], "paused", "what was kept is kept")

    def test_what_is_printed_upgrades(self):
        self.as_of_version_1()
        self.given(self.lapse(PLAIN, "install", "--print", code=0).out)
        self.assertEqual(self.own_tables(), OWN)
        self.assertEqual(self.install().json["from"], VERSION)

    def test_a_foreign_table_in_the_way_of_an_upgrade(self):
        self.as_of_version_1()
        self.given("create table lapse_lease (x integer)")
        self.assertIn("lapse_lease", self.lapse(PLAIN, "install", code=3 if self.on_mariadb else 1).err)
        self.assertEqual(self.db.rows("select max(version) from lapse_version"), [(1,)])
        self.assertEqual(self.sweep(PLAIN).policy("s")["rows"], 1)

    def test_a_table_that_is_missing(self):
        self.install()
        self.given("drop table lapse_pause")
        for command in ("sweep", "install", "plan"):
            r = self.lapse(PLAIN, command, code=3)
            self.assertIn("lapse_pause", r.err)
        self.left("s", 1, 2)

    def test_a_foreign_table_in_the_way(self):
        self.given("create table lapse_fuse (x integer)")
        r = self.lapse(PLAIN, "install", code=3)
        self.assertIn("lapse_fuse", r.err)
        self.assertIn("own_schema", r.err)
        self.assertEqual(self.own_tables(), ["lapse_fuse"])

    def test_a_foreign_version_table(self):
        self.given("create table lapse_version (x integer)")
        for command in ("install", "sweep"):
            r = self.lapse(PLAIN, command, code=3)
            self.assertIn("'version'", r.err)
        self.left("s", 1, 2)

    def test_a_foreign_table_of_the_right_name_beside_ours(self):
        self.install()
        self.given("drop table lapse_fuse; create table lapse_fuse (policy text)")
        self.assertIn("lapse_fuse", self.lapse(PLAIN, "sweep", code=3).err)

    def test_an_emptied_version_table(self):
        self.install()
        self.given("delete from lapse_version")
        self.assertIn("names no version", self.lapse(PLAIN, "sweep", code=3).err)
        if not self.on_mariadb:     # there it may be the first table of an installer that was stopped
            self.assertIn("names no version", self.lapse(PLAIN, "install", code=3).err)


class Stopped(Own, MariadbTest):
    """Every CREATE commits by itself: an installer may be stopped behind any of them."""
    def test_at_every_statement(self):
        statements = [s for s in self.install(PLAIN, "--print").json["statements"] if "LOCK" not in s]
        self.assertGreater(len(statements), 10)
        for n in range(1, len(statements)):
            for sql in statements[:n]:
                self.db.execute(sql)
            self.lapse(PLAIN, "install", code=0)
            self.assertEqual(self.own_tables(), OWN)
            self.assertEqual(self.db.rows("select max(version), count(*) from lapse_version"), [(VERSION, VERSION)])
            self.lapse(PLAIN, "pause", code=0)
            self.given(";".join(f"drop table {t}" for t in OWN))

    def test_nobody_takes_half_of_it_for_nothing(self):
        self.install()
        self.lapse(PLAIN, "pause", code=0)
        self.given("delete from lapse_version")
        self.assertIn("run lapse install", self.lapse(PLAIN, "sweep", code=3).err)
        self.lapse(PLAIN, "install", code=0)
        self.assertEqual(self.sweep(PLAIN, code=6).policy("s")["outcome"], "paused", "what was kept is kept")

    def test_a_foreign_table_where_it_was_stopped(self):
        self.install()
        self.given("delete from lapse_version; drop table lapse_run; create table lapse_run (x integer)")
        self.assertIn("lapse_run", self.lapse(PLAIN, "install", code=3).err)
        self.assertEqual(self.db.rows("select count(*) from lapse_version"), [(0,)])


class Schemas(Own, PostgresTest):
    def test_made_if_missing(self):
        contract = "own_schema: upkeep\n" + PLAIN
        r = self.install(contract)
        self.assertEqual(r.json["schema"], "upkeep")
        self.assertEqual(self.own_tables("upkeep"), OWN)
        self.assertEqual(self.own_tables(), [])
        self.lapse(contract, "pause", code=0)
        self.assertEqual(self.sweep(contract, code=6).policy("s")["outcome"], "paused")
        self.assertEqual(self.sweep(PLAIN).policy("s")["outcome"], "done", "another schema, another lapse")

    def test_one_that_is_there_needs_no_right_on_the_database(self):
        self.given("drop role if exists keeper; create role keeper login; create schema upkeep authorization keeper")
        r = lapse(postgres().dsn(self.db.name, user="keeper"), "own_schema: upkeep\n" + PLAIN, "install")
        self.assertEqual(r.code, 0, r)
        self.given("drop schema upkeep cascade; drop role keeper")

    def test_odd_names(self):
        for name in ('Upkeep', 'up keep', 'a"b', "a'b", 'select', 'ünï', "x; drop table s"):
            contract = f"own_schema: {json.dumps(name)}\n" + LIMITED
            self.assertEqual(self.install(contract).json["schema"], name)
            quoted = '"' + name.replace('"', '""') + '"'
            self.assertEqual(self.db.rows(f"select max(version) from {quoted}.lapse_version"), [(VERSION,)])
            self.lapse(contract, "pause", "s", code=0)
            self.assertEqual(self.plan(contract).policy("s")["paused"]["by"], "s")
            self.lapse(contract, "resume", "s", code=0)
            self.assertEqual(self.install(contract).json["from"], VERSION)
        self.left("s", 1, 2)

    def test_names_compare_exactly(self):
        self.install("own_schema: Upkeep\n" + PLAIN)
        self.assertEqual(self.install("own_schema: upkeep\n" + PLAIN).json["from"], 0)

    def test_many_at_once_make_one(self):
        running = [Lapse.start(self.db, "own_schema: upkeep\n" + PLAIN, "install", "--json") for _ in range(8)]
        done = [p.wait() for p in running]
        self.assertEqual([r.code for r in done], [0] * 8, "\n".join(map(str, done)))

    def test_found_by_the_search_path(self):
        self.install("own_schema: upkeep\n" + PLAIN)
        self.lapse("own_schema: upkeep\n" + PLAIN, "pause", code=0)
        self.given(f'alter database "{self.db.name}" set search_path = public, upkeep')
        self.assertEqual(self.sweep(PLAIN, code=6).policy("s")["outcome"], "paused")

    def test_odd_session_settings(self):
        self.given(f"""alter database "{self.db.name}" set datestyle = 'SQL, DMY';
                       alter database "{self.db.name}" set timezone = 'Asia/Kolkata'""")
        self.install(LIMITED)
        self.lapse(LIMITED, "pause", "--for", "2h", code=0)
        self.assertEqual(self.sweep(LIMITED, code=6).policy("s")["outcome"], "paused")
        self.db.execute("update lapse_pause set until = now() - interval '1 second'")
        self.assertEqual(self.sweep(LIMITED).policy("s")["outcome"], "done")


class Grants(Own, PostgresTest):
    CONTRACT = """
        own_schema: upkeep
        schedulers: { default: { every: 1m, exclusive: true } }
        policies:
          job:
            table: app.job
            expires: at_ms
            limits: { rows: 5 }
            with:
              - { ref: app.step(job_id), with: [app.line(step_id)] }
              - app.job(parent_id)
            detach: [app.note(job_id)]
            after: [app.hold(job_id)]
          task:
            table: app.task
            age: at_ms
            keep: 1s
            orphan: { of: app.doc(id), by: doc_id, matching: { live: 1 }, delete_when: deleted_or_unmatched }
        """

    def setUp(self):
        super().setUp()
        self.given("""
            drop role if exists "Sweeper-1"; create role "Sweeper-1" login;
            create schema app;
            create table app.job (id integer primary key, at_ms bigint, parent_id integer references app.job);
            create table app.step (id integer primary key, job_id integer references app.job);
            create table app.line (id integer primary key, step_id integer references app.step);
            create table app.note (id integer primary key, job_id integer references app.job, words text);
            create table app.hold (id integer primary key, job_id integer references app.job);
            create table app.doc (id integer primary key, live integer);
            create table app.task (id integer primary key, doc_id integer, at_ms bigint);
            create index on app.job(parent_id); create index on app.step(job_id); create index on app.line(step_id);
            create index on app.note(job_id); create index on app.hold(job_id)""")
        self.addCleanup(self.given, 'drop owned by "Sweeper-1"; drop role "Sweeper-1"')
        self.install(self.CONTRACT)
        self.fill()
        self.grants = self.install(self.CONTRACT, "--grants", "Sweeper-1").json["grants"]
        self.dsn = postgres().dsn(self.db.name, user="Sweeper-1")

    def fill(self):
        self.given("truncate app.job, app.step, app.line, app.note, app.hold, app.doc, app.task")
        self.insert("app.doc", (1, 1), (2, 0))
        self.insert("app.task", (1, 1, 0), (2, 2, 0), (3, 3, 0))
        self.insert("app.job", (1, 0, None), (2, MS + 5, 1), (3, 0, None))
        self.insert("app.step", (1, 1), (2, 1))
        self.insert("app.line", (1, 1), (2, 2))
        self.insert("app.note", (1, 1, "x"))
        self.insert("app.hold", (1, 3))

    def run_as_role(self, *args):
        return lapse(self.dsn, self.CONTRACT, *args, "--json")

    def test_they_are_enough(self):
        for g in self.grants:
            self.given(g)
        r = self.run_as_role("sweep", "--now", NOW)
        self.assertEqual(r.code, 0, r)
        self.assertEqual(counts(r.policy("job")["tables"]), {"job": 2, "step": 2, "line": 2})
        self.left("app.job", 3)
        self.left("app.task", 1)
        self.assertEqual(self.db.rows("select job_id, words from app.note"), [(None, "x")])

    def test_the_fuse_trips_with_them(self):
        for g in self.grants:
            self.given(g)
        self.insert("app.job", *[(n, 0, None) for n in range(10, 30)])
        r = self.run_as_role("sweep", "--now", NOW)
        self.assertEqual(r.code, 4, r)
        self.lapse(self.CONTRACT, "ack", "job", code=0)
        self.assertEqual(self.run_as_role("sweep", "--now", NOW).code, 0)
        self.assertEqual(self.db.rows("select count(*) from upkeep.lapse_fuse where policy_hash <> ''"), [(0,)], "the role used it up")

    def test_each_is_needed(self):
        for g in self.grants:
            self.given(g)
        taken = [self.revoke(g, right) for g in self.grants for right in self.rights(g)]
        self.assertGreater(len(taken), 15)
        for revoke, grant, right, what in taken:
            with self.subTest(revoke):
                self.given(revoke)
                self.fill()
                if right == "INSERT":
                    self.insert("app.job", *[(n, 0, None) for n in range(10, 30)])
                count = "select count(*) from app." + ("task" if what in ("task", "doc") else "job")
                before = self.db.rows(count)
                r, c = self.run_as_role("sweep", "--now", NOW), self.run_as_role("check")
                if what == "lapse_run":     # nothing depends on the history: it is said, and the sweep goes on
                    self.assertIn(right, next(x for x in r.json["remarks"] if "lapse_run" in x), revoke)
                    self.given("delete from upkeep.lapse_fuse; " + grant)
                    continue
                self.assertIn(r.code, (1, 2, 3), f"{revoke}\n{r}")
                said = (r.said + c.said).lower()
                self.assertIn(what.lower(), said, revoke)
                self.assertEqual(self.db.rows(count), before)
            self.given(grant)
        self.fill()
        self.assertEqual(self.run_as_role("sweep", "--now", NOW).code, 0)

    @staticmethod
    def rights(grant):
        words = re.match(r"GRANT (.*?) ON ", grant).group(1)
        return re.findall(r"[A-Z]+(?: \([^)]*\))?", words)

    @staticmethod
    def revoke(grant, right):
        on = re.search(r" ON (SCHEMA )?(.*) TO (.*);$", grant, re.S)
        what = last_part(on.group(2)).replace('"', "")
        target = (on.group(1) or "") + on.group(2)
        return f"REVOKE {right} ON {target} FROM {on.group(3)}", grant, right.split()[0], what

    def test_no_more_than_they_say(self):
        text = "\n".join(self.grants)
        self.assertNotIn("ALL", text)
        self.assertIn('UPDATE ("job_id") ON "app"."note"', text)
        self.assertRegex(text, r'GRANT SELECT ON "app"."hold"')
        self.assertRegex(text, r'GRANT SELECT, DELETE ON "app"."line"')
        self.assertNotIn("INSERT", "\n".join(g for g in self.grants if '"app"' in g))

    def test_touches_nothing(self):
        with self.untouched():
            self.install(self.CONTRACT, "--grants", "nobody-yet")

    def test_print_and_grants_together(self):
        r = self.lapse("own_schema: elsewhere\n" + PLAIN, "install", "--print", "--grants", "Sweeper-1", code=0)
        self.assertLess(r.out.index("CREATE TABLE"), r.out.index("GRANT"))
        self.given(r.out)

    def test_a_policy_that_does_not_fit_is_named(self):
        r = self.lapse("policies: {s: {table: s, expires: at_ms}, nope: {table: nope, expires: x_ms}}", "install",
                       "--grants", "Sweeper-1", code=0)
        self.assertIn("-- policy 'nope' is left out", r.out)

    def test_a_condition_in_sql_is_named(self):
        r = self.lapse("policies: {s: {table: s, expires: at_ms, hold: 'exists (select 1 from app.hold)'}}", "install",
                       "--grants", "Sweeper-1", code=0)
        self.assertIn("-- policy 's' has a condition in SQL", r.out)


class NoRoles(Own, SqliteTest):
    def test_sqlite_has_none(self):
        self.assertIn("no roles", self.lapse(PLAIN, "install", "--grants", "x", code=2).err)

    def test_own_schema_has_no_meaning(self):
        self.install("own_schema: upkeep\n" + PLAIN)
        self.assertEqual(self.own_tables(), OWN)

    def test_the_database_is_busy(self):
        c = self.db.connect()
        c.execute("begin immediate")
        p = Lapse.start(self.db, PLAIN, "install")
        time.sleep(0.5)
        c.execute("rollback")
        self.assertEqual(p.wait().code, 0)
        c.close()
