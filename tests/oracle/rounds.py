"""Random rounds: a schema, its rows and a policy, all from one seed.

A round is replayed by its engine and seed. Rounds of one group (GROUP seeds) share the run's `now`, so that one process
can sweep them all. Rows crowd around the cutoffs; the conditions are drawn until they hold for some rows and not for
others. Nothing here decides what is due: that is the oracle's part.
"""
import datetime
import json
import random
import re
import uuid
from functools import lru_cache
from zoneinfo import ZoneInfo

import yaml

import oracle
from oracle import Column, Foreign, Table

GROUP = 20

ZONES = ["Europe/Prague", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo",
         "Africa/Casablanca", "Pacific/Apia", "America/St_Johns", "Europe/Dublin"]
S, MS = 1_000_000, 1000
LATEST = 1_750_000_000 * S          # no sweep runs ahead of the database's clock
MINUTE, HOUR, DAY = 60 * S, 3600 * S, 86400 * S


@lru_cache(None)
def transitions(zone):
    """The instants at which the clocks of a zone change, 2000 to 2025."""
    z, utc = ZoneInfo(zone), datetime.timezone.utc

    def offset(second):
        return datetime.datetime.fromtimestamp(second, utc).astimezone(z).utcoffset()

    found, step = [], 10 * 86400
    start = int(datetime.datetime(2000, 1, 1, tzinfo=utc).timestamp())
    end = int(datetime.datetime(2025, 12, 31, tzinfo=utc).timestamp())
    for low in range(start, end, step):
        high = low + step
        if offset(low) != offset(high):
            a, b = low, high
            while b - a > 1:
                middle = (a + b) // 2
                a, b = (middle, b) if offset(middle) == offset(low) else (a, middle)
            found.append(b * S)
    return found


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


def iso(instant):
    return oracle.show_server(instant, False).replace(" ", "T") + "Z"


def sql_name(name):
    return '"' + name.replace('"', '""') + '"'


def literal(v):
    if v is None:
        return "NULL"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (int, float)):
        return repr(v)
    return "'" + v.replace("'", "''") + "'"


def unshared(value):
    """A copy in which nothing appears twice: YAML would write an alias."""
    if isinstance(value, dict):
        return {k: unshared(v) for k, v in value.items()}
    return [unshared(v) for v in value] if isinstance(value, list) else value


