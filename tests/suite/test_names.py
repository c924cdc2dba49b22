"""Names that users' programs rely on: none of those in tests/names.json may go or be renamed; new ones are recorded.

    tests/suite/test_names.py --write       # adds what is new; what is gone stays and fails
"""
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from daemon import Daemon, eventually
from harness import *

RECORD = ROOT / "tests" / "names.json"
# One contract in which every bound, guard and purge appears.
SCHEMA = """
    create table job (id integer primary key, state text, at_ms bigint, expires_at_ms bigint, held integer, tenant integer);
    create table step (id integer primary key, job_id integer not null references job (id));
    create index step_job on step (job_id);
    create table letter (id integer primary key, job_id integer references job (id));
    create index letter_job on letter (job_id);
    create table lease (id integer primary key, expires_at_ms bigint);
    create table task (id integer primary key, job_id integer, at_ms bigint);
    create table entry (id integer primary key, tenant integer, at_ms bigint);
    create table kv (instance text, key text, primary key (instance, key));
    create table other (id integer primary key)"""
CONTRACT = """
schedulers: {main: {every: 1h}, alone: {every: 1h, exclusive: true}}
policies:
  job: {table: job, rows: {state: [done, failed]}, age: at_ms, keep: {by: state, values: {done: 1h}, otherwise: 2h},
        hold: {held: 1}, with: [step(job_id)], detach: [letter(job_id)], limits: {rows: 100}, scheduler: main}
  lease: {table: lease, expires: expires_at_ms, scheduler: alone}
  task: {table: task, orphan: {of: job(id), by: job_id}, age: at_ms, keep: 1h, scheduler: main}
  entry: {table: entry, cap: {rows: 1, per: [tenant], newest: [at_ms]}, scheduler: main}
  full: {table: job, expires: expires_at_ms, limits: {rows: 1}, with: [step(job_id)], detach: [letter(job_id)], scheduler: main}
purges:
  flow: {delay: 0, only: [done], erases: [kv(instance)]}
unbounded: {other: configuration}
"""

DATA = {"job", "lease", "task", "entry", "full", "flow", "step", "letter", "kv", "other", "main", "alone", "done"}
VARIES = {"waited_ms"}      # what is in it depends on the machine


