"""PostgreSQL: what others create in a schema of the search path is never called with this user's rights.

Mallory may create in `public` and in a schema that is named after the role that sweeps. What she plants says so in the
server's log whenever it is called: operators and functions that fit better than the server's own, on every path; and
on a path where her schemas come before pg_catalog, the same as the server's, with types and views of its names."""
import os
import re
import subprocess
import unittest
from pathlib import Path

from daemon import Daemon
from harness import *

# What lapse's statements may hold, and somebody may bring better ones of.
SIGNS = "= <> < <= > >= || + - * / % ~ !~ ~~ !~~ ~* ~~* ->> -> @> <@ && & | ^@".split()
FEW = 'bool int2 int4 int8 oid float8 numeric text varchar bpchar name "char" bytea timestamptz timestamp date interval'.split()
MORE = FEW + "float4 uuid xid tid regclass pg_lsn int2vector text[] oid[] name[] int8[] int2[] anyarray anyelement anynonarray" \
    " app.citext app.state app.code".split()
SQL_OF_LAPSE = "\n".join(p.read_text() for p in sorted((ROOT / "src/store").glob("**/*.c"))
                         if p.parent.name in ("postgres", "sql"))

PLANTS = """
set role mallory; set search_path = pg_catalog;
create function public.planted(words text) returns boolean language plpgsql as $$begin raise log 'PLANTED %', words; return null; end$$;

-- Functions by what they take and give; an operator is one of them under another name.
create function pg_temp.plant(place text, name text, takes text[], gives text) returns void language plpgsql as $f$
declare args text := array_to_string(takes, ', ');
begin
    execute format('create function %s.%I(%s) returns %s language plpgsql as $$begin perform public.planted(%L); return null; end$$',
                   place, name, args, gives, format('%s.%s(%s)', place, name, args));
exception when others then null;   -- pseudo-types that no function of hers may take, or one that is there
end $f$;
create function pg_temp.plant_operator(place text, sign text, a text, b text, gives text) returns void language plpgsql as $f$
begin
    if to_regprocedure(format('%s.%I(%s, %s)', place, 'plant_' || gives, a, b)) is null then
        perform pg_temp.plant(place, 'plant_' || gives, array[a, b], gives);
    end if;
    execute format('create operator %s.%s (leftarg = %s, rightarg = %s, function = %s.%I)', place, sign, a, b, place, 'plant_' || gives);
exception when others then null;
end $f$;
"""

# Better than the server's for some arguments; they matter on any path.
BETTER = """
select pg_temp.plant_operator(place, sign, a, b, case when sign in ('||', '->>') then 'text' when sign in ('+', '-', '*', '/', '%')
           then 'numeric' else 'boolean' end)
from unnest(array{places}) place, unnest(array{signs}) sign, unnest(array{more}) a, unnest(array{more}) b
where (a <> b or a in ('varchar', 'name', '"char"', 'app.citext', 'app.state', 'app.code', 'anyelement', 'anyarray'))
  and (a = any(array{few}) and b = any(array{few}) or a = b or 'text' in (a, b));
select pg_temp.plant(place, name, takes, 'text')
from unnest(array{places}) place, unnest(array{functions}) name,
     (select array[a] from unnest(array{more}) a union all
      select array[a, b] from unnest(array{few}) a, unnest(array{few}) b where 'text' in (a, b) or 'varchar' in (a, b) union all
      select array[a, b, c] from unnest(array['text', 'varchar', 'name']) a, unnest(array['text', 'varchar', 'int4']) b,
             unnest(array['text', 'varchar', 'int4', 'bool']) c) as x (takes)
where exists (select from pg_proc p where p.proname = name and p.pronargs = cardinality(takes));
"""

