"""The times of a round: columns in every encoding, values around the cutoffs, and the bound that they are judged by."""
import re

import oracle
from round_words import (DAY, FAR, GARBAGE, HOUR, MINUTE, MS, S, WORDS, sql_name, transitions)


class Times:
    ENCODINGS = {"sqlite": ["int", "int", "text", "text"],
                 "postgres": ["int", "int", "text", "timestamptz", "timestamp", "date"],
                 "mariadb": ["int", "int", "text", "timestamptz", "timestamp", "timestamp", "date"]}

    def time_column(self, made, encoding):
        base = self.pick("created_at", "expires_at", "updated", "seen", "ended")
        nullable = self.chance(0.8)
        if encoding == "int":
            unit = self.unit or self.pick("s", "ms", "us")
            if not self.unit or self.chance(0.2):
                base += f"_{unit}"
            sql_type = self.maria_time_type(encoding, unit) if self.maria else \
                self.pick(*(("integer", "bigint") if unit == "s" else ("bigint",))) if self.pg \
                else self.pick("INTEGER", "BIGINT", "INT")
            self.use(f"time int {unit}")
            name = self.add_column(made, base, "int", sql_type, nullable)
            if self.unit is None and not re.search(r"_(s|ms|us)$", name):
                raise AssertionError(name)
        elif encoding == "text":
            sql_type = self.maria_time_type(encoding, None) if self.maria else \
                self.pick("text", "varchar(400)") if self.pg else self.pick("TEXT", "VARCHAR(80)")
            self.use("time text")
            name = self.add_column(made, base, "text", sql_type, nullable)
        else:
            sql_type = self.maria_time_type(encoding, None) if self.maria else \
                encoding + (self.pick("", "", "(3)", "(0)") if encoding.startswith("timestamp") else "")
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

    def skipped_near(self, at, local):
        """Perhaps a time that the clocks skipped not long before or after; else the given one."""
        if self.zone in (None, "UTC") or not self.chance(0.3):
            return local
        for change in (t for t in transitions(self.zone) if abs(t - at) < 2 * HOUR):
            last, first = (oracle.local_of_instant(t, self.zone) for t in (change - 1, change))
            if first - last > 1:
                self.use("skipped time")
                return last + 1 + self.rng.randrange(0, first - last - 1, self.pick(1, MS, S))
        return local

    def time_value(self, made, column, row):
        if column.nullable and self.chance(0.12):
            return None
        at = self.near(self.row_cutoff(made, row))
        if column.kind == "int":
            odd = self.lite and "STRICT" not in made.options and column.name not in made.table.key
            if odd and self.chance(0.05):
                self.use("integer column with other values")
                return self.pick(1.5, 1700000000.25, *(() if column.name in made.numbers else ("soon", b"\x00", "")))
            unit = oracle.unit_of(column, self.unit)
            value = at // unit + self.pick(0, 0, 1, -1)
            if self.maria:
                return self.maria_integer(made.types[column.name], value)
            if made.types[column.name] == "integer" and self.pg:
                value = max(min(value, 2**31 - 1), -2**31)
            if self.chance(0.01) and made.types[column.name] != "integer":
                self.use("extreme integer")
                return self.pick(2**63 - 1, -2**63, 0, -1)
            return value
        if column.kind == "text":
            return self.time_text(made, at, column.name in made.table.key)
        sql_type = made.types[column.name]
        if self.maria:
            return self.maria_time(column.kind, sql_type, at)
        if self.chance(0.03):
            self.use("infinity")
            return self.pick("infinity", "-infinity")
        if self.chance(0.02):
            far = self.pick(oracle.days_of(-43, 3, 15), oracle.days_of(20000, 1, 1)) * DAY
            return oracle.show_server(far, column.kind == "timestamptz") if column.kind != "date" else \
                self.pick("0044-03-15 BC", "20000-01-01")
        local = at if column.kind == "timestamptz" else self.local_time(at)
        if column.kind == "date":
            return oracle.show_server(self.some_day(local), False)[:10]
        digits = {"(0)": S, "(3)": MS}.get(sql_type[len(column.kind):], 1)
        return oracle.show_server(local // digits * digits, column.kind == "timestamptz")

    def local_time(self, at):
        """What the clocks of the zone show then, or near it."""
        local = oracle.local_of_instant(at, self.zone)
        if self.zone and self.chance(0.2):
            local += self.pick(HOUR, -HOUR, 30 * MINUTE, DAY, -DAY)
        return self.skipped_near(at, local)

    def some_day(self, local):
        return local // DAY * DAY + self.pick(0, 0, DAY, -DAY)

    def time_text(self, made, at, in_key):
        if self.chance(0.1):
            self.use("garbage text")
            if self.lite and not in_key and self.chance(0.1):     # a STRICT table may refer to the key
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
            local = self.skipped_near(at, local)
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
        """Which bound the round's policy has, and by how many columns of which encodings its rows are timed."""
        rng = self.rng
        kinds = self.ENCODINGS[self.engine]
        self.kind = rng.choices(("expires", "age", "orphan", "cap"), (24, 36, 24, 16))[0]
        self.use(self.kind)
        self.time_encodings = [rng.choice(kinds)]
        self.keep = None
        if self.kind not in ("age", "orphan"):
            return
        count = rng.choice([1, 1, 1, 2, 3])
        if count > 1:
            self.use("age of several columns")
        self.time_encodings = [rng.choice(kinds) for _ in range(count)]
        self.keep = self.pick("plain", "plain", "plain", "by", "by", "column", "column", "now")
        if self.kind == "orphan":
            self.keep = self.pick(self.keep, self.keep, "plain", "plain", "default", "no age")

    def a_span(self):
        """A duration whose cutoff is worth looking at, in milliseconds."""
        rng = self.rng
        changes = transitions(self.zone) if self.zone and self.zone != "UTC" else []
        past = [t for t in changes if t < self.now - 3 * HOUR]
        if past and self.chance(0.5):
            self.use("cutoff near a clock change")
            at = rng.choice(past[-6:] if self.chance(0.7) else past) + rng.randrange(-4, 5) * 30 * MINUTE
            return (self.now - at) // MS
        return rng.choice([1, 250, 1000, 60_000, 90_000, 1_800_000, 5_400_000, 86_400_000, 7 * 86_400_000,
                           30 * 86_400_000, rng.randrange(1, 10**10)])

    def span_text(self, ms):
        """One of the ways to write it."""
        rng = self.rng
        if ms == 0:
            return "now"
        ways = [f"{ms}ms" if ms % 60_000 else ms, f"{ms}ms", f"{ms} ms"]     # a number alone is whole minutes
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
        if self.kind == "expires":
            policy["expires"] = names[0]
            return
        if self.kind == "cap":
            self.cap(policy, root)
            return
        if self.kind == "orphan":
            self.by_columns(root)
        if self.keep == "no age":
            self.use("orphan without grace")
            policy["keep"] = "now"
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
        elif self.keep == "default":
            self.cutoffs = [self.now - DAY]
        elif self.keep == "plain":
            span = self.a_span()
            self.cutoffs = [self.now - span * MS]
            policy["keep"] = self.span_text(span)
        elif self.keep == "by":
            column = next(c for c, k in root.attributes.items() if k in ("text", "enum", "int"))
            if self.chance(0.3):
                column = next((c for c, k in root.attributes.items() if k == "int"), column)
            column = next((c for c in root.attributes if root.table.columns[c].folds), column)
            if root.table.columns[column].folds:
                self.use("keep by a text that folds")
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
                                     "INTEGER" if self.lite else "bigint")
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
        keep = policy.get("keep")
        if isinstance(keep, dict) and "by" in keep:
            root.keep_by = (column, keep)
        if self.chance(0.3 if self.kind == "age" else 0.15):
            self.keep_newest(policy, root)

    def enum_values(self, made, column):
        """Texts that this column may hold (all that its type allows, for an enum)."""
        sql_type = made.types[column]
        if sql_type.startswith("ENUM"):
            return made.table.columns[column].order
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
