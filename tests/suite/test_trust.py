"""lapse's own tables that somebody else planted, or has code on: refused before anything touches them."""
import time

from daemon import Daemon
from harness import *

CONTRACT = "policies: {s: {table: s, expires: at_ms, limits: {rows: 10}}}\n"
PURGES = CONTRACT + "purges: {w: {erases: [s(id)]}}\n"
OWN = ["lapse_fuse", "lapse_lease", "lapse_pause", "lapse_purge", "lapse_run", "lapse_version"]
COMMANDS = (["check"], ["plan"], ["explain", "s", "1"], ["sweep"], ["pause"], ["pause", "s", "--for", "2h"], ["resume"],
            ["ack", "s"], ["status"], ["history"], ["install"], ["install", "--print"], ["install", "--grants", "x"],
            ["purge", "list"], ["purge", "schedule", "w", "1", "done"], ["purge", "cancel", "w", "1"],
            ["purge", "status", "w", "1"], ["purge", "due"])


class Trust(Case):
    def setUp(self):
        super().setUp()
        self.given("create table s (id integer primary key, at_ms bigint)")
        self.insert("s", (1, 0), (2, MS + 1))

    def refused(self, r, *words):
        self.assertEqual(r.code, 3, r)
        self.assertIn("not trusted", r.said)
        for w in words:
            self.assertIn(w, r.said)

    def goes_on(self):
        self.lapse(PURGES, "install", code=0)
        r = self.sweep(PURGES)
        self.assertEqual(r.json["remarks"], [])


class Planted(Trust, PostgresTest):
    """Made first by another role, in a schema where she may create."""
    def setUp(self):
        super().setUp()
        self.mallory, self.app = f"mallory_{self.db.name}", f"app_{self.db.name}"
        self.given(f"""create role {self.mallory} login; create role {self.app} login;
                       grant create on schema public to {self.mallory}; grant select, delete, update on s to {self.app};
                       create sequence calls; grant all on sequence calls to public""")
        self.addCleanup(self.clear)
        r = self.by(self.mallory, "install")
        self.assertEqual(r.code, 0, r)
        hers = "\n".join(f"""
            create trigger t before insert or update or delete on {t} for each row execute function evil();
            create trigger u after insert or update or delete on {t} for each statement execute function evil();
            create rule r as on insert to {t} where evil_is() do also select 1;
            create policy p on {t} using (evil_is()); alter table {t} enable row level security;
            alter table {t} add d integer default evil_number(), add check (evil_is());
            create index on {t} ((evil_same({"id" if t in ("lapse_run", "lapse_purge") else "d"}::text)));
            grant all on {t} to public;""" for t in OWN)
        self.given(f"""set role {self.mallory};
            create function evil() returns trigger language plpgsql as $$ begin perform nextval('public.calls'); return new; end $$;
            create function evil_is() returns boolean language sql as $$ select nextval('public.calls') > 0 $$;
            create function evil_number() returns integer language sql as $$ select nextval('public.calls')::integer $$;
            create function evil_same(text) returns text language plpgsql immutable as
                $$ begin perform nextval('public.calls'); return $1; end $$;
            {hers} reset role; select setval('calls', 1, false)""")

    def clear(self):
        for role in (self.mallory, self.app):
            self.given(f"drop owned by {role} cascade; drop role {role}")

    def by(self, role, *args, contract=PURGES):
        return lapse(postgres().dsn(self.db.name, user=role), contract, *args)

    def calls(self):
        return self.db.rows("select is_called from calls") == [(True,)]

    def test_her_code_is_seen_where_nobody_looks(self):
        """Else the others would prove nothing."""
        self.given("insert into lapse_pause (name, paused_at) values ('x', now())")
        self.assertTrue(self.calls())

    def test_no_command_touches_them(self):
        for role in (postgres().USER, self.app):
            for command in COMMANDS:
                with self.subTest(role=role, command=command), self.untouched():
                    self.refused(self.by(role, *command), "public.lapse_pause", f"belong to {self.mallory}",
                                 f"own_owner: {self.mallory}")
                self.assertFalse(self.calls(), command)

    def test_nor_does_the_daemon(self):
        with Daemon(self.db, PURGES) as d:
            d.wait_for("lifecycle_tick_failed")
        self.assertFalse(self.calls())
        self.left("s", 1, 2)

    def test_a_superuser_is_no_member_of_everybody(self):
        self.refused(self.lapse(CONTRACT, "sweep"), self.mallory)

    def test_in_a_schema_of_hers_before_others_on_the_path(self):
        self.given(f"""create schema {self.app} authorization {self.mallory}; grant usage on schema {self.app} to public;
                       alter table lapse_version set schema {self.app}""")
        self.refused(self.by(self.app, "sweep"), f"{self.app}.lapse_version")
        self.assertFalse(self.calls())