# The server's own, again: they matter where her schemas come first.
SAME = """
select pg_temp.plant(place, p.proname, p.takes, case when p.proretset then 'setof ' else '' end || format_type(p.prorettype, null))
from unnest(array{places}) place,
     (select proname, proretset, prorettype, array(select format_type(t, null) from unnest(proargtypes) t) as takes from pg_proc
      where pronamespace = 'pg_catalog'::regnamespace and proname = any(array{functions}) and prokind in ('f', 'a', 'w')) p;
select pg_temp.plant_operator(place, o.oprname, format_type(o.oprleft, null), format_type(o.oprright, null), format_type(o.oprresult, null))
from unnest(array{places}) place, pg_operator o
where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprname = any(array{signs}) and o.oprleft <> 0;
do $d$ declare place text; name text; begin
    foreach place in array array{places} loop
        for name in select typname from pg_type where typnamespace = 'pg_catalog'::regnamespace and typtype = 'b' and typname !~ '^_' loop
            execute format('create domain %s.%I as pg_catalog.text check (public.planted(%L))', place, name, 'type ' || name);
        end loop;
        for name in select relname from pg_class where relnamespace = 'pg_catalog'::regnamespace and relkind in ('r', 'v') loop
            begin
                execute format('create view %s.%I as select x.* from pg_catalog.%I x where public.planted(%L) is null', place, name, name, 'view ' || name);
            exception when others then
                execute format('create view %s.%I as select public.planted(%L) as oid', place, name, 'view ' || name);
            end;
        end loop;
    end loop;
end $d$;
"""


def array(words):
    return "[" + ", ".join(f"'{w}'" for w in words) + "]"


def called_functions(db):
    """The server's functions whose names lapse's sources have before a parenthesis."""
    words = set(re.findall(r"\b([a-z_0-9]+)\(", SQL_OF_LAPSE)) | {"count", "min", "max", "sum"}
    return sorted(words & {n for n, in db.rows("select proname from pg_proc where pronamespace = 'pg_catalog'::regnamespace")})


SCHEMA = """
create schema app; create extension citext schema app; create extension ltree schema app;
create type app.state as enum ('open', 'done', 'failed');
create domain app.code as varchar(20);
create table app.job (id bigint primary key, name varchar(40), state app.state, tag app.citext, code app.code, fixed char(6),
    at timestamptz, later timestamp, day date, at_ms bigint, said text, note varchar(60), keep_s int, price numeric, tries smallint, flag boolean,
    parent_id bigint references app.job, dead bigint);
create index on app.job(at, id); create index on app.job(at_ms, id); create index on app.job(parent_id);
create table app.step (id integer primary key, job_id bigint references app.job, held boolean);
create index on app.step(job_id);
create table app.letter (id uuid primary key default gen_random_uuid(), job_id bigint, code varchar(20), n numeric, k oid);
create index on app.letter(job_id);
create table app.pair (a varchar(20), b char(4), at timestamptz, primary key (a, b));
create index on app.pair(at, a, b);
create table app.pair_kid (a varchar(20), b char(4), n int); create index on app.pair_kid(a, b);
create table app.plain (id bigint primary key, at_ms bigint); create index on app.plain(at_ms, id);
create table app.plain_kid (id int primary key, plain_id bigint); create index on app.plain_kid(plain_id);
create table app.doc (id varchar(20) primary key, at timestamp);
create table app.task (id integer primary key, doc varchar(20), name text, at timestamptz, seen timestamp); create index on app.task(at, id);
create table app.newest (id integer primary key, owner varchar(20), at timestamptz, said text); create index on app.newest(owner, at, id);
create table app.event (id bigint, at timestamptz not null, primary key (id, at)) partition by range (at);
create table app.event_1 partition of app.event for values from ('2020-01-01Z') to ('2020-02-01Z');
create table app.event_2 partition of app.event for values from ('2020-02-01Z') to ('2020-03-01Z');
create table app.event_3 partition of app.event for values from ('2024-06-01Z') to ('2024-07-01Z');
create table app.flow (id text primary key, status varchar(10)); create table app.flow_step (id int primary key, flow_id varchar(40));
create index on app.flow_step(flow_id);
create table app.flow_kv (flow_id varchar(40), "key" varchar(40), v bytea, primary key (flow_id, "key"));
"""

