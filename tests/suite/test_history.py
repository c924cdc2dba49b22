"""The history: what a sweep writes of itself, versions that had none, rights, and how it is swept itself."""
import datetime
import json
import time

from harness import *

ONE = "policies: {s: {table: s, expires: at_ms}}"
MANY = """
schedulers: {fast: {every: 1m}, slow: {every: 1h}, idle: {every: 1h}}
policies:
  s: {scheduler: fast, table: s, expires: at_ms, label: sessions, with: [part(s_id)]}
  u: {scheduler: slow, table: u, expires: at_ms}
  s.again: {scheduler: fast, table: s, expires: at_ms, rows: {id: 2}, label: sessions}
  off: {scheduler: idle, table: u, expires: at_ms, enabled: false}
"""
COLUMNS = ("scheduler, source, outcome, rows_gone, skipped, unknown, errors, error, counts")


class History(Case):
    def setUp(self):
        super().setUp()
        self.given("create table s (id integer primary key, at_ms bigint); create table u (id integer primary key, "
                   "at_ms bigint); create table part (id integer primary key, s_id integer)")
        self.insert("s", (1, 0), (2, 0), (3, MS + 1))
        self.insert("part", (1, 1), (2, 1), (3, 2))
        self.insert("u", (1, 0))

    def install(self, contract=ONE):
        self.lapse(contract, "install", code=0)

    def runs(self, columns=COLUMNS):
        return self.db.rows(f"select {columns} from lapse_run order by started_at, id")

    def now(self):
        return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)

    def put(self, id, ago, rows=0, scheduler="default", source="daemon", ended=True, outcome="done", **more):
        """A run of so many minutes ago."""
        at = (self.now() - datetime.timedelta(minutes=ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        row = dict(id=id, scheduler=scheduler, source=source, owner="h:1:a", started_at=at,
                   ended_at=at if ended else None, outcome=outcome, rows_gone=rows, skipped=0, unknown=0, batches=0,
                   errors=0, error=None, counts="{}") | more
        self.insert(f"lapse_run({', '.join(row)})", tuple(row.values()))

    def as_of_version(self, version):
        """Tables as an earlier program made them."""
        self.install()
        self.forget_who()
        self.given(f"drop table lapse_run; drop table lapse_purge; delete from lapse_version where version > {version}")
        if version < 2:
            self.given("drop table lapse_lease")


@every_engine
class Writing(History):
    def test_a_row_per_scheduler_that_ran(self):
        self.install()
        r = self.sweep(MANY)
        self.assertEqual(r.json["remarks"], [])
        fast, slow = self.runs()
        self.assertEqual(fast[:8], ("fast", "sweep", "done", 5, 0, 0, 0, None))
        self.assertEqual(json.loads(fast[8]), {"part": 3, "sessions": 2})
        self.assertEqual(slow[:8], ("slow", "sweep", "done", 1, 0, 0, 0, None))
        self.assertEqual(json.loads(slow[8]), {"u": 1})
        self.assertEqual([b > 0 for b, in self.runs("batches")], [True, True])
        self.assertRegex(self.runs("owner")[0][0], r"^.+:\d+:[0-9a-f]{8}$")

    def test_its_time_is_the_database_s(self):
        self.install()
        self.sweep(ONE, now=NOW)
        if self.on_postgres:
            (start, end), = self.runs("started_at at time zone 'UTC', ended_at at time zone 'UTC'")
        elif self.on_mariadb:
            (start, end), = self.runs("started_at, ended_at")
        else:
            start, end = (datetime.datetime.strptime(t, "%Y-%m-%dT%H:%M:%S.%fZ") for t in self.runs("started_at, ended_at")[0])
        self.assertLess(abs((self.now() - start).total_seconds()), 60)
        self.assertLessEqual(start, end)

    def test_nothing_due_is_a_run_too(self):
        self.install()
        self.db.execute("update s set at_ms = ?", (MS * 2,))
        self.sweep(ONE)
        self.assertEqual([r[2:4] + r[8:] for r in self.runs()], [("done", 0, "{}")])

    def test_only_the_named(self):
        self.install()
        self.sweep(MANY, "u")
        self.assertEqual([r[0] for r in self.runs()], ["slow"])

    def test_what_fails_is_in_it(self):
        self.install()
        contract = ONE.replace("at_ms}", "at_ms}, bad: {table: nowhere, expires: at_ms}").replace("table: s", "table: u")
        self.assertEqual(self.sweep(contract, code=3).policy("bad")["outcome"], "refused")
        (scheduler, _, outcome, rows, _, _, errors, error, _), = self.runs()
        self.assertEqual((scheduler, outcome, rows, errors), ("default", "refused", 1, 1))
        self.assertIn("nowhere", error)

    def test_a_brake_is_in_it(self):
        self.install()
        self.lapse(ONE, "pause", code=0)
        self.sweep(ONE, code=6)
        self.assertEqual([r[2:4] for r in self.runs()], [("paused", 0)])

    def test_a_lease_held_elsewhere_leaves_none(self):
        contract = "schedulers: {x: {every: 1m, exclusive: true}}\n" + ONE
        self.install(contract)
        self.sweep(contract, now="2001-01-01T00:00:00Z")
        self.assertEqual([r[0] for r in self.runs()], ["x"])
        owner, = self.db.rows("select owner from lapse_run")[0]
        self.given("update lapse_lease set owner = 'other', expires_at = '2999-01-01T00:00:00Z'")
        with self.untouched():
            self.assertEqual(self.sweep(contract).policy("s")["outcome"], "held_elsewhere")
        self.assertEqual(self.runs("owner"), [(owner,)])

    def test_a_kill_leaves_it_running(self):
        """Before the first deletion a row is there that says so; the next run goes on."""
        self.install()
        self.given("delete from s where id > 2; delete from part")
        self.insert("s", *[(i, 0) for i in range(1000, 3000)])
        contract = ONE.replace("at_ms}", "at_ms, batch: 1}")
        running = Lapse.start(self.db, contract, "sweep")
        deadline = time.monotonic() + 30
        while len(self.ids("s")) == 2002 and time.monotonic() < deadline:
            time.sleep(0.01)
        running.kill()
        self.assertEqual(self.runs("outcome, ended_at"), [("running", None)])
        self.sweep(ONE)
        self.assertEqual(self.runs("outcome"), [("running",), ("done",)])

    def test_odd_names(self):
        contract = "schedulers: {'žluť \"x\" ''y''': {every: 1m}}\npolicies: {'p ''é': {table: u, expires: at_ms}}"
        self.install(contract)
        self.sweep(contract)
        (scheduler, *_, counts), = self.runs()
        self.assertEqual((scheduler, json.loads(counts)), ("žluť \"x\" 'y'", {"p 'é": 1}))

    def test_a_history_that_cannot_be_written_stops_nothing(self):
        self.install()
        if self.on_postgres:
            self.given("create function no() returns trigger language plpgsql as $$ begin raise exception 'not today'; "
                       "end $$; create trigger no before insert on lapse_run for each row execute function no()")
        elif self.on_mariadb:
            self.given("create trigger no before insert on lapse_run begin select raise(abort, 'not today'); end")
        else:       # where triggers are refused
            self.put("a", 1, source="sweep")
            self.given('create unique index "not today" on lapse_run (lower(source))')
        before = self.runs()
        r = self.sweep(MANY)
        self.assertEqual(self.gone(r), {"part": 3, "s": 2, "u": 1})
        self.left("s", 3)
        said = [x for x in r.json["remarks"] if "history" in x]
        self.assertEqual(len(said), 2, r)
        self.assertIn("not today", said[0])
        self.assertEqual(self.runs(), before)


@every_engine
class Versions(History):
    def test_without_any(self):
        r = self.sweep(MANY)
        self.assertEqual(r.json["remarks"], ["no history is kept: lapse's own tables are not installed"])

    def test_earlier_tables_still_work(self):
        for version in (1, 2):
            self.as_of_version(version)
            self.insert("u", (10 + version, 0))
            r = self.sweep(ONE.replace("table: s", "table: u"))
            self.left("u")
            said, = [x for x in r.json["remarks"] if "no history" in x]
            self.assertIn("run lapse install", said)
            self.lapse(ONE, "pause", code=0)
            self.lapse(ONE, "resume", code=0)
            self.given("drop table lapse_fuse; drop table lapse_pause; drop table lapse_version")
            if version > 1:
                self.given("drop table lapse_lease")

    def test_leases_of_version_2(self):
        self.as_of_version(2)
        contract = "schedulers: {x: {every: 1m, exclusive: true}}\n" + ONE.replace("table: s", "table: u")
        self.sweep(contract)
        self.left("u")

    def test_upgrades(self):
        for version in (1, 2):
            self.as_of_version(version)
            self.lapse(ONE, "pause", "s", code=0)
            r = self.lapse(ONE, "install", "--json", code=0)
            self.assertEqual((r.json["from"], r.json["version"]), (version, 5))
            self.assertEqual(self.db.rows("select name from lapse_pause"), [("s",)])
            self.lapse(ONE, "resume", "s", code=0)
            self.sweep(ONE.replace("table: s", "table: u"))
            self.assertEqual([r[2] for r in self.runs()], ["done"])
            self.given("drop table lapse_fuse; drop table lapse_pause; drop table lapse_lease; drop table lapse_run; drop table lapse_purge; "
                       "drop table lapse_version")

    def test_newer_tables_are_refused(self):
        self.install()
        self.given("insert into lapse_version select 6, max(installed_at) from lapse_version")
        with self.untouched():
            for command in ("sweep", "install"):
                self.assertIn("version 5", self.lapse(ONE, command, code=2).err)


@every_engine
class Swept(History):
    """The built-in policy."""
    def sweep_own(self, code=0):
        self.given("delete from part; delete from s; delete from u")
        return self.sweep(ONE, now=None, code=code)

    def names(self):
        """Runs that are left; those that the sweeps here wrote have long names."""
        return sorted(i for i in self.ids("lapse_run") if len(i) < 20)

    def test_what_goes_and_what_stays(self):
        self.install()
        day = 24 * 60
        self.put("old-rows", 7 * day + 1, rows=5)
        self.put("week-rows", 7 * day - 5, rows=5)
        self.put("idle-old", 31)
        self.put("idle-new", 29)
        self.put("killed", 31, ended=False, outcome="running")
        self.put("killed-rows", 8 * day, rows=3, ended=False, outcome="running")
        self.put("newest", 1)
        r = self.sweep_own()
        self.assertEqual(self.names(), ["idle-new", "newest", "week-rows"])
        self.assertEqual(r.policy("lapse.run")["rows"], 4)
        last = self.runs()[-1]
        self.assertEqual(last[:4] + (json.loads(last[8]),), ("lapse", "sweep", "done", 4, {"lapse_run": 4}))

    def test_never_the_newest_of_a_scheduler(self):
        self.install()
        year = 365 * 24 * 60
        for scheduler in ("a", "b", "A"):
            self.put(f"{scheduler}1", year + 2, scheduler=scheduler)
            self.put(f"{scheduler}2", year, rows=1, scheduler=scheduler)
            self.put(f"{scheduler}0", year + 1, scheduler=scheduler)
        self.sweep_own()
        self.assertEqual(self.names(), ["A2", "a2", "b2"])
        self.sweep_own()
        self.assertEqual(self.names(), ["A2", "a2", "b2"])

    def test_a_sweep_by_hand_does_not_take_the_daemon_s_last(self):
        """Intervals go on from the daemon's last run, however many sweeps by hand came after."""
        self.install()
        self.put("daemon", 600)
        self.put("daemon-before", 700)
        self.put("hand", 500, source="sweep")
        self.put("hand-before", 550, source="sweep")
        self.sweep_own()
        self.assertEqual(self.names(), ["daemon"])      # this very sweep is the newest by hand

    def test_a_killed_newest_goes_when_another_ran(self):
        self.install()
        self.put("killed", 60, ended=False, outcome="running")
        self.sweep_own()
        self.assertEqual(self.names(), ["killed"])
        self.put("next", 1)
        self.sweep_own()
        self.assertEqual(self.names(), ["next"])

    def test_it_is_quiet_when_nothing_goes(self):
        self.install()
        for _ in range(2):
            r = self.sweep_own()
            self.assertEqual([p["policy"] for p in r.json["policies"]], ["s"])
        self.assertEqual({r[0] for r in self.runs()}, {"default"})

    def test_names_leave_it_out(self):
        self.install()
        self.put("old", 9999999)
        self.put("newer", 9999)
        self.sweep(ONE, "s")
        self.assertEqual(self.names(), ["newer", "old"])
        self.assertIn("no policy", self.lapse(ONE, "sweep", "lapse.run", code=2).err)
        self.assertEqual([p["policy"] for p in self.plan(ONE).json["policies"]], ["s"])

    def test_check_does_not_miss_a_policy_for_it(self):
        self.install()
        self.no_finding(self.check(ONE), "lapse_run")

    def test_a_table_of_that_name_elsewhere_is_left_alone(self):
        if not self.on_postgres:
            return
        contract = "own_schema: upkeep\n" + ONE
        self.install(contract)
        self.given("create table lapse_run as table upkeep.lapse_run; alter table lapse_run add primary key (id)")
        self.put("other1", 99999)
        self.put("other2", 99998)
        self.given("insert into upkeep.lapse_run table lapse_run")
        self.given("delete from part; delete from s")
        self.sweep(contract, now=None)
        self.assertEqual(self.ids("lapse_run"), ["other1", "other2"])
        self.assertEqual([i for i in self.ids("upkeep.lapse_run") if len(i) < 20], ["other2"])

    def test_own_tables_that_come_second_in_the_search_path(self):
        if not self.on_postgres:
            return
        self.install()
        self.given(f"create schema first; create table first.lapse_run as table lapse_run; "
                   f"alter database {self.db.name} set search_path = first, public")
        self.db.close()
        self.given("insert into first.lapse_run select * from public.lapse_run")
        self.db.execute("set search_path = public")
        self.put("a", 99999)
        self.put("b", 99998)
        self.given("insert into first.lapse_run select * from public.lapse_run")
        self.sweep_own()
        self.assertEqual(self.names(), ["b"])
        self.assertEqual(self.db.rows("select id from first.lapse_run order by 1"), [("a",), ("b",)])

    def test_a_general_brake_holds_it_too(self):
        self.install()
        self.put("a", 99999)
        self.put("b", 99998)
        self.lapse(ONE, "pause", code=0)
        r = self.sweep_own(code=6)
        self.assertEqual(self.names(), ["a", "b"])
        self.assertEqual([p["policy"] for p in r.json["policies"]], ["s"])
        self.lapse(ONE, "resume", code=0)
        self.lapse(ONE, "pause", "lapse.run", code=0)
        self.sweep_own()
        self.assertEqual(self.names(), ["a", "b"])
        self.lapse(ONE, "resume", "lapse.run", code=0)
        self.lapse(ONE, "pause", "lapse", "--for", "1h", code=0)
        self.sweep_own()
        self.assertEqual(self.names(), ["a", "b"])
        self.lapse(ONE, "resume", "lapse", code=0)
        self.sweep_own()
        self.assertEqual(self.names(), ["b"])


@every_engine
class Reserved(History):
    def test_names_that_are_lapse_s(self):
        r = self.lapse("schedulers: {lapse: {every: 1m}}\npolicies:\n  s: {table: s, expires: at_ms, scheduler: lapse}\n"
                       "  lapse.run: {table: s, expires: at_ms}\n", "check", code=2)
        self.assertRegex(r.err, r":\d+:14: 'lapse' is the scheduler of lapse's own tables")
        self.assertRegex(r.err, r":\d+:3: 'lapse\.run'.*own tables")

    def test_names_that_are_not(self):
        self.lapse("schedulers: {lapsed: {every: 1m}}\npolicies:\n  lapse: {table: s, expires: at_ms}\n"
                   "  lapsed.x: {table: u, expires: at_ms}\n", "plan", code=0)


class Rights(History, PostgresTest):
    def setUp(self):
        super().setUp()
        self.install()
        self.given("drop role if exists sweeper; create role sweeper login; grant usage on schema public to sweeper; "
                   "grant select, delete, update on s, u, part to sweeper; grant select on lapse_version, lapse_pause, "
                   "lapse_run to sweeper; grant select, insert, delete on lapse_fuse to sweeper; grant select, insert, "
                   "update on lapse_lease to sweeper")
        self.user = postgres().dsn(self.db.name, user="sweeper")
        self.contract = ONE.replace("table: s", "table: u")

    def tearDown(self):
        self.given("drop owned by sweeper; drop role sweeper")
        super().tearDown()

    def as_sweeper(self, code=0):
        r = lapse(self.user, self.contract, "sweep", "--now", NOW, "--json")
        self.assertEqual(r.code, code, r)
        return r

    def test_a_lack_is_said_and_stops_nothing(self):
        r = self.as_sweeper()
        self.left("u")
        said, = [x for x in r.json["remarks"] if "no history" in x]
        self.assertIn("INSERT, DELETE, UPDATE on public.lapse_run", said)
        self.assertIn("--grants", said)
        self.assertEqual(self.runs(), [])

    def test_hidden_rows(self):
        self.given("grant select, insert, update, delete on lapse_run to sweeper; alter table lapse_run enable row level "
                   "security")
        r = self.as_sweeper()
        self.left("u")
        self.assertTrue(any("row security" in x for x in r.json["remarks"]), r)

    def test_the_least(self):
        r = lapse(self.db, self.contract, "install", "--grants", "sweeper")
        self.assertIn("INSERT, DELETE, UPDATE ON \"public\".\"lapse_run\" TO \"sweeper\"", r.out)
        self.given(r.out)
        self.put("old", 99999)
        self.put("newer", 9999)
        self.assertEqual(self.as_sweeper().json["remarks"], [])
        r = lapse(self.user, self.contract, "sweep", "--json")
        self.assertEqual(r.policy("lapse.run")["rows"], 1)
        self.assertIn("newer", self.ids("lapse_run"))
