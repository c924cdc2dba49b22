"""Rows that come as fast as they go: a sweep ends all the same, and says so. And what its rate is the rate of."""
from harness import *


class Fed(Case):
    """A trigger inserts a due row for each that is deleted. MariaDB allows no such trigger."""
    ROWS = 200

    def fed_by(self, at):
        self.given("create table events (id integer primary key, at_ms bigint not null)")
        self.insert("events(id, at_ms)", *[(i, MS - DAY) for i in range(1, self.ROWS + 1)])
        self.db.script(self.per_engine(
            sqlite=f"create trigger feed after delete on events begin insert into events(at_ms) values ({at}); end",
            postgres=f"""create sequence ids start 100000;
                create function feed() returns trigger language plpgsql as $$ begin
                insert into events values (nextval('ids'), {at}); return old; end $$;
                create trigger feed after delete on events for each row execute function feed()"""))

    def contract(self, more=""):
        return f"policies: {{events: {{table: events, expires: at_ms{more}}}}}"

    def ends(self, more=""):
        r = self.sweep(self.contract(more), code=1)
        p = r.policy("events")
        self.assertEqual(p["outcome"], "failed")
        self.assertIn("rows come as fast as they go", p["error"])
        return p

    def test_ahead_of_the_cursor(self):
        self.fed_by("old.at_ms")
        self.given("create index events_at on events (at_ms, id)")
        p = self.ends()
        self.assertTrue(3000 <= p["rows"] < 6000, p)
        self.assertEqual(len(self.ids("events")), self.ROWS)

    def test_without_an_index(self):
        """PostgreSQL then reads the table as it lies, which has an end."""
        self.fed_by("old.at_ms")
        if self.on_sqlite:
            self.ends()
            return
        p = self.sweep(self.contract()).policy("events")
        self.assertEqual((p["left"], p["came_again"]), (self.ROWS, True), p)

    def test_by_an_index(self):
        self.fed_by("old.at_ms + 1")
        self.given("create index events_at on events (at_ms, id)")
        self.ends()

    def test_in_one_transaction_nothing_goes(self):
        self.fed_by("old.at_ms")
        self.given("create index events_at on events (at_ms, id)")
        self.assertEqual(self.ends(", batch: null")["rows"], 0)

    def test_in_words(self):
        self.fed_by("old.at_ms")
        self.given("create index events_at on events (at_ms, id)")
        r = self.lapse(self.contract(), "sweep", "--now", NOW, code=1)
        self.assertRegex(r.out, "why: .*rows come as fast as they go: fewer than 1,?000 were due")

    def test_behind_the_cursor(self):
        self.fed_by("old.at_ms - 1")
        self.given("create index events_at on events (at_ms, id)")
        r = self.sweep(self.contract())
        p = r.policy("events")
        self.assertEqual((p["rows"], p["left"], p["came_again"]), (2 * self.ROWS, self.ROWS, True), r)
        r = self.lapse(self.contract(), "sweep", "--now", NOW, code=0)
        self.assertIn("as many are due again as the last look deleted", " ".join(r.out.split()))


class FedOnSqlite(Fed, SqliteTest):
    pass


class FedOnPostgres(Fed, PostgresTest):
    pass


@every_engine
class Rate(Case):
    def test_is_that_of_the_deleting(self):
        self.given("create table events (id integer primary key, at_ms bigint not null)")
        self.insert("events(id, at_ms)", *[(i, MS - DAY) for i in range(1, 61)])
        r = self.sweep("policies: {events: {table: events, expires: at_ms, batch: 20, pace: {rows_per_second: 20}}}")
        p = r.policy("events")
        self.assertEqual(p["rows"], 60)
        self.assertGreater(p["pace"]["waited_ms"]["rows_per_second"], 1000, r)
        self.assertLess(p["deleting_ms"], p["duration_ms"] - 0.9 * p["pace"]["waited_ms"]["rows_per_second"], r)


if __name__ == "__main__":
    main()
