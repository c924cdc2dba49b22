"""Any suite with a pgbouncer between the program and PostgreSQL: $LAPSE_POOLED=1 tests/harness.py FILE [Class[.test]…].

The tests' own connections go to the server, the program's through the pooler, where every transaction may get another
server connection. What a test says of a connection, and not of the database, is left out: see ALONE.
"""
import unittest

import harness
import pgcluster

# Tests (or classes of them) that are about the connection itself, by suite, and why a pooler changes what they would see.
ALONE = {
    "contracts": {"MetadataOnPostgres": "its search path comes with the connection string, which pgbouncer refuses"},
    "input": {"PostgresStores.test_a_wrong_password_is_never_printed": "pgbouncer has its own words for it"},
    "own": {"Schemas.test_found_by_the_search_path": "ALTER DATABASE … SET reaches new sessions only"},
}


class Before(pgcluster.Pooler):
    """Lets in whom the server would let in: the tests make roles as they need them."""

    HBA = "local all guarded scram-sha-256\nlocal all all trust\nhost all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"

    def __init__(self, server):
        super().__init__(server, auth_type="hba", auth_user=server.USER,
                         auth_query='SELECT usename, passwd FROM pg_shadow WHERE usename=$1')


def through(pool, direct):
    def dsn(self, db, user=None, password=None, tcp=False):
        if self is not pool.server:
            return direct(self, db, user, password, tcp)
        who = (user or self.USER) + (f":{password}" if password is not None else "")
        if tcp:
            return f"postgresql://{who}@127.0.0.1:{pool.port}/{db}"
        return f"postgresql://{who}@/{db}?host={pool.home}&port={pool.port}"
    return dsn


def flat(tests):
    for t in tests:
        if isinstance(t, unittest.TestSuite):
            yield from flat(t)
        else:
            yield t


def tests(found, suite):
    server = harness.postgres()
    pool = Before(server)
    server.entrance = str(pool.home / f".s.PGSQL.{pool.port}")      # of proxies
    type(server).dsn = through(pool, type(server).dsn)
    left_out = ALONE.get(suite, {})
    kept = [t for t in flat(found) if getattr(t, "engine", None) == "postgres"
            and not {t.id().split(".", 1)[-1], type(t).__name__} & left_out.keys()]
    return unittest.TestSuite([*kept, Went(pool)])


class Went(unittest.TestCase):
    """The last of them: the transactions really took this way."""

    def __init__(self, pool):
        super().__init__("test_through_the_pooler")
        self.pool = pool

    def test_through_the_pooler(self):
        for name, *numbers in self.pool.say("show stats"):
            if name != "pgbouncer" and numbers[0] > 0:
                return
        self.fail(f"no transaction: {self.pool.say('show stats')}")
