"""A real cluster of Patroni for tests: etcd, two PostgreSQL servers that Patroni runs, haproxy before them. Debian's packages.

    cluster = Patroni()
    db = cluster.fresh()                # db.dsn: both servers by name, target_session_attrs=read-write
    cluster.behind_haproxy(db.name)     # or one address
    cluster.kill_leader()               # kill -9 of its Patroni and all of its PostgreSQL: the election takes the lease's 20 s
    cluster.switch_over()               # orderly
"""
import contextlib
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import psycopg2

from daemon import eventually
from servers import Postgres, PostgresDatabase, at_end, free_port, new_path

ETCD, HAPROXY, PATRONI = "/usr/bin/etcd", "/usr/sbin/haproxy", "/usr/bin/patroni"
PATIENCE_S = 120
USER = Postgres.USER


class Process:
    """As the servers' user, in a session of its own."""

    def __init__(self, log, *command, **env):
        self.log = log
        user = Postgres._server_user()
        become = ["setpriv", "--pdeathsig", "KILL"]
        if os.getuid() == 0:
            become += ["--reuid", user, "--regid", user, "--clear-groups"]
        with open(log, "ab") as out:
            self.process = subprocess.Popen([*become, *map(str, command)], cwd="/", stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            start_new_session=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **env})
        at_end(self.kill)

    def kill(self, others=()):
        """With all that it has started, at the same time."""
        pids = [self.process.pid, *others, *(p for one in (self.process.pid, *others) for p in descendants(one))]
        for how in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
        self.process.wait(30)


def descendants(pid):
    found = []
    with contextlib.suppress(OSError):
        for child in open(f"/proc/{pid}/task/{pid}/children").read().split():
            found += [int(child), *descendants(int(child))]
    return found


class Node:
    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.home = cluster.home / name
        self.home.mkdir()
        self.port, self.rest = free_port(), free_port()
        local = {"listen": f"127.0.0.1:{self.rest}", "connect_address": f"127.0.0.1:{self.rest}"}
        hba = ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
        settings = {"synchronous_commit": "local", "shared_buffers": "16MB", "max_connections": 60, "fsync": "off", "wal_log_hints": "on"}
        self.config = self.home / "patroni.json"      # which is YAML, too
        self.config.write_text(json.dumps({
            "scope": "lapse", "name": name, "restapi": local, "etcd3": {"hosts": f"127.0.0.1:{cluster.etcd_port}"},
            "bootstrap": {"dcs": {"ttl": 20, "loop_wait": 1, "retry_timeout": 3, "maximum_lag_on_failover": 16 << 20,
                                  "postgresql": {"use_pg_rewind": True, "parameters": settings}},
                          "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, {"auth": "trust"}, "no-sync"], "pg_hba": hba},
            "postgresql": {"listen": f"127.0.0.1:{self.port}", "connect_address": f"127.0.0.1:{self.port}",
                           "data_dir": str(self.home / "data"), "bin_dir": str(cluster.bin), "pgpass": str(self.home / "pgpass"),
                           "authentication": {"superuser": {"username": USER, "password": "x"},
                                              "replication": {"username": USER, "password": "x"}},
                           "parameters": {"unix_socket_directories": str(self.home)}, "pg_hba": hba}}))
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", Postgres._server_user(), str(self.home)], check=True)

    def start(self):
        self.process = Process(self.home / "log", PATRONI, self.config)

    def kill(self):
        """Its PostgreSQL as well, which is not its child."""
        with contextlib.suppress(OSError):
            self.process.kill([int((self.home / "data/postmaster.pid").read_text().split()[0])])
            return
        self.process.kill()

    def status(self):
        """What its REST interface says; {}: nothing."""
        with contextlib.suppress(OSError):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.rest}/patroni", timeout=5) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as e:
                return json.load(e)
        return {}

    def is_leader(self):
        s = self.status()
        return s.get("role") in ("master", "primary") and s.get("state") == "running"

    def connect(self, db="postgres", **options):
        c = psycopg2.connect(dbname=db, user=USER, host="127.0.0.1", port=self.port, **options)
        c.autocommit = True
        return c


