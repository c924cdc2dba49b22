#!/usr/bin/python3
"""Plays random rounds: builds their tables, lets the program plan and sweep them, compares all rows with the oracle's.

    tests/oracle/random_rounds.py --engine sqlite --seed 4711 --rounds 1      replays one round and shows it
    tests/oracle/random_rounds.py --engine postgres --rounds 2000             the default seed, or $LAPSE_SEED

GROUP rounds share a database, a contract and a run of the program. Where something differs, the round is played again,
alone, and shown whole: seed, tables, rows, contract, difference.
"""
import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]
import harness
import oracle
import round_words
import rounds

SEED = 1_000_000
ROUNDS = 2000
SHOWN = 5           # failures shown whole
EVERY = 4           # one group in so many is swept again as a whole; in the others, rounds that may need it
# What is freed is kept from use for the next 8 MB, not 256: that many fresh pages take a quarter of a run.
SANITIZER = {"ASAN_OPTIONS": "abort_on_error=0:detect_stack_use_after_return=1:quarantine_size_mb=8"}


def base_seed():
    return int(os.environ.get("LAPSE_SEED") or SEED)


# --- databases -----------------------------------------------------------------------------------------------------

class OnSqlite:
    @staticmethod
    def fresh():
        return harness.Sqlite()

    @staticmethod
    def load(db, played):
        c = db.connection
        c.execute("pragma foreign_keys = off")
        c.execute("begin")
        for r in played:
            for statement in r.create():
                c.execute(statement)
            for made, insert in r.inserts():
                columns = list(made.table.columns)
                c.executemany(f"{insert} ({', '.join('?' * len(columns))})",
                              [tuple(row[k] for k in columns) for row in made.rows])
        c.execute("commit")
        broken = c.execute("pragma foreign_key_check").fetchall()
        assert not broken, f"the round breaks its own foreign keys: {broken}"

    @staticmethod
    def rows(db, r):
        found = {}
        for m in r.made:
            columns = ", ".join(map(round_words.sql_name, m.table.columns))
            found[m.table] = db.rows(f"select {columns} from {r.table_sql(m)}")
        return found


class OnPostgres:
    AS = {"timestamptz": "::text", "timestamp": "::text", "date": "::text", "uuid": "::text", "real": "::float8"}

    @staticmethod
    def fresh():
        return harness.postgres().fresh()

    @staticmethod
    def load(db, played):
        out = ["begin", 'create schema "Other"', "create schema other", "create extension citext",
               "create collation no_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
               "create collation no_marks (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"]
        for r in played:
            out += r.create()
            for made, insert in r.inserts():
                values = (", ".join(round_words.literal(v) for v in row.values()) for row in made.rows)
                out.append(insert + " " + ",\n".join(f"({v})" for v in values))
            out += r.last
        db.script(";\n".join(out + ["commit"] + [s for r in played for s in r.last_of_all()]))

    @classmethod
    def rows(cls, db, r):
        found = {}
        for m in r.made:
            columns = ", ".join(
                round_words.sql_name(n) + ("::text" if "enum" in m.types[n] else cls.AS.get(c.kind, ""))
                for n, c in m.table.columns.items())
            found[m.table] = db.rows(f"select {columns} from {r.table_sql(m)}")
        return found


class OnMariadb:
    TIMES = {"timestamptz": "+00", "timestamp": "", "date": ""}

    @staticmethod
    def fresh():
        return harness.mariadb().fresh()

    @classmethod
    def load(cls, db, played):
        c = db.connection
        c.execute("set foreign_key_checks = 0, sql_mode = concat(@@sql_mode, ',NO_BACKSLASH_ESCAPES')")
        for r in played:
            for statement in r.create():
                c.execute(statement)
        c.begin()
        for r in played:
            for made, insert in r.inserts():
                marks = ", ".join(["%s"] * len(made.table.columns))
                rows = [tuple(v.removesuffix("+00") if isinstance(v, str) and c.kind == "timestamptz" else v
                              for v, c in zip(row.values(), made.table.columns.values())) for row in made.rows]
                c.cursor().executemany(insert.replace("%", "%%") + f" ({marks})", rows)
        c.commit()
        c.execute("set foreign_key_checks = 1")
        for r in played:
            for statement in r.last:
                c.execute(statement)

    @classmethod
    def rows(cls, db, r):
        found = {}
        for m in r.made:
            columns = ", ".join(f"cast({round_words.sql_name(n)} as char)" if c.kind in (*cls.TIMES, "uuid")
                                else round_words.sql_name(n) for n, c in m.table.columns.items())
            kinds = [c.kind for c in m.table.columns.values()]
            found[m.table] = [tuple(map(cls.value, row, kinds)) for row in
                              db.rows(f"select {columns} from {r.table_sql(m)}")]
        return found

    @classmethod
    def value(cls, v, kind):
        if v is None:
            return None
        if kind in cls.TIMES:
            return (v.rstrip("0").rstrip(".") if "." in v else v) + cls.TIMES[kind]
        return {"real": float, "bool": bool}.get(kind, lambda x: x)(v)


