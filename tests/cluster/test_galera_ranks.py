"""A Galera cluster: sweeps through several nodes, which share no locks, leave every group the rows that are to stay."""
import itertools

from galera_case import *
from rank_races import ACTS, BEFORE, CAP, KEEP, Race, Rows, contract


def some(points):
    return points if THOROUGH else points[len(points) // 2::2]


class Refused(Race, ClusterTest):
    """Without own tables nothing excludes sweeps on two nodes."""

    def test_until_they_are_installed(self):
        self.reset()
        for rule, key in (CAP, "cap"), (KEEP, "keep_newest"):
            r = self.lapse(contract(rule), "check", code=3)
            self.assertIn(f"{key} needs lapse's own tables with Galera", r.out)
            self.assertIn("run lapse install", r.out)
            r = self.lapse(contract(rule), "sweep", "--now", NOW, code=3)
            self.assertIn(f"{key} needs lapse's own tables", r.said)
        self.assertEqual(len(self.everywhere("select id from t")), len(BEFORE))
        self.lapse(contract(CAP), "install", code=0)
        self.lapse(contract(CAP), "check")
        shown = self.lapse(contract(CAP), "plan", "--sql", "--now", NOW, code=0)
        self.assertIn("lapse_lease", shown.out)
        self.assertEqual(self.gone(self.lapse(contract(CAP), "sweep", "--json", "--now", NOW, code=0)), {"t": 3, "c": 3})
        self.assertEqual(self.lapse(contract(CAP), "status", code=0).out.count("ranks"), 0)


class Nodes(Race, ClusterTest):
    """While a sweep stands at a statement, an application changes who is newest through a second node, and another sweep
    deletes through a third."""

    def setUp(self):
        super().setUp()
        self.lapse(contract(CAP), "install", code=0)
        self.given("create table brake_of_appliers (id integer primary key auto_increment)")
        self.cluster.settle()
        self.reset()
        self.lapse(contract(CAP), "sweep", "--now", NOW, code=0)     # from now on the row is there that is written

    def each(self, policy, acts, last_first=False):
        points = some(list(self.statements(policy)))
        won = set()
        for act, point in itertools.product(acts, points):
            with self.subTest(act=act, point=point):
                sql, effect = ACTS[act]
                self.reset()
                self.cluster.settle()
                between = []

                def come_in(s):
                    if s.number == point:
                        with contextlib.suppress(pymysql.OperationalError):
                            self.on[2].execute(sql)
                            between.append(effect)
                        self.cluster.settle()
                        between.append(lapse(self.on[1], policy, "sweep", "--json", "--now", NOW))

                with Proxy(self.db, come_in, looks=False) as proxy:
                    r = lapse(proxy.dsn, policy, "sweep", "--json", "--now", NOW)
                about = f"{act} before {point}\n{proxy.seen}\n{r}\n{between[-1]}"
                self.assertEqual((r.code, between[-1].code), (0, 0), about)
                self.cluster.settle()
                self.is_right(between[0] if len(between) > 1 else None, about)
                self.assertEqual(self.everywhere("select id, g, n from t order by 1"), sorted(
                    self.on[2].rows("select id, g, n from t")), about)
                won.add(r.policy("t")["retries"] > 0)
        self.assertIn(True, won, "of two that judged at once one began again")

    def test_cap(self):
        self.each(contract(CAP), ACTS if THOROUGH else list(ACTS)[:1])

    def test_keep_newest(self):
        self.each(contract(KEEP), list(ACTS)[:2] if THOROUGH else list(ACTS)[:1])

    @thorough
    def test_one_by_one(self):
        self.each(contract(CAP, batch=1), list(ACTS)[:2])

    def test_many_rows_through_all_nodes_at_once(self):
        """Nobody fails, every row is counted once, and each group has its newest."""
        self.given("delete from c; delete from t; insert into t select seq, concat('g', seq % 40), seq, 0 from seq_1_to_400;"
                   "insert into c select id, id from t")
        self.cluster.settle()
        results = self.meeting(contract(CAP, batch=20), "--now", NOW)
        about = "\n".join(str(r)[:1500] for r in results)
        for r in results:
            entry = r.policy("t")
            self.assertEqual((r.code, entry["outcome"], entry["skipped"], entry["unknown"]), (0, "done", [], 0), about)
        self.assertEqual(sum(r.policy("t")["rows"] for r in results), 360, about)
        self.assertEqual([i for i, in self.everywhere("select id from t order by 1")], list(range(361, 401)), about)