def paths(value, at=""):
    """Every key of a JSON value, as a path. A list's items, and the values under a name that is data, are one."""
    if isinstance(value, dict):
        for key, inner in value.items():
            name = key if re.fullmatch(r"[a-z_]+", key) and key not in DATA else "*"
            yield f"{at}.{name}".lstrip(".")
            if key not in VARIES:
                yield from paths(inner, f"{at}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, at + "[]")



def declared(header):
    """Each function, field, enumerator and type of a public header, in one line each."""
    text = re.sub(r"/\*.*?\*/|^\s*#.*?$|extern \"C\" \{", " ", header.read_text(), flags=re.S | re.M)
    found = set()
    for kind, name, body in re.findall(r"\b(struct|enum)\s+(\w+)\s*\{(.*?)\}", text, re.S):
        for part in body.split(";" if kind == "struct" else ","):
            words = " ".join(part.split())
            if words:
                found.add(f"{kind} {name}: {words}")
    for part in re.findall(r"LAPSE_PUBLIC\s+([^;{]+);", text):
        found.add(" ".join(part.split()))
    return found


class Names(SqliteTest, Case):
    def commands(self):
        """What each command says as JSON, on a database where each bound has something to delete."""
        self.given(SCHEMA)
        hour = 3_600_000
        for n in range(1, 10):      # 1 to 5 are due, 6 is held, 7 and 8 have expired: more than the fuse of `full` lets go
            self.insert("job", (n, "done" if n < 7 else "new", MS - 3 * hour, MS - 1 if n in (7, 8) else None, int(n == 6), 1))
        self.insert("step", *((n, n) for n in range(1, 10)))
        self.insert("letter", (1, 1))
        self.insert("lease", (1, MS - 1), (2, None))
        self.insert("task", (1, 77, MS - 26 * hour))
        self.insert("entry", (1, 1, 1), (2, 1, 2))
        self.insert("kv", ("w-1", "a"))

        def run(*args):
            return self.lapse(CONTRACT, *args, "--json").json

        said = {"check before install": run("check")}
        run("install")
        said["check"] = run("check")
        said["plan"] = run("plan", "--now", NOW)
        said["explain"] = run("explain", "job", "1", "--now", NOW)
        said["sweep"] = run("sweep", "--now", NOW)
        said["pause"] = run("pause", "job")
        said["status"] = run("status")
        said["resume"] = run("resume", "job")
        said["ack"] = run("ack", "full")
        said["history"] = run("history")
        said["purge schedule"] = run("purge", "schedule", "flow", "w-1", "done")
        said["purge status"] = run("purge", "status", "flow", "w-1")
        said["purge list"] = run("purge", "list")
        said["purge due"] = run("purge", "due")
        said["purge cancel"] = run("purge", "cancel", "flow", "w-2")
        said["contract"] = run("contract")
        broken = self.lapse("policies: {x: {tabel: t}}", "check", "--json")
        said["mistakes"] = broken.json
        return {name: sorted(set(paths(value))) for name, value in said.items()}

    def metrics(self, wanted):
        """What the daemon serves, once all that is wanted has been seen."""
        def served():
            _, body = d.http("/metrics")
            names.update(f"{n} {t}" for n, t in re.findall(r"^# TYPE (\S+) (\S+)$", body, re.M))
            for name, labels in re.findall(r"^([a-z_]+)\{(.*?)\} ", body, re.M):
                names.update(f"{name}{{{label}}}" for label in re.findall(r'(\w+)="', labels))
            return names >= set(wanted)

        names = set()
        with Daemon(self.db, CONTRACT) as d:
            d.wait_for("lifecycle_pruned", scheduler="main")
            eventually(served, words=lambda: f"missing in /metrics: {sorted(set(wanted) - names)}")
        return sorted(names)

    def keys(self):
        found, section = [], None
        for line in (ROOT / "docs" / "reference.md").read_text().splitlines():  # which a test holds against `lapse keys`
            heading, row = re.match(r"## (.+)", line), re.match(r"\| `([^`]+)` \|", line)
            section = heading[1] if heading else section
            if row:
                found.append(f"{section}: {row[1]}")
        return sorted(found)

    def own_tables(self):
        """After the commands, which install them."""
        return sorted(f"{table}.{column}" for table, column in self.db.rows(
            "select m.name, c.name from sqlite_master m, pragma_table_info(m.name) c where m.name like 'lapse_%' and m.type = 'table'"))

    def present(self, known):
        openapi = json.loads((ROOT / "docs" / "openapi.json").read_text())
        said = self.commands()
        events = re.findall(r'^    \[EVENT_\w+\] =\s*\{"([a-z_.]+)"', (ROOT / "src/watch/event.c").read_text(), re.M)
        return {"json": said, "metrics": self.metrics(known.get("metrics", ())), "events": sorted(events), "contract keys": self.keys(),
                "own tables": self.own_tables(), "http": sorted([*openapi["paths"], *paths(openapi["components"]["schemas"])]),
                "headers": sorted(set().union(*(declared(p) for p in (ROOT / "include").glob("*.h"))))}

    def test_no_name_that_users_rely_on_is_gone(self):
        known = json.loads(RECORD.read_text())
        now = self.present(known)
        gone = []
        for part, names in known.items():
            for command, listed in names.items() if isinstance(names, dict) else [("", names)]:
                there = now[part].get(command, []) if isinstance(names, dict) else now[part]
                gone += [f"{part} {command}: {n}".replace(" : ", ": ") for n in sorted(set(listed) - set(there))]
        self.assertEqual(gone, [], "names that users rely on are gone or renamed")


def write():
    """Adds what is new to the record."""
    case = Names("test_no_name_that_users_rely_on_is_gone")
    case.setUp()
    known = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    now = case.present(known)
    case.doCleanups()
    run_ends()

    def both(a, b):
        if isinstance(b, dict):
            return {k: both(a.get(k, {} if isinstance(b.get(k), dict) else []), b.get(k, [])) for k in sorted({*a, *b})}
        return sorted({*a, *b})

    RECORD.write_text(json.dumps(both(known, now), indent=1) + "\n")


if __name__ == "__main__":
    from servers import run_ends
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: test_names.py --write")
    write()