class Trusted(Trust, PostgresTest):
    def setUp(self):
        super().setUp()
        self.owner, self.app = f"owner_{self.db.name}", f"app_{self.db.name}"
        self.given(f"create role {self.owner} login; create role {self.app} login; grant create on schema public to "
                   f"{self.owner}; grant select, update, delete on s to public")
        self.addCleanup(self.given, f"drop owned by {self.owner} cascade; drop role {self.owner}; "
                                    f"drop owned by {self.app} cascade; drop role {self.app}")
        self.dsn = {role: postgres().dsn(self.db.name, user=role) for role in (self.owner, self.app)}

    def install(self, contract=CONTRACT):
        r = lapse(self.dsn[self.owner], contract, "install")
        self.assertEqual(r.code, 0, r)
        schema = "upkeep" if "own_schema" in contract else "public"
        self.given("".join(f"grant select, insert, update, delete on {schema}.{t} to public;" for t in OWN))

    def sweeps(self, contract=CONTRACT):
        r = lapse(self.dsn[self.app], contract, "sweep", "--now", NOW)
        self.assertEqual(r.code, 0, r)
        self.left("s", 2)

    def refuses(self, contract=CONTRACT):
        self.refused(lapse(self.dsn[self.app], contract, "sweep"), f"own_owner: {self.owner}")
        self.left("s", 1, 2)

    def test_the_contract_may_name_the_owner(self):
        self.install()
        self.refuses()
        self.refuses("own_owner: somebody\n" + CONTRACT)
        self.sweeps(f"own_owner: {self.owner}\n" + CONTRACT)

    def test_a_role_that_it_is_a_member_of(self):
        self.install()
        self.given(f"create role between_{self.db.name}; grant {self.owner} to between_{self.db.name}; "
                   f"grant between_{self.db.name} to {self.app}")
        try:
            self.sweeps()
        finally:
            self.given(f"drop role between_{self.db.name}")

    def test_not_one_that_is_a_member_of_it(self):
        self.install()
        self.given(f"grant {self.app} to {self.owner}")
        self.refuses()

    def test_a_superuser(self):
        self.install()
        self.given(f"alter role {self.owner} superuser")
        self.sweeps()

    def test_the_owner_of_the_database(self):
        self.install()
        self.given(f'alter database "{self.db.name}" owner to {self.owner}')
        try:
            self.sweeps()
        finally:
            self.given(f'alter database "{self.db.name}" owner to {postgres().USER}')

    def test_the_owner_of_own_schema_where_nobody_else_may_create(self):
        contract = "own_schema: upkeep\n" + CONTRACT
        self.given(f"create schema upkeep authorization {self.owner}; grant usage on schema upkeep to public")
        self.install(contract)
        self.given("grant create on schema upkeep to public")
        self.refuses(contract)
        self.given(f"revoke create on schema upkeep from public; alter database \"{self.db.name}\" set search_path = "
                   "upkeep, public")
        self.refuses()      # found by the path alone, it is nobody's word
        self.sweeps(contract)


