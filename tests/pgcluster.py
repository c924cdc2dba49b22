"""Real PostgreSQL clusters for the suites: a primary, a standby that streams from it, a pooler before them.

    pair = Pair(); db = pair.fresh()        # db.dsn names both servers, target_session_attrs=read-write
    pair.cut()                              # from here on nothing reaches the standby any more …
    pair.kill(); pair.promote()             # … and kill -9, and the standby takes over: pair.primary is now that one
    pair.rejoin()                           # the one that was killed comes back as its standby

    pool = Pooler(server, pool_size=1);  pool.dsn(name)     # a pgbouncer in transaction mode
"""
import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psycopg2

from daemon import eventually
from servers import Postgres, PostgresDatabase, at_end, free_port, new_path

# Commits are on disk before they are answered, as users have it. Quick to notice that the other side is gone.
SETTINGS = {
    "synchronous_commit": "local", "shared_buffers": "16MB", "autovacuum": "off", "wal_receiver_status_interval": "100ms",
    "wal_retrieve_retry_interval": "100ms", "hot_standby_feedback": "off", "max_standby_streaming_delay": "100ms",
    "max_connections": "40", "max_wal_senders": "5", "wal_keep_size": "64MB",
}


class Node(Postgres):
    """A server of a cluster; of: the one that it follows."""
    HBA = Postgres.HBA + "local replication all trust\n"

    def __init__(self, of=None, settings=None):
        self.of = of
        if of is None:
            super().__init__(port=True, settings={**SETTINGS, **(settings or {})})
            return
        self.home = new_path("pg")
        self.data, self.log = self.home / "data", self.home / "log"
        self.port, self.process, self.owned = free_port(), None, True
        self._names, self._spare = of._names, []
        self._admin, self._admin_lock, self.bin = None, of._admin_lock, of.bin
        self.home.mkdir()
        if os.getuid() == 0:
            shutil.chown(self.home, self._server_user())
        self.follow(of)
        at_end(self.stop)

    def follow(self, of):
        """Begins anew as the standby of another, with all that it has, and starts."""
        self.of = of
        shutil.rmtree(self.data, ignore_errors=True)
        made = subprocess.run(
            self._as_server(str(self.bin / "pg_basebackup"), "-D", str(self.data), "-h", str(of.home), "-p", str(of.port),
                            "-U", self.USER, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync"),
            cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={"PATH": os.environ["PATH"]})
        if made.returncode != 0:
            raise RuntimeError(f"pg_basebackup failed:\n{made.stdout}")
        with open(self.data / "postgresql.conf", "a") as f:
            f.write(f"port = {self.port}\nunix_socket_directories = '{self.home}'\n")
        self.start()

    def kill(self):
        """kill -9, of all its processes at the same time: one that is left would go on without the others."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        if self.process.poll() is not None:
            return
        os.kill(self.process.pid, signal.SIGSTOP)
        for pid in [*self.children(), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(30)

    def children(self, title=""):
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if stat.read_text().rsplit(")", 1)[1].split()[1] == str(self.process.pid) and \
                        title in (stat.parent / "cmdline").read_text():
                    found.append(int(stat.parent.name))
        return found

    def ask(self, sql, db="postgres"):
        with contextlib.closing(self.connect(db)) as c, c.cursor() as q:
            q.execute(sql)
            return q.fetchall()

    def set(self, **settings):
        """Changes settings that need no restart."""
        for name, value in settings.items():
            self.admin(f"alter system set {name} = '{value}'")
        self.admin("select pg_reload_conf()")

    def in_recovery(self):
        return self.ask("select pg_is_in_recovery()")[0][0]


class Pair:
    def __init__(self, settings=None, synchronous=False):
        self.primary = Node(settings=settings)
        self.standby = Node(of=self.primary)
        if synchronous:
            self.primary.set(synchronous_standby_names="*", synchronous_commit="on")
            self.wait_for("sync")
        self.nodes = [self.primary, self.standby]

    def wait_for(self, state="async"):
        """Until the standby streams."""
        eventually(lambda: self.primary.ask(f"select 1 from pg_stat_replication where state = 'streaming'"
                                            f" and sync_state = '{state}'"), words="the standby streams")

    def caught_up(self):
        """Until the standby has shown all that the primary has committed."""
        at = self.primary.ask("select pg_current_wal_lsn()")[0][0]
        eventually(lambda: self.standby.ask(f"select pg_last_wal_replay_lsn() >= '{at}'")[0][0], words="the standby caught up")

    def cut(self):
        """The standby gets nothing more; the primary does not notice."""
        senders = self.primary.children("walsender")
        assert senders
        for pid in senders:
            os.kill(pid, signal.SIGSTOP)

    def kill(self):
        self.primary.kill()

    def promote(self):
        """The standby becomes the primary."""
        self.standby.admin("select pg_promote()")
        eventually(lambda: not self.standby.in_recovery(), words="it is promoted")
        self.primary, self.standby = self.standby, self.primary

    def fail_over(self):
        self.kill()
        self.promote()

    def rejoin(self):
        """The one that was the primary follows the other."""
        self.standby.kill()
        self.standby.follow(self.primary)
        return self.standby

    def dsn(self, db, attrs="read-write", more=""):
        hosts = ",".join(f"127.0.0.1:{n.port}" for n in self.nodes)
        attrs = f"?target_session_attrs={attrs}" if attrs else ""
        return f"postgresql://{Node.USER}@{hosts}/{db}{attrs}{more}"

    def fresh(self):
        name = f"c{os.getpid()}_{next(self.primary._names)}"
        self.primary.admin(f'create database "{name}" template template0')
        return OnPair(self, name)

    def stop(self):
        for n in self.nodes:
            n.kill()


class OnPair(PostgresDatabase):
    """A database of a pair; the tests' own connections go to whichever is the primary now."""

    def __init__(self, pair, name):
        self.pair, self.name, self._connection = pair, name, None
        self.dsn = pair.dsn(name)

    @property
    def server(self):
        return self.pair.primary

    def connect(self, **options):
        return self.pair.primary.connect(self.name, **options)

    def moved(self):
        """After a failover."""
        self.close()
        return self

    def on_standby(self, sql):
        return self.pair.standby.ask(sql, self.name)


class Pooler:
    """A pgbouncer that gives each transaction a server connection of its own. It asks everyone for a password, which it
    has in its file."""
    PASSWORD = "Open-Sesame-7"
    HBA = ""

    def __init__(self, server, **settings):
        self.home = new_path("pool")
        self.port = free_port()
        self.server, self.process, self.databases = server, None, {}
        self.log = self.home / "log"
        self.settings = {"pool_mode": "transaction", "default_pool_size": 10, "max_client_conn": 200,
                         "auth_type": "scram-sha-256", "auth_file": self.home / "users", "auth_hba_file": self.home / "hba",
                         "server_login_retry": "0.2", "query_wait_timeout": "20", "admin_users": "postgres",
                         "ignore_startup_parameters": "", "unix_socket_dir": self.home, "listen_addr": "127.0.0.1",
                         "listen_port": self.port, "logfile": self.log, "log_connections": 0, "log_disconnections": 0,
                         **settings}
        self.home.mkdir()
        (self.home / "hba").write_text(self.HBA)
        (self.home / "users").write_text("".join(
            f'"{name}" "{self.PASSWORD}"\n' for name in (Postgres.USER, "app")))
        self.write()
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", Postgres._server_user(), str(self.home)], check=True)
        self.start()
        at_end(self.stop)

    def write(self):
        lines = [f"* = host={self.server.home} port={self.server.port or 5432}"]
        settings = [f"{k} = {v}" for k, v in self.settings.items()]
        (self.home / "ini").write_text("\n".join(["[databases]", *lines, "[pgbouncer]", *settings, ""]))

    def start(self):
        (self.home / f".s.PGSQL.{self.port}").unlink(missing_ok=True)
        self.process = subprocess.Popen(
            self.server._as_server("/usr/sbin/pgbouncer", "-q", str(self.home / "ini")), cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env={"PATH": os.environ["PATH"]})

        def answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"pgbouncer did not start:\n{self.log.read_text() if self.log.exists() else ''}")
            with contextlib.suppress(psycopg2.OperationalError):
                self.say("show version")
                return True
        eventually(answers, 10, words=lambda: self.log.read_text())

    def say(self, command):
        """A command of its console."""
        c = psycopg2.connect(dbname="pgbouncer", user="postgres", password=self.PASSWORD, host="127.0.0.1", port=self.port)
        with contextlib.closing(c):
            c.autocommit = True
            with c.cursor() as q:
                q.execute(command)
                return q.fetchall() if q.description else None

    def move(self, server, at_once=True):
        """Another server is behind it from now on."""
        self.server = server
        self.write()
        self.say("reload")
        if at_once:
            self.say("reconnect")

    def stop(self, how=signal.SIGKILL):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
            self.process.wait(20)

    def dsn(self, db, user=Postgres.USER, more=""):
        return f"postgresql://{user}:{self.PASSWORD}@127.0.0.1:{self.port}/{db}{more}"


__all__ = ["Node", "OnPair", "Pair", "Pooler"]
