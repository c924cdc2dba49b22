"""A proxy between the program and its server that can stop before any statement, and lose any answer.

It reads the protocol of PostgreSQL and of MariaDB only as far as it must: a statement is a Query, or everything up to
an Execute, also of many that are sent at once; a command that has text. Before it passes one on it asks its `before` function, which may let another session act, and which answers what to do:

    PASS    the statement goes on to the server (also None)
    CUT     both connections are closed, the server never sees the statement
    MUTE    the server gets the statement and answers it; the answer is thrown away and both connections closed
    DEAF    the server gets the statement and both connections are closed at once
    STRAND  only the program's connection is closed; the server notices half a second later
    Refuse(number, state, words)
            of MariaDB's: the server rolls the transaction back instead, and the program hears this error

    with Proxy(db, before=lambda s: CUT if s.number == 3 else PASS) as proxy:
        lapse(proxy.dsn, contract, "sweep")
    proxy.seen      # every statement that came, in order

apart=False: of statements that came at once it asks one by one, too, but sends them on at once, after the last answer: a program that
is frozen has sent all of them or none.
A sweep asks by the clock how others fare. Where statements are known by their numbers, looks=False lets these pass unseen.
patience_s: so long it waits for a server that is not there, and its client with it.
refuse(n): the next n connections are closed at once; hang(): from now on nobody answers a new one. `refused` counts them.
version: a MariaDB 10.11 that says it is this one ("10.05": as long as its own).
"""
import contextlib
import re
import socket
import struct
import threading
import time

from harness import new_path
from mariadb import translated

PASS, CUT, MUTE, DEAF, STRAND = None, "cut", "mute", "deaf", "strand"

# How others fare: a transaction of its own with a limit of its own on PostgreSQL, a statement or two on MariaDB.
LOOK_BEGINS = re.compile(r"BEGIN .*READ ONLY; .*\bstatement_timeout = 5000;", re.S)
LOOKS = ("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_insert'", "SET SESSION wsrep_sync_wait = 0")


class Refuse:
    def __init__(self, number, state, words):
        said = words.encode()
        content = b"\xff" + struct.pack("<H", number) + b"#" + state.encode() + said
        self.packet = struct.pack("<I", len(content))[:3] + b"\x01" + content


class Statement:
    def __init__(self, number, connection, sql, look=False):
        self.number, self.connection, self.look = number, connection, look      # numbers begin at 1
        self.sql = re.sub("^SET STATEMENT .*? FOR (?=DELETE )", "", sql)      # MariaDB: with a setting for it alone

    @property
    def begins(self):
        return self.sql.startswith(("BEGIN", "START TRANSACTION"))

    @property
    def begins_batch(self):
        return self.sql.startswith(("BEGIN ISOLATION LEVEL READ COMMITTED", "START TRANSACTION READ WRITE"))

    @property
    def ends_batch(self):
        return self.sql.startswith(("COMMIT", "ROLLBACK")) and not self.sql.startswith("ROLLBACK TO")

    def __repr__(self):
        return f"{self.number}: {' '.join(self.sql.split())[:60]}"


