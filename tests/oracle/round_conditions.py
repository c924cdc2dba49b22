"""The conditions of a round: rows, where and hold, structured and in SQL."""
import re

import oracle
from round_mariadb import quoted
from round_words import WORDS, literal, sql_name


class Conditions:
    def conditions(self, policy, root):
        if "with on the table itself" in self.features and self.chance(0.4):
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

    def condition(self, made, rows, share):
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
            return {op: self.pick("1h", "24h", "1d", 60_000, "now", "2w", self.span_text(rng.randrange(1, 10**9)))}
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
        name, length = (quoted, "char_length") if self.maria else (sql_name, "length")
        ways = []
        if made.attributes[status] == "text":
            word = self.rng.choice(WORDS)
            said = literal(word.replace("\\", "\\\\") if self.maria else word)
            ways.append((f"this.{name(status)} = {said} or this.{name(status)} is null",
                         lambda row, state: row[status] is None or row[status] == word))
            ways.append((f"{length}(this.{name(status)}) > 4",
                         lambda row, state: None if row[status] is None else len(row[status]) > 4))
        if number_column:
            ways.append((f"this.{name(number_column)} % 2 = 0",
                         lambda row, state: None if row[number_column] is None else row[number_column] % 2 == 0))
            ways.append((f"coalesce(this.{name(number_column)}, 0)\n  between 1 and 3",
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
            match = " and ".join(f"g.{name(c)} = this.{name(k)}" for c, k in zip(columns, key))
            ways = [(f"exists (select 1 from {quoted(guard.table.name) if self.maria else self.table_sql(guard)} g where {match})",
                     lambda row, state: any(all(oracle.same(r[c], row[k]) for c, k in zip(columns, key))
                                            for r in state[guard.table].values()))]
        text, truth = self.rng.choice(ways)
        self.sql[text] = truth
        return text
