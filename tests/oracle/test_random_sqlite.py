"""Random rounds on SQLite."""
from random_case import RandomRounds, unittest


class OnSqlite(RandomRounds, unittest.TestCase):
    engine = "sqlite"
