"""Orphans while others work: the source reappears, changes to match, goes; and writers that never stop."""
import random
import threading
import time

from harness import *
from points import Points

RULE = "orphan: {of: source(id), by: s, matching: {state: open}, delete_when: deleted_or_unmatched}"


def contract(batch=100, rule=RULE, more=""):
    return f"policies: {{task: {{table: task, {rule}, age: at_ms, keep: 1h, batch: {batch}, with: [sub(task_id)], " \
           f"timeouts: {{lock: 100ms}}{more}}}}}"


@every_server
class Interleaving(Points, Case):
    """1 has a source that matches, 2 and 4 have none, the one of 3 does not match, and 5 names none."""
    RESET = """
        truncate source, task, sub;
        insert into source values (1, 'open'), (2, 'closed'), (3, 'open');
        insert into task values (1, 1, 0), (2, 9, 0), (3, 2, 0), (4, 8, 0), (5, null, 0);
        insert into sub select t * 10 + n, t from generate_series(1, 5) t, generate_series(1, 2) n"""

    def setUp(self):
        super().setUp()
        self.given("""
            create table source (id integer primary key, state text);
            create table task (id integer primary key, s integer, at_ms bigint);
            create table sub (id integer primary key, task_id integer not null references task(id));
            create index on task(s); create index on sub(task_id)""")

    def there(self, how):
        """The tasks that are left; each has all its rows, and the program has counted the others."""
        tasks = self.ids("task")
        self.assertEqual(self.ids("sub"), sorted(t * 10 + n for t in tasks for n in (1, 2)), how)
        self.assertEqual(self.gone(how.result).get("task", 0), 5 - len(tasks), how)
        return set(tasks)

    def saved(self, task):
        """In time, it is kept; too late, it goes. The others go in any case."""
        def check(how):
            self.assertIsNone(how.other.error, how)
            self.assertEqual(self.there(how), {1, 5, task} if how.in_time else {1, 5}, how)
        return check

    def saved_in_any_case(self, task):
        def check(how):
            self.assertIsNone(how.other.error, how)
            self.assertEqual(self.there(how), {1, 5, task}, how)
        return check

    def saved_if_found(self, task):
        """The statement of the other session found the row, or the row had gone."""
        def check(how):
            self.assertIsNone(how.other.error, how)
            self.assertEqual(self.there(how), {1, 5, task} if how.other.rows else {1, 5}, how)
        return check

    def unchanged(self, how):
        self.assertIsNone(how.other.error, how)
        self.assertEqual(self.there(how), {1, 5}, how)

    def test_the_source_reappears(self):
        for batch in (100, "null"):
            self.each(contract(batch), ("insert into source values (9, 'open')",), self.saved(2))

    def test_the_source_reappears_where_rows_go_one_by_one(self):
        self.each(contract(1), ("insert into source values (9, 'open')",), self.saved(2))

    def test_the_source_reappears_by_an_open_transaction(self):
        self.each(contract(), ("commit",), self.saved(2), early=("begin", "insert into source values (9, 'open')"))

    def test_a_source_that_does_not_match_appears(self):
        self.each(contract(), ("insert into source values (9, 'closed')",), self.unchanged)

    def test_a_source_that_does_not_match_is_enough_where_only_deletion_counts(self):
        def check(how):
            self.assertEqual(self.there(how), {1, 2, 3, 5} if how.in_time else {1, 3, 5}, how)
        self.each(contract(rule="orphan: {of: source(id), by: s}"), ("insert into source values (9, 'closed')",), check)

    def test_another_source_takes_the_name(self):
        def check(how):
            self.assertEqual(self.there(how) - {1}, {2, 5} if how.in_time else {5}, how)
        self.each(contract(), ("update source set id = 9 where id = 3",), check)

    def test_the_source_changes_to_match(self):
        """Once the program has looked at it, the other session waits; before that, it counts."""
        def check(how):
            self.assertIsNone(how.other.error, how)
            self.assertEqual(self.there(how), {1, 5} if how.waited or not how.in_time else {1, 3, 5}, how)
        self.each(contract(), ("update source set state = 'open' where id = 2",), check)

    def test_the_source_changes_to_match_with_a_foreign_key(self):
        self.given("set foreign_key_checks = 0; alter table task add foreign key (s) references source(id); "
                   "set foreign_key_checks = 1" if self.on_mariadb else
                   "alter table task add foreign key (s) references source(id) not valid")
        reset = self.RESET.replace("(2, 9, 0)", "(2, 2, 0)").replace("(4, 8, 0)", "(4, 2, 0)")

        def check(how):
            left = self.there(how)
            self.assertEqual(left, {1, 2, 3, 4, 5} if how.in_time else {1, 5}, how)
        self.each(contract(), ("update source set state = 'open' where id = 2",), check, reset=reset)

    def test_the_source_changed_by_an_open_transaction(self):
        """Nobody can share a row that is being changed: what comes of it is waited for."""
        self.each(contract(), ("commit",), self.saved_in_any_case(3),
                  early=("begin", "update source set state = 'open' where id = 2"), ever_late=False)

    def test_an_open_transaction_that_changes_its_mind(self):
        self.each(contract(), ("rollback",), self.unchanged,
                  early=("begin", "update source set state = 'open' where id = 2"), ever_late=False)

    def test_the_source_is_deleted(self):
        """Then its task may go, and need not."""
        def check(how):
            self.assertEqual(self.there(how) | {1}, {1, 5}, how)
        self.each(contract(), ("delete from source where id = 1",), check)

    def test_the_deletion_of_a_source_is_undone(self):
        self.each(contract(), ("rollback",), self.unchanged, early=("begin", "delete from source where id in (1, 3)"))

    def test_a_source_is_replaced_in_one_transaction(self):
        """It was there at every moment."""
        self.each(contract(), ("begin", "delete from source where id = 1", "insert into source values (1, 'open')",
                               "commit"), self.unchanged)

    def test_all_sources_go(self):
        """An empty source says nothing: what is not yet judged is kept, and that is no success."""
        def check(how):
            self.assertEqual(self.there(how), {1, 2, 3, 4, 5} if how.in_time else {1, 5}, how)
            if how.in_time:
                self.assertEqual(how.result.code, 1, how)
                self.assertIn("became empty", how.result.policy("task")["error"], how)
        self.each(contract(), ("delete from source",), check, codes=(0, 1))

    def test_all_sources_go_between_batches(self):
        def check(how):
            left = self.there(how)
            self.assertLessEqual({1, 5}, left, how)
            self.assertEqual(how.result.code, 1, how)
            self.assertEqual(5 - len(left), 0 if how.in_time else 1, how)
        self.each(contract(1), ("delete from source",), check, codes=(1,))

    SAME = "insert into source values (1, 'open'), (2, 'closed'), (3, 'open')"
    MORE = "insert into source select n, 'open' from generate_series(1, 9) n"

    @property
    def empty(self):
        return "delete from source" if self.on_mariadb else "truncate source"       # which commits there

    def test_the_source_is_loaded_anew(self):
        """Truncated and filled again in one transaction: it was never empty."""
        self.each(contract(), ("begin", self.empty, self.SAME, "commit"), self.unchanged)

    def test_the_source_is_loaded_anew_where_it_may_be_empty(self):
        self.each(contract(rule=RULE[:-1] + ", allow_empty: true}"), ("begin", self.empty, self.SAME, "commit"),
                  self.unchanged)

    def test_the_source_is_loaded_anew_with_more(self):
        def check(how):
            self.assertIsNone(how.other.error, how)
            self.assertIn(self.there(how), ({1, 2, 3, 4, 5},) if how.in_time else ({1, 2, 3, 4, 5}, {1, 5}), how)
        self.each(contract(), ("begin", self.empty, self.MORE, "commit"), check)

    def test_the_task_finds_another_source(self):
        self.each(contract(), ("update task set s = 1 where id = 2",), self.saved_if_found(2))

    def test_the_task_names_a_source_no_longer(self):
        self.each(contract(), ("update task set s = null where id = 2",), self.saved_if_found(2))

    def test_the_task_is_touched(self):
        self.each(contract(), (f"update task set at_ms = {MS} where id = 2",), self.saved_if_found(2))

    def test_the_task_finds_a_source_in_an_open_transaction(self):
        self.each(contract(), ("commit",), self.saved_in_any_case(2), early=("begin", "update task set s = 1 where id = 2"))