class Patroni:
    def __init__(self):
        for program in (ETCD, HAPROXY, PATRONI):
            if not os.path.exists(program):
                raise RuntimeError(f"{program} is not there: run scripts/setup cluster")
        self.home = new_path("patroni")
        self.home.mkdir()
        self.bin = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))[-1].parent
        self.etcd_port, peer, self.port = free_port(), free_port(), free_port()
        if os.getuid() == 0:
            subprocess.run(["chown", Postgres._server_user(), str(self.home)], check=True)
        url = f"http://127.0.0.1:{self.etcd_port}"
        self.etcd = Process(self.home / "etcd.log", ETCD, "--data-dir", self.home / "etcd", "--listen-client-urls", url,
                            "--advertise-client-urls", url, "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                            "--initial-cluster", f"default=http://127.0.0.1:{peer}")
        self.nodes = [Node(self, name) for name in ("a", "b")]
        for n in self.nodes:
            n.start()
        self.leader()
        eventually(self.streams, PATIENCE_S, words=self.logs)
        self.start_haproxy()

    def logs(self):
        return "\n".join(p.read_text()[-2000:] for p in (self.home / "etcd.log", *(n.home / "log" for n in self.nodes)))

    def leader(self):
        eventually(lambda: any(n.is_leader() for n in self.nodes), PATIENCE_S, words=self.logs)
        return next(n for n in self.nodes if n.is_leader())

    def streams(self):
        with contextlib.suppress(psycopg2.Error, StopIteration), contextlib.closing(self.leader().connect()) as c, c.cursor() as q:
            q.execute("select 1 from pg_stat_replication where state = 'streaming'")
            return q.fetchall()

    def start_haproxy(self):
        servers = "\n".join(f"  server {n.name} 127.0.0.1:{n.port} check port {n.rest}" for n in self.nodes)
        (self.home / "haproxy.cfg").write_text(f"""
global
  maxconn 200
defaults
  mode tcp
  timeout connect 2s
  timeout client 10m
  timeout server 10m
  timeout check 2s
listen postgres
  bind 127.0.0.1:{self.port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
{servers}
""")
        self.haproxy = Process(self.home / "haproxy.log", HAPROXY, "-db", "-f", self.home / "haproxy.cfg")

        def answers():
            with contextlib.suppress(psycopg2.Error):
                psycopg2.connect(self.behind_haproxy("postgres")).close()
                return True
        eventually(answers, PATIENCE_S, words=lambda: (self.home / "haproxy.log").read_text())

    def kill_leader(self):
        leader = self.leader()
        leader.kill()
        return leader

    def switch_over(self):
        leader = self.leader()
        other = next(n for n in self.nodes if n is not leader)
        body = json.dumps({"leader": leader.name, "candidate": other.name}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{leader.rest}/switchover", body), timeout=60):
            pass

    def behind_haproxy(self, db):
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{db}"

    def fresh(self):
        name = f"p{os.getpid()}_{free_port()}"
        with contextlib.closing(self.leader().connect()) as c, c.cursor() as q:
            q.execute(f'create database "{name}"')
        return OnPatroni(self, name)

    def stop(self):
        for p in (self.haproxy, *self.nodes, self.etcd):
            p.kill()


class OnPatroni(PostgresDatabase):
    """Its own connections go to whoever leads."""

    def __init__(self, cluster, name):
        self.cluster, self.name, self._connection = cluster, name, None
        hosts = ",".join(f"127.0.0.1:{n.port}" for n in cluster.nodes)
        self.dsn = f"postgresql://{USER}@{hosts}/{name}?target_session_attrs=read-write"

    def connect(self, **options):
        return self.cluster.leader().connect(self.name, **options)


__all__ = ["Patroni"]