class Proxy:
    def __init__(self, db, before=None, looks=True, patience_s=0, version=None, apart=True):
        self._before = before or (lambda statement: PASS)
        self._looks, self._looking, self._patience_s = looks, set(), patience_s
        self.version, self.apart = version, apart
        self._lock = threading.Lock()
        self._open = []
        self.seen = []
        self.connections = self.refused = self._to_refuse = 0
        self._hangs = False
        self.backends = []       # the numbers by which the server knows the connections
        self.trouble = None      # what went wrong in the `before` function
        home = new_path("proxy")
        home.mkdir()
        if db.engine == "postgres":
            self._kind = _PostgresLink
            self._server = getattr(db.server, "entrance", str(db.server.home / f".s.PGSQL.{db.server.port or 5432}"))
            here = home / ".s.PGSQL.5432"
            self.dsn = f"postgresql://{db.server.USER}@/{db.name}?host={home}"
        else:
            self._kind, self._server, here = _MariadbLink, str(db.server.socket), home / "socket"
            self.dsn = f"mariadb://{db.server.USER}@localhost/{db.name}?socket={here}"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(here))
        self._listener.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.close()
        if kind is None and self.trouble is not None:
            raise self.trouble

    def close(self):
        _close(self._listener, *self._open)

    def refuse(self, n):
        self._to_refuse = n

    def hang(self):
        self._hangs = True

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._hangs or self._to_refuse > 0:
                    self._to_refuse -= 1
                    self.refused += 1
                    if self._hangs:
                        self._open.append(client)
                    else:
                        _close(client)
                    continue
                server = self._reach()
                if server is None:
                    _close(client)
                    continue
                with self._lock:
                    self.connections += 1
                    link = self._kind(self, self.connections, client, server)
                    self._open += [client, server]
                link.start()

    def _reach(self):
        """A connection to the server; None if it is not to be had in time."""
        deadline = time.monotonic() + self._patience_s
        while True:
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._server)
                return server
            except OSError:
                server.close()
                if time.monotonic() >= deadline:
                    return None
                time.sleep(0.05)

    def _is_look(self, connection, sql):
        if LOOK_BEGINS.match(sql):
            self._looking.add(connection)
        elif connection in self._looking and sql.startswith("ROLLBACK"):
            self._looking.discard(connection)
            return True
        return connection in self._looking or sql.startswith(LOOKS)

    def _ask(self, connection, sql):
        look = self._is_look(connection, sql)
        if look and not self._looks:
            return PASS
        with self._lock:
            statement = Statement(len(self.seen) + 1, connection, sql, look)
            self.seen.append(statement)
        try:
            return self._before(statement)
        except BaseException as e:      # the test must see it, not this thread
            self.trouble = self.trouble or e
            return CUT


class _Link:
    """One connection: a thread for each way."""

    def __init__(self, proxy, number, client, server):
        self.proxy, self.number, self.client, self.server = proxy, number, client, server
        self.mute, self.instead = False, None

    def start(self):
        for way in (self._forth, self._back):
            threading.Thread(target=way, daemon=True).start()

    def _forth(self):
        with contextlib.suppress(OSError, EOFError):
            self._read_client()
        _close(self.client, self.server)

    def _back(self):
        with contextlib.suppress(OSError, EOFError):
            self._read_server()
        _close(self.client, self.server)

    def _statement(self, sql, messages):
        what = self.proxy._ask(self.number, sql)
        if what == CUT:
            raise EOFError
        if what == STRAND:
            _close(self.client)
            time.sleep(0.5)
            raise EOFError
        self.mute = what in (MUTE, DEAF)
        if isinstance(what, Refuse):
            self.instead, messages = what.packet, self.ROLLBACK
        self.server.sendall(messages)
        if what == DEAF:
            self.server.shutdown(socket.SHUT_WR)
            self.client.close()


class _PostgresLink(_Link):
    FLUSH = b"H\0\0\0\x04"
    DONE = (b"C", b"I", b"s", b"E")      # one of many has ended

    def __init__(self, *args):
        super().__init__(*args)
        self.named = {b"": ""}
        self.ends = (b"Z",)                # what ends the answer to the statement
        self.ended = threading.Event()     # one of many, which others follow
        self.failed = False                # one of many: the server ignores the rest
        self.held = b""                    # the first of many, which go on together

    def _read_client(self):
        head = _exactly(self.client, 4)
        self.server.sendall(head + _exactly(self.client, struct.unpack("!I", head)[0] - 4))
        waiting, sql, runs = b"", None, False
        while True:
            kind, message = self._message(self.client)
            if runs and kind != b"S":       # others follow: they must not come before this one has ended
                self._one_of_many(sql, waiting)
                waiting, sql, runs = b"", None, False
            waiting += message
            if kind == b"Q":
                sql = message[5:-1].decode(errors="replace")
            elif kind == b"P":
                name, text = message[5:].split(b"\0")[:2]
                self.named[name] = text.decode(errors="replace")
                sql = f"PREPARE {name.decode()} AS {self.named[name]}" if name else self.named[name]
            elif kind == b"B":
                sql = self.named[message[5:].split(b"\0")[1]]
            runs = kind == b"E"
            if kind in (b"Q", b"S"):
                self.ends = (b"Z",)
                waiting, self.held = self.held + waiting, b""
                if sql is None or self.failed:
                    self.server.sendall(waiting)
                else:
                    self._statement(sql, waiting)
                waiting, sql = b"", None
            elif kind in (b"p", b"X"):      # a password, the end
                self.server.sendall(waiting)
                waiting = b""

    def _one_of_many(self, sql, messages):
        if self.failed:
            self.server.sendall(messages)
        elif not self.proxy.apart:
            self._statement(sql, b"")
            self.held += messages
        else:
            self.ends = self.DONE
            self.ended.clear()
            self._statement(sql, messages + self.FLUSH)
            self.ended.wait()

    def _read_server(self):
        while True:
            kind, message = self._message(self.server)
            self.failed = kind == b"E" or self.failed and kind != b"Z"
            if kind == b"K":
                self.proxy.backends.append(int.from_bytes(message[5:9], "big"))
            if not self.mute:
                self.client.sendall(message)
            elif kind in self.ends:
                break
            if kind in self.DONE:
                self.ended.set()

    def _back(self):
        super()._back()
        self.ended.set()

    @staticmethod
    def _message(s):
        head = _exactly(s, 5)
        return head[:1], head + _exactly(s, struct.unpack("!I", head[1:])[0] - 4)


