"""What refers to what in a round: references as the contract writes them, foreign keys, dependents, subtrees."""
import re

from oracle import Foreign
from round_words import sql_name


class References:
    def column_ref(self, name, folds=True):
        plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
        if folds and plain and name == name.lower() and self.chance(0.02):
            self.use("name in other case")
            return name.upper()
        return name if plain and not self.chance(0.05) else sql_name(name)

    def table_ref(self, made):
        t = made.table
        name = self.column_ref(t.name, folds=not self.maria)      # there they are files
        if self.pg and (t.schema != "public" or self.chance(0.2)):
            return f"{self.column_ref(t.schema)}.{name}"
        return name

    def ref(self, made, columns, targets, has_foreign, owner):
        order = list(range(len(columns)))
        explicit = targets != owner.table.key if not has_foreign else self.chance(0.1)
        # The key's own names in another order are refused unless it is said what they point at.
        explicit = explicit or (not has_foreign and columns != targets and set(columns) <= set(targets))
        if (explicit or has_foreign) and len(order) > 1 and self.chance(0.4):
            self.rng.shuffle(order)
        gap = self.pick("", "", " ")
        text = f"{self.table_ref(made)}{gap}({', '.join(self.column_ref(columns[i]) for i in order)})"
        if explicit:
            self.use("reference with ->")
            text += f" -> ({', '.join(self.column_ref(targets[i]) for i in order)})"
        return text

    def refer(self, made, base, owner, nullable, foreign):
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
        if self.chance(0.3) and not self.maria:     # there an index must have them in this order
            self.rng.shuffle(order)
        action = self.rng.choice(actions)
        sql = f"FOREIGN KEY ({', '.join(sql_name(columns[i]) for i in order)}) REFERENCES " \
              f"{self.table_sql(owner)} ({', '.join(sql_name(targets[i]) for i in order)})"
        if action:
            sql += f" ON DELETE {action}"
            self.use(f"on delete {action.lower()}")
        if self.chance(0.2) and not self.maria:
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
        cycles = self.chance(0.4)
        if foreign:     # SQLite lets no order delete a cycle that RESTRICT holds together, MariaDB none that is just held
            actions = [None, "CASCADE", "SET NULL", "RESTRICT"]
            if cycles and relation == "with" and not self.pg:
                actions = actions[:3] if self.lite else actions[1:3]
            self.constrain(made, columns, made, targets, actions)
        whole = [i for i, r in enumerate(made.rows) if None not in [r[t] for t in targets]]
        share = self.pick(0.3, 0.6, 0.9)
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
            condition = self.condition(made, made.rows, 0.85)
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
            extra = self.add_column(made, "seq", "int", "INTEGER" if self.lite else "integer", nullable=False)
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
            condition = self.condition(made, made.rows, 0.3)
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
            condition = self.condition(made, made.rows, 0.85)
            if condition is not None:
                entry["where"] = condition
                self.use("with where" if depth == 1 else "with where below")
        inner = {}
        if not keyless:
            self.selves(made, inner, "dependent")
            grows, self.whole_below = bool(inner.get("with")), self.whole_below + bool(inner.get("with"))
            if depth < 3:
                for _ in range(rng.choice([0, 1, 1, 2] if depth == 1 else [0, 1])):
                    self.dependent(made, inner, depth + 1)
            if depth == 1:
                self.back(made, inner)
            self.whole_below -= grows
            if not grows and not self.whole_below and self.chance(0.35):
                entry["split"] = True       # a subtree goes whole, with all that it owns
        entry.update(inner)
        made.refers = columns
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
        types = {made.types[c] for c in (made.alternate or []) + made.table.key}
        if not self.chance(0.2) or "STRICT" in root.options and types - {"INTEGER", "INT", "TEXT", "REAL"}:
            return
        self.use("root refers to its dependents")
        foreign = self.chance(0.7)
        columns, targets = self.refer(root, "latest", made, True, foreign)
        if foreign:
            self.constrain(root, columns, made, targets, [None, "SET NULL", "CASCADE"])
            if not self.lite:   # that table comes later, and so do its rows
                if self.pg:
                    self.last.append("SET CONSTRAINTS ALL IMMEDIATE")
                self.last.append(f"ALTER TABLE {self.table_sql(root)} ADD {root.foreign_sql.pop()}")
        whole = [r for r in made.rows if None not in [r[t] for t in targets]]
        for row in root.rows:
            one = self.rng.choice(whole) if whole and self.chance(0.5) else None
            for c, t in zip(columns, targets):
                row[c] = one[t] if one else None
        lists.setdefault("detach", []).append(self.ref(root, columns, targets, foreign, made))
