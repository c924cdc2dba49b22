"""A proxy between the program and PostgreSQL that can stop before any statement, and lose any answer.

It reads the frontend protocol only as far as it must: a statement is a Query, or everything up to a Sync. Before it
passes one on it asks its `before` function, which may let another session act, and which answers what to do:

    PASS    the statement goes on to the server (also None)
    CUT     both connections are closed, the server never sees the statement
    MUTE    the server gets the statement and answers it; the answer is thrown away and both connections closed
    DEAF    the server gets the statement and both connections are closed at once
    STRAND  only the program's connection is closed; the server notices half a second later

    with Proxy(db, before=lambda s: CUT if s.number == 3 else PASS) as proxy:
        lapse(proxy.dsn, contract, "sweep")
    proxy.seen      # every statement that came, in order
"""
import contextlib
import socket
import struct
import threading
import time

from harness import new_path

PASS, CUT, MUTE, DEAF, STRAND = None, "cut", "mute", "deaf", "strand"


class Statement:
    def __init__(self, number, connection, sql):
        self.number, self.connection, self.sql = number, connection, sql      # numbers begin at 1

    @property
    def begins_batch(self):
        return self.sql.startswith("BEGIN ISOLATION LEVEL READ COMMITTED")

    @property
    def ends_batch(self):
        return self.sql.startswith(("COMMIT", "ROLLBACK")) and not self.sql.startswith("ROLLBACK TO")

    def __repr__(self):
        return f"{self.number}: {' '.join(self.sql.split())[:60]}"


class Proxy:
    def __init__(self, db, before=None):
        self._server = str(db.server.home / f".s.PGSQL.{db.server.port or 5432}")
        self._before = before or (lambda statement: PASS)
        self._lock = threading.Lock()
        self._open = []
        self.seen = []
        self.connections = 0
        self.trouble = None      # what went wrong in the `before` function
        home = new_path("proxy")
        home.mkdir()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(home / ".s.PGSQL.5432"))
        self._listener.listen(16)
        self.dsn = f"postgresql://{db.server.USER}@/{db.name}?host={home}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.close()
        if kind is None and self.trouble is not None:
            raise self.trouble

    def close(self):
        _close(self._listener, *self._open)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._server)
                except OSError:
                    _close(client, server)
                    continue
                with self._lock:
                    self.connections += 1
                    link = _Link(self, self.connections, client, server)
                    self._open += [client, server]
                link.start()

    def _ask(self, connection, sql):
        with self._lock:
            statement = Statement(len(self.seen) + 1, connection, sql)
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
        self.mute = False

    def start(self):
        for way in (self._forth, self._back):
            threading.Thread(target=way, daemon=True).start()

    def _close(self):
        _close(self.client, self.server)

    def _forth(self):
        with contextlib.suppress(OSError, EOFError):
            head = _exactly(self.client, 4)
            self.server.sendall(head + _exactly(self.client, struct.unpack("!I", head)[0] - 4))
            waiting, sql = b"", None
            while True:
                kind, message = _message(self.client)
                waiting += message
                if kind == b"Q":
                    sql = message[5:-1].decode(errors="replace")
                elif kind == b"P":
                    sql = message[5:].split(b"\0")[1].decode(errors="replace")
                if kind in (b"Q", b"S") and sql is not None:
                    self._statement(sql, waiting)
                    waiting, sql = b"", None
                elif kind in (b"p", b"X"):      # a password, the end
                    self.server.sendall(waiting)
                    waiting = b""
        self._close()

    def _statement(self, sql, messages):
        what = self.proxy._ask(self.number, sql)
        if what == CUT:
            raise EOFError
        if what == STRAND:
            _close(self.client)
            time.sleep(0.5)
            raise EOFError
        self.mute = what in (MUTE, DEAF)
        self.server.sendall(messages)
        if what == DEAF:
            self.server.shutdown(socket.SHUT_WR)
            self.client.close()

    def _back(self):
        with contextlib.suppress(OSError, EOFError):
            while True:
                kind, message = _message(self.server)
                if not self.mute:
                    self.client.sendall(message)
                elif kind == b"Z":
                    break
        self._close()


def _message(s):
    head = _exactly(s, 5)
    return head[:1], head + _exactly(s, struct.unpack("!I", head[1:])[0] - 4)


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
        self.pid = self.connection.get_backend_pid()
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
                    c.execute(sql)
                self.rows = c.rowcount
        except Exception as e:
            self.error = e

    def waits(self):
        with self._watch.cursor() as c:
            c.execute("select 1 from pg_locks where not granted and pid = %s", (self.pid,))
            return bool(c.fetchall())

    def finish(self, timeout=30):
        """The rows of the last statement, once whatever held it up is gone."""
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise AssertionError("the other session still waits for a lock")
            self._thread = None
        return self.rows
