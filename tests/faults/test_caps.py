"""Caps while others work: what counts until the last judgement, several sweepers, and inserts that never stop."""
import itertools
import random
import threading
import time

from harness import *
from points import Points

CAP = "cap: {rows: 3, per: [tenant], newest: [at_ms]}"
KEEP = "age: at_ms, keep: 1h, keep_newest: {rows: 3, per: [tenant], newest: [at_ms]}"


def contract(rule=CAP, batch=100, more=""):
    return f"policies: {{item: {{table: item, {rule}, batch: {batch}, with: [note(item_id)]{more}}}}}"


@every_server
class Interleaving(Points, Case):
    """Of a (1 to 5) the rows 1 and 2 go, of b (11 to 13) none."""
    RESET = """
        truncate item, note;
        insert into item select n, 'a', n, 'done' from generate_series(1, 5) n;
        insert into item select n, 'b', n, 'done' from generate_series(11, 13) n;
        insert into note select id, id from item"""
    RULES = (CAP, KEEP)

    def setUp(self):
        super().setUp()
        self.given("""
            create table item (id integer primary key, tenant text, at_ms bigint, state text);
            create table note (id integer primary key, item_id integer not null references item(id));
            create index on item(tenant, at_ms); create index on note(item_id)""")

    def there(self, how):
        """What is left of a; every row has its note."""
        self.assertEqual(self.ids("note"), self.ids("item"), how)
        return [i for i, in self.db.rows("select id from item where tenant = 'a' order by 1")]

    def fewer(self, how):
        """One of the newest went: in time, the next in age takes its place."""
        self.assertIsNone(how.other.error, how)
        self.assertEqual(self.there(how), [2, 3, 4] if how.in_time else [3, 4], how)

    def test_the_newest_leaves_what_is_counted(self):
        for rule in self.RULES:
            self.each(contract(rule, more=", rows: {state: done}"), ("update item set state = 'live' where id = 5",), lambda how:
                      self.assertEqual(self.there(how), [2, 3, 4, 5] if how.in_time else [3, 4, 5], how))

    def test_the_newest_is_deleted_by_an_open_transaction(self):
        for rule in self.RULES:
            self.each(contract(rule), ("commit",), self.fewer,
                      early=("begin", "delete from note where item_id = 5", "delete from item where id = 5"))

    def test_the_newest_is_deleted_and_comes_back(self):
        """In one transaction: it was there at every moment."""
        for rule in self.RULES:
            self.each(contract(rule), ("begin", "delete from note where item_id = 5", "delete from item where id = 5",
                                       "insert into item values (5, 'a', 5, 'done')", "insert into note values (5, 5)",
                                       "commit"), lambda how: self.assertEqual(self.there(how), [3, 4, 5], how))

    def test_the_deletion_of_the_newest_is_undone(self):
        self.each(contract(), ("rollback",), lambda how: self.assertEqual(self.there(how), [3, 4, 5], how),
                  early=("begin", "delete from note where item_id = 5", "delete from item where id = 5"))

    def test_a_doomed_row_is_held(self):
        def check(how):
            self.assertIsNone(how.other.error, how)
            self.assertEqual(self.there(how), [1, 3, 4, 5] if how.other.rows else [3, 4, 5], how)
        for rule in self.RULES:
            self.each(contract(rule, more=", hold: {state: live}"), ("update item set state = 'live' where id = 1",), check)

    def test_a_newer_row_is_held(self):
        """It counts as before."""
        self.each(contract(more=", hold: {state: live}"), ("update item set state = 'live' where id = 5",),
                  lambda how: self.assertEqual(self.there(how), [3, 4, 5], how))

    def test_the_newest_becomes_the_oldest(self):
        def check(how):
            self.assertEqual(self.there(how), [2, 3, 4] if how.in_time and 5 not in self.ids("item") else
                             [2, 3, 4, 5] if how.in_time else [3, 4, 5], how)
        self.each(contract(), ("update item set at_ms = null where id = 5",), check)

    def test_rows_that_go_one_by_one(self):
        """The first to go is judged before it, the second after."""
        def check(how):
            left = self.there(how)
            self.assertEqual(left, [2, 3, 4], how)
        self.each(contract(batch=1), ("delete from note where item_id = 5", "delete from item where id = 5"), check)