@every_engine
class Writers(Case):
    """Sources and tasks come and go all the time, while several sweepers look for orphans without any grace."""
    SECONDS = 3
    CONTRACT = "policies: {task: {table: task, keep: now, batch: 3, with: [sub(task_id)], " + RULE + "}}"

    def test_no_task_goes_whose_source_was_always_there(self):
        self.given("create table source (id integer primary key, state text); create table task (id integer primary key, "
                   "s integer); create table sub (id integer primary key, task_id integer references task(id)); "
                   "create index task_s on task(s); create index sub_task on sub(task_id); "
                   "insert into source values (0, 'open')")
        if self.on_sqlite:
            self.db.rows("pragma journal_mode = wal")
        self.until, self.at_most = time.monotonic() + self.SECONDS, time.monotonic() + 40
        self.trouble, self.gone_for, self.made = [], {"kept": set(), "lost": set()}, 0
        threads = [threading.Thread(target=self.guarded, args=(self.write, n)) for n in range(3)]
        threads += [threading.Thread(target=self.guarded, args=(self.sweep_on, n)) for n in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        self.assertEqual(self.trouble, [])
        self.sweep(self.CONTRACT, now=None)
        left = set(self.ids("task"))
        kept, lost = self.gone_for["kept"], self.gone_for["lost"]
        self.assertGreater(len(kept), 50, "too few to mean anything")
        self.assertGreater(len(lost), 20, "too few to mean anything")
        self.assertEqual(kept - left, set(), "tasks went whose source was always there")
        self.assertEqual(lost & left, set(), "orphans stayed")
        self.assertEqual(set(self.ids("sub")), left)

    def over(self):
        """On a busy machine it takes longer until that means anything."""
        lost = len(self.gone_for["lost"])
        enough = self.made - lost > 60 and lost > 20
        return time.monotonic() > (self.until if enough or self.trouble else self.at_most)

    def guarded(self, what, n):
        try:
            what(n)
        except Exception as e:
            self.trouble.append(e)

    def sweep_on(self, _):
        while not self.over():
            r = lapse(self.db, self.CONTRACT, "sweep", "--json")
            if r.code != 0:
                raise AssertionError(str(r))

    def write(self, n):
        """A source and its tasks in one transaction, or the source first; then perhaps replaced, changed to and fro
        within one transaction, given another task; and some are deleted."""
        rng, db = random.Random(n), self.db.connect()
        numbers = iter(range(1 + n, 10**9, 3))
        alive = {}

        def do(*statements):
            c = db.cursor()
            c.execute("begin immediate" if self.on_sqlite else "begin")
            for s in statements:
                c.execute(s)
            c.execute("commit")

        def task(source):
            i = next(numbers)
            self.made += 1
            alive.setdefault(source, []).append(i)
            return f"insert into task values ({i}, {source})", f"insert into sub values ({i}, {i})"

        while not self.over():
            source = next(numbers)
            make = f"insert into source values ({source}, 'open')"
            if rng.random() < 0.4:
                do(*task(source), make)
            else:
                do(make)
                do(*task(source))
            old = rng.choice(list(alive))
            what = rng.random()
            if what < 0.2:
                do(f"delete from source where id = {old}", f"insert into source values ({old}, 'open')")
            elif what < 0.4:
                do(f"update source set state = 'closed' where id = {old}", f"update source set state = 'open' where id = {old}")
            elif what < 0.6:
                do(*task(old))
            elif what < 0.8:
                do(f"delete from source where id = {old}")
                self.gone_for["lost"].update(alive.pop(old))
            elif what < 0.9:
                do(f"update source set state = 'closed' where id = {old}")
                self.gone_for["lost"].update(alive.pop(old))
            if not alive:
                continue
            time.sleep(rng.random() * 0.004)
        self.gone_for["kept"].update(i for tasks in alive.values() for i in tasks)
        db.close()
