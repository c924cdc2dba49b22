"""Freezing a program that works on a SQLite file: while it has the file's lock, or while it waits for it."""
import contextlib
import signal
import sqlite3
import time
from pathlib import Path


def frozen(p):
    """Stops it; returns when every thread of it stands still."""
    p.signal(signal.SIGSTOP)
    tasks = Path(f"/proc/{p.pid}/task")
    while p.running() and any("\nState:\tT" not in (t / "status").read_text() for t in tasks.iterdir()):
        time.sleep(0.001)


def between_batches(case, p):
    """Whoever has the file lock lets it wait for its next one, and freezes it there."""
    with contextlib.closing(sqlite3.connect(case.db.path, timeout=0, isolation_level=None)) as c:
        while True:
            case.assertTrue(p.running(), p)
            with contextlib.suppress(sqlite3.OperationalError):
                c.execute("begin immediate")
                break
        time.sleep(0.1)
        frozen(p)
        c.execute("rollback")


def in_a_batch(case, p):
    with contextlib.closing(sqlite3.connect(case.db.path, timeout=0.05, isolation_level=None)) as c:
        while True:
            frozen(p)
            case.assertTrue(p.running(), p)
            try:
                c.execute("begin immediate")
                c.execute("rollback")
            except sqlite3.OperationalError:
                return
            p.signal(signal.SIGCONT)
            time.sleep(0.002)
