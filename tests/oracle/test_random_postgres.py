"""Random rounds on PostgreSQL."""
from random_case import RandomRounds, unittest


class OnPostgres(RandomRounds, unittest.TestCase):
    engine = "postgres"
