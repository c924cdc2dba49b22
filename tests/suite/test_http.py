"""What the daemon serves over HTTP: every path, who may ask, and what no request may do to it.

Most cases run twice: on `lapse run`, and on the same server with a daemon that does what it is told (tools/http_alone),
which also shows what a real one shows seldom.
"""
import contextlib
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from email.parser import BytesParser
from pathlib import Path

import jsonschema

from harness import *

TOKEN = "s3cret-Token/42"
API = json.loads((ROOT / "docs" / "openapi.json").read_text())
PATHS = list(API["paths"])
HEALTH = ("/healthz", "/readyz")
ASKING_S = 10           # what the server gives a request to arrive
SOON_S = 6              # an answer that waits for nothing, on a busy machine, takes less


def setUpModule():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))


def token_file(text=TOKEN + "\n", mode=0o600):
    path = new_path("token")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


def until(what, seconds=60):
    """Waits for a condition and returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.02)


def all_of(connection):
    """What comes until the other side closes, or nothing comes any more."""
    got = b""
    with contextlib.suppress(ConnectionResetError, TimeoutError):
        while part := connection.recv(1 << 16):
            got += part
    return got


# --- asking --------------------------------------------------------------------------------------------

class Answer:
    def __init__(self, raw, head_only=False):
        head, _, rest = raw.partition(b"\r\n\r\n")
        first, _, fields = head.partition(b"\r\n")
        found = re.match(rb"HTTP/1\.[01] (\d{3}) ", first)
        if not found:
            raise AssertionError(f"no answer of HTTP: {raw[:200]!r}")
        self.status, self.head = int(found.group(1)), BytesParser().parsebytes(fields)
        length = 0 if head_only or self.status == 100 else int(self.head.get("Content-Length") or 0)
        if len(rest) < length:
            raise AssertionError(f"cut short: {raw[:200]!r}")
        self.body, self.rest = rest[:length].decode(), rest[length:]

    @property
    def type(self):
        return (self.head["Content-Type"] or "").split(";")[0]

    @property
    def json(self):
        return json.loads(self.body)


class Served:
    """Something that serves, on a host and a port that are known once it says so."""
    SERVING = re.compile(r"serving on http://(\[[0-9a-f:.]+\]|[^:/\s]+):(\d+)/")

    def find(self):
        """The host and port that it served on last; None: it has not said any."""
        found = self.SERVING.findall(self.log())
        return (found[-1][0].strip("[]"), int(found[-1][1])) if found else None

    def await_port(self):
        if not until(lambda: self.find() or not self.running()) or not self.find():
            raise AssertionError(f"it does not serve:\n{self.log()}")
        self.host, self.port = self.find()
        return self

    @property
    def authority(self):
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def connect(self, timeout=30):
        to = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return socket.create_connection((to, self.port), timeout)

    def raw(self, data, timeout=30):
        """Sends bytes, then reads until the other side closes or a second passes in silence after an answer."""
        with self.connect(timeout) as s:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(data)
            return all_of(s)

    def get(self, path, *fields, method="GET", host=None, version="1.1", token=None):
        lines = [f"{method} {path} HTTP/{version}", f"Host: {host or self.authority}", "Connection: close", *fields]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        return Answer(self.raw("\r\n".join(lines).encode() + b"\r\n\r\n"), method == "HEAD")

    def head_lines(self, first, *lines):
        return Answer(self.raw("\r\n".join((first, *lines)).encode("latin-1") + b"\r\n\r\n"))

    def rss_mb(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text()).group(1)) / 1024


class Alone(Served):
    def __init__(self, listen, token=None):
        self.out = tempfile.TemporaryFile()
        binary = Path(program()).parent / "tests" / "http_alone"
        self.process = subprocess.Popen([str(binary), listen, *([str(token)] if token else [])], stdout=self.out,
                                        stderr=subprocess.STDOUT, stdin=subprocess.PIPE, start_new_session=True)
        self.pid = self.process.pid
        at_end(self.process.kill)

    def log(self):
        return os.pread(self.out.fileno(), 1 << 22, 0).decode(errors="replace")

    def running(self):
        return self.process.poll() is None

    def tell(self, command):
        before = self.log().count("did\n")
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        assert until(lambda: self.log().count("did\n") > before), self.log()

    def serve(self, listen, token=None):
        self.tell(f"serve {listen} {token or ''}")

    def end(self, timeout=60):
        if self.process.stdin and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        code = self.process.wait(timeout)
        return Result(["http_alone"], code, self.log(), "").sane()


class Daemon(Served):
    POLICIES = "policies: {p: {table: s, scheduler: fast, expires: at_ms}, q: {table: s, scheduler: nightly, " \
               "age: at_ms, keep: 90d, enabled: false}}\n" \
               "schedulers: {fast: {every: 1s}, nightly: {cron: '0 3 * * *', timezone: Europe/Prague}}\n"

    def __init__(self, listen, token=None, options=(), db=None):
        self.db = db or Sqlite()
        self.db.script("create table if not exists s (id integer primary key, at_ms bigint)")
        self.file = contract_file(self.db, self.contract(listen, token))
        self.process = Lapse.start(None, self.file, "run", "--log-format", "json", *options)
        self.pid = self.process.pid

    def contract(self, listen, token):
        where = "off" if listen == "off" else json.dumps(
            {"listen": listen, **({"token_file": str(token)} if token else {})})
        return f"serve: {where}\n{self.POLICIES}"

    def log(self):
        return self.process.so_far()[1]

    def running(self):
        return self.process.running()

    def serve(self, listen, token=None):
        self.file.write_text(f"store: {json.dumps(self.db.dsn)}\n" + self.contract(listen, token))
        self.process.signal(signal.SIGHUP)

    def end(self, timeout=60):
        self.process.signal(signal.SIGTERM)
        return self.process.wait(timeout)


class Serving:
    """The verbs of the cases. `kind` is who serves."""
    kind = None

    def start(self, listen="127.0.0.1:0", token=None, **how):
        served = self.kind(listen, token, **how)
        self.addCleanup(lambda: served.running() and served.end())
        return served

    def serve(self, listen="127.0.0.1:0", token=None, **how):
        return self.start(listen, token, **how).await_port()

    def refused(self, listen, token=None, code=2, words=()):
        r = self.start(listen, token)
        until(lambda: not r.running())
        r = r.end()
        self.assertEqual(r.code, code, str(r))
        for w in words:
            self.assertIn(w, r.said)
        self.assertNotIn("serving on", r.said)
        return r

    def answers(self, served, seconds=SOON_S, path="/healthz", **how):
        """It answers, and soon."""
        start = time.monotonic()
        self.assertEqual(served.get(path, **how).status, 200)
        self.assertLess(time.monotonic() - start, seconds)


def twice(cases):
    for name, kind in (("Alone", Alone), ("OnDaemon", Daemon)):
        made = type(f"{cases.__name__}{name}", (cases, unittest.TestCase), {"kind": kind, "__module__": cases.__module__})
        globals()[made.__name__] = made
    return cases


# --- the paths -----------------------------------------------------------------------------------------

@twice
class Paths(Serving):
    def test_heads_of_every_path(self):
        s = self.serve()
        for path in PATHS:
            with self.subTest(path):
                got, head = s.get(path), s.get(path, method="HEAD")
                self.assertIn(got.status, (200, 503), got.body)
                self.assertEqual(head.status, got.status)
                self.assertEqual(head.rest, b"", "HEAD has a body")
                self.assertEqual(head.head["Content-Type"], got.head["Content-Type"])
                for a in (got, head):
                    self.assertEqual(a.head["Cache-Control"], "no-store")
                    self.assertEqual(a.head["X-Content-Type-Options"], "nosniff")
                    self.assertIsNone(a.head["Server"])
                    self.assertFalse([k for k in a.head if k.lower().startswith("access-control")])
                    self.assertEqual(a.type == "text/html", a.head["Content-Security-Policy"] is not None)
        self.assertTrue(s.get("/").head["Content-Security-Policy"].startswith("default-src 'none'"))
        self.assertEqual(s.get("/metrics").head["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")

    def test_the_list_lists_every_path(self):
        self.assertEqual(re.findall(r'href="([^"]+)"', self.serve().get("/").body), PATHS)

    def test_what_is_not_there(self):
        s = self.serve()
        for path in ("/x", "//", "/metrics/", "/Metrics", "/api", "/api/", "/api/x", "/%6detrics", "/metrics%00",
                     "/healthz%3f", "/../metrics", "/api/../metrics", "/metrics;x", "/metrics#x",
                     f"http://{s.authority}/metrics"):
            with self.subTest(path):
                a = s.get(path)
                self.assertEqual(a.status, 404)
                self.assertEqual(a.type, "application/json" if path.startswith("/api/") else "text/plain")
                self.assertEqual(a.body.count("\n"), 1)
                if path.startswith("/api/"):
                    self.assertIn("no such path", a.json["error"])

    def test_only_get_and_head(self):
        s = self.serve()
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "FROB", "GETX"):
            for path in ("/metrics", "/api/status", "/healthz", "/nope", "*"):
                with self.subTest(method=method, path=path):
                    a = s.get(path, method=method)
                    self.assertEqual(a.status, 405, a.body)
                    self.assertEqual(a.head["Allow"], "GET, HEAD")

    def test_health_as_text_and_json(self):
        s = self.serve()
        until(lambda: s.get("/readyz").status == 200)
        for path, text, data in (("/healthz", "alive\n", {"alive": True}),
                                 ("/readyz", "ready\n", {"ready": True, "reasons": []})):
            a = s.get(path)
            self.assertEqual((a.status, a.type, a.body), (200, "text/plain", text))
            a = s.get(path, "Accept: text/html, application/json;q=0.9")
            self.assertEqual((a.status, a.type, a.json), (200, "application/json", data))

    def test_the_query_of_runs(self):
        s = self.serve()
        for query in ("last=0", "last=1001", "last=-1", "last=", "last", "last=1x", "last=%31%00", "last=1&last=2", "last=1e3",
                      "scheduler=", "scheduler", "scheduler=%", "scheduler=%zz", "scheduler=%0a", "scheduler=a&scheduler=b",
                      "x=1", "last=5&", "&last=5&y", "Last=5", "last=99999999999999999999", "scheduler=" + "a" * 256, "=", "=5"):
            with self.subTest(query):
                a = s.get(f"/api/runs?{query}")
                if query == "last=5&":
                    self.assertIn(a.status, (200, 503))
                    continue
                self.assertEqual(a.status, 400, a.body)
                self.assertRegex(a.json["error"], "scheduler|last")
        self.assertIn("1 to 1000", s.get("/api/runs?last=0").json["error"])
        self.assertEqual(s.get("/api/status?x").status, 400)
        self.assertIn(s.get("/metrics?").status, (200,))


# --- who may ask ---------------------------------------------------------------------------------------

@twice
class Hosts(Serving):
    def test_on_loopback_exactly(self):
        s = self.serve()
        for host in ("127.0.0.1", "localhost", "LocalHost", "[::1]", "[0::1]"):
            self.assertEqual(s.get("/metrics", host=f"{host}:{s.port}").status, 200, host)
        for host in ("evil.example", f"evil.example:{s.port}", "localhost", "127.0.0.1", f"127.0.0.1:{s.port + 1}",
                     f"127.1:{s.port}", f"localhost.:{s.port}", f"0.0.0.0:{s.port}", f"[::]:{s.port}"):
            for path in ("/metrics", *HEALTH, "/api/status", "/nope"):
                a = s.get(path, host=host)
                self.assertEqual(a.status, 421, (host, path))
                self.assertIn(f"127.0.0.1:{s.port}, localhost:{s.port}, [::1]:{s.port}", a.body)
                self.assertNotIn("evil", a.body)

    def test_one_well_formed_header(self):
        s = self.serve()
        good, old = f"Host: {s.authority}", "Connection: close"
        for lines in ([], ["Host:"], ["Host: "], [good, good], [good, "host: evil.example"], [f"Host: {s.authority}, x"],
                      ["Host: a b"], ["Host: [::1"], [f"Host: http://{s.authority}"], [f"Host: u@{s.authority}"],
                      [f"Host: {s.authority}:1"], ["Host: localhost:"], ["Host: \xe9:80"], ["Host: localhost:99999"],
                      [f"Host : {s.authority}"], [f"X-Host: {s.authority}"]):
            with self.subTest(lines):
                a = s.head_lines("GET /healthz HTTP/1.1", *lines, old)
                self.assertEqual(a.status, 400)
        self.assertEqual(s.head_lines("GET /healthz HTTP/1.1", good, old).status, 200)

    def test_http_1_0_may_have_none(self):
        s = self.serve()
        self.assertEqual(s.head_lines("GET /metrics HTTP/1.0").status, 200)
        self.assertEqual(s.head_lines("GET /metrics HTTP/1.0", f"Host: {s.authority}").status, 200)
        self.assertEqual(s.head_lines("GET /metrics HTTP/1.0", "Host: evil.example").status, 421)

    def test_on_ipv6(self):
        s = self.serve("[::1]:0")
        self.assertEqual(s.host, "::1")
        self.answers(s)
        self.assertEqual(s.get("/metrics", host=f"localhost:{s.port}").status, 200)
        self.assertEqual(s.get("/metrics", host=f"[::2]:{s.port}").status, 421)

    def test_localhost_is_loopback(self):
        s = self.serve("localhost:0")
        self.assertEqual(s.get("/metrics").status, 200)


@twice
class Tokens(Serving):
    def test_elsewhere_needs_one(self):
        for listen in ("0.0.0.0:0", "[::]:0"):
            with self.subTest(listen):
                self.refused(listen, words=("token_file", "127.0.0.1"))

    def test_all_but_health_needs_it_elsewhere(self):
        s = self.serve("0.0.0.0:0", token_file())
        for path in PATHS + ["/nope"]:
            with self.subTest(path):
                for wrong in (None, "x", TOKEN[:-1], TOKEN + "x", TOKEN.lower()):
                    a = s.get(path, token=wrong)
                    if path in HEALTH:
                        self.assertIn(a.status, (200, 503))
                        continue
                    self.assertEqual(a.status, 401, wrong)
                    self.assertEqual(a.head["WWW-Authenticate"], 'Bearer realm="lapse"')
                self.assertIn(s.get(path, token=TOKEN).status, (404,) if path == "/nope" else (200, 503))
        for field in ("Authorization: Basic " + TOKEN, "Authorization: " + TOKEN, "X-Token: " + TOKEN, "Authorization: Bearer"):
            self.assertEqual(s.get("/metrics", field).status, 401)
        self.assertEqual(s.get("/metrics", f"Authorization: Bearer {TOKEN}", token=TOKEN).status, 401, "two of them")
        self.assertEqual(s.get(f"/metrics?token={TOKEN}").status, 401)

    def test_the_host_elsewhere(self):
        s = self.serve("0.0.0.0:0", token_file())
        for path, host, token, status in (("/metrics", "any.example", TOKEN, 200), ("/metrics", "any.example", None, 401),
                                          ("/healthz", "evil.example", None, 421), ("/healthz", "10.1.2.3:4", None, 200),
                                          ("/healthz", "[fd00::1]:4", None, 200), ("/healthz", "any.example", TOKEN, 200),
                                          ("/metrics", "a b", TOKEN, 400)):
            self.assertEqual(s.get(path, host=host, token=token).status, status, (path, host, token))

    def test_both_families(self):
        s = self.serve("[::]:0", token_file())
        with socket.create_connection(("127.0.0.1", s.port), 5) as c:
            c.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            self.assertIn(b" 200 ", c.recv(1000))
        self.answers(s)

    def test_on_loopback_reads_are_free(self):
        s = self.serve("127.0.0.1:0", token_file())
        self.assertEqual([s.get("/metrics", token=t).status for t in (None, "wrong", TOKEN)], [200] * 3)

    def test_files_that_hold_none(self):
        for text in ("", " \n\t ", "two words", "two\nlines", "\x01", "é", b"a\0b", "x" * 4097):
            with self.subTest(text):
                self.refused("127.0.0.1:0", token_file(text), words=("token_file",))
        self.refused("127.0.0.1:0", folder() / "nowhere", words=("token_file", "No such file"))
        self.refused("127.0.0.1:0", folder(), words=("token_file", "not a file"))
        fifo = new_path("fifo")
        os.mkfifo(fifo)
        self.refused("127.0.0.1:0", fifo, words=("token_file", "not a file"))

    def test_a_file_for_everybody_is_said(self):
        s = self.serve("127.0.0.1:0", token_file(mode=0o644))
        self.assertTrue(until(lambda: "everybody" in s.log()))
        s = self.serve("127.0.0.1:0", token_file(f"  {TOKEN}\r\n\n", mode=0o640))
        self.assertNotIn("everybody", s.log())

    def test_the_token_is_never_shown(self):
        s = self.serve("0.0.0.0:0", token_file())
        shown = "".join(s.get(p, token=t).body for p in PATHS + ["/nope"] for t in (TOKEN, None))
        s.serve("0.0.0.0:1", folder() / "nowhere")
        until(lambda: "nowhere" in s.log())
        self.assertNotIn(TOKEN, shown + s.end().said)


# --- where it listens ----------------------------------------------------------------------------------

@twice
class Places(Serving):
    def test_a_port_that_is_taken(self):
        s = self.serve()
        self.refused(s.authority, code=1, words=("cannot listen", s.authority, "in use"))
        self.answers(s)

    def test_an_address_that_is_not_here(self):
        self.refused("192.0.2.1:9933", token_file(), code=1, words=("cannot listen", "192.0.2.1:9933"))
        self.refused("no-such-host.invalid:9933", token_file(), code=1, words=("no-such-host.invalid",))

    def test_off_opens_nothing(self):
        s = self.start("off")
        until(lambda: self.kind is Alone or "lapse.started" in s.log())
        time.sleep(1.5)
        self.assertTrue(s.running())
        sockets = [os.readlink(p) for p in Path(f"/proc/{s.pid}/fd").iterdir()]
        inodes = re.findall(r"socket:\[(\d+)\]", " ".join(sockets))
        tcp = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        self.assertFalse([i for i in inodes if re.search(rf"\b{i}\b", tcp)])
        s.serve("127.0.0.1:0")
        self.answers(s.await_port())

    def moves(self, s, listen, token=None):
        before = s.log().count("serving")
        s.serve(listen, token)
        self.assertTrue(until(lambda: s.log().count("serving") > before), s.log())

    def test_another_port(self):
        s = self.serve()
        old = s.port
        self.moves(s, "127.0.0.2:0")
        s.await_port()
        self.assertEqual(s.host, "127.0.0.2")
        self.answers(s)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", old), 2)
        self.moves(s, "off")
        with self.assertRaises(ConnectionRefusedError):
            s.connect()

    def test_another_address_of_the_same_port(self):
        s = self.serve()
        port = s.port
        self.moves(s, f"0.0.0.0:{port}", token_file())
        s.await_port()
        self.assertEqual(s.get("/metrics", host=f"127.0.0.1:{port}").status, 401)
        self.moves(s, f"127.0.0.1:{port}")
        self.assertEqual(s.get("/metrics", host=f"127.0.0.1:{port}").status, 200)

    def test_what_cannot_be_keeps_the_old(self):
        s, other = self.serve("0.0.0.0:0", token_file()), self.serve()
        for listen, token, words in ((other.authority, None, "in use"), ("0.0.0.0:0", None, "refused without a token"),
                                     ("0.0.0.0:0", folder() / "nowhere", "No such file"),
                                     (f"192.0.2.1:{s.port}", token_file(), "cannot listen")):
            with self.subTest(listen):
                s.serve(listen, token)
                self.assertTrue(until(lambda: words in s.log()), s.log())
                self.assertTrue(until(lambda: f"still serving on http://0.0.0.0:{s.port}/" in s.log()), s.log())
                if words not in ("in use", "cannot listen") and isinstance(s, Daemon):
                    self.assertTrue(until(lambda: "lapse.contract_refused" in s.log()), s.log())   # as a whole
                    self.assertEqual(s.get("/readyz").status, 503)
                self.assertEqual(s.get("/metrics", token=TOKEN).status, 200)
                self.assertEqual(s.get("/metrics").status, 401)
        self.moves(s, "127.0.0.1:0")
        self.answers(s.await_port())

    def test_the_old_comes_back_when_it_had_to_go_first(self):
        s = self.serve()
        with socket.socket() as other:      # in the way of 0.0.0.0 as much as the old server is
            other.bind(("127.0.0.2", s.port))
            other.listen()
            s.serve(f"0.0.0.0:{s.port}", token_file())
            self.assertTrue(until(lambda: "still serving on" in s.log()), s.log())
            self.assertIn("in use", s.log())
            self.answers(s)
        self.moves(s, f"0.0.0.0:{s.port}", token_file())
        self.assertEqual(s.get("/metrics").status, 401)

    def test_a_picked_port_is_kept(self):
        s = self.serve()
        s.serve("127.0.0.1:0", token_file(mode=0o604))
        self.assertTrue(until(lambda: "everybody" in s.log()))
        self.answers(s)
        self.assertEqual(len(s.SERVING.findall(s.log())), 1)

    def test_another_token_at_the_same_address(self):
        s = self.serve("0.0.0.0:0", token_file())
        with s.connect() as c:      # the connection lives on: nothing was opened anew
            s.serve("0.0.0.0:0", token_file("other-one"))
            self.assertTrue(until(lambda: s.get("/metrics", token="other-one").status == 200))
            self.assertEqual(s.get("/metrics", token=TOKEN).status, 401)
            c.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            self.assertIn(b" 200 ", c.recv(1000))
        self.assertEqual(len(s.SERVING.findall(s.log())), 1)

    def test_it_ends_with_visitors(self):
        s = self.serve()
        kept = [s.connect() for _ in range(20)]
        for c in kept[:10]:
            c.sendall(b"GET /metrics HT")
        self.answers(s)
        start = time.monotonic()
        self.assertEqual(s.end().code, 0)
        self.assertLess(time.monotonic() - start, SOON_S)
        for c in kept:
            c.close()


# --- what no request may do ----------------------------------------------------------------------------

@twice
class Bounds(Serving):
    def test_huge_heads(self):
        s = self.serve()
        for size, statuses in ((1000, (200,)), (20_000, (431, 413)), (200_000, (431, 413))):
            a = s.get("/healthz", "X-Long: " + "x" * size)
            self.assertIn(a.status, statuses, size)
        a = s.get("/healthz", *(f"X-{i}: x" for i in range(5000)))
        self.assertIn(a.status, (431, 413))
        self.answers(s)

    def test_long_uris(self):
        s = self.serve()
        self.assertEqual(s.get("/" + "x" * 2047).status, 404)
        self.assertEqual(s.get("/" + "x" * 2048).status, 414)
        self.assertEqual(s.get("/healthz?" + "x" * 2048).status, 414)
        self.assertIn(s.get("/" + "x" * 100_000).status, (414, 431, 413))
        self.answers(s)

    def test_bodies_are_not_taken(self):
        s = self.serve()
        host = f"Host: {s.authority}"
        for fields, body in ((["Content-Length: 3"], "abc"), (["Content-Length: 1000000000"], ""),
                             (["Transfer-Encoding: chunked"], "3\r\nabc\r\n0\r\n\r\n"),
                             (["Content-Length: 3", "Expect: 100-continue"], ""),
                             (["Content-Length: 0", "Transfer-Encoding: chunked"], "0\r\n\r\n")):
            for method in ("GET", "POST"):
                with self.subTest(fields, method=method):
                    got = s.raw("\r\n".join((f"{method} /metrics HTTP/1.1", host, *fields, "", body)).encode())
                    self.assertEqual(Answer(got).status, 413, got)
                    self.assertNotIn(b"lapse_", got)
        for wrong in ("x", "-1", "1,1", "99999999999999999999999"):
            got = s.raw(f"GET /metrics HTTP/1.1\r\n{host}\r\nContent-Length: {wrong}\r\n\r\n".encode())
            self.assertIn(Answer(got).status, (400, 413), wrong)
        self.assertEqual(s.get("/metrics", "Content-Length: 0").status, 200)

    def test_a_large_body_is_not_read(self):
        s = self.serve()
        with s.connect() as c, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            c.sendall(f"POST /api/status HTTP/1.1\r\nHost: {s.authority}\r\nContent-Length: 100000000\r\n\r\n".encode())
            for _ in range(1000):
                c.sendall(b"x" * 100_000)
            self.fail("100 MB were taken")
        self.answers(s)

    def test_one_after_the_other_on_one_connection(self):
        s = self.serve()
        one = f"GET /healthz HTTP/1.1\r\nHost: {s.authority}\r\n"
        got = s.raw(((one + "\r\n") * 50 + one + "Connection: close\r\n\r\n").encode())
        self.assertEqual(got.count(b"HTTP/1.1 200"), 51)
        c = http.client.HTTPConnection(s.host, s.port, timeout=30)
        for _ in range(3):
            c.request("GET", "/metrics")
            self.assertEqual(c.getresponse().read().count(b"lapse_") > 0, True)
        c.close()

    def test_names_of_headers_that_are_none(self):
        """Some proxies take them for what they resemble: what follows must not be read as another request."""
        s = self.serve()
        smuggled = f"GET /metrics HTTP/1.1\r\nHost: {s.authority}\r\n\r\n"
        for field in (f"Content-Length : {len(smuggled)}", f"Content-Length\t: {len(smuggled)}", "Transfer-Encoding : chunked",
                      "Content Length: 5", "Content-Length\x0b: 5", "X(y): 1"):
            with self.subTest(field):
                got = s.raw(f"GET /healthz HTTP/1.1\r\nHost: {s.authority}\r\n{field}\r\n\r\n{smuggled}".encode())
                self.assertEqual(Answer(got).status, 400, got)
                self.assertNotIn(b"lapse_", got)

    def test_zero_bytes_in_headers(self):
        """What stands behind one would be seen by a proxy, and not by us."""
        s = self.serve()
        for head in (f"Host: {s.authority}\0evil\r\n", f"Host: {s.authority}\r\nAccept: a\0b\r\n",
                     f"Accept: a\0b\r\nHost: {s.authority}\r\n", f"Accept: a\0\r\nHost: {s.authority}\r\n",
                     f"X: \0\r\nHost: {s.authority}\r\n", f"X\0y: z\r\nHost: {s.authority}\r\n",
                     f"Accept: a\0b\nHost: {s.authority}\n",
                     f"Accept: a,\r\n b\r\nHost: {s.authority}\r\n"):     # a second line could hide one
            with self.subTest(head):
                got = s.raw(f"GET /metrics HTTP/1.1\r\n{head}\r\n".encode())
                self.assertEqual(Answer(got).status, 400, got)
        for head in (f"Host: {s.authority}\r\n", f"Host:{s.authority}\nAccept: */*\n", f"Accept:\r\nHost: {s.authority}\r\nX:\r\n",
                     f"Host: {s.authority}\r\nCookie: a=b; c=d\r\nX: 1\r\n"):
            with self.subTest(head):
                got = s.raw(f"GET /healthz HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode())
                self.assertEqual(Answer(got).status, 200, got)
        two = f"GET /healthz HTTP/1.1\r\nHost: {s.authority}\r\nX: 1\r\n\r\n"
        got = s.raw((two + two.replace("X: 1", "Connection: close")).encode())
        self.assertEqual(got.count(b"HTTP/1.1 200"), 2, got)

    def test_garbage_after_a_request(self):
        s = self.serve()
        one = f"GET /healthz HTTP/1.1\r\nHost: {s.authority}\r\n\r\n".encode()
        for junk in (b"\0\0\0\0\r\n\r\n", b"\x16\x03\x01\x02\0\r\n\r\n", b"GET\r\n\r\n", b"x" * 30000, b"GET / HTTP/9.9\r\n\r\n"):
            got = s.raw(one + junk)
            self.assertTrue(got.startswith(b"HTTP/1.1 200"), junk)
            self.assertEqual(got.count(b" 200 OK"), 1, junk)
        self.answers(s)

    def test_other_languages(self):
        s = self.serve()
        for data in (b"GET /metrics\r\n", b"GET /metrics\r\n\r\n", b"GET  HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                     b"GET /metrics HTTP/0.9\r\n\r\n", b"GET /metrics HTTP/3\r\n\r\n", b"\x80\x2e\x01\r\n\r\n", b"\r\n" * 100,
                     b"GET /metrics http/1.1\r\n\r\n", b"SSH-2.0-OpenSSH\r\n\r\n"):
            with self.subTest(data):
                got = s.raw(data, timeout=ASKING_S + 20)
                self.assertNotIn(b" 200 ", got)
                self.assertNotIn(b"lapse_", got)
        self.answers(s)

    def test_random_bytes(self):
        s = self.serve()
        r = random.Random(9933)
        pieces = [b"GET ", b"HEAD ", b"POST ", b"/metrics", b"/api/runs", b"?last=", b"&scheduler=%", b" HTTP/1.1", b" HTTP/1.0",
                  b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"Host: ", s.authority.encode(), b"Content-Length: ", b"Transfer-Encoding: chunked",
                  b"Authorization: Bearer ", b"Connection: keep-alive", b": ", b"\0", b"\xff", b"0", b"9" * 30, b" ", b"\t", b"Expect: 100-continue",
                  b"%00", b"%", b"x" * 3000]
        for n in range(400):
            data = b"".join(r.choice(pieces) if r.random() < 0.9 else r.randbytes(r.randrange(1, 40))
                            for _ in range(r.randrange(1, 25)))
            with s.connect() as c, contextlib.suppress(ConnectionError, TimeoutError):
                c.settimeout(0.02)
                c.sendall(data)
                if n % 3:
                    c.shutdown(socket.SHUT_WR)
                c.recv(1 << 16)
        self.answers(s)
        self.assertEqual(s.end().code, 0)

    def test_slow_clients_are_cut(self):
        s = self.serve()
        start = time.monotonic()
        with s.connect(30) as drip, s.connect(30) as silent, s.connect(30) as kept:
            kept.sendall(f"GET /healthz HTTP/1.1\r\nHost: {s.authority}\r\n\r\n".encode())
            self.assertIn(b" 200 ", kept.recv(1000))
            with self.assertRaises(ConnectionError):
                for b in b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 100:
                    drip.sendall(bytes([b]))    # a byte now and then: silence is never long
                    drip.settimeout(0.4)
                    with contextlib.suppress(TimeoutError):
                        if drip.recv(100) == b"":
                            raise ConnectionResetError
            self.assertTrue(ASKING_S - 1 < time.monotonic() - start < ASKING_S + 20, time.monotonic() - start)
            for c in (silent, kept):
                c.settimeout(20)
                self.assertEqual(c.recv(100), b"")
        self.answers(s)

    def test_a_thousand_idle_connections(self):
        s = self.serve()
        before = s.rss_mb()
        kept = []
        for i in range(1000):
            kept.append(s.connect())
            if i % 2:
                kept[-1].sendall(b"GET /metrics HTTP/1.1\r\nX-Half: ")
        for path in ("/healthz", "/metrics", "/api/status", "/api/runs"):
            start = time.monotonic()
            self.assertIn(s.get(path).status, (200, 503))
            self.assertLess(time.monotonic() - start, SOON_S, path)
        print(f"# 1000 idle: {before:.1f} MB -> {s.rss_mb():.1f} MB")
        threads = len(list(Path(f"/proc/{s.pid}/task").iterdir()))
        self.assertLess(threads, 12)
        for c in kept:
            c.close()
        self.answers(s)

    def test_more_than_there_is_room_for(self):
        s = self.serve()
        kept = []
        try:
            for _ in range(3000):
                kept.append(s.connect())
            for _ in range(5):
                self.answers(s)
            self.assertLess(len(list(Path(f"/proc/{s.pid}/fd").iterdir())), 2200)
        finally:
            for c in kept:
                c.close()
        self.answers(s)


# --- what a real one shows seldom ----------------------------------------------------------------------

class Told(Serving, unittest.TestCase):
    kind = Alone

    def test_not_ready_and_why(self):
        s = self.serve()
        s.tell('unready database "a\\b" is\x01 gone|fast is late \xe9')
        a = s.get("/readyz")
        self.assertEqual((a.status, a.body.split("\n")[0]), (503, "not ready"))
        self.assertEqual(len(a.body.splitlines()), 3)
        a = s.get("/readyz", "Accept: application/json")
        self.assertEqual((a.status, a.json), (503, {"ready": False, "reasons": ['database "a\\b" is\x01 gone', "fast is late é"]}))
        self.assertEqual(s.get("/healthz").status, 200)
        s.tell("unready ")
        self.assertEqual(s.get("/readyz").status, 200)

    def test_a_loop_that_stands_still(self):
        s = self.serve()
        s.tell("dead 1")
        self.assertEqual(s.get("/healthz").status, 503)
        a = s.get("/healthz", "Accept: application/json")
        self.assertEqual((a.status, a.json), (503, {"alive": False}))

    def test_a_slow_database_holds_up_nobody(self):
        s = self.serve()
        s.tell("slow 8000")
        with s.connect() as c:
            c.sendall(f"GET /api/runs?last=7 HTTP/1.1\r\nHost: {s.authority}\r\nConnection: close\r\n\r\n".encode())
            time.sleep(0.2)
            for path in ("/healthz", "/metrics", "/api/status"):
                self.answers(s, SOON_S, path)
            c.settimeout(60)
            self.assertIn(b'"last": 7', all_of(c))

    def test_the_queue_has_an_end(self):
        s = self.serve()
        s.tell("slow 1000")
        kept = [s.connect() for _ in range(30)]
        for c in kept:
            c.sendall(f"GET /api/runs HTTP/1.1\r\nHost: {s.authority}\r\nConnection: close\r\n\r\n".encode())
            c.settimeout(60)
        time.sleep(0.5)
        self.answers(s)
        s.tell("slow 0")
        statuses = [Answer(all_of(c)).status for c in kept]
        self.assertEqual(set(statuses), {200, 503})
        self.assertGreaterEqual(statuses.count(200), 16)
        for c in kept:
            c.close()

    def test_it_closes_while_the_database_is_asked(self):
        s = self.serve()
        s.tell("slow 1500")
        kept = [s.connect() for _ in range(5)]
        for c in kept:
            c.sendall(f"GET /api/runs HTTP/1.1\r\nHost: {s.authority}\r\n\r\n".encode())
        kept[3].close()
        time.sleep(0.3)
        s.serve("127.0.0.1:0")
        self.answers(s)
        s.serve("127.0.0.2:0")
        self.assertTrue(until(lambda: "127.0.0.2" in s.log()))
        self.answers(s.await_port())
        with s.connect() as c:
            c.sendall(f"GET /api/runs HTTP/1.1\r\nHost: {s.authority}\r\n\r\n".encode())
            time.sleep(0.3)
            self.assertEqual(s.end().code, 0)
        for c in kept:
            c.close()

    def test_why_there_are_no_runs(self):
        a = self.serve().get("/api/runs?scheduler=broken")
        self.assertEqual((a.status, a.json), (503, {"error": 'the "database" is\tgone: �'}))
        self.assertEqual(a.head["Retry-After"], "5")

    def test_parameters_arrive(self):
        s = self.serve()
        self.assertEqual(s.get("/api/runs").json, {"scheduler": "", "last": 20})
        self.assertEqual(s.get("/api/runs?last=1000&scheduler=a+b%26%C3%A9").json, {"scheduler": "a b&é", "last": 1000})

    def test_large_answers(self):
        s = self.serve()
        s.tell("big 20000000")
        a = s.get("/metrics")
        self.assertEqual(len(a.body), 20000014)
        with s.connect() as c:      # who takes it slowly does not keep others waiting
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.sendall(f"GET /metrics HTTP/1.1\r\nHost: {s.authority}\r\n\r\n".encode())
            c.recv(100)
            self.answers(s)

    def test_few_descriptors(self):
        """A process that may open little still answers, and leaves half for others."""
        old = resource.getrlimit(resource.RLIMIT_NOFILE)
        prlimit = lambda pid, n: resource.prlimit(pid, resource.RLIMIT_NOFILE, (n, n))
        s = self.start("off")
        time.sleep(0.2)
        prlimit(s.pid, 64)
        s.serve("127.0.0.1:0")
        s.await_port()
        kept = [s.connect() for _ in range(200)]
        for _ in range(5):
            self.answers(s)
        self.assertLess(len(list(Path(f"/proc/{s.pid}/fd").iterdir())), 48)
        for c in kept:
            c.close()
        self.assertEqual(old, resource.getrlimit(resource.RLIMIT_NOFILE))


# --- the description of it all -------------------------------------------------------------------------

class Described(Serving, unittest.TestCase):
    kind = Daemon

    def schema(self, answer, path, status):
        described = API["paths"][path]["get"]["responses"][str(status)]
        if "$ref" in described:
            described = API["components"]["responses"][described["$ref"].rsplit("/", 1)[-1]]
        self.assertIn(answer.type, described["content"], (path, status))
        return {**described["content"][answer.type]["schema"], "components": API["components"]}

    def fits(self, answer, path):
        schema = self.schema(answer, path, answer.status)
        data = answer.json if answer.type == "application/json" else answer.body
        jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(data)
        for name in API["components"]["responses"].get("x", {}):
            self.assertIn(name, answer.head)
        return data

    def test_the_file_itself(self):
        s = self.serve()
        self.assertEqual(s.get("/api/openapi.json").json, API)
        self.assertEqual(API["info"]["version"], lapse(None, None, "--version").out.split()[1])
        for name, schema in API["components"]["schemas"].items():
            jsonschema.Draft202012Validator.check_schema(schema)
        refs = re.findall(r'"#/components/(\w+)/(\w+)"', json.dumps(API))
        self.assertFalse([r for r in refs if r[1] not in API["components"][r[0]]])

    def test_every_answer(self):
        s = self.serve(options=("--install",))
        s.db.executemany("insert into s values (?, ?)", [(i, i) for i in range(50)])
        self.assertTrue(until(lambda: s.db.rows("select count(*) from s") == [(0,)], 20), s.log())
        self.assertTrue(until(lambda: s.get("/readyz").status == 200), s.get("/readyz").body)
        self.assertTrue(until(lambda: s.get("/api/policies").json[0]["rows_total"] == 50))      # a moment after the commit
        seen = {}
        for path in PATHS:
            for accept in ("*/*", "application/json"):
                seen[path] = self.fits(s.get(path, f"Accept: {accept}"), path)
        status, policies = seen["/api/status"], seen["/api/policies"]
        self.assertEqual([x["name"] for x in status["schedulers"]], ["fast", "nightly", "lapse"])
        self.assertEqual([(p["name"], p["enabled"]) for p in policies if p["name"] in "pq"], [("p", True), ("q", False)])
        self.assertEqual([p["rows_total"] for p in policies if p["name"] == "p"], [50])
        runs = seen["/api/runs"]
        self.assertTrue(runs and all(r["source"] == "daemon" for r in runs))
        self.assertEqual(sum(r["rows"] for r in s.get("/api/runs?last=1000").json), 50)
        self.assertEqual(len(s.get("/api/runs?last=1").json), 1)
        self.assertEqual(self.fits(s.get("/api/runs?scheduler=nightly"), "/api/runs"), [])

    def test_every_refusal(self):
        s, guarded = self.serve(), self.serve("0.0.0.0:0", token_file())
        for path in PATHS:
            with self.subTest(path):
                for a, status in ((s.get(path, host="a b"), 400), (s.get(path, host="evil"), 421),
                                  (s.get(path, "Content-Length: 1"), 413), (s.get(path, method="PUT"), 405),
                                  (s.get(path + "?" + "x" * 2048), 414)):
                    self.assertEqual(a.status, status)
                    self.fits(a, path)
                if path not in HEALTH:
                    self.fits(guarded.get(path), path)
        self.fits(s.get("/api/runs?last=0"), "/api/runs")

    def test_trouble(self):
        """A database that is not there: not ready, no runs; alive, with metrics."""
        db = Sqlite(folder() / "no-such-folder" / "db")
        db.script = lambda sql: None
        s = self.serve(db=db)
        self.assertTrue(until(lambda: s.get("/readyz").status == 503))
        self.assertTrue(self.fits(s.get("/readyz", "Accept: application/json"), "/readyz")["reasons"])
        a = s.get("/api/runs")
        self.assertEqual(a.status, 503)
        self.fits(a, "/api/runs")
        for path in PATHS:
            self.fits(s.get(path), path)
        self.assertEqual(s.get("/healthz").status, 200)

    def test_secrets_are_not_shown(self):
        db = postgres().fresh()
        self.addCleanup(db.drop)
        db.dsn = postgres().dsn(db.name, user="guarded", password="Wrong-Sesame")
        s = self.serve(db=db)
        until(lambda: s.get("/readyz").status == 503)
        shown = "".join(s.get(p).body for p in PATHS)
        self.assertIn("guarded", shown)
        self.assertNotIn("Wrong-Sesame", shown + s.end().said)


if __name__ == "__main__":
    main([__file__])