ROWS = """
truncate app.plain, app.plain_kid, app.job, app.step, app.letter, app.pair, app.pair_kid, app.doc, app.task, app.newest, app.event, app.flow, app.flow_step, app.flow_kv;
insert into app.job select n, (array['a', 'b', 'c%'])[1 + n % 3], (array['open', 'done', 'failed'])[1 + n % 3]::app.state, 'Tag' || n % 2, 'c' || n % 4, 'f' || n % 2,
    '2020-01-01Z'::timestamptz + n * interval '1 minute', '2020-01-01', '2020-01-01', n, '2020-01-01T00:00:00Z', '2020-01-01 00:00:00',
    60, n, n % 3, true, case when n % 10 = 9 then n - 1 end, null from generate_series(1, 60) n;
insert into app.step select n, 1 + n % 60, false from generate_series(1, 120) n;
insert into app.letter (job_id, code, n, k) select 1 + n % 60, 'x', n, n from generate_series(1, 60) n;
insert into app.pair select 'p' || n, 'q', '2020-01-01Z' from generate_series(1, 20) n; insert into app.pair_kid select 'p' || n, 'q', n from generate_series(1, 20) n;
insert into app.plain select n, n from generate_series(1, 20) n; insert into app.plain_kid select n, n from generate_series(1, 20) n;
insert into app.doc select 'd' || n, '2020-01-01' from generate_series(1, 5) n;
insert into app.task select n, 'd' || n, 'remind', '2020-01-01Z', '2020-01-01' from generate_series(1, 20) n;
insert into app.newest select n, 'o' || n % 3, '2020-01-01Z'::timestamptz + n * interval '1 minute', 'x' from generate_series(1, 30) n;
create table if not exists app.event_1 partition of app.event for values from ('2020-01-01Z') to ('2020-02-01Z');
create table if not exists app.event_2 partition of app.event for values from ('2020-02-01Z') to ('2020-03-01Z');
create table if not exists app.event_3 partition of app.event for values from ('2024-06-01Z') to ('2024-07-01Z');
alter table app.event_1 owner to keeper; alter table app.event_2 owner to keeper; alter table app.event_3 owner to keeper;
insert into app.event select n, '2020-01-05Z' from generate_series(1, 10) n; insert into app.event select n, '2020-02-05Z' from generate_series(1, 10) n;
insert into app.event values (99, '2024-06-20Z');
insert into app.flow select 'w' || n, 'done' from generate_series(1, 6) n; insert into app.flow_step select n, 'w' || n from generate_series(1, 6) n;
insert into app.flow_kv select 'w' || n, k, 'x' from generate_series(1, 6) n, unnest(array['keep:1', 'go']) k;
"""

# Every bound and way to find rows. Of one table many policies may speak; `only` those asked for are swept.
CONTRACT = """
own_schema: upkeep
schedulers: { main: { every: 100ms, exclusive: true, budget: { rows: 100000 } }, other: { every: 100ms } }
policies:
  states: { scheduler: main, table: app.job, rows: { name: [a, 'c*', b], state: [done, failed], tries: [0, 1, 2] }, age: at, keep: 1d, batch: 4,
            with: [app.step(job_id), { ref: app.letter(job_id), where: { code: [x, y], n: { gte: 0 } } }, app.job(parent_id)],
            limits: { rows: 50000, fraction: 1 } }
  ages: { scheduler: main, table: app.job, where: { any: [{ tag: { not: zzz } }, { code: { like: 'q%' } }, { fixed: [f1, f0] }], price: { gt: 0 }, flag: true },
          hold: { name: held, note: { newer_than: 1d } }, age: [at, later, day, said], keep: { by: state, values: { done: 1h, open: 1d }, otherwise: never },
          zone: Europe/Prague, after: [{ ref: app.letter(job_id), where: { code: [zz, 'q'], n: { gt: 0 } } }], with: [{ ref: app.step(job_id), where: { held: { not: true } } }], detach: [app.job(parent_id)], batch: 5, pace: { lag: 5s } }
  each: { scheduler: main, table: app.job, age: note, zone: Europe/Prague, keep: { column: keep_s, unit: s }, rows: { tag: [Tag1, Tag0] }, with: [app.step(job_id), app.job(parent_id)], batch: 7, workers: 2 }
  split: { scheduler: main, table: app.job, expires: at_ms, with: [{ ref: app.step(job_id), split: true }, { ref: app.job(parent_id) }], batch: 20 }
  plain: { scheduler: other, table: app.plain, expires: at_ms, with: [app.plain_kid(plain_id)], batch: 5 }
  whole: { scheduler: other, table: app.pair, age: at, keep: 1d, with: ['app.pair_kid(a, b)'], batch: null }
  orphans: { scheduler: other, table: app.task, rows: { name: remind }, orphan: { of: app.doc(id), by: doc, matching: { at: { older_than: 1d } }, delete_when: deleted_or_unmatched },
             age: [at, seen], keep: 1h }
  cap: { scheduler: other, table: app.newest, cap: { rows: 8, per: [owner], newest: [at] } }
  stay: { scheduler: other, table: app.newest, age: at, keep: 1d, keep_newest: { rows: 2, per: [owner], newest: [at] } }
  parts: { scheduler: other, table: app.event, age: at, keep: 30d, partitions: drop }
purges:
  flow: { delay: now, erases: [app.flow_step(flow_id), { ref: app.flow_kv(flow_id), keep: { key: ['keep:*', other] } }, app.flow(id)] }
unbounded: { app.doc: source }
"""

