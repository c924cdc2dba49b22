"""PostgreSQL: what others create in a schema of the search path is never called with this user's rights.

Mallory may create in `public` and in a schema that is named after the role that sweeps. What she plants says so in the
server's log whenever it is called: operators and functions that fit better than the server's own, on every path; and
on a path where her schemas come before pg_catalog, the same as the server's, with types and views of its names."""
import re
import unittest

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
truncate app.job, app.step, app.letter, app.pair, app.pair_kid, app.doc, app.task, app.newest, app.event, app.flow, app.flow_step, app.flow_kv;
insert into app.job select n, (array['a', 'b', 'c%'])[1 + n % 3], (array['open', 'done', 'failed'])[1 + n % 3]::app.state, 'Tag' || n % 2, 'c' || n % 4, 'f' || n % 2,
    '2020-01-01Z'::timestamptz + n * interval '1 minute', '2020-01-01', '2020-01-01', n, '2020-01-01T00:00:00Z', '2020-01-01 00:00:00',
    60, n, n % 3, true, case when n % 10 = 9 then n - 1 end, null from generate_series(1, 60) n;
insert into app.step select n, 1 + n % 60, false from generate_series(1, 120) n;
insert into app.letter (job_id, code, n, k) select 1 + n % 60, 'x', n, n from generate_series(1, 60) n;
insert into app.pair select 'p' || n, 'q', '2020-01-01Z' from generate_series(1, 20) n; insert into app.pair_kid select 'p' || n, 'q', n from generate_series(1, 20) n;
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
  each: { scheduler: main, table: app.job, age: note, zone: Europe/Prague, keep: { column: keep_s, unit: s }, rows: { tag: [tag1, tag0] }, with: [app.step(job_id), app.job(parent_id)], batch: 7, workers: 2 }
  split: { scheduler: main, table: app.job, expires: at_ms, with: [{ ref: app.step(job_id), split: true }, { ref: app.job(parent_id) }], batch: 20 }
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

class Planted(unittest.TestCase, Case):
    engine = "postgres"

    @classmethod
    def setUpClass(cls):
        cls.server = Postgres()
        cls.addClassCleanup(cls.server.stop)
        cls.db = cls.server.fresh()
        cls.db.script("create role mallory login; create role keeper login; alter role postgres set search_path = pg_catalog; set search_path = pg_catalog")
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
        self.db.execute(f"alter role keeper set search_path = {path}")

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
        for policy in ("states", "ages", "each", "split", "whole", "orphans", "cap", "stay", "parts"):
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


if __name__ == "__main__":
    main()
