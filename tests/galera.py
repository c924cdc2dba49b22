"""A real Galera cluster for tests: three MariaDB servers on 127.0.0.1 to 127.0.0.3, in a temporary folder.

    cluster = Galera()                  # about six seconds: every node starts with the same state, so none is copied
    a, b, c = cluster.nodes             # each is a Mariadb
    db = cluster.fresh()                # a new database; db.on(b) is the same one, seen through node b
    b.kill(); b.rejoin()                # -9, and back: what it missed is sent to it (IST, or SST by rsync)
    with b.frozen(): …                  # SIGSTOP; thawed at the end
    c.isolate(); c.join_again()         # cut off: a component of its own, which is not primary
    cluster.settle()                    # every node is synced and has applied what was committed anywhere
"""
import contextlib
import os
import pathlib
import re
import signal
import socket
import time
import uuid

from mariadb import Mariadb, MariadbDatabase
from servers import at_end, new_path

PROVIDER = "/usr/lib/galera/libgalera_smm.so"
ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
PATIENCE_S = 60


class ClusterDatabase(MariadbDatabase):
    """A database of the cluster, seen through one node."""

    def on(self, node):
        return ClusterDatabase(node, self.name)


class Node(Mariadb):
    """One server of a cluster. Ready means synced: a member of the primary component that has caught up."""

    def __init__(self, cluster, number, like):
        self.cluster, self.number, self.address = cluster, number, ADDRESSES[number]
        self.home = cluster.home / f"node{number + 1}"
        self.data, self.log, self.socket = self.home / "data", self.home / "log", self.home / "socket"
        self.process, self.port = None, cluster.ports["sql"]
        self._settings = {**self.SETTINGS, **self.CARELESS, **cluster.settings(self.address)}
        self._forget()
        self._create(like)

    def status(self, name):
        return dict(self.admin(f"show status like 'wsrep\\_{name}'"))[f"wsrep_{name}"]

    def ready(self):
        return self.status("ready") == "ON" and self.status("local_state_comment") == "Synced"

    def dsn(self, db, user=None, password=None, tcp=False):
        return super().dsn(db, user, password, tcp).replace(ADDRESSES[0], self.address)

    # --- what happens to nodes

    def stop(self, how=signal.SIGKILL):
        with contextlib.suppress(Exception):
            self._admin.close()
        self._admin = None
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):   # with its scripts and their rsync
                os.killpg(self.process.pid, how)
                os.killpg(self.process.pid, signal.SIGCONT)
            self.process.wait(60)

    def kill(self):
        self.stop(signal.SIGKILL)

    def rejoin(self, wait=True):
        """Back after kill() or stop(), from where its tables say that it was."""
        self.launch(f"--wsrep-start-position={self._position()}")
        if wait:
            self.wait_until_ready()

    def _position(self):
        before = self.log.stat().st_size
        self.launch("--wsrep-recover")
        self.process.wait(PATIENCE_S)
        said = self.log.read_text()[before:]
        found = re.findall(r"Recovered position:\s*(\S+:-?\d+)", said)
        if not found:
            raise RuntimeError(f"no position of a crashed node:\n{said[-3000:]}")
        return found[-1]

    @contextlib.contextmanager
    def frozen(self):
        self.freeze()
        try:
            yield
        finally:
            self.thaw()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def isolate(self):
        """Cuts it off from the others, as a broken network does. It goes on answering, with 1047."""
        self.admin("set global wsrep_provider_options = 'gmcast.isolate=1'")
        self._until(lambda: self.status("cluster_status") != "Primary", "is still primary")

    def join_again(self):
        self.admin("set global wsrep_provider_options = 'gmcast.isolate=0'")
        self.wait_until_ready()

    def _until(self, what, complaint):
        deadline = time.monotonic() + PATIENCE_S
        while not what():
            if time.monotonic() > deadline:
                raise RuntimeError(f"node {self.number + 1} {complaint}:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)


class Galera:
    """Three nodes. settings: further options of every node."""

    def __init__(self, settings=None):
        if not pathlib.Path(PROVIDER).exists():
            raise RuntimeError(f"no {PROVIDER}: run scripts/setup test")
        self._more, self.nodes = settings or {}, []
        at_end(self.stop)
        while not self._started():
            self.stop()

    def _started(self):
        """False: a port that was free is another's by now."""
        self.home, self.name = new_path("galera"), f"lapse-{uuid.uuid4().hex[:12]}"
        self.ports, self.nodes = free_ports("sql", "group", "ist", "sst"), []
        self.home.mkdir()
        self.home.chmod(0o755)
        try:
            self.start()
        except RuntimeError as why:
            if "Address already in use" not in str(why):
                raise
            return False
        return True

    def settings(self, address):
        group = ",".join(f"{a}:{self.ports['group']}" for a in ADDRESSES)
        provider = (f"gmcast.listen_addr=tcp://{address}:{self.ports['group']};ist.recv_addr={address}:{self.ports['ist']};"
                    "gcache.size=32M;pc.recovery=no")
        return {"bind-address": address, "binlog-format": "ROW", "innodb-autoinc-lock-mode": "2",
                "default-storage-engine": "InnoDB", "innodb-flush-log-at-trx-commit": "2", "wsrep-on": "ON",
                "wsrep-provider": PROVIDER, "wsrep-cluster-name": self.name,
                "wsrep-cluster-address": f"gcomm://{group}", "wsrep-node-address": f"{address}:{self.ports['group']}",
                "wsrep-node-name": address, "wsrep-provider-options": provider, "wsrep-sst-method": "rsync",
                "wsrep-sst-receive-address": f"{address}:{self.ports['sst']}", "wsrep-slave-threads": "1", **self._more}

    def start(self):
        """All three begin as copies of a cluster of one that was shut down: so none has to be sent a copy."""
        first = Node(self, 0, None)
        self.nodes.append(first)
        first.launch("--wsrep-new-cluster")
        first.wait_until_ready()
        first.admin("create user if not exists root@'%'")
        first.admin("grant all privileges on *.* to root@'%' with grant option")
        first.stop(signal.SIGTERM)
        self.nodes += [Node(self, i, first.data) for i in (1, 2)]
        for i, node in enumerate(self.nodes):
            node.launch(*(["--wsrep-new-cluster"] if i == 0 else []))
        for node in self.nodes:
            node.wait_until_ready()

    def stop(self):
        for node in self.nodes:
            node.stop()

    def fresh(self):
        return ClusterDatabase(self.nodes[0], self.nodes[0].fresh().name)

    def settle(self):
        """Waits until every node is synced and has applied what was committed anywhere before this call."""
        for node in self.nodes:
            node.wait_until_ready()
        at = max(int(n.status("last_committed")) for n in self.nodes)
        for node in self.nodes:
            node._until(lambda: int(node.status("last_committed")) >= at, f"has not applied {at}")


def free_ports(*names):
    """{name: a port that is free on every address}."""
    found = {}
    while len(found) < len(names):
        with socket.socket() as s:
            s.bind((ADDRESSES[0], 0))
            port = s.getsockname()[1]
        if port not in found.values() and all(_is_free(a, port) for a in ADDRESSES):
            found[names[len(found)]] = port
    return found


def _is_free(address, port):
    with socket.socket() as s:
        try:
            s.bind((address, port))
        except OSError:
            return False
    return True