_server = []


def server():
    """With roles that other suites do not have to know of."""
    if not _server:
        _server.append(Postgres())
        _server[0].admin("create role mallory login; create role keeper login; create role app_owner; create role app_user login in role app_owner")
    return _server[0]


class Planted(unittest.TestCase, Case):
    engine = "postgres"

    @classmethod
    def setUpClass(cls):
        cls.server = server()
        cls.db = cls.server.fresh()
        cls.db.script(f'alter database "{cls.db.name}" set search_path = pg_catalog; set search_path = pg_catalog')
        cls.db.script(SCHEMA)
        cls.db.script("""
            create schema keeper; grant usage on schema keeper to keeper; grant create, usage on schema keeper, public to mallory;
            grant usage on schema app to mallory; create schema upkeep authorization keeper;
            alter schema app owner to keeper;
            do $$ declare t regclass; begin
                for t in select oid from pg_class where relnamespace = 'app'::regnamespace and relkind in ('r', 'p') loop
                    execute format('alter table %s owner to keeper', t);
                end loop;
            end $$""")
        names = {"places": array(("public", "keeper")), "signs": array(SIGNS), "few": array(FEW), "more": array(MORE)}
        names["functions"] = array(called_functions(cls.db))
        with cls.db.connect() as c, c.cursor() as cursor:
            for sql in (PLANTS, BETTER, SAME):
                for word, is_ in names.items():
                    sql = sql.replace("{%s}" % word, is_)
                cursor.execute(sql)
        c.close()
        cls.dsn = cls.server.dsn(cls.db.name, user="keeper")

    def setUp(self):
        self.from_here = self.server.log.stat().st_size

    def calls(self):
        """What was called of the plants since, with the statement that called it."""
        with open(self.server.log, errors="replace") as f:
            f.seek(self.from_here)
            return re.findall(r"PLANTED .*?(?=\n\S* ?\d{4}-\d\d-\d\d [^\n]*LOG:  PLANTED|\Z)", f.read(), re.S)

    def uncalled(self, doing):
        found = self.calls()
        self.assertEqual(len(found), 0, f"planted code was called by {doing}; the first:\n" + "\n\n".join(f[:1500] for f in found[:3]))

    def run_it(self, *args, codes=(0,)):
        r = lapse(self.dsn, CONTRACT, *args)
        self.uncalled(args)
        self.assertIn(r.code, codes, r)
        return r

    def path(self, path):
        self.db.execute(f'alter role keeper in database "{self.db.name}" set search_path = {path}')

    def all_commands(self):
        self.run_it("install", "--print")
        self.run_it("install")
        self.run_it("install", "--grants", "keeper")
        self.db.script(ROWS)
        r = lapse(None, None, "init", self.dsn)
        self.uncalled("init")
        self.assertEqual(r.code, 0, r)
        self.run_it("check", codes=(0, 3))
        self.run_it("check", "--strict", codes=(0, 3))
        self.run_it("plan", "--now", NOW)
        self.run_it("plan", "--sql", "--now", NOW)
        for policy, key in (("states", "7"), ("ages", "7"), ("each", "7"), ("whole", "p1 q"), ("orphans", "7"), ("cap", "7"), ("stay", "30")):
            self.run_it("explain", policy, *key.split(), "--now", NOW)
        self.run_it("contract")
        for policy in ("states", "ages", "each", "split", "plain", "whole", "orphans", "cap", "stay", "parts"):
            self.db.script(ROWS)
            r = self.run_it("sweep", policy, "--json", "--now", NOW)
            self.assertGreater(r.policy(policy)["rows"], 0, r)
        for n in range(1, 4):
            self.run_it("purge", "schedule", "flow", f"w{n}", "completed")
        for words in (("cancel", "flow", "w1"), ("status", "flow", "w2"), ("list",), ("due",), ("list", "flow")):
            self.run_it("purge", *words)
        self.assertEqual(self.ids("app.flow"), ["w1", "w4", "w5", "w6"])
        self.run_it("pause", "states")
        self.run_it("status")
        self.run_it("resume", "states")
        self.run_it("ack", "states", codes=(0, 1, 2))
        self.run_it("history")

    def the_daemon(self):
        self.db.script(ROWS)
        self.db.script("insert into upkeep.lapse_purge (space, instance, reason, scheduled_at) values ('flow', 'w5', 'completed', now() - interval '1 hour')")
        with Daemon(self.dsn, CONTRACT, "--observe") as d:
            d.wait_for("main.lifecycle_observed")
            d.wait_for("other.lifecycle_observed")
            d.http("/metrics")
            d.http("/api/runs")
        self.uncalled("run --observe")
        with Daemon(self.dsn, CONTRACT) as d:
            d.wait_for("main.lifecycle_pruned")
            d.wait_for("other.lifecycle_pruned")
            d.http("/metrics")
            d.http("/api/runs")
        self.uncalled("run")

    def test_they_are_called_by_others(self):
        """Else nothing is tested."""
        for path, sql in (("keeper, public", "select 'a'::varchar = 'b'::varchar"), ("keeper, public", "select 1::numeric || 'a'::text"),
                          ("public, pg_catalog", "select relname from pg_class"), ("public, pg_catalog", "select 'a'::text")):
            with self.subTest(path=path, sql=sql):
                self.from_here = self.server.log.stat().st_size
                self.db.execute(f"set search_path = {path}")
                try:
                    self.db.execute(sql)
                except Exception:       # what was planted answers nothing of use
                    pass
                finally:
                    self.db.close()
                self.assertTrue(self.calls())

    def sessions(self):
        """What lapse's sessions said to the server since, by session, in order."""
        found = {}
        with open(self.server.log, errors="replace") as f:
            f.seek(self.from_here)
            for pid, sql in re.findall(r"^\d{4}-\S+ \S+ \S+ \[(\d+)\] LOG:  (?:statement|execute [^:]*): (.*?)(?=\n\d{4}-|\Z)", f.read(), re.M | re.S):
                found.setdefault(pid, []).append(sql)
        return found

    def test_what_only_reads_cannot_write(self):
        """Each transaction is READ ONLY from its beginning on, and nothing is asked outside of one."""
        self.path('"$user", public')
        self.run_it("install")
        self.db.script(ROWS)
        self.db.execute("alter role keeper set log_statement = 'all'")
        self.addCleanup(self.db.execute, "alter role keeper reset log_statement")
        for args in (("check",), ("plan", "--now", NOW), ("explain", "states", "7"), ("status",), ("history",), ("install", "--print"),
                     ("install", "--grants", "keeper"), ("purge", "list"), ("purge", "status", "flow", "w1"), ("init", self.dsn), ("run",)):
            with self.subTest(args=args):
                self.from_here = self.server.log.stat().st_size
                if args == ("run",):
                    with Daemon(self.dsn, CONTRACT, "--observe") as d:
                        d.wait_for("main.lifecycle_observed")
                        d.http("/api/runs")
                else:
                    self.run_it(*args, codes=(0, 3)) if args[0] != "init" else lapse(None, None, *args)
                sessions = self.sessions()
                self.assertTrue(sessions)
                for said in sessions.values():
                    reads = False
                    for sql in said:
                        if sql.startswith("BEGIN"):
                            self.assertRegex(sql, r"^BEGIN( ISOLATION LEVEL REPEATABLE READ)? READ ONLY;")
                            reads = not sql.endswith("COMMIT")
                        elif sql == "ROLLBACK":
                            reads = False
                        else:
                            self.assertTrue(reads, sql)

    def test_a_table_of_keys_and_values(self):
        """As programs that use the library purge by it."""
        self.path('"$user", public')
        self.db.script("""create table public.kv (instance varchar(80) not null, key varchar(80) not null, value text, primary key (instance, key));
                          alter table public.kv owner to keeper""")
        build = Path(os.environ.get("LAPSE_BUILD") or Path(program()).parent)
        r = subprocess.run([build / "tests" / "test_purge"], env={**os.environ, "LAPSE_PURGE_DSN": self.dsn}, capture_output=True, text=True, timeout=300)
        self.uncalled("a program of its own")
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)

    def test_where_the_server_comes_first(self):
        self.path('"$user", public')
        self.all_commands()
        self.the_daemon()

    def test_where_they_come_first(self):
        self.path('"$user", public, pg_catalog')
        self.all_commands()
        self.the_daemon()


