"""A running `lapse run` for the suites: its log line by line, its HTTP, its end.

    with Daemon(self.db, CONTRACT) as d:
        d.wait_for("lifecycle_pruned", job=3)           # by the word after the scheduler, or `lapse.started`
        d.http("/readyz")                               # (status, body)
        d.metrics()["lifecycle_prune_rows_total", "main", "job", "job"]
    # it was stopped: exit 0, no sanitizer's report, every line of its log as docs/log.schema.json says

The contract gets `serve: { listen: 127.0.0.1:0 }` unless it has a serve of its own. Lines are kept in d.lines.
"""
import contextlib
import http.client
import json
import os
import re
import resource
import subprocess
import threading
import time
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGTERM

import jsonschema

from harness import ROOT, Result, _SANITIZER, _environment, at_end, contract_file, folder, program

SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "docs" / "log.schema.json").read_text()))
SERVE = "serve: { listen: 127.0.0.1:0 }\n"
FIXED = {"time", "level", "event", "scheduler", "message"}


PATIENCE_S = 60         # for what comes within a second where nobody else works

BUILDS = {"LAPSE_BUILD_PLAIN": "build", "LAPSE_BUILD_TSAN": "build-tsan"}


def built(name):
    """The program of another build than the one under test. make test says where they are."""
    path = Path(os.environ.get(name, ROOT / BUILDS[name])) / "lapse"
    if not path.is_file():
        raise AssertionError(f"{path} is not there: run make all threads")
    return str(path)


def eventually(ask, timeout=PATIENCE_S, every=0.02, words=""):
    """Asks until the answer is true; returns it."""
    end = time.monotonic() + timeout
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {words() if callable(words) else words or ask}")
        time.sleep(every)


def parse_metrics(text):
    """{(name, label values…): number} of the Prometheus text format; labels in the order they are written."""
    found = {}
    for line in text.split("\n"):      # a label may hold what splitlines takes for an end
        if not line or line.startswith("#"):
            continue
        name, labels, number = re.fullmatch(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)", line).groups()
        values = [re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), v)
                  for v in re.findall(r'\w+="((?:[^"\\]|\\.)*)"', labels or "")]
        key = (name, *values)
        if key in found:
            raise AssertionError(f"twice in the metrics: {line}")
        found[key] = float(number)
    return found


def wrong_with(line):
    """What is wrong with a line of the log, or None."""
    try:
        entry = json.loads(line)
    except ValueError as e:
        return f"not JSON ({e})"
    for e in SCHEMA.iter_errors(entry):
        return f"{'/'.join(map(str, e.absolute_path)) or 'the line'}: {e.message}"
    if entry["event"].endswith(".lifecycle_pruned"):
        went = any(isinstance(v, int) and v > 0 for k, v in entry.items() if k not in FIXED | {"now"})
        if (entry["level"] == "info") != went:
            return f"level {entry['level']} where {'something' if went else 'nothing'} went"
    return None


