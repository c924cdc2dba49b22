"""Random rounds on MariaDB."""
from random_case import RandomRounds, unittest


class OnMariadb(RandomRounds, unittest.TestCase):
    engine = "mariadb"
