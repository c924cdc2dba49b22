"""Orphans of a round: a source table (another one, or the table itself), and rows that name a source that is there, gone
or NULL."""


class Orphans:
    WHEN = ["deleted", "sourceDocumentDeleted", "deleted_or_unmatched", "deleted_or_unmatched", "deleted_or_unmatched",
            "sourceDocumentDeletedOrNoLongerMatching", None, None]

    def make_source(self):
        """The source, with its rows; the root itself comes later."""
        self.when = self.rng.choice(self.WHEN) if self.chance(0.97) else "never"
        self.unmatched = self.when is not None and self.when.endswith(("_unmatched", "NoLongerMatching"))
        self.use(f"orphan {self.when or 'by default'}")
        self.source, self.by_foreign = None, False
        if self.chance(0.03):
            self.use("orphan of the table itself")
            return
        keyless = self.chance(0.08)
        encodings = self.ENCODINGS[self.engine]
        self.source = source = self.new_table("source", attributes=True, keyless=keyless,
                                              times=[self.rng.choice(encodings)] if self.chance(0.7) else [])
        self.by_foreign = self.unmatched and not keyless and self.chance(0.3)
        self.source_key = None
        if keyless or not self.by_foreign and self.chance(0.25):
            self.use("orphan: a source key that is not unique")
            self.source_key = [self.few_values(source, f"k{i}", self.pick(0, 0.2)) for i in range(self.pick(1, 1, 2))]
        if keyless:
            source.identity = self.source_key
        self.settle(source)
        self.rows_of(source, 0 if self.chance(0.07) else self.pick(1, 3, 5, 8))

    def by_columns(self, root):
        """The root's columns that name a source, and values for them."""
        source = self.source or root
        nullable = self.chance(0.8)
        if self.source and self.source_key:
            self.of_key = self.source_key
            self.by = [self.add_column(root, f"source_{i}", source.table.columns[k].kind, source.types[k], nullable)
                       for i, k in enumerate(self.of_key)]
        else:
            self.by, self.of_key = self.refer(root, "source", source, nullable, self.by_foreign)
        self.use(f"orphan by {'one column' if len(self.by) == 1 else 'several columns'}")
        for c in self.by:
            self.use(f"orphan by {root.table.columns[c].kind}")
        if self.by_foreign:
            self.use("orphan: foreign key to the source")
            self.constrain(root, self.by, source, self.of_key, [None, "CASCADE", "RESTRICT"])
        if self.source:
            for c in self.by:
                root.fill[c] = (lambda row: row.update(self.names_a_source(root, row))) if c is self.by[0] else None

    def names_a_source(self, root, row):
        """Values for the `by` columns of a row."""
        source = self.source or root
        whole = [r for r in source.rows if None not in [r[k] for k in self.of_key]]
        may_be_null = [c for c in self.by if root.table.columns[c].nullable]
        if may_be_null and self.chance(0.12) or self.by_foreign and not whole:
            if not may_be_null:
                raise AssertionError("no source to name")
            values = dict(zip(self.by, self.a_name(source, root, whole))) if not self.by_foreign or whole else {}
            for c in self.rng.sample(may_be_null, self.rng.randrange(1, len(may_be_null) + 1)):
                values[c] = None
            return {c: values.get(c) for c in self.by}
        return dict(zip(self.by, self.a_name(source, root, whole)))

    def a_name(self, source, root, whole):
        if whole and (self.by_foreign or self.chance(0.6)):
            one = self.rng.choice(whole)
            return [one[k] for k in self.of_key]
        if whole and len(self.of_key) > 1 and self.chance(0.4):        # each part is there, but not together
            self.use("orphan: parts of several sources")
            return [self.rng.choice(whole)[k] for k in self.of_key]
        if self.lite and "STRICT" not in root.options and self.chance(0.1):
            self.use("orphan: by holds another type")
            return [self.pick("x", b"x", b"", *([0.5] if source.table.columns[k].kind == "int" else []))
                    for k in self.of_key]
        return [self.key_value(source, k) for k in self.of_key]

    def finish_orphan(self, policy, root):
        """The rule itself, now that all rows are there."""
        source = self.source or root
        if not self.source:
            for row in root.rows:
                row.update(self.names_a_source(root, row))
        of = f"{self.table_ref(source)}{self.pick('', '', ' ')}({', '.join(self.column_ref(k) for k in self.of_key)})"
        rule = {"of": of, "by": self.columns_ref(self.by)}
        if self.when:
            rule["delete_when"] = self.when
        if self.unmatched or self.chance(0.15):
            self.use("matching")
            rule["matching"] = self.matching(source)
        if self.chance(0.1 if source.rows else 0.45):
            rule["allow_empty"] = True
        elif self.chance(0.1):
            rule["allow_empty"] = False
        items = list(rule.items())
        self.rng.shuffle(items)
        policy["orphan"] = dict(items)

    def matching(self, source):
        if self.chance(0.2):
            self.use("matching in sql")
            return self.sql_condition(source, 0.6)
        said = self.condition(source, source.rows, 0.6)
        if said is None:
            said = {self.column_ref(next(iter(source.attributes))): None}
        return said

    def policy_for_source(self):
        """A policy for the source table, before or after the one for its orphans."""
        source = self.source
        column = source.times[0]
        is_int = source.table.columns[column].kind == "int"
        if self.unit and not is_int:
            return
        policy = {"table": self.table_ref(source), "expires": self.column_ref(column)}
        if self.unit:
            policy["unit"] = self.unit
        if self.zone:
            policy["zone"] = self.zone
        self.use("policies for source and orphans")
        name = f"r{self.seed}.source"
        self.policies = {**self.policies, name: policy} if self.chance(0.3) else {name: policy, **self.policies}

    def orphan_features(self, judge):
        for row in judge.population(self.before):
            given = [row[c] for c in judge.orphan.by]
            if None in given:
                self.use("orphan: NULL by" if set(given) == {None} else "orphan: NULL in a part of by")
            elif judge.orphan.lost(row, self.before, judge.conditions):
                found = judge.orphan.sources(row, self.before)
                self.use("orphan: source deleted" if not found else "orphan: source unmatched")
                if any(judge.conditions.truth(judge.orphan.matching, judge.orphan.source, r, self.before) is None
                       for r in found):
                    self.use("orphan: match unknown")
