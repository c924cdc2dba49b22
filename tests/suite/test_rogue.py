"""A server that is not the right one: what it gets when it asks for the password, for a file, or for nothing it should have.

The servers here speak as much of the protocols as a login takes, and keep every byte that comes."""
import contextlib
import functools
import hashlib
import socket
import ssl
import struct
import subprocess
import threading
import unittest

import psycopg2.extensions

from harness import *

PASSWORD = "hunter2-Sesame"
CONTRACT = "policies: {t: {table: t, expires: at_ms}}"
NONCE = b"abcdefghijklmnopqrst"                 # 20 bytes, as the protocol has it
PLUGIN_AUTH, SECURE, PROTOCOL_41, WITH_DB, TLS = 1 << 19, 1 << 15, 1 << 9, 1 << 3, 1 << 11
LOCAL_FILES, ATTRIBUTES = 1 << 7, 1 << 20


@functools.cache
def keys():
    """An authority, a certificate for localhost that it signed with its key, and the key's public part."""
    home = new_path("rogue-keys")
    home.mkdir()
    openssl = lambda *args: subprocess.run(["openssl", *args], cwd=home, check=True, capture_output=True)
    for ca in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN=lapse test {ca}",
                "-keyout", f"{ca}.key", "-out", f"{ca}.pem")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
            "-keyout", "server.key", "-out", "server.csr")
    (home / "names").write_text("subjectAltName=DNS:localhost\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "server.pem")
    openssl("rsa", "-in", "server.key", "-pubout", "-out", "public.pem")
    return home


class Rogue:
    """Listens, and keeps what each client sends. tls: it has a certificate. at: a unix socket instead of a port."""

    def __init__(self, tls=False, at=None):
        self.tls, self.got, self.lock = tls, [], threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX if at else socket.AF_INET)
        self.listener.bind(str(at) if at else ("127.0.0.1", 0))
        self.listener.listen(20)
        self.port = None if at else self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *how):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, c):
        c.settimeout(20)
        with contextlib.suppress(OSError, EOFError), contextlib.ExitStack() as closing:
            closing.callback(c.close)
            self.talk(c)

    def encrypted(self, c):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(keys() / "server.pem", keys() / "server.key")
        return context.wrap_socket(c, server_side=True)

    def bytes(self, c, n):
        data = b""
        while len(data) < n:
            more = c.recv(n - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def keep(self, what, data):
        with self.lock:
            self.got.append((what, data))

    def all(self, what=None):
        with self.lock:
            return [data for kind, data in self.got if what in (None, kind)]


class RogueMariadb(Rogue):
    """Asks for a login by this plug-in, at once (greets) or after the client has answered to another. With a file's name it
    lets everybody in, and asks for that file instead of answering a statement."""

    def __init__(self, plugin, greets=False, file=None, **how):
        self.plugin, self.greets, self.file = plugin, greets, file
        super().__init__(**how)

    def send(self, c, data):
        c.sendall(struct.pack("<I", len(data))[:3] + bytes([self.seq]) + data)
        self.seq = (self.seq + 1) % 256

    def receive(self, c):
        head = self.bytes(c, 4)
        self.seq = (head[3] + 1) % 256
        return self.bytes(c, int.from_bytes(head[:3], "little"))

    def greeting(self):
        can = PROTOCOL_41 | SECURE | PLUGIN_AUTH | WITH_DB | LOCAL_FILES | ATTRIBUTES | 1 | (TLS if self.tls else 0)
        first = self.plugin if self.greets else "mysql_native_password"
        return (b"\x0a5.5.5-10.11.6-MariaDB\0" + struct.pack("<I", 7) + NONCE[:8] + b"\0" + struct.pack("<H", can & 0xffff) +
                b"\x2d\x02\x00" + struct.pack("<H", can >> 16) + b"\x15" + bytes(10) + NONCE[8:] + b"\0" +
                first.encode() + b"\0")

    def talk(self, c):
        self.seq = 0
        self.send(c, self.greeting())
        said = self.receive(c)
        if len(said) == 32 and self.tls:
            c = self.encrypted(c)
            said = self.receive(c)
        self.keep("login", said)
        if not self.greets:
            self.send(c, b"\xfe" + self.plugin.encode() + b"\0" + self.challenge())
            self.keep("answer", self.receive(c))
        self.insist(c)
        if not self.file:
            self.send(c, b"\xff\x15\x04#28000no")
            return
        self.send(c, b"\0\0\0\2\0\0\0")
        while True:
            self.keep("statement", self.receive(c))
            self.send(c, b"\xfb" + str(self.file).encode())
            while (part := self.receive(c)):
                self.keep("file", part)
            self.send(c, b"\0\0\0\2\0\0\0")

    def challenge(self):
        return {"dialog": b"\x05Password:", "client_ed25519": NONCE + NONCE[:12]}.get(self.plugin, NONCE + b"\0")

    def insist(self, c):
        """SHA-2: the whole password, be it encrypted with the key that this server sends."""
        if self.plugin == "caching_sha2_password":
            self.send(c, b"\x01\x04")
            self.keep("answer", self.receive(c))
        if "sha2" in self.plugin and self.all("answer")[-1] in (b"\x01", b"\x02"):
            self.send(c, b"\x01" + (keys() / "public.pem").read_bytes())
            self.keep("answer", self.receive(c))

    def opened(self):
        """What came, also as somebody reads it who has the key that was sent."""
        seen = b"".join(self.all())
        for data in self.all("answer"):
            if len(data) == 256:
                plain = subprocess.run(["openssl", "pkeyutl", "-decrypt", "-inkey", keys() / "server.key", "-pkeyopt",
                                        "rsa_padding_mode:oaep"], input=data, capture_output=True).stdout
                seen += bytes(b ^ NONCE[i % 20] for i, b in enumerate(plain))
        return seen


def native(password, nonce):
    once = hashlib.sha1(password).digest()
    return bytes(a ^ b for a, b in zip(once, hashlib.sha1(nonce + hashlib.sha1(once).digest()).digest()))


class Mariadb(unittest.TestCase):
    IN_CLEAR = ("mysql_clear_password", "dialog", "caching_sha2_password", "sha256_password")

    def dsn(self, rogue, query="", host="127.0.0.1"):
        return f"mariadb://me:{PASSWORD}@{host}:{rogue.port}/app?connect_timeout=20{query}"

    def asked(self, dsn, command="plan"):
        r = lapse(dsn, CONTRACT, command)
        self.assertEqual(r.code, 5, r)
        self.assertNotIn(PASSWORD, r.said)
        return r

    def ways(self):
        """Every way to be connected to somebody whose certificate nobody looks at."""
        for tls, modes in ((False, ("disabled", "preferred", "required")), (True, ("preferred", "required"))):
            for mode in modes:
                for greets in (False, True):
                    yield {"tls": tls, "greets": greets}, f"&ssl_mode={mode}"

    def test_who_asks_for_the_password_gets_nothing_at_all(self):
        for plugin in self.IN_CLEAR:
            for how, mode in self.ways():
                with self.subTest(plugin, mode=mode, **how), RogueMariadb(plugin, **how) as rogue:
                    self.asked(self.dsn(rogue, mode))
                    self.assertNotIn(PASSWORD.encode(), rogue.opened())
                    self.assertEqual(rogue.all("answer"), [])
                    self.assertEqual(len(rogue.all("login")), 0 if rogue.greets else 1)

    def test_nor_does_one_with_an_odd_name_for_it(self):
        for plugin in ("mysql_old_password", "no_such_plugin", "password", "client", ""):
            for how, mode in (({}, ""), ({"tls": True, "greets": True}, "&ssl_mode=required")):
                with self.subTest(plugin, mode=mode), RogueMariadb(plugin, **how) as rogue:
                    self.asked(self.dsn(rogue, mode))
                    self.assertNotIn(PASSWORD.encode(), rogue.opened())
                    self.assertEqual([a for a in rogue.all("answer") if a], [])

    def test_the_error_says_what_to_do(self):
        with RogueMariadb("mysql_clear_password") as rogue:
            for command in ("check", "plan", "sweep", "install", "status"):
                self.assertRegex(self.asked(self.dsn(rogue), command).said, "asks for the password.*ssl_mode=verify_identity")
            self.assertEqual(rogue.all("answer"), [])

    def test_a_hash_is_of_use_for_this_login_only(self):
        for how, mode in self.ways():
            with self.subTest(mode=mode, **how):
                with RogueMariadb("mysql_native_password", **how) as rogue:
                    self.asked(self.dsn(rogue, mode))
                    self.assertIn(native(PASSWORD.encode(), NONCE), rogue.opened())
                with RogueMariadb("client_ed25519", **how) as other:
                    self.asked(self.dsn(other, mode))
                    self.assertEqual([len(a) for a in other.all("answer")], [] if other.greets else [64])
                for seen in (rogue.opened(), other.opened()):
                    for equivalent in (PASSWORD.encode(), hashlib.sha1(PASSWORD.encode()).digest(),
                                       hashlib.sha256(PASSWORD.encode()).digest(), hashlib.sha512(PASSWORD.encode()).digest()):
                        self.assertNotIn(equivalent, seen)

    def test_a_server_whose_certificate_is_right_may_have_it(self):
        """As PAM and LDAP need it."""
        with RogueMariadb("mysql_clear_password", tls=True) as server:
            r = self.asked(self.dsn(server, f"&ssl_mode=verify_identity&ssl_ca={keys() / 'ca.pem'}", "localhost"))
            self.assertEqual(server.all("answer"), [PASSWORD.encode() + b"\0"], r)

    def test_one_whose_certificate_is_wrong_may_not(self):
        for tls, ca, host in ((True, "other", "localhost"), (True, "ca", "127.0.0.1"), (False, "ca", "localhost")):
            for greets in (False, True):
                with self.subTest(tls=tls, ca=ca, host=host), RogueMariadb("mysql_clear_password", greets, tls=tls) as rogue:
                    self.asked(self.dsn(rogue, f"&ssl_mode=verify_identity&ssl_ca={keys() / f'{ca}.pem'}", host))
                    self.assertEqual(rogue.all(), [])

    def test_over_a_socket_of_this_machine_it_may_be_asked_for(self):
        path = new_path("rogue.sock")
        with RogueMariadb("mysql_clear_password", at=path) as server:
            r = self.asked(f"mariadb://me:{PASSWORD}@localhost/app?socket={path}")
            self.assertEqual(server.all("answer"), [PASSWORD.encode() + b"\0"], r)

    def test_no_password_is_none_to_hand_over(self):
        """A user of MySQL without one logs in as before; nobody is asked at a terminal for one."""
        with RogueMariadb("caching_sha2_password") as server:
            self.asked(f"mariadb://me@127.0.0.1:{server.port}/app")
            self.assertEqual(server.all("answer")[:1], [b""])
        with RogueMariadb("dialog") as server:
            self.asked(f"mariadb://me@127.0.0.1:{server.port}/app")
            self.assertEqual(server.all("answer"), [])

    def test_a_file_of_this_machine_is_never_sent(self):
        file = new_path("private")
        file.write_text("the-content-of-a-file\n")
        for tls in (False, True):
            with self.subTest(tls=tls), RogueMariadb("mysql_native_password", file=file, tls=tls) as rogue:
                self.asked(self.dsn(rogue))
                self.assertTrue(rogue.all("statement"))
                self.assertEqual(rogue.all("file"), [])


class RoguePostgres(Rogue):
    """Asks for the password as it is."""

    def talk(self, c):
        while True:
            n, code = struct.unpack("!II", self.bytes(c, 8))
            rest = self.bytes(c, n - 8)
            if code == 80877103:
                c.sendall(b"S" if self.tls else b"N")
                c = self.encrypted(c) if self.tls else c
            elif code == 80877104:
                c.sendall(b"N")
            else:
                break
        self.keep("login", rest)
        c.sendall(b"R" + struct.pack("!II", 8, 3))
        head = self.bytes(c, 5)
        self.keep("answer", self.bytes(c, int.from_bytes(head[1:], "big") - 4))
        c.sendall(b"E" + struct.pack("!I", 4 + 23) + b"SFATAL\0C28P01\0Mwrong\0\0\0"[:23])


class Postgresql(unittest.TestCase):
    """What a contract asks for is kept. What libpq does unasked differs by its version, and the guide says which."""

    def answers(self, query, host="localhost", **how):
        with RoguePostgres(**how) as rogue:
            r = lapse(f"postgresql://me:{PASSWORD}@{host}:{rogue.port}/app?connect_timeout=20{query}", CONTRACT, "plan")
            self.assertEqual(r.code, 5, r)
            self.assertNotIn(PASSWORD, r.said)
            return rogue.all("answer")

    def test_a_server_whose_certificate_is_wrong_gets_nothing(self):
        for tls, ca, host in ((True, "other", "localhost"), (True, "ca", "127.0.0.1"), (False, "ca", "localhost")):
            with self.subTest(tls=tls, ca=ca, host=host):
                self.assertEqual(self.answers(f"&sslmode=verify-full&sslrootcert={keys() / f'{ca}.pem'}", host, tls=tls), [])

    def test_channel_binding_refuses_whoever_asks_for_the_password(self):
        for tls in (False, True):
            with self.subTest(tls=tls):
                self.assertEqual(self.answers("&channel_binding=require", tls=tls), [])

    def test_one_whose_certificate_is_right_may_have_it(self):
        got = self.answers(f"&sslmode=verify-full&sslrootcert={keys() / 'ca.pem'}", tls=True)
        self.assertEqual(got, [PASSWORD.encode() + b"\0"])

    def test_unasked_it_is_refused_from_libpq_16_on(self):
        refuses = psycopg2.extensions.libpq_version() >= 160000
        for tls, query in ((False, ""), (True, ""), (True, "&sslmode=require"), (False, "&sslmode=disable")):
            with self.subTest(query, tls=tls):
                self.assertEqual(set(self.answers(query, tls=tls)), set() if refuses else {PASSWORD.encode() + b"\0"})