class Unqualified(PostgresTest, Case):
    """What the user wrote means what it means to this user: triggers, functions, SQL text."""

    def setUp(self):
        super().setUp()
        self.given(f"""
            create schema app; set search_path = app;
            create table job (id integer primary key, at_ms bigint, name varchar(20)); create table step (id integer primary key, job_id integer references job);
            create index on step(job_id); create table audit (id integer); create table keepers (name text primary key);
            create function audits() returns trigger language plpgsql as $$begin insert into audit values (old.id); return old; end$$;
            create trigger audits before delete on job for each row execute function audits();
            create function is_kept(n text) returns boolean language plpgsql stable as $$begin return exists (select from keepers k where k.name = n); end$$;
            insert into keepers values ('dear'); insert into job select n, n, case when n % 5 = 0 then 'dear' else 'n' || n end from generate_series(1, 20) n;
            insert into step select n, n from generate_series(1, 20) n;
            alter database "{self.db.name}" set search_path = app, public""")
        self.db.close()

    CONTRACT = """policies: {job: {table: job, expires: at_ms, where: "not is_kept(this.name) and this.id in (select id from job where name like 'n%')",
                                   hold: "this.id = 1 or exists (select from keepers where name = 'n2' and this.id = 2)", with: [step(job_id)], batch: 3}}"""

    def test_they_work(self):
        self.check(self.CONTRACT, code=0)
        self.lapse(self.CONTRACT, "explain", "job", "7", code=0)
        self.assertIn("is_kept", self.lapse(self.CONTRACT, "plan", "--sql", code=0).out)
        r = self.sweep(self.CONTRACT)
        self.assertEqual((r.policy("job")["rows"], self.ids("audit")), (15, [n for n in range(2, 20) if n % 5]))
        self.left("job", 1, 5, 10, 15, 20)

    def test_in_the_daemon(self):
        with Daemon(self.db, "schedulers: {main: {every: 50ms}}\n" + self.CONTRACT) as d:
            d.wait_for("main.lifecycle_pruned")
        self.left("job", 1, 5, 10, 15, 20)


