"""What a tick with nothing due costs the database: one probe per policy and a few statements around them."""
import collections
import re
import unittest

from daemon import Daemon, eventually
from harness import *

POLICIES = 120


class Idle(unittest.TestCase):
    def setUp(self):
        self.server = Postgres(settings={"log_statement": "all", "log_line_prefix": "%a %p ", "autovacuum": "off"})
        self.addCleanup(self.server.stop)
        self.db = self.server.fresh()
        self.db.script("".join(f"create table t{n} (id integer primary key, at_ms bigint not null);"
                               f"create index on t{n} (at_ms); insert into t{n} values (1, {4 * 10**12});"
                               for n in range(POLICIES)))
        self.contract = "schedulers: { main: { every: 1s } }\npolicies:\n" + "".join(
            f"  t{n}: {{ table: t{n}, expires: at_ms }}\n" for n in range(POLICIES))

    def ticks(self):
        """The statements of each tick so far: what the busiest connection asked, from one look at the clock on."""
        asked = collections.defaultdict(list)
        for app, pid, sql in re.findall(r"^(\S+) (\d+) LOG:  (?:statement|execute <unnamed>): (.*)$",
                                        self.server.log.read_text(errors="replace"), re.M):
            if app == "lapse":
                asked[pid].append(sql)
        busiest = max(asked.values(), key=len, default=[])
        ticks = []
        for sql in busiest:
            if sql.startswith("BEGIN READ ONLY; SET LOCAL search_path") and "clock_timestamp()" in sql:
                ticks.append([])
            if ticks:
                ticks[-1].append(sql)
        return ticks

    def test_one_probe_per_policy(self):
        self.assertEqual(lapse(self.db, self.contract, "install").code, 0)
        with Daemon(self.db, self.contract):
            ticks = eventually(lambda: (t := self.ticks())[5:] and t, 60)
        for tick in ticks[2:5]:
            probes = [s for s in tick if re.match(r'SELECT 1 FROM ONLY "public"."t\d+"', s)]
            self.assertEqual(len(probes), POLICIES, tick[:20])
            around = [s for s in tick if s not in probes and not re.match("BEGIN|ROLLBACK", s)]
            self.assertLessEqual(len(around), 10, around)
            # Probes share a transaction for 20 ms: with a slow program on a busy machine these are more.
            self.assertLessEqual(len(tick), POLICIES * 1.5)