@every_engine
class Sweepers(Case):
    """Several at once on one capped table: each group is left with exactly its newest."""
    AT_ONCE, GROUPS, ROWS, KEPT = 6, 12, 40, 10

    def setUp(self):
        super().setUp()
        self.given("create table item (id integer primary key, tenant integer, at_ms bigint); create table note (id integer "
                   "primary key, item_id integer references item(id)); create index item_at on item(tenant, at_ms); "
                   "create index note_item on note(item_id)")
        if self.on_sqlite:
            self.db.rows("pragma journal_mode = wal")

    def at_once(self, rule):
        rng = random.Random(1)
        rows = [(i, i % self.GROUPS or None, rng.randrange(20)) for i in range(1, self.GROUPS * self.ROWS + 1)]
        rng.shuffle(rows)
        self.insert("item", *rows)
        self.insert("note", *((i, i) for i, _, _ in rows))
        group = itertools.groupby(sorted(rows, key=lambda r: (r[1] or 0, r[2], r[0])), key=lambda r: r[1])
        newest = [r[0] for _, of_one in group for r in list(of_one)[-self.KEPT:]]
        c = f"policies: {{item: {{table: item, {rule}, batch: 7, with: [note(item_id)]}}}}"
        running = [Lapse.start(self.db, c, "sweep", "--json", "--now", NOW) for _ in range(self.AT_ONCE)]
        results = [p.wait(120) for p in running]
        about = "\n".join(str(r)[:800] for r in results)
        self.assertEqual([r.code for r in results], [0] * self.AT_ONCE, about)
        self.left("item", *newest)
        self.left("note", *newest)
        self.assertEqual(sum(self.gone(r).get("item", 0) for r in results), len(rows) - len(newest), about)
        self.assertEqual(self.gone(self.sweep(c)), {})

    def test_cap(self):
        self.at_once(f"cap: {{rows: {self.KEPT}, per: [tenant], newest: [at_ms]}}")

    def test_keep_newest(self):
        self.at_once(f"age: at_ms, keep: 1h, keep_newest: {{rows: {self.KEPT}, per: [tenant], newest: [at_ms]}}")


@every_engine
class Writers(Case):
    """Rows are added all the time. Whoever looks, at any moment, finds no fewer than may stay."""
    SECONDS, KEPT = 3, 5

    def test_never_fewer_than_may_stay(self):
        self.given("create table item (id integer primary key, tenant integer, at_ms bigint); "
                   "create index item_at on item(tenant, at_ms)")
        if self.on_sqlite:
            self.db.rows("pragma journal_mode = wal")
        for tenant in range(3):
            self.insert("item", *((tenant * 100 + n, tenant, n) for n in range(self.KEPT)))
        self.contract = f"policies: {{item: {{table: item, batch: 4, cap: {{rows: {self.KEPT}, per: tenant, newest: at_ms}}}}}}"
        self.until, self.at_most = time.monotonic() + self.SECONDS, time.monotonic() + 40
        self.trouble, self.looks, self.added, self.swept_rows = [], 0, [], 0
        threads = [threading.Thread(target=self.guarded, args=(what, n))
                   for what, n in ((self.write, 0), (self.write, 1), (self.sweep_on, 0), (self.sweep_on, 1), (self.watch, 0))]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        self.assertEqual(self.trouble, [])
        self.assertGreater(self.looks, 20)
        self.assertGreater(self.swept_rows, 20, "too few went to mean anything")
        self.sweep(self.contract)
        rows = [(t * 100 + n, t, n) for t in range(3) for n in range(self.KEPT)] + self.added
        for tenant in range(3):
            of_it = sorted((at, i) for i, t, at in rows if t == tenant)[-self.KEPT:]
            self.assertEqual(sorted(self.db.rows("select at_ms, id from item where tenant = ?", (tenant,))), of_it)

    def over(self, enough):
        """On a busy machine it takes longer until that means anything."""
        return time.monotonic() > (self.until if enough or self.trouble else self.at_most)

    def guarded(self, what, n):
        try:
            what(n)
        except Exception as e:
            self.trouble.append(e)

    def write(self, n):
        """New rows, most of them newer than all others, some older than all."""
        db, rng = self.db.connect(), random.Random(n)
        for i in itertools.count(1000 + n, 2):
            if self.over(len(self.added) > 100):
                break
            row = (i, rng.randrange(3), i if rng.random() < 0.7 else rng.randrange(5))
            cursor = db.cursor()
            cursor.execute("insert into item values (%d, %d, %d)" % row)
            self.added.append(row)
            time.sleep(0.002)
        db.close()

    def sweep_on(self, _):
        while not self.over(self.swept_rows > 20):
            r = lapse(self.db, self.contract, "sweep", "--json")
            if r.code != 0:
                raise AssertionError(str(r))
            self.swept_rows += self.gone(r).get("item", 0)

    def watch(self, _):
        db = self.db.connect()
        while not self.over(self.looks > 20):
            cursor = db.cursor()
            cursor.execute("select tenant, count(*) from item group by tenant")
            found = dict(cursor.fetchall())
            self.looks += 1
            if len(found) < 3 or min(found.values()) < self.KEPT:
                raise AssertionError(f"only {found}")
        db.close()
