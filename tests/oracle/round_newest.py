"""Caps of a round: groups of sizes around what they may keep, and columns in which rows tie."""
import uuid
from collections import Counter

from round_mariadb import TEXT

class Newest:
    def cap(self, policy, made):
        policy["cap"] = self.newest_rule(made, "cap")

    def keep_newest(self, policy, made):
        policy["keep_newest"] = self.newest_rule(made, "keep_newest")

    def newest_rule(self, made, word):
        """{rows, per, newest} over columns of a table that has no rows yet."""
        self.use(word)
        per = [self.group_column(made) for _ in range(self.pick(0, 1, 1, 1, 2))]
        if made.attributes and self.chance(0.1):
            per.append(self.rng.choice(self.telling(made)))
        self.use(f"{word} per {len(per) if len(per) < 2 else 'several'}")
        by_age = [c for c in made.times if word == "keep_newest" and made.table.columns[c].kind == "text"]
        pool = [c for c in self.sortable(made) + by_age + [self.tied_column(made)] if c not in per]
        if made.table.key and self.chance(0.1):
            pool += [c for c in made.table.key[:1] if c not in pool and c not in made.times]
        newest = self.rng.sample(pool, min(len(pool), self.pick(1, 1, 1, 2, 3)))
        if len(newest) > 1:
            self.use("newest of several columns")
        made.numbers.update(newest)
        rule = {"rows": self.pick(1, 1, 2, 2, 3, 4), "newest": self.columns_ref(newest)}
        if per:
            rule["per"] = self.columns_ref(per)
        items = list(rule.items())
        self.rng.shuffle(items)
        return dict(items)

    def sortable(self, made):
        """Columns that say which row is newer. Not the times that are texts: written in several forms they do not sort
        as times, and the program says so, as it does of texts among numbers. (An age column is sorted by its instants.)
        """
        return [c for c in made.times if made.table.columns[c].kind != "text"] + self.telling(made)

    def telling(self, made):
        """Attributes whose values differ where their bytes do."""
        return [c for c in made.attributes if not made.table.columns[c].folds]

    def sorted_now(self, made):
        """The same for a table that has its rows."""
        return [c for c in self.sortable(made) if made.table.columns[c].kind != "int"
                or not any(isinstance(r[c], (str, bytes)) for r in made.rows)]

    def columns_ref(self, names):
        refs = [self.column_ref(c) for c in names]
        return refs[0] if len(refs) == 1 and self.chance(0.5) else refs

    def few_values(self, made, base, null):
        """A column of few values, NULL among them, perhaps; on SQLite perhaps of several types."""
        text = TEXT if self.maria else "text"
        kinds = [("int", "integer", [0, 1, 2]), ("text", text, ["a", "A", ""])] if not self.lite else \
            [("int", "INTEGER", [0, 1, 2]), ("text", "TEXT", ["a", "A", ""])]
        if self.pg:
            kinds += [("uuid", "uuid", [str(uuid.UUID(int=i)) for i in (0, 2**127, 3)]),
                      ("bool", "boolean", [True, False])]
        if self.maria:
            kinds += [("bytes", "binary(2)", [b"aa", b"AA", b"\0\0"]), ("bool", "boolean", [True, False]),
                      ("int", "int unsigned", [0, 2**32 - 1, 7])]
        kind, sql_type, values = self.rng.choice(kinds)
        values = values[:self.pick(1, 2, 2, 3)]
        name = self.add_column(made, base, kind, sql_type, nullable=True)
        mixed = self.lite and kind == "int" and self.chance(0.15)

        def fill(row):
            if self.chance(null):
                row[name] = None
            elif mixed and "STRICT" not in made.options and self.chance(0.3):
                self.use("groups or order of several types")
                row[name] = self.pick(0.5, -0.5, *(() if name in made.numbers else ("x", b"\x01", b"", "")))
            else:
                row[name] = self.rng.choice(values)
        made.fill[name] = fill
        return name

    def group_column(self, made):
        return self.few_values(made, "tenant", self.pick(0, 0.2, 0.4))

    def tied_column(self, made):
        return self.few_values(made, "seq", self.pick(0, 0.2))

    def newest_features(self, judge, word):
        """How large the groups were, and what decided in them."""
        rule = judge.cap if word == "cap" else judge.keep_newest
        groups = Counter()
        population = judge.population(self.before)
        for row in population:
            group = tuple(row[c] for c in rule.per)
            groups[group] += 1
            if group and None in group:
                self.use(f"{word}: NULL group")
            if any(row[c.name] is None for c in rule.newest):
                self.use(f"{word}: NULL is oldest")
        for size in groups.values():
            if abs(size - rule.rows) < 2:
                self.use(f"{word}: group of N{size - rule.rows:+}".replace("+0", ""))
        named = len(rule.newest)
        for a in population:
            for b in population:
                same_group = a is not b and all(a[c] == b[c] for c in rule.per)
                if same_group and rule.place(a)[:named] == rule.place(b)[:named] \
                        and rule.has(a, population) and not rule.has(b, population):
                    self.use(f"{word}: the key decides")
        if "hold" in judge.said and any(judge.held(r, self.before) and rule.has(r, population) for r in population):
            self.use(f"{word}: a held row counts")