class _MariadbLink(_Link):
    """A packet is its length in three bytes, its number in the exchange, and its content; a command has number 0."""
    QUERY, PREPARE, EXECUTE = 0x03, 0x16, 0x17
    ROLLBACK = b"\x09\0\0\0\x03ROLLBACK"

    def _read_client(self):
        while True:
            packet = self._packet(self.client)
            command = packet[4] if len(packet) > 4 and packet[3] == 0 else None
            if command in (self.QUERY, self.PREPARE):
                self._statement(packet[5:].decode(errors="replace"), packet)
            elif command == self.EXECUTE:
                self._statement(f"EXECUTE {int.from_bytes(packet[5:9], 'little')}", packet)
            else:
                self.server.sendall(packet)

    def _read_server(self):
        greeting = self._packet(self.server)
        number = greeting.index(b"\0", 5) + 1      # behind the server's version
        self.proxy.backends.append(int.from_bytes(greeting[number:number + 4], "little"))
        if self.proxy.version:
            greeting = greeting.replace(b"-10.11.", f"-{self.proxy.version}.".encode(), 1)
        self.client.sendall(greeting)
        while True:
            packet = self._packet(self.server)
            if self.mute:      # the first of the answer: it is done
                break
            if self.instead:
                packet, self.instead = self.instead, None
            self.client.sendall(packet)

    @staticmethod
    def _packet(s):
        whole, more = b"", True
        while more:
            head = _exactly(s, 4)
            length = int.from_bytes(head[:3], "little")
            whole += head + _exactly(s, length)
            more = length == 0xffffff
        return whole


def _exactly(s, n):
    parts = []
    while n:
        part = s.recv(n)
        if not part:
            raise EOFError
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def _close(*sockets):
    for s in sockets:
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_RDWR)
        s.close()


class Session:
    """Another client of the database that may have to wait for a lock."""

    def __init__(self, db):
        self.db = db
        self.connection = db.connect()
        self.pid = self.connection.get_backend_pid() if db.engine == "postgres" else self.connection.thread_id()
        self.rows, self.error = None, None      # of the last statement; rows None: it failed or did not end
        self._thread = None
        self._watch = db.connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.finish()
        self.connection.close()
        self._watch.close()

    def do(self, *statements):
        """Runs them one after another; returns when they are done or wait for a lock."""
        self.finish()
        self.rows, self.error = None, None
        self._thread = threading.Thread(target=self._run, args=(statements,), daemon=True)
        self._thread.start()
        while self._thread.is_alive() and not self.waits():
            self._thread.join(0.004)
        return self

    def _run(self, statements):
        try:
            with self.connection.cursor() as c:
                for sql in statements:
                    c.execute(translated(sql) if self.db.engine == "mariadb" else sql)
                self.rows = c.rowcount
        except Exception as e:
            self.error = e

    def waits(self):
        with self._watch.cursor() as c:
            if self.db.engine == "postgres":
                c.execute("select 1 from pg_locks where not granted and pid = %s", (self.pid,))
                return bool(c.fetchall())
            c.execute("show engine innodb status")      # information_schema.innodb_trx is late
            status = c.fetchone()[2]
            return any("LOCK WAIT" in t and f"thread id {self.pid}," in t for t in status.split("---TRANSACTION"))

    def finish(self, timeout=30):
        """The rows of the last statement, once whatever held it up is gone."""
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise AssertionError("the other session still waits for a lock")
            self._thread = None
        return self.rows
