"""What a review of own tables, fuses, brakes, explain and init found, each with the smallest case that shows it."""
import time

import yaml

from harness import *


@every_engine
class Explained(Case):
    CONTRACT = "policies: {s: {table: s, expires: at_ms, limits: {rows: 2}}}"

    def setUp(self):
        super().setUp()
        self.given("create table s (id integer primary key, at_ms bigint)")
        self.insert("s", (1, 0), (2, 0), (3, 0), (4, MS + 1))
        self.lapse(self.CONTRACT, "install", code=0)

    def explain(self):
        with self.untouched():
            return self.lapse(self.CONTRACT, "explain", "--now", NOW, "--json", "s", "1", code=0).json

    def test_a_policy_with_limits(self):
        r = self.explain()
        self.assertEqual((r["outcome"], r["verdict"], r["remarks"]), ("explained", "due", []))

    def test_a_tripped_fuse_is_said(self):
        self.sweep(self.CONTRACT, code=4)
        self.assertIn("lapse ack s", " ".join(self.explain()["remarks"]))
        self.assertIn("lapse ack s", self.lapse(self.CONTRACT, "explain", "s", "1", code=0).out)
        self.lapse(self.CONTRACT, "ack", "s", code=0)
        self.assertEqual(self.explain()["remarks"], [])

    def test_a_brake_is_said(self):
        self.lapse(self.CONTRACT, "pause", "s", code=0)
        self.assertIn("lapse resume s", " ".join(self.explain()["remarks"]))


@every_engine
class Drafted(Case):
    """Only a name of technical words alone makes an expired row nobody's."""
    PRECIOUS = ("vehicle_leases", "parking_leases", "security_tokens", "trading_sessions", "yoga_sessions",
                "share_locks", "applications_pending", "partner_connections", "hardware_tokens", "crop_resets",
                "client_sessions", "service_connections", "server_leases")
    EPHEMERAL = ("sessions", "user_sessions", "lane_leases", "idempotency_keys", "rate_limit_locks", "oauth_pending",
                 "password_resets", "sessions_v2", "http_cache", "presence_entries")

    def test_words_that_are_not_technical(self):
        kind = "timestamptz" if self.on_postgres else "bigint"
        column = "expires_at" if self.on_postgres else "expires_at_ms"
        for t in self.PRECIOUS + self.EPHEMERAL:
            self.given(f"create table {t} (id integer primary key, {column} {kind})")
        for n, mark in enumerate(("never_expires", "permanent", "is_pinned", "legal_hold")):
            self.given(f"create table locks_{n} (id integer primary key, {column} {kind}, {mark} boolean)")
        r = lapse(None, None, "init", self.db.dsn)
        self.assertEqual(sorted(yaml.safe_load(r.out)["policies"]), sorted(self.EPHEMERAL))


@every_engine
class Acknowledged(Case):
    CONTRACT = "policies: {s: {table: s, expires: at_ms, batch: 1, limits: {rows: 5}}}"

    def test_a_run_that_failed_after_it_deleted_something_had_its_pass(self):
        self.given("create table s (id integer primary key, at_ms bigint)")
        self.lapse(self.CONTRACT, "install", code=0)
        self.insert("s", *[(n, n) for n in range(1, 121)])
        self.sweep(self.CONTRACT, code=4)
        self.lapse(self.CONTRACT, "ack", "s", code=0)
        if self.on_postgres:
            self.given("""create function no() returns trigger language plpgsql as $$ begin
                              raise check_violation using message = 'no'; end $$;
                          create trigger t before delete on s for each row when (old.id > 10) execute function no()""")
        else:
            self.given("create trigger t before delete on s when old.id > 10 begin select raise(abort, 'no'); end")
        self.sweep(self.CONTRACT, code=1)
        self.left("s", *range(11, 121))
        self.given("drop trigger t" + (" on s" if self.on_postgres else ""))
        self.sweep(self.CONTRACT, code=4)
        self.left("s", *range(11, 121))


@every_engine
class Installed(Case):
    def test_in_mid_run_and_paused(self):
        self.given("create table s (id integer primary key, at_ms bigint)")
        self.insert("s", *[(n, 0) for n in range(1, 2001)])
        self.slow("s", 0.01)
        c = "policies: {s: {table: s, expires: at_ms, batch: 1}}"
        p = Lapse.start(self.db, c, "sweep", "--json")
        end = time.monotonic() + 60
        while len(self.ids("s")) == 2000:       # a pause before it begins is another case
            self.assertLess(time.monotonic(), end, p.so_far())
            time.sleep(0.01)
        self.lapse(c, "install", code=0)
        self.lapse(c, "pause", code=0)
        r = p.wait()
        self.assertEqual((r.code, r.policy("s")["outcome"]), (6, "paused"), r)


class LongName(Case, PostgresTest):
    def test_a_schema_name_that_the_server_cuts(self):
        self.given("create table s (id integer primary key, at_ms bigint)")
        c = f"own_schema: {'x' * 64}\npolicies: {{s: {{table: s, expires: at_ms}}}}"
        self.assertIn("too long", self.lapse(c, "install", code=2).err)
        self.assertEqual(self.db.rows("select 1 from pg_namespace where nspname like 'xxx%'"), [])
