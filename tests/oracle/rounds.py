"""Random rounds: a schema, its rows and a policy, all from one seed.

A round is replayed by its engine and seed. Rounds of one group (GROUP seeds) share the run's `now`, so that one process
can sweep them all. Rows crowd around the cutoffs; the conditions are drawn until they hold for some rows and not for
others. Nothing here decides what is due: that is the oracle's part.
"""
import random
import re

import yaml

import oracle
from round_conditions import Conditions
from round_mariadb import Mariadb
from round_newest import Newest
from round_orphan import Orphans
from round_references import References
from round_tables import Tables
from round_times import Times
from round_words import LATEST, MINUTE, MS, S, ZONES, flow, literal, sql_name, transitions, unshared

GROUP = 40


def now_of(engine, group):
    """The run's now: at any time until LATEST, often near a change of clocks, whole to the second, millisecond or
    microsecond."""
    rng = random.Random(f"now {engine} {group}")
    if rng.random() < 0.5:
        zone = rng.choice([z for z in ZONES if z != "Asia/Kathmandu"])
        at = rng.choice([t for t in transitions(zone) if 1_300_000_000 * S < t < LATEST])
        at += rng.choice([-3, -2, -1, 0, 1, 2, 3]) * 30 * MINUTE
    else:
        zone = rng.choice(ZONES)
        at = rng.randrange(1_300_000_000 * S, LATEST, S)
    step = rng.choice([S, MS, 1])
    if step < S and rng.random() < 0.8:
        at += rng.randrange(0, S, step)
    return at, zone


