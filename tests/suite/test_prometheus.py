"""A real Prometheus scrapes a daemon, and promtool reads what it serves."""
import json
import re
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

from daemon import *
from harness import *
from harness import free_port

CONTRACT = """
    schedulers: { main: { every: 200ms }, 'odd "one"': { every: 1h } }
    policies:
      job: { scheduler: main, label: jobs, table: job, expires: at_ms, with: [ step(job_id) ] }
      odd: { scheduler: 'odd "one"', table: odd, expires: at_ms }
    """
# What the SPEC names, with the labels it names. Purges come with their spaces.
NAMES = {
    "lifecycle_prune_rows_total": {"scheduler", "table", "policy"}, "lifecycle_tick_errors_total": {"scheduler"},
    "lapse_tick_duration_seconds_bucket": {"scheduler", "le"}, "lapse_batch_duration_seconds_count": {"scheduler", "table"},
    "lapse_due_rows": {"scheduler", "table"}, "lapse_oldest_due_age_seconds": {"scheduler", "table"},
    "lapse_last_success_timestamp_seconds": {"scheduler"}, "lapse_next_tick_timestamp_seconds": {"scheduler"},
    "lapse_build_info": {"version"},
}
ADDED = {"__name__", "instance", "job"}         # by Prometheus


class Prometheus:
    def __init__(self, port):
        home = new_path("prometheus")
        home.mkdir()
        (home / "p.yml").write_text(
            "global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n"
            f"  - {{ job_name: lapse, honor_labels: true, static_configs: [ {{ targets: ['127.0.0.1:{port}'] }} ] }}\n")
        self.port = free_port()
        self.log = home / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={home / 'p.yml'}", f"--storage.tsdb.path={home / 'data'}",
                 f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"], stdout=log, stderr=log, cwd=home)
        at_end(self.stop)

    def ask(self, query):
        """[(labels, number), …]"""
        url = f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return [(r["metric"], float(r["value"][1])) for r in json.load(answer)["data"]["result"]]
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            assert self.process.poll() is None, self.log.read_text()
            return []

    def sure(self, query):
        """The same, once there is an answer: where a scrape came too late, nothing is known for a second."""
        return eventually(lambda: self.ask(query), every=0.2, words=lambda: f"{query} is not there\n{self.log.read_text()}")

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


MINUTE, HOUR, DAY = 60, 3600, 86400
STEP = 5 * MINUTE
RUNNING = Path(__file__).resolve().parents[2] / "docs" / "running.md"


class Series:
    """A scheduler's metrics over some days, as promtool's tests write them."""

    def __init__(self, days, every, fails=lambda tick: False, leaves=lambda tick: False, skips=lambda tick: False,
                 rests=lambda tick: False, up=1, late=False):
        n = days * DAY // STEP
        self.up = [up] * n
        self.success, self.next, self.errors, self.due, self.age, self.skipped = ([0] * n for _ in range(6))
        success, errors, skipped, oldest = 0, 0, 0, 0
        for i in range(n):
            now = i * STEP
            tick, due = divmod(now, every)
            if due == 0 and not rests(tick):
                errors, skipped = errors + fails(tick), skipped + skips(tick)
                success = success if fails(tick) else now
                oldest = oldest if fails(tick) or leaves(tick) else now
            following = next(t for t in range(tick + 1, tick + 9) if not rests(t)) * every
            self.success[i], self.next[i], self.errors[i] = success, every if late else following, errors
            self.due[i], self.age[i], self.skipped[i] = (now - oldest) * 10, now - oldest, skipped

    def text(self):
        labels = 'scheduler="s",table="t",instance="a"'
        named = [('lapse_last_success_timestamp_seconds{scheduler="s",instance="a"}', self.success),
                 ('lapse_next_tick_timestamp_seconds{scheduler="s",instance="a"}', self.next),
                 ('lifecycle_tick_errors_total{scheduler="s",instance="a"}', self.errors),
                 (f"lapse_due_rows{{{labels}}}", self.due), (f"lapse_oldest_due_age_seconds{{{labels}}}", self.age),
                 (f'lapse_rows_skipped_total{{{labels},reason="refused"}}', self.skipped),
                 ('up{job="lapse",instance="a"}', self.up)]
        return [{"series": name, "values": " ".join(map(str, values))} for name, values in named]