ENGINES = {"sqlite": OnSqlite, "postgres": OnPostgres, "mariadb": OnMariadb}


# --- comparing -----------------------------------------------------------------------------------------------------

def as_rows(state):
    return {t: [tuple(r.values()) for r in rows.values()] for t, rows in state.items()}


def marked(row):
    """1, 1.0 and True are different values, and so are 'x' and b'x'."""
    return tuple((type(v).__name__, v) for v in row)


def difference(expected, found, words):
    """Lines that say how the rows of the tables differ."""
    lines = []
    for t in expected:
        want, have = Counter(map(marked, expected[t])), Counter(map(marked, found[t]))
        for row, n in (want - have).items():
            lines.append(f"{t}: {words[0]}: {dict(zip(t.columns, [v for _, v in row]))}" + (f" x{n}" if n > 1 else ""))
        for row, n in (have - want).items():
            lines.append(f"{t}: {words[1]}: {dict(zip(t.columns, [v for _, v in row]))}" + (f" x{n}" if n > 1 else ""))
    return lines


def spellings(table):
    """How the output may write a table's name."""
    bare = [table.schema, table.name] if table.schema else [table.name]
    return {".".join(bare), ".".join(map(round_words.sql_name, bare)),
            ".".join(n if n.replace("_", "a").isalnum() and n.isascii() and n == n.lower() and not n[0].isdigit()
                     else round_words.sql_name(n) for n in bare),
            ".".join(n if n.replace("_", "a").isalnum() and n.isascii() and not n[0].isdigit()
                     else round_words.sql_name(n) for n in bare)}


def per_table(at):
    return Counter(t for t, *_ in at)


class Checker:
    """Compares what the program said of one round with the oracle's verdicts."""

    def __init__(self, r, db):
        self.r, self.wrong = r, []
        self.names = {s: m.table for m in r.made for s in spellings(m.table)}
        if r.maria:     # says the database, too
            self.names = {f"{db.name}.{s}": t for s, t in self.names.items()}

    def say(self, line):
        self.wrong.append(line)

    def counts(self, entries):
        found = Counter()
        for e in entries:
            table = self.names.get(e["table"], e["table"])
            if table in found:
                self.say(f"the output names {table} twice: {entries}")
            found[table] += e["rows"]
        return +found

    def entry(self, output, name, outcome):
        found = [p for p in output["policies"] if p["policy"] == name]
        if len(found) != 1:
            self.say(f"{output['command']} has {len(found)} entries for {name}")
            return None
        p = found[0]
        if p["outcome"] != outcome:
            self.say(f"{output['command']}: outcome of {name} is {p['outcome']}, not {outcome}: {p.get('error')}")
            return None
        return p

    def expect(self, what, found, expected):
        if found != expected:
            self.say(f"{what}: {show(found)}, expected {show(expected)}")

    def plan(self, output):
        for name in self.r.policies:
            v = self.r.planned.get(name)
            p = self.entry(output, name, "refused" if v and v.refused else "planned" if v else "disabled")
            if not p or not v or v.refused:
                continue
            self.found(p["found"]["by"], self.r.policies[name])
            self.expect("planned rows", self.counts(p["tables"]), per_table(v.gone))
            self.expect("planned detached", self.counts(p["detached"]),
                        per_table(r for r in v.emptied if r[:2] not in v.gone))
            self.expect("planned rows of its own", p["rows"], per_table(v.gone)[v.table])
            kept = p["kept"]
            self.expect("planned kept: NULL times", kept["null_time"], v.count("null"))
            self.expect("planned kept: unreadable times", kept["unreadable_time"], v.count("unreadable"))
            self.expect("planned kept: held", kept["held"], v.count("held"))
            self.expect("planned kept: waiting", kept["waiting"], v.count("waiting"))
            for word, most in (("oldest", min), ("newest", max)):
                at = oracle.read_text(p[word], None) if p.get(word) else None
                if v.times and at != oracle.UNUSABLE and not self.skipped_hour(name, at, most(v.times.values()), word):
                    self.expect(f"planned {word}", at, most(v.times.values()))

    def skipped_hour(self, name, at, expected, word):
        """A clock that is set forward: local times within that hour are read as later ones, and sort as earlier ones."""
        if at is None or self.r.policies[name].get("zone", "UTC") == "UTC":
            return False
        return 0 < (expected - at if word == "newest" else at - expected) < 3600 * 10**6

    def found(self, by, policy):
        self.r.use(f"found by {by}")
        if policy.get("workers"):
            self.r.use(f"found by {by}, workers")

    def sweep(self, output, found):
        """found: the rows that are left."""
        gone = {t: len(self.r.before[t]) - len(found[t]) for t in found}
        for name in self.r.policies:
            v = self.r.verdicts.get(name)
            p = self.entry(output, name, "refused" if v and v.refused else "done" if v else "disabled")
            if not p or not v or v.refused:
                continue
            expected = +Counter(gone) if self.r.most else per_table(v.gone)
            self.expect("swept rows", self.counts(p["tables"]), expected)
            self.expect("swept rows of its own", p["rows"], expected[v.table])
            self.expect("skipped rows", p["skipped"], [])
            self.expect("rows with an unknown end", p["unknown"], 0)
            detached = self.counts(p["detached"])
            low, high = self.really_emptied(name, found) if self.r.most else self.to_empty(v)
            if low - detached or detached - high:
                self.say(f"swept detached: {show(detached)}, expected {show(low)}"
                         + (f" to {show(high)}" if high != low else ""))

    def to_empty(self, v):
        """References that the sweep must count as emptied, and the most that it may."""
        low = per_table(r for r in v.emptied if r[:2] not in v.gone)
        return low, per_table(r for r in v.emptied if v.may_count(r, self.r.splits)) \
            if len(v.roots) > self.r.batch or self.r.splits else low

    def really_emptied(self, name, found):
        """The same, told from the rows that are left, where the order of the batches decides."""
        low, high = Counter(), Counter()
        for table, columns in self.r.judge_of(name).owner.detachable():
            made = next(m for m in self.r.made if m.table is table)
            names = list(table.columns)
            left = {tuple(row[names.index(c)] for c in made.identity): dict(zip(names, row)) for row in found[table]}
            for row in self.r.before[table].values():
                after = left.get(tuple(row[c] for c in made.identity))
                if any(row[c] is not None for c in columns):
                    emptied = after is not None and all(after[c] is None for c in columns)
                    low[table] += emptied
                    high[table] += emptied or after is None
        return +low, +high