class Round(Tables, Times, References, Conditions, Orphans, Newest, Mariadb):
    def __init__(self, engine, seed):
        self.engine, self.seed = engine, seed
        self.group = seed // GROUP
        self.now, self.now_zone = now_of(engine, self.group)
        for attempt in range(50):
            self.rng = random.Random(f"{engine} {seed} {attempt}")
            self.features, self.made, self.policies, self.sql, self.ddl = set(), [], {}, {}, []
            self.last, self.sweepable, self.whole_below = [], [], 0
            self.build()
            if self.judge():
                return
        raise AssertionError(f"no sound round for seed {seed}")

    # --- small choices

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, *options):
        return self.rng.choice(options)

    def use(self, feature):
        self.features.add(feature)

    @property
    def pg(self):
        return self.engine == "postgres"

    @property
    def lite(self):
        return self.engine == "sqlite"

    @property
    def maria(self):
        return self.engine == "mariadb"

    # --- the whole

    def build(self):
        rng = self.rng
        self.odd = self.chance(0.25)
        self.pg_schema = "Other" if self.pg and self.chance(0.1) else "other" if self.pg and self.chance(0.1) else None
        if self.pg_schema:
            self.use("schema")
        if self.odd:
            self.use("odd names")
        self.zone = self.now_zone if self.chance(0.3) else rng.choice(ZONES) if self.chance(0.35) else None
        if self.zone and self.chance(0.05):
            self.zone = "UTC"
        if self.zone:
            self.use("zone")
        self.cutoffs = [self.now]

        policy = {}
        self.bound()
        self.unit = self.pick("s", "ms", "us") if "int" in self.time_encodings and self.chance(0.5) else None
        self.root = self.source = None
        if self.kind == "orphan":
            self.make_source()
        root = self.root = self.new_table("t", attributes=True, times=self.time_encodings,
                                          keyless=False, unique_only=self.chance(0.05))
        policy["table"] = self.table_ref(root)
        self.time_in_key(root)
        self.finish_bound(policy, root)
        self.top_lists = policy
        self.settle(root)
        self.rows_of(root, rng.choice([1, 3, 6, 8, 10, 12, 15]))
        if self.kind == "orphan":
            self.finish_orphan(policy, root)
        self.selves(root, policy, "root")
        for _ in range(rng.choice([0, 0, 1, 1, 1, 2, 2, 3])):
            self.dependent(root, policy, depth=1)
        self.conditions(policy, root)
        if self.unit:
            policy["unit"] = self.unit
        if self.zone:
            policy["zone"] = self.zone
        batch = rng.choice([1, 1, 2, 3, 4, 5, 1000, None, "default"])
        if batch != "default":
            policy["batch"] = batch
        if batch is None:
            self.no_splits(policy)
        self.use(f"batch {'null' if batch is None else batch if batch in (1, 1000, 'default') else '2-5'}")
        self.batch = 10**9 if batch is None else 1000 if batch == "default" else batch
        workers = random.Random(f"workers of {self.seed}").choice([1, 1, 1, 2, 3, 4])     # leaves the other choices alone
        if workers > 1 and batch is not None:
            policy["workers"] = workers
            self.use("workers")
        self.splits = batch is not None and self.use_splits(policy)
        self.loosely = self.pg and random.Random(f"blocks of {self.seed}").random() < 0.7
        if self.chance(0.1):
            policy.update(label="a label", invariant="words", also=["more words"])
        if self.chance(0.1):
            policy["timeouts"] = {"lock": "5s", "statement": "1m"}
        items = list(policy.items())
        rng.shuffle(items)
        self.policies[f"r{self.seed}"] = dict(items)
        if self.chance(0.08):
            self.second_policy(dict(items), root)
        elif self.source and self.source.times and self.source.table.key and not self.by_foreign \
                and self.chance(0.2):
            self.policy_for_source()
        elif self.sweepable and self.chance(0.3):
            self.policy_below()
        elif self.chance(0.03):
            self.use("disabled policy")
            self.policies[f"r{self.seed}"]["enabled"] = False
        self.schema = oracle.Schema([m.table for m in self.made])
        self.style = rng.choice(["json", "yaml"])

    def use_splits(self, lists, depth=1):
        """Whether rows may go ahead of what owns them."""
        found = False
        for entry in lists.get("with", []):
            if isinstance(entry, dict):
                if entry.get("split"):
                    self.use("split" if depth == 1 else "split below")
                found = self.use_splits(entry, depth + 1) or found or bool(entry.get("split"))
        return found

    def no_splits(self, lists):
        for entry in lists.get("with", []):
            if isinstance(entry, dict):
                entry.pop("split", None)
                self.no_splits(entry)

    def judge(self):
        """What the oracle says. False: not a round to keep (see `order`)."""
        self.before = {m.table: dict(enumerate(m.rows)) for m in self.made}
        contract = oracle.read(self.contract())
        self.said = contract["policies"]
        self.verdicts, self.planned, self.most = {}, {}, None
        state = oracle.copy(self.before)
        for name, v in oracle.sweep(contract, self.schema, state, self.now, self.sql):
            self.verdicts[name] = v
            self.planned[name] = self.judge_of(name).verdict(self.before)
            most = oracle.at_most(self.said[name], self.schema, state, self.now, self.sql)
            if any(len(most[t]) != len(state[t]) for t in state):
                # what an earlier batch deletes frees rows for a later one: the end depends on the order
                if len(self.policies) > 1:
                    return False
                self.most = most
                self.use("order")
        self.expected = state
        self.at_last = self.most or oracle.exhausted(contract, self.schema, state, self.now, self.sql)
        self.outcome_features()
        return True

    def outcome_features(self):
        for v in self.verdicts.values():
            self.use("something goes" if v.gone else "nothing goes")
            if any(w != "due" for w in v.why.values()):
                self.use("something stays")
            for w in ("null", "unreadable", "held", "out", "young", "waiting after", "waiting where",
                      "waiting below: out", "waiting below: held", "waiting below: null", "waiting below: unreadable",
                      "has a source", "among the newest", "waiting below: has a source",
                      "waiting below: among the newest"):
                if v.count(w):
                    self.use(f"kept: {w}")
            if v.detached:
                self.use("detached")
            if any((t, i) in v.gone for t, i, _ in v.emptied):
                self.use("detached and gone")
            if len({(t, i) for t, i, _ in v.emptied if (t, i) not in v.gone}) < \
                    sum((t, i) not in v.gone for t, i, _ in v.emptied):
                self.use("two references emptied in a row")
            if len({t for t, _ in v.gone}) > 2:
                self.use("three tables lose rows")
            if len(v.gone) > len(v.roots) and any(t is v.table and i not in v.roots for t, i in v.gone):
                self.use("young descendant goes")
            self.rule_features(v, self.judge_of(next(n for n, found in self.verdicts.items() if found is v)))

    def rule_features(self, v, judge):
        if v.refused:
            self.use("empty source refused")
            return
        if judge.orphan:
            self.orphan_features(judge)
            if not self.before[judge.orphan.source]:
                self.use("empty source allowed")
        for word in ("cap", "keep_newest"):
            if word in judge.said:
                self.newest_features(judge, word)
        if not judge.timed():
            return
        for i, w in v.why.items():
            row = self.before[v.table].get(i)
            if w in ("due", "young"):
                at, cutoff = judge.latest(row), judge.cutoff(row)
                if cutoff and at is not None and abs(at - cutoff[0]) <= 1:
                    self.use("at the cutoff" if at == cutoff[0] else "1 µs off the cutoff")

    def judge_of(self, name):
        return oracle.Judge(self.said[name], self.schema, self.now, self.sql)

    def contract(self):
        return "policies:\n" + self.contract_part()

    def contract_part(self):
        if self.style == "json":
            return "".join(f"  {n}: {flow(p)}\n" for n, p in self.policies.items())
        text = yaml.dump(unshared(self.policies), Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False,
                         width=110)
        return re.sub(r"^(?=.)", "  ", text, flags=re.M)

    def second_policy(self, first, root):
        """Another policy for the same tables, after the first."""
        self.use("second policy")
        policy = {k: v for k, v in first.items() if k not in (
            "rows", "where", "hold", "expires", "age", "keep", "inclusive", "cap", "keep_newest")}
        orphan = policy.pop("orphan", None)
        column = self.column_ref(self.rng.choice(
            [c for c in root.times if not self.unit or root.table.columns[c].kind == "int"]))
        bound = self.rng.choice([b for b in ("expires", "age", "age", "cap", "orphan")
                                 if b not in first and (b != "orphan" or orphan)])
        if bound == "expires":
            policy["expires"] = column
        elif bound == "cap":
            self.use("cap")
            policy["cap"] = {"rows": self.pick(1, 2, 4), "newest": self.column_ref(self.rng.choice(self.sorted_now(root)))}
        else:
            policy.update(age=column, keep=self.span_text(self.a_span()))
        if bound == "orphan":
            policy["orphan"] = orphan
        self.conditions(policy, root)
        self.policies[f"r{self.seed}.second"] = policy

    def policy_below(self):
        """A policy for a dependent table on its own, before or after the first."""
        made, lists = self.rng.choice(self.sweepable)
        column = made.times[0]
        policy = {"table": self.table_ref(made), **unshared(lists)}
        if self.chance(0.3):
            policy["cap"] = {"rows": self.pick(1, 2, 3), "newest": self.column_ref(self.rng.choice(self.sorted_now(made)))}
            if made.refers and self.chance(0.8):
                policy["cap"]["per"] = self.columns_ref(made.refers)
            self.use("cap of a dependent")
        elif self.chance(0.5):
            policy["expires"] = self.column_ref(column)
        else:
            policy.update(age=self.column_ref(column), keep=self.span_text(self.pick(1000, 3_600_000, 86_400_000)))
        if self.unit and made.table.columns[column].kind == "int":
            policy["unit"] = self.unit
        elif self.unit:
            return
        if self.zone:
            policy["zone"] = self.zone
        if self.batch < 10:
            policy["batch"] = self.batch
        self.use("policies for root and dependent")
        name = f"r{self.seed}.below"
        self.policies = {**self.policies, name: policy} if self.chance(0.5) else {name: policy, **self.policies}

    # --- for the engine

    def create(self):
        """The statements that make the tables."""
        out = list(self.ddl)
        for m in self.made:
            lines = []
            for i, (c, column) in enumerate(m.table.columns.items()):
                if i == m.dropped:
                    lines.append("dropped text")
                may_be_null = column.nullable or m.null_key and c in m.table.key
                lines.append(f"{sql_name(c)} {m.types[c]}{'' if may_be_null else ' NOT NULL'}")
            if self.lies_loosely(m):
                lines.append("lapse_room char(700) DEFAULT ''")
            if m.table.key:
                lines.append(f"PRIMARY KEY ({', '.join(map(sql_name, m.table.key))})")
            lines += [f"UNIQUE ({', '.join(map(sql_name, u))})" for u in m.uniques]
            lines += m.foreign_sql
            out.append(f"CREATE TABLE {self.table_sql(m)} (\n  " + ",\n  ".join(lines) + f"\n){' WITH (fillfactor = 10)' if self.lies_loosely(m) else m.suffix}")
            if hasattr(m, "split"):
                for i, bounds in enumerate((f"FOR VALUES FROM (MINVALUE) TO ({literal(m.split)})", "DEFAULT")):
                    part = sql_name(f"r{self.seed}_{self.made.index(m)}_part{i}")
                    out.append(f"CREATE TABLE {sql_name(m.table.schema)}.{part} PARTITION OF {self.table_sql(m)}"
                               f" {bounds}")
            if getattr(m, "partitioned", False):
                for i in range(2):
                    part = sql_name(f"r{self.seed}_{self.made.index(m)}_part{i}")
                    schema = f"{sql_name(m.table.schema)}."
                    out.append(f"CREATE TABLE {schema}{part} PARTITION OF {self.table_sql(m)}"
                               f" FOR VALUES WITH (MODULUS 2, REMAINDER {i})")
            if m.dropped is not None:
                out.append(f"ALTER TABLE {self.table_sql(m)} DROP COLUMN dropped")
            out += m.indexes
        return out

    def lies_loosely(self, m):
        """A row a block: else a table is one, and whoever walks it as it lies has all of it at once."""
        return self.loosely and not m.suffix

    def last_of_all(self):
        """Statements that follow when all is committed."""
        return [f"ALTER TABLE {self.table_sql(m)} DROP COLUMN lapse_room" for m in self.made if self.lies_loosely(m)]

    def inserts(self):
        """The statements that fill them, with literals (PostgreSQL) or with parameters."""
        for m in self.made:
            if m.rows:
                columns = ", ".join(map(sql_name, m.table.columns))
                yield m, f"INSERT INTO {self.table_sql(m)} ({columns}) VALUES"
