"""A real Prometheus scrapes a daemon, and promtool reads what it serves."""
import json
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

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