def show(value):
    return {str(k): n for k, n in value.items()} if isinstance(value, Counter) else repr(value)


# --- playing -------------------------------------------------------------------------------------------------------

class Trouble(Exception):
    """The program failed as a whole: no round can be blamed yet."""


def run(db, contract, command, now, *names):
    r = harness.lapse(db, contract, command, *names, "--json", "--now", now, env=SANITIZER)
    output = r.json
    if "policies" not in output:
        raise Trouble(str(r))
    odd = [p for p in output["policies"] if p["outcome"] not in ("done", "planned", "disabled") or p.get("skipped")]
    code = 0 if not odd else 3 if all(p["outcome"] == "refused" for p in odd) else None
    if output.get("error") or output["command"] != command or output["now"] != now or output["exit"] != r.code \
            or r.code != code:
        raise Trouble(str(r))
    return output


def play(engine, played):
    """Plays rounds in one database: {round: [what is wrong, …]} of those where something is."""
    on = ENGINES[engine]
    db = on.fresh()
    wrong = {}
    try:
        on.load(db, played)
        contract = harness.contract_file(db, "policies:\n" + "".join(r.contract_part() for r in played))
        now = round_words.iso(played[0].now)
        checkers = {r: Checker(r, db) for r in played}
        if len(played) == 1:
            for r in played:
                made = difference(as_rows(r.before), on.rows(db, r), ("not stored", "stored instead"))
                assert not made, "the database stores other values than the round made:\n" + "\n".join(made)
        planned = run(db, contract, "plan", now)
        for r, c in checkers.items():
            c.plan(planned)
            c.wrong += difference(as_rows(r.before), on.rows(db, r), ("lost by plan", "written by plan"))
        swept = run(db, contract, "sweep", now)
        for r, c in checkers.items():
            found = on.rows(db, r)
            c.sweep(swept, found)
            if r.most:
                c.wrong += between(r, found)
            else:
                c.wrong += difference(as_rows(r.expected), found, ("gone or changed wrongly", "should be gone"))
        sweep_on(on, db, contract, now, [c for r, c in checkers.items() if r.most or r.group % EVERY == 0])
        wrong = {r: c.wrong for r, c in checkers.items() if c.wrong}
        return wrong
    finally:
        db.drop()


def sweep_on(on, db, contract, now, checkers):
    """Sweeps again until nothing is left to do."""
    if not checkers:
        return
    for _ in range(20):
        swept = run(db, contract, "sweep", now, *(name for c in checkers for name in c.r.policies))
        if not any(t["rows"] for p in swept["policies"] for t in p["tables"]):
            break
    for c in checkers:
        c.wrong += difference(as_rows(c.r.at_last), on.rows(db, c.r),
                              ("gone or changed wrongly after all sweeps", "should be gone after all sweeps"))