class On(Trust, PostgresTest):
    """The owner is trusted, and something is on a table all the same."""
    def setUp(self):
        super().setUp()
        self.mallory = f"mallory_{self.db.name}"
        self.given(f"""create role {self.mallory}; create schema hers authorization {self.mallory};
            create function hers.f() returns trigger language plpgsql as 'begin return null; end';
            alter function hers.f() owner to {self.mallory};
            create function yes() returns trigger language plpgsql as 'begin return new; end';
            create function hers.n() returns integer language sql as 'select 1';
            alter function hers.n() owner to {self.mallory};
            create domain hers.d as integer check (value > 0); create table hers.t (id text)""")
        self.addCleanup(self.given, f"drop schema hers cascade; drop owned by {self.mallory}; drop role {self.mallory}")
        self.lapse(PURGES, "install", code=0)

    def is_refused(self, plant, *words, fix):
        self.given(plant)
        for command in ("sweep", "install", "status"):
            with self.untouched():
                self.refused(self.lapse(PURGES, command), *words, fix)
        self.given(fix)
        self.goes_on()

    def test_a_trigger_of_somebody_elses(self):
        self.is_refused("create trigger x before insert on lapse_run for each row execute function hers.f()",
                        self.mallory, fix="DROP TRIGGER x ON public.lapse_run")

    def test_a_trigger_of_somebody_whom_the_contract_names(self):
        self.given("create trigger x before insert on lapse_lease for each row execute function hers.f()")
        self.refused(self.lapse(CONTRACT, "sweep"), f"own_owner: {self.mallory}")
        self.sweep(f"own_owner: {self.mallory}\n" + CONTRACT)

    def test_a_trigger_that_is_our_own_or_off(self):
        self.given("create trigger x before insert on lapse_purge for each row execute function yes();"
                   "create trigger y before insert on lapse_run for each row execute function hers.f();"
                   "alter table lapse_run disable trigger y")
        self.goes_on()

    def test_a_trigger_with_a_condition(self):
        self.is_refused("create trigger x before insert on lapse_run for each row when (hers.n() > 0) execute function yes()",
                        fix="DROP TRIGGER x ON public.lapse_run")

    def test_a_rule(self):
        self.is_refused("create rule x as on insert to lapse_run do also notify a",
                        fix="DROP RULE x ON public.lapse_run")

    def test_row_security(self):
        self.is_refused("create policy x on lapse_pause using (true); alter table lapse_pause enable row level security",
                        fix="DROP POLICY x ON public.lapse_pause")

    def test_a_default(self):
        for number, default in enumerate(("hers.n()", "length(query_to_xml('select 1', false, false, '')::text)",
                                          "pg_backend_pid()")):
            with self.subTest(default):
                self.is_refused(f"alter table lapse_run add x{number} integer default {default}",
                                fix=f"ALTER TABLE public.lapse_run ALTER x{number} DROP DEFAULT")
        self.given("alter table lapse_run add plain integer default 7, add at timestamptz default now()")
        self.goes_on()

    def test_a_generated_column(self):
        self.is_refused("alter table lapse_run add x integer generated always as (rows_gone + 1) stored",
                        fix="ALTER TABLE public.lapse_run ALTER x DROP EXPRESSION")

    def test_a_check(self):
        self.is_refused("alter table lapse_run add constraint x check (hers.n() > 0)",
                        fix="ALTER TABLE public.lapse_run DROP CONSTRAINT x")
        self.given("alter table lapse_run add check (rows_gone >= 0)")
        self.goes_on()

    def test_foreign_keys(self):
        self.is_refused("alter table hers.t add constraint x foreign key (id) references lapse_run on delete cascade",
                        fix="ALTER TABLE hers.t DROP CONSTRAINT x")

    def test_an_index_by_an_expression(self):
        self.is_refused("create index x on lapse_run (lower(owner))", fix="DROP INDEX public.x")

    def test_a_child(self):
        self.is_refused("create table hers.c () inherits (lapse_run)",
                        fix="ALTER TABLE hers.c NO INHERIT public.lapse_run")

    def test_a_type(self):
        self.given("alter table lapse_run add x hers.d")
        self.refused(self.lapse(CONTRACT, "sweep"), "public.lapse_run.x")

    def test_a_view_in_its_place(self):
        self.given("alter table lapse_pause rename to kept; create view lapse_pause as select * from kept")
        self.refused(self.lapse(CONTRACT, "sweep"), "public.lapse_pause is no ordinary table")

    def test_what_is_planted_in_mid_run(self):
        """The first time they are there, they are looked at as at the start."""
        self.given("drop table " + ", ".join(OWN))
        self.given("truncate s")
        self.insert("s", *[(n, 0) for n in range(1, 1001)])
        self.slow("s", 0.02)
        c = "policies: {s: {table: s, expires: at_ms, batch: 1}}"
        p = Lapse.start(self.db, c, "sweep")
        end = time.monotonic() + 60
        while len(self.ids("s")) == 1000:
            self.assertLess(time.monotonic(), end, p.so_far())
            time.sleep(0.01)
        self.given(f"""create table lapse_version (version bigint, installed_at timestamptz);
                       insert into lapse_version values (1, now()); alter table lapse_version owner to {self.mallory}""")
        r = p.wait()
        self.assertNotEqual(r.code, 0, r)
        self.assertIn("not trusted", r.said)