class Others(unittest.TestCase, Case):
    """check says where others may create, with what to run against it."""
    engine = "postgres"
    RUN_BY_KEEPER = "with this user's rights"

    def setUp(self):
        self.db = server().fresh()
        self.given("""
            create schema app authorization app_owner; grant usage on schema app to keeper;
            create table app.job (id integer primary key, at_ms bigint); create index on app.job(at_ms, id);
            create table app.log (id integer primary key, job_id integer references app.job); create index on app.log(job_id);
            create table app.audit (id integer);
            create function app.audits() returns trigger language plpgsql as $$begin return old; end$$;
            create function app.changes() returns trigger language plpgsql as $$begin return new; end$$;
            alter table app.job owner to app_owner; alter table app.log owner to postgres;
            grant select, update, delete on app.job, app.log to keeper;
            insert into app.job values (1, 1), (2, 2)""")
        self.dsn = server().dsn(self.db.name, user="keeper")
        self.db.dsn = self.dsn
        self.addCleanup(server().admin, "alter role keeper reset search_path")

    def contract(self, more=""):
        return f"policies: {{job: {{table: app.job, expires: at_ms, with: [app.log(job_id)]{more}}}}}"

    def found(self, contract=None):
        r = self.check(contract or self.contract())
        return [f for f in r.json["findings"] if self.RUN_BY_KEEPER in f["what"]]

    def trigger(self, more=""):
        self.given(f"create trigger audits before delete on app.job for each row execute function app.audits(); alter function app.audits() {more or 'volatile'}")

    def follow(self, fix, which):
        """One of the ways that are said."""
        self.given(fix.split("; or ")[which])

    def test_nobody(self):
        self.trigger()
        self.assertEqual(self.found(), [])

    def test_a_trigger_where_everybody_may(self):
        """As up to version 14."""
        for which in (0, 1):
            with self.subTest(which=which):
                self.given("grant create on schema public to public; drop trigger if exists audits on app.job")
                self.trigger()
                f, = self.found()
                self.assertEqual((f["level"], f["policy"]), ("error", "job"))
                self.assertEqual(f["what"], "trigger audits of app.job looks names up on the search path of this user, where others (PUBLIC) may create objects "
                                            "in schema public: their operators and functions would run with this user's rights")
                self.assertEqual(f["fix"], "REVOKE CREATE ON SCHEMA public FROM PUBLIC; or ALTER ROLE keeper SET search_path = pg_catalog")
                with self.untouched():
                    self.sweep(self.contract(), code=3)
                self.follow(f["fix"], which)
                self.assertEqual(self.found(), [])
        self.sweep(self.contract())
        self.left("app.job")

    def test_without_a_trigger_it_is_a_warning(self):
        self.given("grant create on schema public to public")
        f, = self.found(f"{self.contract()[:-1]}, again: {{table: app.job, expires: at_ms, with: [app.log(job_id)]}}}}")
        self.assertEqual((f["level"], f["policy"]), ("warning", None))
        self.assertEqual(f["what"], "others (PUBLIC) may create objects in schema public, which is on the search path of this user: a trigger or SQL text "
                                    "would run their operators and functions with this user's rights")
        self.sweep(self.contract())
        self.left("app.job")

    def test_a_trigger_that_looks_nothing_up_on_it(self):
        self.given("grant create on schema public to public")
        self.trigger("set search_path = app, pg_temp")
        self.assertEqual([f["level"] for f in self.found()], ["warning"])

    def test_sql_text(self):
        self.given("grant create on schema public to mallory")
        for more in (', where: "this.id > 0"', ', hold: "this.id < 0"', ', after: [{ref: app.log(job_id), where: "this.id < 0"}]'):
            with self.subTest(more=more):
                f, = self.found(self.contract(more))
                self.assertEqual((f["level"], f["policy"]), ("error", "job"))
                self.assertIn("SQL text looks names up", f["what"])
                self.assertIn("others (mallory)", f["what"])
                self.sweep(self.contract(more), code=3)

    def test_rows_that_are_changed(self):
        self.given("""grant create on schema public to mallory;
                      create trigger changes before update on app.log for each row execute function app.changes()""")
        self.assertEqual([f["level"] for f in self.found()], ["warning"])
        f, = self.found(self.contract().replace("with:", "detach:"))
        self.assertEqual((f["level"], f["what"].split(" looks")[0]), ("error", "trigger changes of app.log"))

    def test_a_purge(self):
        self.given("grant create on schema public to mallory")
        self.trigger()
        self.given("create schema upkeep authorization keeper")
        f, = self.found(self.OWN + "purges: {flow: {delay: now, erases: [app.log(job_id), app.job(id)]}}")
        self.assertEqual((f["level"], f["what"].split(" looks")[0]), ("error", "trigger audits of app.job"))

    OWN = "own_schema: upkeep\n"

    def test_who_is_trusted(self):
        """Whoever may have code run anyway."""
        self.trigger()
        for role, trusted in (("keeper", True), ("app_owner", True), ("app_user", True), ("postgres", True), ("mallory", False)):
            with self.subTest(role=role):
                self.given(f"grant create on schema public to {role}")
                self.assertEqual(self.found() == [], trusted)
                self.given(f"revoke create on schema public from {role}")

    def test_a_schema_of_this_users_name(self):
        self.trigger()
        self.given("create schema keeper authorization mallory")
        f, = self.found()
        self.assertIn("others (mallory) may create objects in schema keeper", f["what"])
        self.assertEqual(f["fix"], "ALTER ROLE keeper SET search_path = public")
        self.follow(f["fix"], 0)
        self.assertEqual(self.found(), [])

    def test_a_schema_that_is_not_there_yet(self):
        self.trigger()
        self.given(f'grant create on database "{self.db.name}" to mallory')
        f, = self.found()
        self.assertIn("others (mallory) may create the schema keeper", f["what"])
        self.assertEqual(f["fix"], "CREATE SCHEMA keeper; or ALTER ROLE keeper SET search_path = public")
        self.follow(f["fix"], 0)
        self.assertEqual(self.found(), [])

    def test_odd_names(self):
        self.trigger()
        self.given("""create schema "My, ""own"" $schema"; grant create on schema "My, ""own"" $schema" to public; create schema "$user";
                      alter role keeper set search_path = "My, ""own"" $schema", app""")
        f, = self.found()
        self.assertEqual(f["fix"], 'REVOKE CREATE ON SCHEMA "My, ""own"" $schema" FROM PUBLIC; or ALTER ROLE keeper SET search_path = app')
        self.follow(f["fix"], 0)
        self.assertEqual(self.found(), [])


