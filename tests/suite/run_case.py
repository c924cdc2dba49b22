"""What the suites of `lapse run` share: a table of jobs, contracts on it, and daemons that end with their test."""
import time

from daemon import Daemon, eventually
from harness import *

JOB = "create table job (id integer primary key, at_ms bigint not null); create index job_at on job (at_ms)"
EVERY_1S = """
    schedulers: { main: { every: 1s } }
    policies: { job: { table: job, expires: at_ms } }
"""
OFTEN = "schedulers: { main: { every: 100ms } }\npolicies: { job: { table: job, expires: at_ms } }\n"
QUIET = "serve: off\n" + OFTEN       # the port it has unless told otherwise may be another's


def now_ms():
    return int(time.time() * 1000)


class DaemonCase(Case):
    """A table of jobs, and daemons that are ended with their test."""

    def setUp(self):
        super().setUp()
        self.given(JOB)

    def jobs(self, *ids, at=1):
        self.insert("job(id, at_ms)", *[(i, at) for i in ids])

    def daemon(self, contract, *options, db=None, **how):
        d = Daemon(db or self.db, contract, *options, **how)
        self.addCleanup(d.kill)
        return d

    def gone_soon(self, *ids, table="job"):
        """These rows disappear."""
        eventually(lambda: not set(ids) & set(self.ids(table)),
                   words=lambda: f"rows {ids} are still in {table}: {self.ids(table)}")