class Daemon:
    def __init__(self, db, contract, *options, env=None, binary=None, wrap=(), limits=None, stop_code=0):
        """wrap: a command before the program (valgrind, setarch); limits: {resource.RLIMIT_X: number}."""
        if not isinstance(contract, Path):
            path = contract_file(db, contract)
            if not re.search(r"^serve\s*:", path.read_text(), re.M):
                path.write_text(SERVE + path.read_text())
            contract = path
        self.contract = contract
        self.options = ["--log-format", "json", "--log-level", "debug", *options]
        self.args = ["-f", str(contract), "run", *map(str, self.options)]
        self.lines, self.noise, self.port, self.stop_code = [], [], None, stop_code
        self._more, self._stopped = threading.Condition(), None
        environment = _environment(env)
        environment.update({k: str(v) for k, v in (env or {}).items() if k == "TSAN_OPTIONS"})

        def before():
            for which, number in (limits or {}).items():
                resource.setrlimit(which, (number, number))

        self.process = subprocess.Popen(
            [*wrap, binary or program(), *self.args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment, cwd=folder(), start_new_session=True,
            preexec_fn=before if limits else None)
        self.pid = self.process.pid
        self._readers = [threading.Thread(target=self._read, args=(f,), daemon=True)
                         for f in (self.process.stderr, self.process.stdout)]
        for r in self._readers:
            r.start()
        at_end(self.kill)

    def _read(self, file):
        for raw in file:
            text = raw.decode(errors="replace").rstrip("\n")
            with self._more:
                wrong = wrong_with(text)
                if wrong:
                    self.noise.append(f"{text}   <- {wrong}")
                else:
                    entry = json.loads(text)
                    self.lines.append(entry)
                    where = entry["event"] == "lapse.serving" and re.search(r"http://[^/ ]*:(\d+)/", entry["message"])
                    if where:
                        self.port = int(where[1])
                self._more.notify_all()

    # --- what it says

    @staticmethod
    def _is(entry, event, fields):
        name = entry["event"]
        return (name == event or name.rsplit(".", 1)[-1] == event) and all(
            k in entry and (v(entry[k]) if callable(v) else entry[k] == v) for k, v in fields.items())

    def said(self, event, after=0, **fields):
        """The lines of this event (`lapse.started`, or the word after the scheduler) with these fields; a field may be a
        function of its value."""
        with self._more:
            return [x for x in self.lines[after:] if self._is(x, event, fields)]

    def wait_for(self, event, timeout=PATIENCE_S, after=0, **fields):
        end = time.monotonic() + timeout
        with self._more:
            while True:
                for x in self.lines[after:]:
                    if self._is(x, event, fields):
                        return x
                left = end - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not any(r.is_alive() for r in self._readers)):
                    break
                self._more.wait(min(left, 0.5))
        raise AssertionError(f"no {event} {fields} within {timeout} s:\n{self}")

    def mark(self):
        """So many lines until now: for `after`."""
        with self._more:
            return len(self.lines)

    def __str__(self):
        with self._more:
            shown = [json.dumps(x) for x in self.lines]
        if len(shown) > 80:
            shown[40:-40] = [f"… {len(shown) - 80} lines …"]
        code = self.process.poll()
        return f"$ lapse {' '.join(self.args)}   ({'running' if code is None else f'exit {code}'})\n" \
               + "\n".join(shown + self.noise)

    # --- what it serves

    def serving(self, timeout=PATIENCE_S):
        if self.port is None:
            self.wait_for("lapse.serving", timeout)
        return self.port

    def http(self, path, method="GET", headers=None, timeout=30):
        """(status, body)"""
        c = http.client.HTTPConnection("127.0.0.1", self.serving(), timeout=timeout)
        with contextlib.closing(c):
            c.request(method, path, headers=headers or {})
            answer = c.getresponse()
            return answer.status, answer.read().decode()

    def metrics_text(self):
        status, body = self.http("/metrics")
        if status != 200:
            raise AssertionError(f"/metrics answers {status}: {body}")
        return body

    def metrics(self):
        return parse_metrics(self.metrics_text())

    def metric(self, name, *labels):
        """The sum over the series of this name whose first labels are these."""
        return sum(v for k, v in self.metrics().items() if k[:1 + len(labels)] == (name, *labels))

    def ready(self):
        return self.http("/readyz")[0] == 200

    # --- the process

    def running(self):
        return self.process.poll() is None

    def signal(self, number):
        if self.running():
            self.process.send_signal(number)

    def rss_kb(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())[1])

    def cpu_s(self):
        """CPU time until now, of all its threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rewrite(self, db, contract):
        """Another contract in the same file; says nothing to the daemon."""
        text = contract_file(db, contract).read_text()
        if not re.search(r"^serve\s*:", text, re.M):
            text = SERVE + text
        beside = self.contract.with_suffix(".new")
        beside.write_text(text)
        beside.rename(self.contract)

    def kill(self, number=SIGKILL):
        """It dies of this, and is not asked how."""
        if self.running():
            self.process.send_signal(SIGCONT)
            self.process.send_signal(number)
        self.process.wait(20)
        self._stopped = True
        for r in self._readers:
            r.join(5)

    def stop(self, number=SIGTERM, timeout=60, code=None):
        """An orderly end: exit 0, nothing of a sanitizer, a log that is as it should be. Idempotent. number 0: it was
        asked to stop already."""
        if self._stopped:
            return self
        self._stopped = True
        if number:
            self.signal(SIGCONT)
            self.signal(number)
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still running {timeout} s after signal {number}:\n{self}")
        for r in self._readers:
            r.join(10)
        wanted = self.stop_code if code is None else code
        if _SANITIZER.search("\n".join(self.noise)):
            raise AssertionError(f"a sanitizer reports:\n{self}")
        if self.process.returncode not in (wanted if isinstance(wanted, tuple) else (wanted,)):
            raise AssertionError(f"it ended with {self.process.returncode}, not {wanted}:\n{self}")
        self.sane()
        return self

    def sane(self):
        """Every line so far is a line of the log."""
        if self.noise:
            raise AssertionError("not a line of the log:\n" + "\n".join(self.noise) + f"\n{self}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.stop()
        else:
            self.kill()
