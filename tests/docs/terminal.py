"""A terminal for the examples of the pages. Commands run one after the other in a folder; one with & at its end goes on
behind, and what it logs stands below the command during which it came. %1 is the first that still runs.

The program listens where nobody else does: 9933 in a page is another port here. `systemctl stop postgresql` stops a real
server, which is there for the page alone.
"""
import os
import pty
import re
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

from harness import Postgres, _environment, free_port, at_end, program

QUIET_S = 0.7           # so long nothing must be logged for it to be over
LOG_S = 20              # so long is waited for a line that is to come


class Job:
    """A command in the background, with a terminal of its own."""

    def __init__(self, command, folder, env):
        here, there = pty.openpty()
        self.process = subprocess.Popen(["sh", "-c", f"exec {command}"], cwd=folder, env=dict(env, TERM="dumb"),
                                        stdin=subprocess.DEVNULL, stdout=there, stderr=there, start_new_session=True)
        os.close(there)
        self.text, self.shown, self.grew = "", 0, time.monotonic()
        self.reader = threading.Thread(target=self._read, args=(here,), daemon=True)
        self.reader.start()
        at_end(self.kill)

    def _read(self, fd):
        rest = b""
        while True:
            try:
                got = os.read(fd, 65536)
            except OSError:         # its other end was closed
                got = b""
            if not got:
                break
            whole, newline, rest = (rest + got).rpartition(b"\n")
            self.text += (whole + newline).decode().replace("\r\n", "\n")
            self.grew = time.monotonic()
        os.close(fd)

    def new(self):
        return self.text.splitlines(keepends=True)[self.shown:]

    def show(self):
        new = self.new()
        self.shown += len(new)
        return "".join(new)

    def signal(self, name):
        self.process.send_signal(getattr(signal, f"SIG{name}"))
        if name != "HUP":
            self.process.wait(60)
            self.reader.join(10)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Terminal:
    def __init__(self, folder):
        self.folder, self.jobs, self.port, self._server = Path(folder), [], free_port(), None
        self.env = {}
        bin = self.folder / "bin"
        bin.mkdir(exist_ok=True)
        for name in ("lapse", "example_workflow"):
            if not (bin / name).exists():
                (bin / name).symlink_to(Path(program()).with_name(name))
        self.path = f"{bin}:{os.environ['PATH']}"

    def server(self):
        """The page's own PostgreSQL, with an empty database `app`."""
        if not self._server:
            self._server = Postgres()
            self._server.admin("create database app template template0")
            self.env |= {"PGHOST": str(self._server.home), "PGUSER": self._server.USER}
        return self._server

    def sql(self, text):
        """Run on the database of most pages."""
        db = sqlite3.connect(self.folder / "app.db")
        db.executescript(text)
        db.close()

    def contract(self, text):
        """As the page has it, but at another port. A file without a store is none."""
        if not re.search(r"^store:", text, re.M):
            return text
        text = text.replace("9933", str(self.port))
        return text if re.search(r"^serve:", text, re.M) else f"{text}serve: {{ listen: 127.0.0.1:{self.port} }}\n"

    def _start(self, command, env):
        self.jobs.append(Job(command.removesuffix("&"), self.folder, env))
        return ""

    def _kill(self, name, number):
        running = [job for job in self.jobs if job.process.poll() is None]
        running[int(number) - 1].signal(name or "TERM")
        return ""

    def _service(self, what):
        if what == "stop":
            self.server().stop(signal.SIGINT)
        else:
            self.server().start()
        return ""

    def _plain(self, command, env):
        p = subprocess.run(["sh", "-c", command], cwd=self.folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=60)
        return (p.stdout or p.stderr).decode()

    def run(self, command, said=""):
        """What it prints, and then what the jobs log until there are as many lines as are said."""
        env = _environment({"PATH": self.path, **self.env})
        command = command.replace("9933", str(self.port))
        kill = re.fullmatch(r"kill (?:-(\w+) )?%(\d)", command)
        service = re.fullmatch(r"systemctl (stop|start) postgresql", command)
        out = self._start(command, env) if command.endswith(" &") else self._kill(*kill.groups()) if kill \
            else self._service(service[1]) if service else self._plain(command, env)
        shown = (out + self._heard(said.count("\n") - out.count("\n"))).replace(str(self.port), "9933")
        return shown.replace(str(self._server.home), "/var/run/postgresql") if self._server else shown

    def _heard(self, lines):
        if not self.jobs:
            return ""
        end = time.monotonic() + LOG_S
        while time.monotonic() < end and sum(len(job.new()) for job in self.jobs) < lines:
            time.sleep(0.02)
        while time.monotonic() - max(job.grew for job in self.jobs) < QUIET_S:
            time.sleep(0.02)
        return "".join(job.show() for job in self.jobs)

    def close(self):
        """Ends what is still running."""
        for job in self.jobs:
            job.kill()
        if self._server:
            self._server.stop()