class OnMariadb(Trust, MariadbTest):
    def setUp(self):
        super().setUp()
        self.lapse(PURGES, "install", code=0)
        self.given("create table calls (n integer)")
        self.server, self.mallory = self.db.server, f"mallory_{self.db.name}"
        self.server.admin(f'create user "{self.mallory}"')
        self.addCleanup(self.server.admin, f'drop user "{self.mallory}"')
        self.server.admin(f'grant all on "{self.db.name}".* to "{self.mallory}"')

    def plant(self, table="lapse_run", name="x"):
        self.given(f'create definer = "{self.mallory}" trigger {name} before insert on {table} for each row '
                   'insert into calls values (1)')

    def test_a_trigger_of_somebody_elses(self):
        for number, table in enumerate(OWN):
            self.plant(table, f"x{number}")
        for command in COMMANDS:
            with self.subTest(command), self.untouched():
                self.refused(self.lapse(PURGES, *command), f"{self.mallory}@%", "DROP TRIGGER x0")
        self.assertEqual(self.db.rows("select count(*) from calls"), [(0,)])

    def test_the_daemon(self):
        self.plant()
        with Daemon(self.db, PURGES) as d:
            d.wait_for("lifecycle_tick_failed")
        self.assertEqual(self.db.rows("select count(*) from calls"), [(0,)])
        self.left("s", 1, 2)

    def test_the_contract_may_name_the_definer(self):
        self.plant()
        self.refused(self.lapse("own_owner: somebody\n" + CONTRACT, "sweep"))
        for line in (f"own_owner: {self.mallory}\n", f"own_owner: '{self.mallory}@%'\n"):
            self.sweep(line + CONTRACT)
        self.assertNotEqual(self.db.rows("select count(*) from calls"), [(0,)])

    def test_its_own(self):
        self.given("create trigger x before insert on lapse_run for each row insert into calls values (1)")
        self.goes_on()

    def test_a_role_that_may_not_see_the_definer(self):
        grants = self.lapse(CONTRACT, "install", "--grants", "x", "--json", code=0).json["grants"]
        dsn = self.server.user(self.db.name, "sweeper")
        for g in grants:
            self.server.admin(g.replace("`", '"').replace('TO "x"', f'TO "sweeper_{self.db.name}"'))
        r = lapse(dsn, CONTRACT, "sweep", "--now", NOW)
        self.assertEqual(r.code, 0, r)
        self.plant()
        self.refused(lapse(dsn, CONTRACT, "sweep", "--now", NOW), "may not see")

    def test_where_an_installer_would_go_on(self):
        self.plant()
        self.given("delete from lapse_version")
        self.refused(self.lapse(CONTRACT, "install"), self.mallory)

    def test_a_view_in_its_place(self):
        for table in ("lapse_pause", "lapse_version"):
            self.given(f"create table kept_{table} as select * from {table}; drop table {table}; "
                       f'create definer = "{self.mallory}" view {table} as select * from kept_{table}')
            self.assertIn("no ordinary table", self.lapse(CONTRACT, "sweep", code=3).err)


class OnSqlite(Trust, SqliteTest):
    def test_a_trigger(self):
        self.lapse(PURGES, "install", code=0)
        self.given("create table calls (n integer)")
        for t in OWN:
            self.given(f"create trigger x_{t} after insert on {t.upper()} begin insert into calls values (1); end")
        for command in COMMANDS:
            if command[-2:] != ["--grants", "x"]:
                with self.subTest(command), self.untouched():
                    self.refused(self.lapse(PURGES, *command), 'DROP TRIGGER "x_lapse_fuse"')
        with Daemon(self.db, PURGES) as d:
            d.wait_for("lifecycle_tick_failed")
        self.assertEqual(self.db.rows("select count(*) from calls"), [(0,)])
        self.left("s", 1, 2)
        for t in OWN:
            self.given(f'drop trigger "x_{t}"')
        self.goes_on()

    def test_a_view_in_its_place(self):
        self.lapse(PURGES, "install", code=0)
        self.given("alter table lapse_pause rename to kept; create view lapse_pause as select * from kept")
        self.assertIn("no ordinary table", self.lapse(CONTRACT, "sweep", code=3).err)

    def test_one_on_another_table_is_nobodys_business(self):
        self.lapse(PURGES, "install", code=0)
        self.given("create table calls (n integer); create trigger x after delete on s begin insert into calls values (1); end")
        self.goes_on()