def between(r, found):
    """Where the order of the batches decides: no more rows than after the first batch's verdict, no fewer than after
    the last's. Columns that are detached do not count here."""
    lines = []
    skip = {(t, c) for name in r.policies for t, columns in r.judge_of(name).owner.detachable() for c in columns}
    for t in found:
        kept = [i for i, c in enumerate(t.columns) if (t, c) not in skip]

        def part(rows):
            return Counter(marked(tuple(row[i] for i in kept)) for row in rows)
        have, least, most = (part(x[t]) for x in (found, as_rows(r.expected), as_rows(r.most)))
        lines += [f"{t}: should be gone: {row}" for row in have - least]
        lines += [f"{t}: gone wrongly: {row}" for row in most - have]
    return lines


def told(r, wrong):
    """A round, whole."""
    lines = [f"--- {Path(__file__).name} --engine {r.engine} --seed {r.seed} --rounds 1",
             f"now: {round_words.iso(r.now)}"]
    lines += [s + ";" for s in r.create()]
    for m in r.made:
        lines.append(f"rows of {m.table}:")
        for i, row in enumerate(m.rows):
            why = "".join(f"   <- {n}: {v.why[i]}" for n, v in r.verdicts.items() if v.table is m.table and i in v.why)
            lines.append(f"  {list(row.values())}{why}")
    lines += ["contract:", r.contract(), "difference:"]
    return "\n".join(lines + ["  " + w for w in wrong[:40]])


class Played:
    """All rounds of one run."""

    def __init__(self, engine, seed, count, say=print):
        self.engine, self.seed, self.count, self.say = engine, seed, count, say
        self.features, self.failed, self.rounds = Counter(), [], 0
        self.seconds = 0

    def play(self, stop_after=None):
        start = time.monotonic()
        seed, end = self.seed, self.seed + self.count
        while seed < end and (stop_after is None or len(self.failed) < stop_after):
            upto = min(end, (seed // rounds.GROUP + 1) * rounds.GROUP)
            self.group([rounds.Round(self.engine, s) for s in range(seed, upto)])
            seed = upto
        self.seconds = time.monotonic() - start
        return self

    def group(self, group):
        suspects = self.suspects(group)
        for r in group:
            self.features.update(r.features)
            self.rounds += 1
        blamed = False
        for r in suspects:
            try:
                wrong = play(self.engine, [r]).get(r)
            except (Trouble, AssertionError) as e:
                wrong = str(e).splitlines()
            if wrong:
                blamed = True
                self.fail(r, wrong)
        if suspects and not blamed:
            first = next(iter(suspects))
            self.fail(first, [f"passes alone, but not in the group of {group[0].seed} to {group[-1].seed}:"]
                      + suspects[first])

    def suspects(self, group):
        """The rounds that something is wrong with: {round: [what is, …]}. Where the program fails as a whole, each half
        is tried alone."""
        try:
            return play(self.engine, group)
        except (Trouble, AssertionError) as e:
            if len(group) == 1:
                return {group[0]: str(e).splitlines()}
            half = len(group) // 2
            return {**self.suspects(group[:half]), **self.suspects(group[half:])} \
                or {group[0]: str(e).splitlines()}

    def fail(self, r, wrong):
        self.failed.append((r, wrong))
        if len(self.failed) <= SHOWN:
            self.say(told(r, wrong))
        elif len(self.failed) < 100:
            self.say(f"--- --engine {r.engine} --seed {r.seed}: {wrong[0]}")

    def table(self):
        lines = [f"{self.rounds} rounds on {self.engine}, base seed {self.seed}, {self.seconds:.1f} s,"
                 f" {len(self.failed)} failed"]
        lines += [f"  {n:>6}  {f}" for f, n in sorted(self.features.items())]
        return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--engine", choices=list(ENGINES), required=True)
    p.add_argument("--seed", type=int, default=base_seed())
    p.add_argument("--rounds", type=int, default=ROUNDS)
    p.add_argument("--stop-after", type=int, help="stop after so many failures")
    p.add_argument("--show", action="store_true", help="only show the rounds and what the oracle expects")
    a = p.parse_args()
    if a.show:
        for s in range(a.seed, a.seed + a.rounds):
            r = rounds.Round(a.engine, s)
            print(told(r, [f"{n}: {v.count('due')} due; gone {show(per_table(v.gone))}, detached"
                           f" {show(per_table(v.detached))}" for n, v in r.verdicts.items()]))
        return 0
    played = Played(a.engine, a.seed, a.rounds).play(a.stop_after)
    print(played.table())
    return 1 if played.failed else 0


if __name__ == "__main__":
    sys.exit(main())
