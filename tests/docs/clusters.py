"""The terminal of a page that speaks of two PostgreSQL servers, db1 and db2: real ones, db2 a standby of db1 at first.

    $ ssh db1 systemctl stop postgresql         $ ssh db2 pg_ctl promote …         sql run: on whichever takes writes
"""
import re
import signal

from pgcluster import Pair
from terminal import Terminal


class ClusterTerminal(Terminal):
    def __init__(self, folder):
        super().__init__(folder)
        self.pair = Pair()
        self.nodes = dict(zip(("db1", "db2"), self.pair.nodes))
        self.pair.primary.admin("create role lapse login")
        self.pair.primary.admin("create database app owner lapse template template0")

    def contract(self, text):
        for name, node in self.nodes.items():
            text = re.sub(rf"(?<=[@,/]){name}\b", f"127.0.0.1:{node.port}", text)
        return text

    def sql(self, body):
        with self.pair.primary.connect("app") as c, c.cursor() as q:
            q.execute("set role lapse; " + body)
        self.pair.caught_up()

    def run(self, command, said=""):
        at = re.fullmatch(r"ssh (db\d) (systemctl (?:stop|start) postgresql|pg_ctl promote .*)", command)
        if not at:
            return self._named(super().run(command, said))
        if at[2].startswith("pg_ctl"):
            assert self.nodes[at[1]] is self.pair.standby
            self.pair.promote()
        elif "stop" in at[2]:
            self.nodes[at[1]].stop(signal.SIGINT)
        elif self.nodes[at[1]] is self.pair.standby:
            self.pair.rejoin()              # whoever comes back follows
        return ""

    def _named(self, text):
        for name, node in self.nodes.items():
            text = text.replace(f'"127.0.0.1", port {node.port}', f'"{name}", port 5432')
        return text

    def close(self):
        super().close()
        self.pair.stop()
