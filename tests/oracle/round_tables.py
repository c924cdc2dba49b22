"""The tables of a round: names, keys, attributes, and values for them."""
import random
import re
import uuid

import round_mariadb
import oracle
from oracle import Column, Table
from round_words import ODD_COLUMNS, ODD_TABLES, ODD_TEXT, WORDS, literal, sql_name

# Columns that take texts that differ for equal, and how these differ.
FOLDING = {"sqlite": {"TEXT COLLATE NOCASE": oracle.CASE, "TEXT COLLATE RTRIM": oracle.BLANKS},
           "postgres": {"public.citext": oracle.CASE, "text COLLATE public.no_case": oracle.CASE,
                        "varchar(120) COLLATE public.no_marks": oracle.MARKS},
           "mariadb": {t: oracle.BLANKS if t.endswith("_bin") else oracle.ALL for t in round_mariadb.FOLDING}}
ALIKE = ["DONE", "done ", "Done  ", "dône", "FAILED", "failed ", "NEW", "D"]     # to some of them


class Made:
    """A table of a round: what the oracle is told, and how the engine is told."""

    def __init__(self, table, types):
        self.table, self.types = table, types       # types: column -> SQL type
        self.uniques, self.foreign_sql, self.options = [], [], []
        self.suffix, self.indexes, self.dropped = "", [], None
        self.null_key = False
        self.numbers = set()    # columns that hold no texts, though SQLite would let them
        self.fill = {}          # column -> function of (row so far) -> value
        self.rows = []


class Tables:
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
        if self.lite and made.table.key:
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

    KEYS = {"sqlite": [("int", "INTEGER"), ("int", "INT"), ("int", "BIGINT"), ("text", "TEXT"),
                       ("text", "VARCHAR(400)")],
            "postgres": [("int", "integer"), ("int", "bigint"), ("int", "smallint"), ("text", "text"),
                         ("text", "varchar(400)"), ("uuid", "uuid")],
            "mariadb": round_mariadb.KEYS}
    ALTERNATES = {**KEYS, "mariadb": round_mariadb.ALTERNATES}

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
            made.table.key, made.table.unique = [], columns
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
        if kind == "text" and few:
            return self.pick("a", "A", "", "t'1")
        if self.maria and kind in ("text", "bytes", "int"):
            return self.maria_key_value(kind, sql_type, few)
        if kind == "text":
            return self.rng.choice(ODD_TEXT) if self.chance(0.7) else f"k{self.rng.randrange(10000)}"
        if kind == "uuid":
            return str(uuid.UUID(int=self.rng.randrange(4) if few else self.rng.getrandbits(128),
                                 version=4 if self.maria else None))
        if kind == "bool":
            return self.chance(0.5)
        if few:
            return self.pick(0, 1, -1)
        bits = 16 if sql_type == "smallint" else 32 if sql_type == "integer" else 64
        top = 2 ** (bits - 1)
        if self.chance(0.7):
            return self.rng.randrange(1, 60)
        return self.pick(self.rng.randrange(-5, 1000), self.rng.randrange(-top, top), top - 1, -top, 0)

    def alternates(self, made):
        """Perhaps a unique key that is not the primary one, to refer to."""
        made.alternate = None
        if not made.table.key or getattr(made, "partitioned", False) or not self.chance(0.25):
            return
        columns = []
        for i in range(self.pick(1, 1, 2)):
            kind, sql_type = self.rng.choice(self.ALTERNATES[self.engine])
            if sql_type == "smallint":
                kind, sql_type = "int", "integer"
            columns.append(self.add_column(made, ["code", "region"][i], kind, sql_type, nullable=self.chance(0.6)))
        made.alternate = columns
        made.uniques.append(columns)
        self.fill_unique(made, columns, null=0.2)

    def attributes(self, made):
        """Columns for conditions."""
        made.attributes = {}
        text, integer, real = {"postgres": ("text", "integer", "numeric"), "sqlite": ("TEXT", "INTEGER", "REAL"),
                               "mariadb": (round_mariadb.TEXT, "integer", "decimal(10, 2)")}[self.engine]
        note = random.Random(f"note of {self.seed} {len(self.made)}").choice([text, *FOLDING[self.engine]])   # leaves the others alone

        def some(values, null=0.15):
            return lambda: None if self.chance(null) else self.rng.choice(values)

        words = self.rng.sample(WORDS, 5)
        plans = [("status", "text", text, some(words)), ("n", "int", integer, some(range(6))),
                 ("note", "text", note, some(WORDS + (ALIKE if note in FOLDING[self.engine] else []))), ("score", "real", real, some([0.0, 0.5, 1.5, 2.5, -3.0]))]
        if not self.lite:
            plans += [("flag", "bool", "boolean", some([True, False]))]
            if self.chance(0.2):
                states = [w for w in words if w.isascii()]
                plans[0] = ("status", "enum", self.enum(states), some(states))
        for base, kind, sql_type, value in plans:
            if base == "status" or self.chance(0.5):
                c = self.add_column(made, base, "text" if kind == "enum" else kind, sql_type)
                made.attributes[c] = kind
                made.table.columns[c].order = states if kind == "enum" else None
                made.table.columns[c].folds = FOLDING[self.engine].get(sql_type)
                if made.table.columns[c].folds:
                    self.use("text that folds")
                made.fill[c] = lambda row, c=c, value=value: row.__setitem__(c, value())

    def enum(self, states):
        """A type of these values."""
        self.use("enum")
        listed = f"ENUM ({', '.join(map(literal, states))})"
        if self.maria:      # a backslash is one: the session that creates it says so
            return listed + round_mariadb.EXACT
        label = f"r{self.seed}_{len(self.made)}_enum"
        self.ddl.append(f"CREATE TYPE {label} AS {listed}")
        return label

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