def flow(value):
    """YAML in one line: JSON, but for keys that are no strings."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


ODD_COLUMNS = ["order", "Group By", 'a"b', "ünï", "x.y", "CamelCase", "it's", "a,b", "(p)", "->", "$1", ":now", "%s",
               "select", "user", "this", "key", "a-b", "x*", "#", "rowid", "oid", "now"]
ODD_TABLES = ["Mixed", "two words", 'q"uote', "dot.ted", "ümlaut", "select", "it's", "a-b", "(p)", "this", "UPPER", "%s"]
ODD_TEXT = ["a'b", 'a"b', "", " ", "\\", "a\\'b", "a,b", "{x}", "%", "_", "NULL", "null", "ünï", "日本", "🙂", "a\nb", "\t",
            "x" * 300, "0", "1", "01", "1.0", "TRUE", "A", "a", " a", "a ", "$1", "?", ":now", "--", "/*", ";", "()"]
WORDS = ["done", "failed", "Done", "new", "cancelled", "do%e", "do_e", "done*", "dÖne", "x\\y", "doneX", "d"]
GARBAGE = ["", " ", "never", "2025-13-01T00:00:00Z", "2025-02-30 00:00:00", "2023-02-29T12:00", "2020-01-01",
           " 2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z ", "2020-1-1 00:00:00", "20200101T000000Z", "1577836800",
           "1577836800000", "2020-01-01T24:00:00Z", "2020-01-01T00:00:60Z", "2020-01-01T00:60:00Z",
           "2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00+16:00", "2020-01-01T00:00:00+5", "2020-01-01T00:00:00.",
           "2020-01-01T00:00:00.Z", "2020-01-01T00:00.5Z", "0000-01-01T00:00:00Z", "+2020-01-01T00:00:00Z",
           "2020-01-01T00:00:00Z\n", "2020-01-01T00", "2020-01-01T00Z", "2020-01-01  00:00:00", "2020-01-01_00:00:00",
           "2020-01-01T00:00:00+01:60", "2020-01-01T00:00:00 UTC", "2020-01-01T00:00:00ZZ", "2020/01/01 00:00:00",
           "٢٠٢٠-01-01T00:00:00Z", "2020-01-01T00:00:00+01:0", "2020-01-01T00:00:00 +", "-2020-01-01T00:00:00Z",
           "2020-01-01T00:00:00\t+01", "2020-01-01 00:00:00 Europe/Prague", "epoch", "infinity", "today", "now",
           "2020-01-01T-1:00:00Z", "2020-01-01T00:00:00 ", "2020-001T00:00:00Z", "2020-00-10T00:00:00Z",
           "2020-01-00T00:00:00Z", "2020-01-32T00:00:00Z", "2020-04-31 10:00", "1900-02-29T00:00:00Z",
           "12020-01-01T00:00:00Z", "2020-01-01T00:00:00Z+01:00", "2020-01-01T00:00:00--01"]
FAR = ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+15:59", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-15:59",
       "2000-02-29T00:00Z", "1969-12-31 23:59:59.999999", "1600-02-29 00:00:00+00", "1970-01-01t00:00z"]


class Made:
    """A table of a round: what the oracle is told, and how the engine is told."""

    def __init__(self, table, types):
        self.table, self.types = table, types       # types: column -> SQL type
        self.uniques, self.foreign_sql, self.options = [], [], []
        self.suffix, self.indexes, self.dropped = "", [], None
        self.null_key = False
        self.fill = {}          # column -> function of (row so far) -> value
        self.rows = []


class Round:
    def __init__(self, engine, seed):
        self.engine, self.seed = engine, seed
        self.group = seed // GROUP
        self.now, self.now_zone = now_of(engine, self.group)
        for attempt in range(50):
            self.rng = random.Random(f"{engine} {seed} {attempt}")
            self.features, self.made, self.policies, self.sql, self.ddl = set(), [], {}, {}, []
            self.last, self.sweepable = [], []
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
        root = self.root = self.new_table("t", attributes=True, times=self.time_encodings,
                                          keyless=False, unique_only=self.chance(0.05))
        policy["table"] = self.table_ref(root)
        self.time_in_key(root)
        self.finish_bound(policy, root)
        self.top_lists = policy
        self.settle(root)
        self.rows_of(root, rng.choice([1, 3, 6, 8, 10, 12, 15]))
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
        self.use(f"batch {'null' if batch is None else batch if batch in (1, 1000, 'default') else '2-5'}")
        self.batch = 10**9 if batch is None else 1000 if batch == "default" else batch
        if self.chance(0.1):
            policy.update(label="a label", invariant="words", also=["more words"])
        if self.chance(0.1):
            policy["timeouts"] = {"lock": "5s", "statement": "1m"}
        items = list(policy.items())
        rng.shuffle(items)
        self.policies[f"r{self.seed}"] = dict(items)
        if self.chance(0.08):
            self.second_policy(dict(items), root)
        elif self.sweepable and self.chance(0.3):
            self.policy_below()
        elif self.chance(0.03):
            self.use("disabled policy")
            self.policies[f"r{self.seed}"]["enabled"] = False
        self.schema = oracle.Schema([m.table for m in self.made])
        self.style = rng.choice(["json", "yaml"])

    def judge(self):
        """What the oracle says. False: not a round to keep (see `order`)."""
        self.before = {m.table: dict(enumerate(m.rows)) for m in self.made}
        contract = oracle.read(self.contract())
        self.verdicts, self.planned, self.most = {}, {}, None
        state = oracle.copy(self.before)
        for name, v in oracle.sweep(contract, self.schema, state, self.now, self.sql):
            self.verdicts[name] = v
            self.planned[name] = oracle.Judge(contract["policies"][name], self.schema, self.now, self.sql).verdict(
                self.before)
            if not self.subtree_is_clear(contract["policies"][name], v):
                return False
            most = oracle.at_most(contract["policies"][name], self.schema, state, self.now, self.sql)
            if any(len(most[t]) != len(state[t]) for t in state):
                # what an earlier batch deletes frees rows for a later one: the end depends on the order
                if len(self.policies) > 1 or not self.chance(0.5):
                    return False
                self.most = most
                self.use("order")
        self.expected = state
        self.outcome_features()
        return True

    def subtree_is_clear(self, said, verdict):
        """False where a row would go as part of a subtree while its own policy says it may not be touched."""
        judge = oracle.Judge(said, self.schema, self.now, self.sql)
        return all(judge.in_scope(self.before[t][i], self.before) and not judge.held(self.before[t][i], self.before)
                   for t, i in verdict.gone if t is verdict.table)

    def outcome_features(self):
        for v in self.verdicts.values():
            self.use("something goes" if v.gone else "nothing goes")
            if any(w != "due" for w in v.why.values()):
                self.use("something stays")
            for w in ("null", "unreadable", "held", "out", "young", "waiting after", "waiting where"):
                if v.count(w):
                    self.use(f"kept: {w}")
            if v.detached:
                self.use("detached")
            if any(at in v.gone for at in v.touched):
                self.use("detached and gone")
            if len({t for t, _ in v.gone}) > 2:
                self.use("three tables lose rows")
            if len(v.gone) > len(v.roots) and any(t is v.table and i not in v.roots for t, i in v.gone):
                self.use("young descendant goes")
            judge = oracle.Judge(self.said(v), self.schema, self.now, self.sql)
            for i, w in v.why.items():
                if w in ("due", "young"):
                    at, cutoff = judge.latest(self.before[v.table].get(i)), judge.cutoff(self.before[v.table].get(i))
                    if cutoff and at is not None and abs(at - cutoff[0]) <= 1:
                        self.use("at the cutoff" if at == cutoff[0] else "1 µs off the cutoff")

    def said(self, verdict):
        for name, v in self.verdicts.items():
            if v is verdict:
                return self.policies[name]

    def contract(self):
        return "policies:\n" + self.contract_part()

    def contract_part(self):
        if self.style == "json":
            return "".join(f"  {n}: {flow(p)}\n" for n, p in self.policies.items())
        text = yaml.safe_dump(unshared(self.policies), allow_unicode=True, sort_keys=False, width=110)
        return re.sub(r"^(?=.)", "  ", text, flags=re.M)

    # --- tables

    def new_name(self, table, base):
        taken = {c.lower() for c in table.columns} if table else set()
        name = base
        if self.odd and self.chance(0.5):
            if table is None:
                name = self.pick(*ODD_TABLES)
            else:
                name = self.pick(*ODD_COLUMNS)
                m = re.search(r"_(s|ms|us)$", base)
                name += m[0] if m else ""
        n = 2
        start = name
        while name.lower() in taken:
            name, n = f"{n}{start}", n + 1
        return name

    def add_column(self, made, base, kind, sql_type, nullable=True):
        name = self.new_name(made.table, base)
        made.table.columns[name] = Column(name, kind, nullable)
        made.types[name] = sql_type
        return name

    def new_table(self, base, attributes=False, times=(), keyless=False, unique_only=False, key=True):
        """A table with its own key, its attributes and time columns."""
        prefix = f"r{self.seed}_{len(self.made)}"
        name = f"{prefix}{self.new_name(None, '_' + base)}" if self.chance(0.8) else f"R{prefix}{base}"
        made = Made(Table(name, {}, schema=(self.pg_schema or "public") if self.pg else None), {})
        self.made.append(made)
        if key and not keyless:
            self.key(made, unique_only)
        elif keyless:
            self.use("dependent without a key")
        self.alternates(made)
        if attributes:
            self.attributes(made)
        made.times = [self.time_column(made, enc) for enc in times]
        return made

    def settle(self, made):
        """The table's options, once its columns are known and before its rows are made."""
        if not self.pg and made.table.key:
            strict = all(t in ("INTEGER", "INT", "TEXT", "REAL") for t in made.types.values())
            made.options = [o for o, p in (("WITHOUT ROWID", 0.2), ("STRICT", 0.3 if strict else 0)) if self.chance(p)]
            made.suffix = " " + ", ".join(made.options) if made.options else ""
            for o in made.options:
                self.use(o.lower())
            if not made.options and self.chance(0.1):
                made.null_key = True
                self.use("key not declared NOT NULL")
        if self.chance(0.1):
            made.dropped = self.rng.randrange(len(made.table.columns))
            self.use("dropped column")
        self.index(made)

    def index(self, made):
        """Perhaps indexes: on a time, on a state and a time, on references."""
        columns = list(made.table.columns)
        state = next(iter(getattr(made, "attributes", {})), None)
        wanted = []
        for t in made.times:
            if self.chance(0.4):
                wanted.append([t] + ([c for c in made.table.key if c != t] if self.chance(0.3) else []))
            if state and self.chance(0.2):
                wanted.append([state, t])
        if self.chance(0.4):
            wanted.append(self.rng.sample(columns, min(len(columns), self.pick(1, 2))))
        for n, index in enumerate(wanted):
            name = sql_name(f"r{self.seed}_{self.made.index(made)}_i{n}")
            made.indexes.append(f"CREATE INDEX {name} ON {self.table_sql(made)} ("
                                + ", ".join(sql_name(c) + self.pick("", "", " DESC") for c in index) + ")")
            self.use("index")

    KEYS = {"sqlite": [("int", "INTEGER"), ("int", "INT"), ("int", "BIGINT"), ("text", "TEXT"), ("text", "VARCHAR(400)")],
            "postgres": [("int", "integer"), ("int", "bigint"), ("int", "smallint"), ("text", "text"),
                         ("text", "varchar(400)"), ("uuid", "uuid")]}

    def key(self, made, unique_only):
        """A primary key of one to three columns, or only a unique one."""
        count = self.rng.choice([1, 1, 1, 2, 3])
        columns = []
        for i in range(count):
            kind, sql_type = self.rng.choice(self.KEYS[self.engine])
            columns.append(self.add_column(made, ["id", "tenant", "part"][i] if count < 2 or i else "tenant_id",
                                           kind, sql_type, nullable=False))
            self.use(f"key {sql_type.split('(')[0].lower()}")
        if count > 1:
            self.use(f"key of {count} columns")
        if unique_only:
            self.use("unique key only")
            made.uniques.append(columns)
            made.table.key = []
        else:
            made.table.key = columns
        made.identity = columns
        self.fill_unique(made, columns)
        if self.pg and not unique_only and self.chance(0.1):
            made.partitioned = True
            self.use("partitioned")
            made.suffix = f" PARTITION BY HASH ({sql_name(columns[0])})"

    def fill_unique(self, made, columns, null=0.0):
        """Values for columns that are unique together."""
        taken = set()

        def fill(row):
            if null and any(made.table.columns[c].nullable for c in columns) and self.chance(null):
                for c in columns:
                    row[c] = None if made.table.columns[c].nullable else self.key_value(made, c)
                return
            for attempt in range(1000):
                values = tuple(self.key_value(made, c, few=len(columns) > 1 and c is not columns[-1]) for c in columns)
                if values not in taken:
                    taken.add(values)
                    row.update(zip(columns, values))
                    return
            raise AssertionError("no free key")

        for c in columns:
            made.fill[c] = fill if c is columns[0] else None

    def key_value(self, made, column, few=False):
        kind, sql_type = made.table.columns[column].kind, made.types[column]
        if kind in ("timestamptz", "timestamp", "date"):
            return self.rng.choice([r[column] for r in made.rows if r[column]] or ["2020-01-01"])
        if kind == "text":
            if few:
                return self.pick("a", "A", "", "t'1")
            return self.rng.choice(ODD_TEXT) if self.chance(0.7) else f"k{self.rng.randrange(10000)}"
        if kind == "uuid":
            return str(uuid.UUID(int=self.rng.randrange(4) if few else self.rng.getrandbits(128)))
        if few:
            return self.pick(0, 1, -1)
        bits = 16 if sql_type == "smallint" else 32 if sql_type == "integer" else 64
        top = 2 ** (bits - 1)
        return self.pick(self.rng.randrange(1, 40), self.rng.randrange(-5, 1000), self.rng.randrange(-top, top), top - 1,
                         -top, 0) if self.chance(0.3) else self.rng.randrange(1, 60)

    def alternates(self, made):
        """Perhaps a unique key that is not the primary one, to refer to."""
        made.alternate = None
        if not made.table.key or getattr(made, "partitioned", False) or not self.chance(0.25):
            return
        columns = []
        for i in range(self.pick(1, 1, 2)):
            kind, sql_type = self.rng.choice(self.KEYS[self.engine])
            if sql_type == "smallint":
                kind, sql_type = "int", "integer"
            columns.append(self.add_column(made, ["code", "region"][i], kind, sql_type, nullable=self.chance(0.6)))
        made.alternate = columns
        made.uniques.append(columns)
        self.fill_unique(made, columns, null=0.2)

    def attributes(self, made):
        """Columns for conditions."""
        made.attributes = {}
        text, integer, real = ("text", "integer", "numeric") if self.pg else ("TEXT", "INTEGER", "REAL")

        def some(values, null=0.15):
            return lambda: None if self.chance(null) else self.rng.choice(values)

        words = self.rng.sample(WORDS, 5)
        plans = [("status", "text", text, some(words)), ("n", "int", integer, some(range(6))),
                 ("note", "text", text, some(WORDS)), ("score", "real", real, some([0.0, 0.5, 1.5, 2.5, -3.0]))]
        if self.pg:
            plans += [("flag", "bool", "boolean", some([True, False]))]
            if self.chance(0.2):
                label = f"r{self.seed}_{len(self.made)}_enum"
                states = [w for w in words if w.isascii()]
                self.ddl.append(f"CREATE TYPE {label} AS ENUM ({', '.join(map(literal, states))})")
                plans[0] = ("status", "enum", label, some(states))
        for base, kind, sql_type, value in plans:
            if base == "status" or self.chance(0.5):
                c = self.add_column(made, base, "text" if kind == "enum" else kind, sql_type)
                made.attributes[c] = kind
                made.fill[c] = lambda row, c=c, value=value: row.__setitem__(c, value())

    # --- times

    ENCODINGS = {"sqlite": ["int", "int", "text", "text"],
                 "postgres": ["int", "int", "text", "timestamptz", "timestamp", "date"]}

    def time_column(self, made, encoding):
        base = self.pick("created_at", "expires_at", "updated", "seen", "ended")
        nullable = self.chance(0.8)
        if encoding == "int":
            unit = self.unit or self.pick("s", "ms", "us")
            if not self.unit or self.chance(0.2):
                base += f"_{unit}"
            sql_type = self.pick(*(("integer", "bigint") if unit == "s" else ("bigint",))) if self.pg \
                else self.pick("INTEGER", "BIGINT", "INT")
            self.use(f"time int {unit}")
            name = self.add_column(made, base, "int", sql_type, nullable)
            if self.unit is None and not re.search(r"_(s|ms|us)$", name):
                raise AssertionError(name)
        elif encoding == "text":
            sql_type = self.pick("text", "varchar(80)") if self.pg else self.pick("TEXT", "VARCHAR(80)")
            self.use("time text")
            name = self.add_column(made, base, "text", sql_type, nullable)
        else:
            sql_type = encoding + (self.pick("", "", "(3)", "(0)") if encoding.startswith("timestamp") else "")
            self.use(f"time {encoding}")
            name = self.add_column(made, base, encoding, sql_type, nullable)
        if self.pg and sql_type in ("bigint", "text", "timestamptz", "timestamp", "date") and self.chance(0.08):
            self.use("domain")
            domain = f"r{self.seed}_{len(self.ddl)}_domain"
            self.ddl.append(f"CREATE DOMAIN {domain} AS {sql_type}")
            made.types[name] = domain
        column = made.table.columns[name]
        made.fill[name] = lambda row: row.__setitem__(name, self.time_value(made, column, row))
        return name

    def time_in_key(self, root):
        """Perhaps the key ends with the time; on PostgreSQL such a table may have a partition per time."""
        if not root.table.key or not self.chance(0.12):
            return
        name = root.times[0]
        column = root.table.columns[name]
        column.nullable = False
        root.table.key = root.identity = root.table.key + [name]
        self.use("time in the key")
        if self.pg and not root.uniques and not root.suffix and column.kind != "text" and self.chance(0.6):
            self.use("partitioned by time")
            root.suffix = f" PARTITION BY RANGE ({sql_name(name)})"
            at = self.now - self.pick(0, DAY, 30 * DAY)
            root.split = at // oracle.unit_of(column, self.unit) if column.kind == "int" else \
                oracle.show_server(at, column.kind == "timestamptz")

    def near(self, cutoff):
        """An instant that may matter for this cutoff."""
        rng = self.rng
        if self.chance(0.4):
            return cutoff - rng.choice([DAY, 2 * DAY, 400 * DAY, rng.randrange(1, 2 * DAY)])
        return cutoff + rng.choice([0, 0, 0, 1, -1, MS, -MS, S, -S, 999, -999, HOUR, -HOUR, 30 * MINUTE, -30 * MINUTE,
                                    rng.randrange(-S, S), rng.randrange(-2 * HOUR, 2 * HOUR), DAY, 400 * DAY])

    def time_value(self, made, column, row):
        if column.nullable and self.chance(0.12):
            return None
        at = self.near(self.row_cutoff(made, row))
        if column.kind == "int":
            if not self.pg and "STRICT" not in made.options and self.chance(0.05):
                self.use("integer column with other values")
                return self.pick("soon", 1.5, b"\x00", "", 1700000000.25)
            unit = oracle.unit_of(column, self.unit)
            value = at // unit + self.pick(0, 0, 1, -1)
            if made.types[column.name] == "integer" and self.pg:
                value = max(min(value, 2**31 - 1), -2**31)
            if self.chance(0.01) and made.types[column.name] != "integer":
                self.use("extreme integer")
                return self.pick(2**63 - 1, -2**63, 0, -1)
            return value
        if column.kind == "text":
            return self.time_text(made, at)
        sql_type = made.types[column.name]
        if self.chance(0.03):
            self.use("infinity")
            return self.pick("infinity", "-infinity")
        if self.chance(0.02):
            far = self.pick(oracle.days_of(-43, 3, 15), oracle.days_of(20000, 1, 1)) * DAY
            return oracle.show_server(far, column.kind == "timestamptz") if column.kind != "date" else \
                self.pick("0044-03-15 BC", "20000-01-01")
        if column.kind == "timestamptz":
            local = at
        else:
            local = oracle.local_of_instant(at, self.zone)
            if self.zone and self.chance(0.2):      # into the skipped hour, too
                local += self.pick(HOUR, -HOUR, 30 * MINUTE, DAY, -DAY)
        if column.kind == "date":
            return oracle.show_server(local // DAY * DAY + self.pick(0, 0, DAY, -DAY), False)[:10]
        digits = {"(0)": S, "(3)": MS}.get(sql_type[len(column.kind):], 1)
        return oracle.show_server(local // digits * digits, column.kind == "timestamptz")

    def time_text(self, made, at):
        if self.chance(0.1):
            self.use("garbage text")
            if not self.pg and self.chance(0.1):
                self.use("text column with other values")
                return self.pick(b"2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z\0", "2020-01-01T00:00:00Z\0x") \
                    if "STRICT" not in made.options else "2020-01-01T00:00:00Z\0"
            return self.rng.choice(GARBAGE)
        if self.chance(0.02):
            return self.rng.choice(FAR)
        rng = self.rng
        if self.chance(0.4):        # in the zone's own time
            local, end = oracle.local_of_instant(at, self.zone), ""
            if self.zone and self.chance(0.2):
                local += self.pick(HOUR, -HOUR, 30 * MINUTE)
            self.use("text without offset")
        elif self.chance(0.5):
            local, end = at, self.pick("Z", "Z", "z", " Z")
        else:
            minutes = rng.choice([0, 60, -60, 330, -570, 845, 959, -959, rng.randrange(-959, 960)])
            local, sign = at + minutes * MINUTE, "+" if minutes >= 0 else "-"
            h, m = divmod(abs(minutes), 60)
            end = f"{sign}{h:02}" + (self.pick(f":{m:02}", f"{m:02}") if m or self.chance(0.5) else "")
            end = self.pick("", "", " ", "  ") + end
            self.use("text with offset")
        text = oracle.show_server(local, False)
        date, clock = text[:10], text[11:]
        whole, _, fraction = clock.partition(".")
        if fraction:
            fraction = fraction.ljust(rng.randrange(len(fraction), 8), "0")
            if self.chance(0.1):
                fraction = fraction[:rng.randrange(1, len(fraction) + 1)]
            if len(fraction) == 6 and self.chance(0.1):
                fraction += self.pick("0", "000", "000000000000", "9", "49999999")
            whole += "." + fraction
        elif self.chance(0.3):
            whole += self.pick(".0", ".000", ".000000", ".000000000")
        elif whole.endswith(":00") and self.chance(0.4):
            whole = whole[:-3]
        return date + self.pick("T", "T", " ", "t") + whole + end

    # --- the bound

    def bound(self):
        rng = self.rng
        kinds = self.ENCODINGS[self.engine]
        if self.chance(0.3):
            self.use("expires")
            self.time_encodings = [rng.choice(kinds)]
            self.keep = None
            return
        self.use("age")
        count = rng.choice([1, 1, 1, 2, 3])
        if count > 1:
            self.use("age of several columns")
        self.time_encodings = [rng.choice(kinds) for _ in range(count)]
        self.keep = self.pick("plain", "plain", "plain", "by", "by", "column", "column", "now")

    def a_span(self):
        """A duration whose cutoff is worth looking at, in milliseconds."""
        rng = self.rng
        past = [t for t in transitions(self.zone) if t < self.now - 3 * HOUR] if self.zone and self.zone != "UTC" else []
        if past and self.chance(0.5):
            self.use("cutoff near a clock change")
            at = rng.choice(past[-6:] if self.chance(0.7) else past) + rng.choice([-4, -3, -2, -1, 0, 1, 2, 3, 4]) * 30 * MINUTE
            return (self.now - at) // MS
        return rng.choice([1, 250, 1000, 60_000, 90_000, 1_800_000, 5_400_000, 86_400_000, 7 * 86_400_000,
                           30 * 86_400_000, rng.randrange(1, 10**10)])

    def span_text(self, ms):
        """One of the ways to write it."""
        rng = self.rng
        if ms == 0:
            return "now"
        ways = [ms, f"{ms}ms", f"{ms} ms"]
        for unit, size in (("s", 1000), ("sec", 1000), ("seconds", 1000), ("m", 60_000), ("min", 60_000),
                           ("Minutes", 60_000), ("h", 3_600_000), ("hr", 3_600_000), ("HOURS", 3_600_000),
                           ("d", 86_400_000), ("day", 86_400_000), ("w", 604_800_000), ("weeks", 604_800_000)):
            if ms % size == 0:
                ways += [f"{ms // size}{unit}", f"{ms // size} {unit}"]
            elif ms * 1000 % size == 0 and ms > size // 1000:
                ways.append(f"{ms * 1000 // size / 1000}{unit}" if ms < 10**9 else f"{ms}ms")
        parts, rest = [], ms
        for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
            n, rest = divmod(rest, size)
            if n:
                parts.append(f"{n}{unit}")
        ways += ["".join(parts), " ".join(parts)]
        return rng.choice(ways)

    def finish_bound(self, policy, root):
        """The bound's keys, now that the columns have names; and what keeps a row."""
        rng = self.rng
        names = [self.column_ref(c) for c in root.times]
        if self.keep is None:
            policy["expires"] = names[0]
            return
        policy["age"] = names if len(names) > 1 or self.chance(0.2) else names[0]
        if self.chance(0.3):
            policy["inclusive"] = True
            self.use("inclusive")
        elif self.chance(0.1):
            policy["inclusive"] = False
        self.use(f"keep {self.keep}")
        if self.keep == "now":
            policy["keep"] = "now"
            self.cutoffs = [self.now]
        elif self.keep == "plain":
            span = self.a_span()
            self.cutoffs = [self.now - span * MS]
            policy["keep"] = self.span_text(span)
        elif self.keep == "by":
            column = next(c for c, k in root.attributes.items() if k in ("text", "enum", "int"))
            if self.chance(0.3):
                column = next((c for c, k in root.attributes.items() if k == "int"), column)
            kind = root.attributes[column]
            values = {}
            sample = range(6) if kind == "int" else self.enum_values(root, column)
            for w in rng.sample(list(sample), min(len(sample), rng.randrange(1, 4))):
                span = self.pick(None, 0, self.a_span(), self.a_span(), self.a_span(), self.a_span())
                values[w] = "never" if span is None else self.span_text(span)
            policy["keep"] = {"by": self.column_ref(column), "values": values}
            if self.chance(0.5):
                span = self.pick(None, self.a_span(), self.a_span())
                policy["keep"]["otherwise"] = "never" if span is None else self.span_text(span)
                self.use("keep otherwise")
        else:
            unit = self.pick("s", "ms", "us")
            suffix = self.chance(0.4)
            column = self.add_column(root, f"ttl_{unit}" if suffix else "ttl", "int",
                                     "bigint" if self.pg else "INTEGER")
            if self.odd and not suffix and re.search(r"_(s|ms|us)$", column):
                raise AssertionError(column)

            def fill(row):
                value = self.pick(None, 0, -5, 1, 60, 3600, 86400, rng.randrange(1, 10**6))
                if value and value > 0:
                    value = value * S // oracle.UNITS[unit]
                if self.chance(0.02):
                    self.use("extreme keep")
                    value = self.pick(2**63 - 1, -2**63, 2**62)
                row[column] = value

            # the row's times need it first
            root.fill = {column: fill, **root.fill}
            policy["keep"] = {"column": self.column_ref(column)}
            if not suffix:
                policy["keep"]["unit"] = unit
            root.keep_column = (column, unit)
        keep = policy["keep"]
        if isinstance(keep, dict) and "by" in keep:
            root.keep_by = (column, keep)

    def enum_values(self, made, column):
        """Texts that this column may hold (all that its type allows, for an enum)."""
        sql_type = made.types[column]
        for line in self.ddl:
            if f" {sql_type} AS ENUM" in line:
                return [w.replace("''", "'") for w in re.findall(r"'((?:[^']|'')*)'", line)]
        return WORDS

    def row_cutoff(self, made, row):
        if hasattr(made, "keep_column"):
            column, unit = made.keep_column
            if column in row and row[column] and 0 < row[column] < 10**17:
                return max(self.now - row[column] * oracle.UNITS[unit], 0)
        elif hasattr(made, "keep_by"):
            column, keep = made.keep_by
            span = oracle.duration(keep["values"].get(row.get(column), keep.get("otherwise", "never")))
            if span is not None:
                return self.now - span
        if made is not self.root:
            return self.now - self.pick(0, HOUR, DAY)
        return self.rng.choice(self.cutoffs)

    # --- names as the contract writes them

    def column_ref(self, name):
        plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
        if plain and name == name.lower() and self.chance(0.02):
            self.use("name in other case")
            return name.upper()
        return name if plain and not self.chance(0.05) else sql_name(name)

    def table_ref(self, made):
        t = made.table
        name = self.column_ref(t.name)
        if self.pg and (t.schema != "public" or self.chance(0.2)):
            return f"{self.column_ref(t.schema)}.{name}"
        return name

    def ref(self, made, columns, targets, has_foreign, owner):
        order = list(range(len(columns)))
        explicit = targets != owner.table.key if not has_foreign else self.chance(0.1)
        if (explicit or has_foreign) and len(order) > 1 and self.chance(0.4):
            self.rng.shuffle(order)
        gap = self.pick("", "", " ")
        text = f"{self.table_ref(made)}{gap}({', '.join(self.column_ref(columns[i]) for i in order)})"
        if explicit:
            self.use("reference with ->")
            text += f" -> ({', '.join(self.column_ref(targets[i]) for i in order)})"
        return text

    # --- rows

    def rows_of(self, made, count):
        for _ in range(count):
            row = {}
            try:
                for c, fill in made.fill.items():
                    if fill:
                        fill(row)
            except AssertionError:
                return          # no free key: enough rows
            made.rows.append({c: row.get(c) for c in made.table.columns})

    # --- references

    def refer(self, made, base, owner, nullable, foreign, share_key=False):
        """Columns of `made` that refer to rows of `owner`: (columns, targets)."""
        targets = owner.table.key
        if owner.alternate and self.chance(0.6) or not targets:
            targets = owner.alternate or owner.identity
            self.use("reference to a unique key")
        columns = []
        for i, t in enumerate(targets):
            kind, sql_type = owner.table.columns[t].kind, owner.types[t]
            may_be_null = nullable if not isinstance(nullable, list) else nullable[min(i, len(nullable) - 1)]
            if not foreign and sql_type in ("integer", "smallint") and self.chance(0.3):
                sql_type = "bigint"
            columns.append(self.add_column(made, f"{base}_{i}" if len(targets) > 1 else f"{base}_id", kind, sql_type,
                                           may_be_null))
        if len(columns) > 1:
            self.use("reference of several columns")
        return columns, list(targets)

    def constrain(self, made, columns, owner, targets, actions):
        """A foreign key, written in some order of its columns."""
        made.table.foreign.append(Foreign(list(columns), owner.table, list(targets)))
        order = list(range(len(columns)))
        if self.chance(0.3):
            self.rng.shuffle(order)
        action = self.rng.choice(actions)
        sql = f"FOREIGN KEY ({', '.join(sql_name(columns[i]) for i in order)}) REFERENCES " \
              f"{self.table_sql(owner)} ({', '.join(sql_name(targets[i]) for i in order)})"
        if action:
            sql += f" ON DELETE {action}"
            self.use(f"on delete {action.lower()}")
        if self.chance(0.2):
            sql += " DEFERRABLE INITIALLY DEFERRED"
            self.use("deferred foreign key")
        made.foreign_sql.append(sql)

    def fill_refs(self, made, columns, owner, targets, foreign, p_null, p_dangling, count_rows):
        """Adds `count_rows` rows that refer to rows of the owner."""
        usable = [i for i, r in enumerate(owner.rows) if None not in [r[t] for t in targets]]
        may_be_null = [made.table.columns[c].nullable for c in columns]
        for _ in range(count_rows):
            row = {}
            if any(may_be_null) and (self.chance(p_null) or not usable):
                source = [owner.rows[self.rng.choice(usable)][t] if usable else None for t in targets]
                if not usable and not all(may_be_null):
                    continue
                gaps = [i for i, n in enumerate(may_be_null) if n]
                gone = set(self.rng.sample(gaps, self.rng.randrange(1, len(gaps) + 1)))
                for i, c in enumerate(columns):
                    row[c] = None if i in gone else source[i]
            elif not foreign and self.chance(p_dangling):
                for c, t in zip(columns, targets):
                    row[c] = self.key_value(owner, t)
            elif usable:
                source = owner.rows[self.rng.choice(usable)]
                for c, t in zip(columns, targets):
                    row[c] = source[t]
            else:
                continue
            yield row

    def table_sql(self, made):
        t = made.table
        return (f"{sql_name(t.schema)}." if t.schema else "") + sql_name(t.name)

    # --- what depends on a table

    def selves(self, made, lists, where):
        """Perhaps a reference of the table to itself, and its rule in `lists` (the policy or a `with` entry)."""
        if not self.chance(0.25 if where == "root" else 0.2):
            return
        relation = self.pick("with", "with", "detach", "after") if where == "root" else self.pick("with", "detach")
        foreign = self.chance(0.6)
        columns, targets = self.refer(made, "parent", made, True, foreign)
        if foreign:
            self.constrain(made, columns, made, targets,
                           {"with": [None, "CASCADE", "SET NULL"], "detach": [None, "CASCADE", "SET NULL"],
                            "after": [None, "CASCADE", "RESTRICT", "SET NULL"]}[relation])
        whole = [i for i, r in enumerate(made.rows) if None not in [r[t] for t in targets]]
        share = self.pick(0.3, 0.6, 0.9)
        cycles = self.chance(0.4)
        for i, row in enumerate(made.rows):
            above = [w for w in whole if cycles or w < i]
            values = [None] * len(targets)
            if above and self.chance(share):
                up = self.rng.choice(above)
                if up >= i:
                    self.use("cycle of rows")
                values = [made.rows[up][t] for t in targets]
            elif not foreign and self.chance(0.05):
                values = [self.key_value(made, t) for t in targets]
            for c, v in zip(columns, values):
                row[c] = v
        ref = self.ref(made, columns, targets, foreign, made)
        entry = ref
        if relation == "with" and self.chance(0.2):
            condition = self.condition(made, made.rows, 0.85, made.table)
            if condition is not None:
                entry = {"ref": ref, "where": condition}
                self.use("subtree with where")
        lists.setdefault(relation, []).append(entry)
        self.use(f"{relation} on {'the table itself' if where == 'root' else 'a dependent itself'}")

    def dependent(self, owner, lists, depth):
        """A table whose rows refer to the owner's, and its rule in `lists`."""
        rng = self.rng
        relation = self.pick("with", "with", "with", "detach", "detach", "after", "after where")
        foreign = self.chance(0.6)
        keyless = relation != "detach" and self.chance(0.12)
        owned_key = not keyless and self.chance(0.2)       # the reference is part of its own key
        made = self.new_table(self.pick("item", "log", "step", "kv"), keyless=keyless, key=not owned_key)
        made.attributes = {}
        nullable = relation == "detach" or not owned_key and self.chance(0.6)
        base = self.pick("owner", "ref", "of")
        if relation == "detach" and owned_key:
            # only the columns outside its key are set to NULL
            columns, targets = self.refer(made, base, owner, [False, True], foreign)
            if len(columns) == 1:
                made.table.columns[columns[0]].nullable = True
            else:
                self.use("detach of part of the columns")
        elif relation == "detach" and self.chance(0.3):
            columns, targets = self.refer(made, base, owner, [False, True], foreign)
            if len(columns) == 1:
                made.table.columns[columns[0]].nullable = True
            else:
                self.use("detach of part of the columns")
        else:
            columns, targets = self.refer(made, base, owner, nullable, foreign)
        all_nullable = all(made.table.columns[c].nullable for c in columns)
        if owned_key:
            extra = self.add_column(made, "seq", "int", "integer" if self.pg else "INTEGER", nullable=False)
            part = [c for c in columns if not made.table.columns[c].nullable]
            made.table.key = made.identity = part + [extra]
            numbers = iter(range(10**6))
            made.fill[extra] = lambda row: row.__setitem__(extra, next(numbers))
            self.use("reference within the key")
        self.attributes(made)
        made.times = [self.time_column(made, rng.choice(self.ENCODINGS[self.engine]))] if self.chance(0.4) else []
        # a second reference to the same owner, or to the root
        others = []
        if relation in ("with", "detach") and not keyless and self.chance(0.2):
            self.use("two references")
            second = self.refer(made, "other", owner, True, foreign)
            others.append((second, owner, lists, self.pick("with", "detach")))
        if depth > 1 and relation == "with" and self.chance(0.25):
            self.use("two paths")
            to_root = self.refer(made, "top", self.root, True, foreign)
            others.append((to_root, self.root, None, "with"))
        actions = [None, "CASCADE", "RESTRICT"] + (["SET NULL"] if all_nullable else [])
        also = None
        if relation == "after where":
            if foreign:
                also = self.pick("with", "detach") if all_nullable and not keyless else "with"
        if foreign:
            self.use("foreign key")
            self.constrain(made, columns, owner, targets, actions)
        else:
            self.use("no foreign key")
        self.settle(made)
        per_row = {"after": 0.3, "after where": 0.6}.get(relation, self.pick(0.5, 1, 1.5, 2))
        count = min(24, round(len(owner.rows) * per_row) + rng.randrange(3))
        for refs in self.fill_refs(made, columns, owner, targets, foreign, 0.15, 0.15, count):
            row = dict(refs)
            try:
                for c, fill in made.fill.items():
                    if fill:
                        fill(row)
            except AssertionError:
                break
            made.rows.append({c: row.get(c) for c in made.table.columns})
        for (cols, tgts), other_owner, _, _ in others:
            if foreign:
                self.constrain(made, cols, other_owner, tgts, [None, "CASCADE", "SET NULL"])
            fills = list(self.fill_refs(made, cols, other_owner, tgts, foreign, 0.5, 0.1, len(made.rows)))
            for row, refs in zip(made.rows, fills):
                row.update(refs)

        ref = self.ref(made, columns, targets, foreign, owner)
        if relation == "after":
            lists.setdefault("after", []).append(ref if self.chance(0.7) else {"ref": ref})
            self.use("after" if depth == 1 else "after below with")
            return
        if relation == "after where":
            condition = self.condition(made, made.rows, 0.3, made.table)
            if condition is None:
                condition = {self.column_ref(next(iter(made.attributes))): None}
            lists.setdefault("after", []).append({"ref": ref, "where": condition})
            self.use("after where" if depth == 1 else "after where below with")
            if also is None:
                return
            relation = also
            self.use("after and with")
        if relation == "detach":
            lists.setdefault("detach", []).append(ref)
            self.use("detach" if depth == 1 else "detach below with")
            for (cols, tgts), other_owner, _, rel in others:
                lists["detach"].append(self.ref(made, cols, tgts, foreign, other_owner))
            return
        entry = {"ref": ref}
        self.use(f"with {depth} deep")
        if self.chance(0.25):
            condition = self.condition(made, made.rows, 0.85, made.table)
            if condition is not None:
                entry["where"] = condition
                self.use("with where" if depth == 1 else "with where below")
        inner = {}
        if not keyless:
            self.selves(made, inner, "dependent")
            if depth < 3:
                for _ in range(rng.choice([0, 1, 1, 2] if depth == 1 else [0, 1])):
                    self.dependent(made, inner, depth + 1)
            if depth == 1:
                self.back(made, inner)
        entry.update(inner)
        if made.times and not keyless and made.identity:
            self.sweepable.append((made, inner))
        lists.setdefault("with", []).append(entry if len(entry) > 1 or self.chance(0.2) else ref)
        for (cols, tgts), other_owner, other_lists, rel in others:
            other_lists = lists if other_lists is not None else self.top_lists
            text = self.ref(made, cols, tgts, foreign, other_owner)
            if rel == "detach":
                other_lists.setdefault("detach", []).append(text)
            else:
                other_lists.setdefault("with", []).append({"ref": text, **inner} if inner
                                                          else text)

    def back(self, made, lists):
        """Perhaps the root refers to one of its dependents (its latest, say): that is detached before they go."""
        root = self.root
        strict = any(made.types[c] not in ("INTEGER", "INT", "TEXT", "REAL") for c in (made.alternate or []) + made.table.key)
        if not self.chance(0.2) or "STRICT" in root.options and strict:
            return
        self.use("root refers to its dependents")
        foreign = self.chance(0.7)
        columns, targets = self.refer(root, "latest", made, True, foreign)
        if foreign:
            self.constrain(root, columns, made, targets, [None, "SET NULL", "CASCADE"])
            if self.pg:         # that table comes later, and so do its rows
                self.last.append("SET CONSTRAINTS ALL IMMEDIATE")
                self.last.append(f"ALTER TABLE {self.table_sql(root)} ADD {root.foreign_sql.pop()}")
        whole = [r for r in made.rows if None not in [r[t] for t in targets]]
        for row in root.rows:
            one = self.rng.choice(whole) if whole and self.chance(0.5) else None
            for c, t in zip(columns, targets):
                row[c] = one[t] if one else None
        lists.setdefault("detach", []).append(self.ref(root, columns, targets, foreign, made))

    # --- conditions

    def conditions(self, policy, root):
        if "with on the table itself" in self.features \
                and self.chance(0.6):
            return          # few subtrees lie wholly within a condition
        if self.chance(0.45):
            policy["rows"] = self.rows_condition(root)
            self.use("rows")
        if self.chance(0.3):
            condition = self.sql_condition(root, 0.7) if self.chance(0.25) else self.condition(root, root.rows, 0.7)
            if condition is not None:
                policy["where"] = condition
                self.use("where")
        if self.chance(0.3):
            condition = self.sql_condition(root, 0.25) if self.chance(0.35) else self.condition(root, root.rows, 0.25)
            if condition is not None:
                policy["hold"] = condition
                self.use("hold")

    def rows_condition(self, made):
        """column -> value, list, NULL or prefix; drawn until it holds for a good part of the rows."""
        judge = oracle.Conditions(self.now, self.unit, self.zone, {})
        for _ in range(6):
            said = self.a_rows_condition(made)
            true = sum(judge.truth(said, made.table, r, {}, prefixes=True) is True for r in made.rows)
            if 0.4 < true / max(1, len(made.rows)) < 1:
                break
        return said

    def a_rows_condition(self, made):
        rng = self.rng
        said = {}
        pool = [c for c, k in made.attributes.items() if k in ("text", "enum", "int", "bool")]
        for c in rng.sample(pool, min(len(pool), self.pick(1, 1, 2))):
            kind = made.attributes[c]
            values = [r[c] for r in made.rows if r[c] is not None] or ([0] if kind == "int" else [True])
            if kind == "text":
                def one():
                    v = rng.choice([v for v in values if isinstance(v, str)] or WORDS)
                    if self.chance(0.4) and len(v) > 1:
                        self.use("prefix")
                        v = v[:rng.randrange(1, len(v) + 1)]
                        return v + "*"
                    if v.endswith("*"):
                        self.use("escaped star")
                        return v[:-1] + "\\*"
                    return v
            else:
                if kind == "enum":
                    values = self.enum_values(made, c)

                def one():
                    v = rng.choice(values)
                    return v[:-1] + "\\*" if isinstance(v, str) and v.endswith("*") else v
            if self.chance(0.35):
                said[self.column_ref(c)] = one()
            else:
                many = [one() for _ in range(rng.randrange(1, 5))]
                many = [v for i, v in enumerate(many) if v not in many[:i]]
                if self.chance(0.4):
                    many.append(None)
                    self.use("rows with null")
                rng.shuffle(many)
                said[self.column_ref(c)] = many
        return said

    def condition(self, made, rows, share, table=None):
        """A structured condition that is true for about this share of the rows, or None if none was found."""
        best = None
        for _ in range(12):
            features = set()
            said = self.a_condition(made, features)
            if not said:
                continue
            judge = oracle.Conditions(self.now, self.unit, self.zone, {})
            true = sum(judge.truth(said, made.table, r, {}) is True for r in rows) / max(1, len(rows))
            gap = abs(true - share)
            if best is None or gap < best[0]:
                best = gap, said, features
            if gap < 0.2:
                break
        if best is None:
            return None
        self.features |= best[2]
        return best[1]

    def a_condition(self, made, features, depth=0):
        rng = self.rng
        said = {}
        pool = list(made.attributes) + made.times
        for c in rng.sample(pool, min(len(pool), self.pick(1, 1, 2))):
            said[self.column_ref(c)] = self.a_test(made, c, features)
        if depth == 0 and self.chance(0.3):
            features.add("any")
            said["any"] = [self.a_condition(made, features, 1) for _ in range(rng.randrange(1, 4))]
            if self.chance(0.4):
                said = {"any": said["any"]}
        return said

    def a_test(self, made, c, features):
        rng = self.rng
        if c in made.times:
            op = self.pick("older_than", "newer_than")
            features.add(op)
            if self.chance(0.15):
                features.add("not null")
                return {"not": None}
            if self.chance(0.05):
                return None
            return {op: self.pick("1h", "24h", "1d", 1000, "now", "2w", self.span_text(rng.randrange(1, 10**9)))}
        kind = made.attributes[c]
        values = [r[c] for r in made.rows if r[c] is not None]
        if not values:
            values = {"int": [1], "real": [0.5], "bool": [True]}.get(kind) or self.enum_values(made, c)

        def some():
            many = list(dict.fromkeys(rng.choice(values) for _ in range(rng.randrange(1, 4))))
            if self.chance(0.3):
                many.append(None)
                features.add("list with null")
            return many

        if kind in ("int", "real") and self.chance(0.6):
            test = {}
            low, high = sorted([rng.choice(values), rng.choice(values)])
            if self.chance(0.7):
                test[self.pick("gt", "gte")] = low
            if not test or self.chance(0.3):
                test[self.pick("lt", "lte")] = high
            features.add("comparison")
            return test
        if kind == "text" and self.chance(0.3):
            features.add("like")
            v = rng.choice([v for v in values if isinstance(v, str)] or ["d"])
            v = re.sub(r"([\\%_])", r"\\\1", v)
            cut = re.match(r"(?:\\.|[^\\]){0,2}", v)[0]
            return {"like": self.pick(cut + "%", "%" + v[-1:] if not v.endswith(("\\", "%", "_")) else "%", v, "_%",
                                      cut.replace("o", "_") + "%", "%")}
        return self.pick(
            lambda: rng.choice(values), some, lambda: None,
            lambda: features.add("eq") or {"eq": rng.choice([rng.choice(values), some(), None])},
            lambda: features.add("not") or {"not": self.pick(rng.choice(values), some())},
            lambda: features.add("not null") or {"not": None})()

    def sql_condition(self, made, share):
        """The engine's own SQL, with what it says in Python."""
        self.use("sql condition")
        t = made.table
        status = next(iter(made.attributes))
        number_column = next((c for c, k in made.attributes.items() if k == "int"), None)
        ways = []
        if made.attributes[status] == "text":
            word = self.rng.choice(WORDS)
            ways.append((f"this.{sql_name(status)} = {literal(word)} or this.{sql_name(status)} is null",
                         lambda row, state: row[status] is None or row[status] == word))
            ways.append((f"length(this.{sql_name(status)}) > 4",
                         lambda row, state: None if row[status] is None else len(row[status]) > 4))
        if number_column:
            ways.append((f"this.{sql_name(number_column)} % 2 = 0",
                         lambda row, state: None if row[number_column] is None else row[number_column] % 2 == 0))
            ways.append((f"coalesce(this.{sql_name(number_column)}, 0)\n  between 1 and 3",
                         lambda row, state: 1 <= (row[number_column] or 0) <= 3))
        if not ways or self.chance(0.5):
            self.use("sql condition on another table")
            key = made.table.key or made.identity
            guard = self.new_table("guard", key=False)
            columns = [self.add_column(guard, f"k{i}", t.columns[k].kind, made.types[k]) for i, k in enumerate(key)]
            guard.attributes, guard.times = {}, []
            for r in made.rows:
                if self.chance(share):
                    guard.rows.append(dict(zip(columns, [r[k] for k in key])))
            match = " and ".join(f"g.{sql_name(c)} = this.{sql_name(k)}" for c, k in zip(columns, key))
            ways = [(f"exists (select 1 from {self.table_sql(guard)} g where {match})",
                     lambda row, state: any(all(oracle.same(r[c], row[k]) for c, k in zip(columns, key))
                                            for r in state[guard.table].values()))]
        text, truth = self.rng.choice(ways)
        self.sql[text] = truth
        return text

    def second_policy(self, first, root):
        """Another policy for the same tables, after the first."""
        self.use("second policy")
        policy = dict(first)
        for key in ("rows", "where", "hold"):
            policy.pop(key, None)
        column = self.rng.choice([c for c in root.times if not self.unit or root.table.columns[c].kind == "int"])
        if "expires" in first or self.chance(0.5):
            for key in ("expires", "inclusive"):
                policy.pop(key, None)
            policy["age"] = self.column_ref(column)
            policy["keep"] = self.span_text(self.a_span())
        else:
            for key in ("age", "keep", "inclusive"):
                policy.pop(key, None)
            policy["expires"] = self.column_ref(column)
        self.conditions(policy, root)
        self.policies[f"r{self.seed}.second"] = policy

    def policy_below(self):
        """A policy for a dependent table on its own, before or after the first."""
        made, lists = self.rng.choice(self.sweepable)
        column = made.times[0]
        policy = {"table": self.table_ref(made), **unshared(lists)}
        if self.chance(0.5):
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
                lines.append(f"{sql_name(c)} {m.types[c]}{'' if column.nullable or m.null_key and c in m.table.key else ' NOT NULL'}")
            if m.table.key:
                lines.append(f"PRIMARY KEY ({', '.join(map(sql_name, m.table.key))})")
            lines += [f"UNIQUE ({', '.join(map(sql_name, u))})" for u in m.uniques]
            lines += m.foreign_sql
            out.append(f"CREATE TABLE {self.table_sql(m)} (\n  " + ",\n  ".join(lines) + f"\n){m.suffix}")
            if hasattr(m, "split"):
                for i, bounds in enumerate((f"FOR VALUES FROM (MINVALUE) TO ({literal(m.split)})", "DEFAULT")):
                    part = sql_name(f"r{self.seed}_{self.made.index(m)}_part{i}")
                    out.append(f"CREATE TABLE {sql_name(m.table.schema)}.{part} PARTITION OF {self.table_sql(m)} {bounds}")
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

    def inserts(self):
        """The statements that fill them, with literals (PostgreSQL) or with parameters (SQLite)."""
        for m in self.made:
            if m.rows:
                columns = ", ".join(map(sql_name, m.table.columns))
                yield m, f"INSERT INTO {self.table_sql(m)} ({columns}) VALUES"