class AlertRules(unittest.TestCase):
    """The rules of the documentation, held by promtool against days of a daemon's metrics."""

    def assert_fires(self, series, expected):
        """expected: {seconds: {the alerts that fire then}}. All others do not."""
        home = new_path("rules")
        home.mkdir()
        rules = re.search(r"^```yaml alerts.yml\n(.*?)^```", RUNNING.read_text(), re.M | re.S)[1]
        (home / "alerts.yml").write_text(rules)
        questions = []
        for second, firing in expected.items():
            for name in re.findall(r"alert: (\w+)", rules):
                samples = [{"labels": "{}", "value": 1}] if name in firing else []
                questions.append({"expr": f'count(ALERTS{{alertstate="firing",alertname="{name}"}})',
                                  "eval_time": f"{second}s", "exp_samples": samples})
        tests = [{"interval": f"{STEP}s", "input_series": series.text(), "promql_expr_test": questions}]
        (home / "test.yml").write_text(json.dumps({"rule_files": ["alerts.yml"], "evaluation_interval": f"{STEP}s",
                                                   "tests": tests}))
        r = subprocess.run(["promtool", "test", "rules", "test.yml"], cwd=home, capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)

    def test_each_says_how_bad_and_what(self):
        rules = yaml.safe_load(re.search(r"^```yaml alerts.yml\n(.*?)^```", RUNNING.read_text(), re.M | re.S)[1])
        for rule in rules["groups"][0]["rules"]:
            if "alert" in rule:
                self.assertIn(rule["labels"]["severity"], ("warning", "critical"), rule)
                self.assertTrue(rule["annotations"]["summary"], rule)

    def test_one_that_is_down_or_late(self):
        self.assert_fires(Series(2, HOUR, up=0, late=True), {HOUR + STEP: {"LapseDown"}, DAY: {"LapseDown", "LapseLate"}})

    def test_a_nightly_one_that_works(self):
        self.assert_fires(Series(3, DAY), {2 * DAY + hour * HOUR + 1800: set() for hour in (0, 5, 12, 23)})

    def test_one_of_working_days(self):
        weekend = Series(14, DAY, rests=lambda tick: tick % 7 >= 5)
        self.assert_fires(weekend, {6 * DAY + HOUR: set(), 14 * DAY - HOUR: set()})

    def test_a_nightly_one_that_fails(self):
        self.assert_fires(Series(12, DAY, fails=lambda tick: tick >= 7),
                          {7 * DAY - HOUR: set(), 7 * DAY + HOUR: {"LapseTickErrors"},
                           12 * DAY - HOUR: {"LapseTickErrors", "LapseNoSuccess"}})

    def test_a_nightly_one_that_leaves_rows(self):
        self.assert_fires(Series(4, DAY, leaves=lambda tick: tick >= 2, skips=lambda tick: tick == 2),
                          {2 * DAY - HOUR: set(),
                           2 * DAY + 4 * HOUR: {"LapseNothingGoes", "LapseBacklog", "LapseRowsSkipped"}})

    def test_one_that_fails_once(self):
        self.assert_fires(Series(3, STEP, fails=lambda tick: tick == 300),
                          {300 * STEP - HOUR: set(), 300 * STEP + 20 * MINUTE: set(), 2 * DAY: set()})

    def test_one_that_fails(self):
        self.assert_fires(Series(3, STEP, fails=lambda tick: tick >= 600),
                          {600 * STEP - HOUR: set(), 600 * STEP + 3 * HOUR: {"LapseTickErrors", "LapseNoSuccess"}})


@every_engine
class Scraped(Case):
    def setUp(self):
        super().setUp()
        self.given("""create table job (id integer primary key, at_ms bigint); create index job_at on job(at_ms);
                      create table step (id integer primary key, job_id integer not null);
                      create index step_job on step(job_id);
                      create table odd (id integer primary key, at_ms bigint); create index odd_at on odd(at_ms)""")

    def put(self, first, n):
        self.db.executemany("insert into step values (?, ?)", [(i, i) for i in range(first, first + n)])
        self.db.executemany("insert into job values (?, ?)", [(i, 1) for i in range(first, first + n)])

    def test_by_a_real_one(self):
        with Daemon(self.db, CONTRACT) as d:
            p = Prometheus(d.serving())
            went = 'sum(lifecycle_prune_rows_total{policy="job", table="%s"})'
            eventually(lambda: p.ask(went % "jobs") == [({}, 0)], every=0.2, words=lambda: f"{p.ask(went % 'jobs')}\n{d}")
            eventually(lambda: [v for _, v in p.ask("up")] == [1])
            total = 0
            for n in (7, 40):
                self.put(1000 * n, n)
                total += n
                eventually(lambda: p.ask(went % "jobs") == [({}, total)], every=0.2, words=lambda: f"{p.ask(went % 'jobs')}\n{d}")
            self.assertEqual(p.sure(went % "step"), [({}, total)])
            # the series were there before the first row went: none is missed
            grown = p.sure('max_over_time(lifecycle_prune_rows_total{table="jobs"}[10m]) - '
                           'min_over_time(lifecycle_prune_rows_total{table="jobs"}[10m])')
            self.assertEqual([v for _, v in grown], [total])
            for name, labels in NAMES.items():
                found = eventually(lambda: p.ask(name), every=0.2, words=f"{name} is not there\n{d.metrics_text()}")
                for have, _ in found:
                    self.assertEqual(set(have) - ADDED, labels, name)
            schedulers = {m["scheduler"] for m, _ in p.sure("lifecycle_tick_errors_total")}
            self.assertEqual(schedulers, {"lapse", "main", 'odd "one"'})
            (_, last), = p.sure('lapse_last_success_timestamp_seconds{scheduler="main"}')
            (_, due), = p.sure('lapse_next_tick_timestamp_seconds{scheduler="main"}')
            self.assertLess(abs(time.time() - last), 60)
            self.assertLess(abs(time.time() - due), 60)
            p.stop()

    def test_promtool(self):
        """Not one remark, also with something in every series."""
        with Daemon(self.db, CONTRACT) as d:
            self.put(1, 30)
            d.wait_for("lifecycle_pruned", jobs=30)
            text = d.metrics_text()
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), text)
            broken = subprocess.run(["promtool", "check", "metrics"], input=text.replace("# HELP", "# HEPL"),
                                    capture_output=True, text=True)
            self.assertNotEqual((broken.returncode, broken.stdout + broken.stderr), (0, ""))