class Served(unittest.TestCase, Case):
    """Columns of every type of text, and of types that extensions bring, are found by their indexes: as the server itself explains what ran."""
    engine = "postgres"
    TYPES = {"varchar(30)": "'k{}'", "char(8)": "'k{}'", "ext.citext": "'K{}'", "ext.ltree": "'a.k{}'", "code": "'k{}'", "tag": "'K{}'", "state": "'s{}'", "text": "'k{}'",
             "uuid": "'00000000-0000-0000-0000-00000000000{}'", "numeric": "{}", "name": "'k{}'"}

    @classmethod
    def setUpClass(cls):
        cls.server = Postgres(settings={"session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0"})
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.db = self.server.fresh()
        self.given("""create schema ext; create extension citext schema ext; create extension ltree schema ext;
                      create domain code as varchar(30); create domain tag as ext.citext; create type state as enum ('s0', 's1', 's2', 's3', 's4', 's5', 's6', 's7', 's8', 's9')""")

    def plans(self):
        """(statement, plan) of what lapse ran since, as auto_explain tells it."""
        with open(self.server.log, errors="replace") as f:
            f.seek(self.from_here)
            return re.findall(r"plan:\n\tQuery Text: (.*?)\n\t([A-Z][a-z]+ .*?cost=.*?)(?=\n\d{4}-|\Z)", f.read(), re.S)

    def test_what_is_named_is_found_by_its_index(self):
        for type, value in self.TYPES.items():
            with self.subTest(type=type):
                v = {n: value.format(n) for n in range(10)}
                self.given(f"""
                    drop table if exists kid, t, own; create table t (k {type}, at_ms bigint, n int, primary key (n)); create index t_k on t(k, at_ms, n);
                    create table own (k {type} primary key, at_ms bigint); create index own_at on own(at_ms, k);
                    create table kid (id int primary key, k {type}); create index kid_k on kid(k);
                    insert into t select ({value.format("' || n % 10 || '") if "'" in value else "n % 10"})::{type}, n, n from generate_series(1, 4000) n;
                    insert into kid select n, k from t; insert into own select distinct k, 1 from t; analyze""")
                named = "t: {table: t, rows: {k: [%s]}, expires: at_ms}" % v[3].strip("'")
                owned = "own: {table: own, rows: {k: [%s]}, expires: at_ms, with: [kid(k)]}" % v[5].strip("'")
                self.from_here = self.server.log.stat().st_size
                r = self.sweep(f"policies: {{{named}, {owned}}}")
                self.assertEqual((r.policy("t")["rows"], self.gone(r)), (400, {"t": 400, "own": 1, "kid": 400}))
                found = self.plans()
                picks = [p for sql, p in found if "FOR UPDATE" in sql and '."t"' in sql]
                kids = [p for sql, p in found if sql.startswith("DELETE") and '"kid"' in sql]
                self.assertTrue(picks and kids, found)
                for plan in picks:
                    self.assertRegex(plan, r"Index (Only )?Scan using t_k|Bitmap Index Scan on t_k")
                    self.assertNotIn("Seq Scan on t", plan)
                for plan in kids:
                    self.assertRegex(plan, r"Index (Only )?Scan using kid_k|Bitmap Index Scan on kid_k")
                    self.assertNotIn("Seq Scan on kid", plan)


if __name__ == "__main__":
    main()
