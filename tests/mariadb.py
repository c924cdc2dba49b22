"""A real MariaDB for tests, started in a temporary folder, and what it needs said differently from the other engines."""
import datetime
import itertools
import os
import pwd
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pymysql
from pymysql.constants import CLIENT
from pymysql.converters import conversions, escape_datetime

from servers import RUN, Database, at_end, folder, free_port, new_path, percent


# --- the tables of the suites, as MariaDB wants them -----------------------------------------------------

# A suite writes its tables once. These words of the other engines mean something else here, or nothing.
TYPES = {
    r"timestamptz|timestamp with time zone": "timestamp(6)",
    r"timestamp without time zone|timestamp(?! *\()": "datetime(6)",
    r"text(?! *\()": "varchar(191)",               # a key of unbounded text is refused
    r"numeric(?! *\()": "decimal(38, 10)",         # without digits it has no fraction
    r"double precision": "double",
    r"bytea": "longblob",
    r"jsonb": "json",
    r"bigserial": "bigint auto_increment",
    r"serial": "integer auto_increment",
}
_TYPE = re.compile(r"\b(?:" + "|".join(f"({word})" for word in TYPES) + r")\b", re.I)
_TABLE = re.compile(r"\s*(create\s+(temporary\s+)?table|alter\s+table)\b", re.I)
_QUOTED = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`)""")
# A trigger as SQLite has it: create trigger NAME before delete on T when CONDITION begin select raise(abort, 'no'); end
_TRIGGER = re.compile(r"(create\s+trigger\s+\S+\s+(?:before|after)\s+(?:insert|update|delete))(?:\s+of\s+[\w, ]+?)?"
                      r"(\s+on\s+\S+)(?:\s+for\s+each\s+row)?(?:\s+when\s+(.*?))?\s+begin\s+(.*?)\s*\bend\b(?!\s+if)",
                      re.I | re.S)
# As PostgreSQL has them: create index on t(a); truncate a, b cascade; generate_series(1, 3) n
_NAMELESS = re.compile(r"\bcreate\s+(unique\s+)?index\s+on\s+(\w+)", re.I)
_TRUNCATE = re.compile(r"\btruncate\s+(?!table\b)([\w, ]+?)(?:\s+cascade)?\s*(?=;|$)", re.I)
_SERIES = re.compile(r"\bgenerate_series\((\d+), (\d+)\)\s+(?:(\w+)\((\w+)\)|(\w+))", re.I)
_RAISE = re.compile(r"select\s+raise\(\s*(?:abort|fail|rollback)\s*,\s*('(?:[^']|'')*')\s*\)", re.I)


def translated(sql):
    """The same statements with MariaDB's types and triggers. Nothing in quotes is touched."""
    parts, end = [], 0
    for m in _TRIGGER.finditer(sql):
        parts += [_statements(sql[end:m.start()]), _trigger(*m.groups())]
        end = m.end()
    return "".join(parts + [_statements(sql[end:])])


def _statements(sql):
    """An empty statement is an error here, but for the last."""
    found = _QUOTED.split(re.sub(r";(\s*;)+", ";", sql))
    statements = [""]
    for i, text in enumerate(found):
        for j, part in enumerate([text] if i % 2 else re.split("(;)", text)):
            if i % 2 == 0 and j % 2:
                statements += [";", ""]
            else:
                statements[-1] += part
    return _likewise("".join(_types(s) if _TABLE.match(s) else s for s in statements))


def _likewise(sql):
    sql = _NAMELESS.sub(lambda m: f"create {m[1] or ''}index i{next(_numbers)} on {m[2]}", sql)
    sql = _SERIES.sub(lambda m: f"(select seq {m[4] or m[5]} from seq_{m[1]}_to_{m[2]}) {m[3] or m[5]}", sql)
    return _TRUNCATE.sub(lambda m: "set foreign_key_checks = 0; "
                         + "".join(f"delete from {t.strip()}; " for t in m[1].split(",")) + "set foreign_key_checks = 1", sql)


def _trigger(head, table, when, body):
    body = _RAISE.sub(r"signal sqlstate '45000' set message_text = \1", body).rstrip("; ") + ";"
    if when:
        body = f"if {when} then {body} end if;"
    return f"{head}{table} for each row begin {body} end"


def _types(statement):
    meant = list(TYPES.values())
    parts = _QUOTED.split(statement)
    parts[::2] = [_TYPE.sub(lambda m: meant[m.lastindex - 1], part) for part in parts[::2]]
    return "".join(parts)


_numbers = itertools.count(1)


def quoted(name):
    return '"%s"' % name.replace('"', '""')


def _in_utc(value, mapping=None):
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return escape_datetime(value, mapping)


def own_time(sql, text):
    """lapse's own tables hold times as TIMESTAMP: without a zone's letter, and up to 2038."""
    if "lapse_" not in sql or not isinstance(text, str):
        return text
    return re.sub(r"(\d{4}-\d\d-\d\dT[\d:.]+)Z", r"\1", text).replace("2999-01-01", "2037-01-01")


# --- databases -------------------------------------------------------------------------------------------

class Connection(pymysql.connections.Connection):
    """With execute() as sqlite3 has it, and `?` for values."""

    def execute(self, sql, params=()):
        c = self.cursor()
        c.execute(percent(sql, params), params or None)
        while c.nextset():
            pass
        return c


class MariadbDatabase(Database):
    engine = "mariadb"

    def __init__(self, server, name):
        self.server, self.name = server, name
        self.dsn = server.dsn(name)
        self._connection = None

    def connect(self, **options):
        return self.server.connect(self.name, **options)

    @property
    def connection(self):
        if self._connection is None or not self._connection.open:
            self._connection = self.connect()
        return self._connection

    def execute(self, sql, params=()):
        return self.connection.execute(translated(own_time(sql, sql)), [own_time(sql, p) for p in params]).rowcount

    def executemany(self, sql, rows):
        c = self.connection
        c.execute("start transaction")      # BEGIN is a block in one of the modes
        with c.cursor() as cursor:
            cursor.executemany(percent(sql, rows), [[own_time(sql, v) for v in row] for row in rows])
        c.commit()

    def script(self, sql):
        sql = re.sub(r"\bdrop\s+index\s+(\w+)(?=\s*(;|$))", lambda m: f"{m[0]} on {self._table_of(m[1])}", sql, flags=re.I)
        if sql.strip():
            self.connection.execute(translated(own_time(sql, sql)))

    def _table_of(self, index):
        return self.rows("select table_name from information_schema.statistics where table_schema = ? and index_name = ?",
                         (self.name, index))[0][0]

    def empty(self, table):
        # a key within the table is checked row by row
        self.script(f"set foreign_key_checks = 0; delete from {table}; set foreign_key_checks = 1")

    def rows(self, sql, params=()):
        with self.connection.cursor() as c:
            c.execute(percent(sql, params), params or None)
            return list(c.fetchall())

    def schemas(self):
        """The databases that belong to this one: `NAME` and, beside it, `NAME_…`."""
        return [n for n, in self.rows("select schema_name from information_schema.schemata where schema_name = ?"
                                      " or schema_name like ?", (self.name, self.name.replace("_", r"\_") + r"\_\_%"))]

    def tables(self):
        return ['.'.join(quoted(n) for n in ((s, t) if s != self.name else (t,))) for s, t in self.rows(
            "select table_schema, table_name from information_schema.tables where table_type = 'BASE TABLE'"
            " and table_schema in ? order by 1, 2", (self.schemas(),))]

    def close(self):
        if self._connection is not None and self._connection.open:
            self._connection.close()
        self._connection = None

    def drop(self):
        names = self.schemas()
        self.close()
        self._end_others()
        for name in names:
            self.server.admin(f'drop database if exists "{name}"')

    def _end_others(self):
        for pid, in self.server.admin("select id from information_schema.processlist where db = %s", (self.name,)):
            try:
                self.server.admin(f"kill {pid}")
            except pymysql.OperationalError:    # it has ended by itself
                pass

    def give_back(self):
        """Empties a borrowed database for the next who borrows one."""
        try:
            self.drop()
            self.server.admin(f'create database "{self.name}"')
            self.server._spare.append(self.name)
        except pymysql.Error:
            self.close()


class Mariadb:
    """A MariaDB server of our own: a temporary folder, a unix socket, a loopback port with port=True. durable: commits
    outlive a crash. settings: further options, {"sql-mode": "ANSI"}; a value of None takes a default away.
    User `guarded` (password `Sesame-42`) must give its password; `root` has none.

    Set on purpose: a time zone that is not UTC (and no tables of zones), a collation that folds case and blanks."""
    USER = "root"
    PASSWORD = "Sesame-42"
    ZONE = "+12:45"
    CONNECTION = Connection
    SETTINGS = {
        "character-set-server": "utf8mb4", "collation-server": "utf8mb4_general_ci", "default-time-zone": ZONE,
        "innodb-buffer-pool-size": "64M", "innodb-log-file-size": "32M", "key-buffer-size": "1M",
        "aria-pagecache-buffer-size": "8M", "max-connections": "150", "max-allowed-packet": "64M",
        "max-recursive-iterations": "4294967295", "skip-name-resolve": "1", "performance-schema": "0",
        "innodb-print-all-deadlocks": "0", "wait-timeout": "600", "log-warnings": "1",
    }
    CARELESS = {"innodb-flush-log-at-trx-commit": "0", "innodb-doublewrite": "0", "innodb-flush-method": "nosync",
                "sync-frm": "0"}

    def __init__(self, port=False, settings=None, durable=False):
        self.home = new_path("maria")
        self.data, self.log, self.socket = self.home / "data", self.home / "log", self.home / "socket"
        self.port = free_port() if port else None
        self.process = None
        self._settings = {**self.SETTINGS, **({} if durable else self.CARELESS), **(settings or {})}
        self._forget()
        self._create()
        self.start()
        at_end(self.stop)
        for host in ("127.0.0.1", "%"):
            self.admin(f"create user if not exists root@'{host}'")
            self.admin(f"grant all privileges on *.* to root@'{host}' with grant option")
        self.admin(f"create user guarded@'%' identified by '{self.PASSWORD}'")
        self.admin("grant all privileges on *.* to guarded@'%'")

    @classmethod
    def at(cls, home):
        """The running server of another process."""
        self = cls.__new__(cls)
        self.home, self.port, self.process = Path(home), None, None
        self.log, self.socket = self.home / "log", self.home / "socket"
        self._forget()
        return self

    def _forget(self):
        self._names, self._spare = itertools.count(1), []
        self._admin, self._admin_lock = None, threading.Lock()

    def _create(self, like=None):
        self.home.mkdir()
        shutil.copytree(like or prepared(), self.data)
        if os.getuid() == 0:
            user = _server_user()
            for path in (self.home, self.data, *self.data.rglob("*")):
                os.chown(path, user.pw_uid, user.pw_gid)

    def program(self):
        return ["/usr/sbin/mariadbd", "--no-defaults"]

    def start(self):
        self.launch()
        self.wait_until_ready()

    def launch(self, *more):
        """Starts it and waits for nothing; more: further options."""
        options = [f"--datadir={self.data}", f"--socket={self.socket}", f"--pid-file={self.home / 'pid'}",
                   f"--tmpdir={self.home}"]
        options += [f"--port={self.port}", "--bind-address=127.0.0.1"] if self.port else ["--skip-networking"]
        options += [f"--{k}={v}" if v != "" else f"--{k}" for k, v in self._settings.items() if v is not None]
        options += more
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(_as_server(*self.program(), *options), cwd="/",
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                            env={"PATH": os.environ["PATH"], "LANG": "C", "TZ": "Pacific/Auckland"})

    def ready(self):
        """Whether it answers; an error says why not."""
        self.connect(None).close()
        return True

    def wait_until_ready(self):
        deadline = time.monotonic() + 60
        while True:
            why = "it is not ready"
            try:
                if self.ready():
                    return
            except pymysql.MySQLError as e:
                why = e
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"MariaDB did not start: {why}\n{self.log.read_text()[-3000:]}")
            time.sleep(0.03)

    def stop(self, how=signal.SIGKILL):
        """SIGKILL crashes it (the next start recovers), SIGTERM shuts it down."""
        if self._admin is not None and self._admin.open:
            self._admin.close()
        self._admin = None
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(60)

    def dsn(self, db, user=None, password=None, tcp=False):
        who = (user or self.USER) + (f":{password}" if password is not None else "")
        return f"mariadb://{who}@127.0.0.1:{self.port}/{db}" if tcp else \
            f"mariadb://{who}@localhost/{db}?socket={self.socket}"

    def connect(self, db, **options):
        """A connection in UTC whose SQL is closer to the standard: "name", a || b."""
        options = {"user": self.USER, "unix_socket": str(self.socket), **options}
        return self.CONNECTION(
            database=db, autocommit=True, charset="utf8mb4", client_flag=CLIENT.MULTI_STATEMENTS | CLIENT.FOUND_ROWS,
            conv={**conversions, datetime.datetime: _in_utc}, init_command="set time_zone = '+00:00', sql_mode ="
            " concat(@@sql_mode, ',ANSI_QUOTES,PIPES_AS_CONCAT')", **options)

    def admin(self, sql, params=()):
        with self._admin_lock:
            if self._admin is None or not self._admin.open:
                self._admin = self.connect(None)
            with self._admin.cursor() as c:
                c.execute(sql, params or None)
                return c.fetchall()

    def user(self, db, name, *grants):
        """Makes a user of this database with these rights alone ("select on t"); its DSN."""
        name = f"{name}_{db}"
        self.admin(f'drop user if exists "{name}"')
        self.admin(f'create user "{name}"')
        for grant in grants:
            what, on = grant.rsplit(" on ", 1)
            on = on if "." in on else f'"{db}".{on}'
            self.admin(f'grant {what} on {on} to "{name}"')
        return self.dsn(db, user=name)

    def fresh(self):
        """A new, empty database."""
        name = f"t{RUN}_{next(self._names)}"
        self.admin(f'create database "{name}"')
        return MariadbDatabase(self, name)

    def borrow(self):
        """An empty database to be given back."""
        return MariadbDatabase(self, self._spare.pop()) if self._spare else self.fresh()


# --- the server's folder -----------------------------------------------------------------------------------

def _server_user():
    for name in ("mysql", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    raise RuntimeError("no unprivileged user to run MariaDB as")


def _as_server(*command):
    # mariadbd refuses to run as root. The death signal stops it when this process is killed.
    become = ["setpriv", "--pdeathsig", "TERM"]
    if os.getuid() == 0:
        user = _server_user()
        become += ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
    return become + list(command)


_prepared_lock = threading.Lock()


def prepared():
    """A data folder as mariadb-install-db makes it, made once per process and copied for each server."""
    made = folder() / "maria-prepared"
    with _prepared_lock:
        if not made.exists():
            _install(made)
    return made


def _install(made):
    home = new_path("maria-install")
    home.mkdir()
    if os.getuid() == 0:
        shutil.chown(home, _server_user().pw_name)
    try:
        done = subprocess.run(
            _as_server("mariadb-install-db", "--no-defaults", f"--datadir={home / 'data'}", "--skip-test-db",
                       "--auth-root-authentication-method=normal", "--innodb-log-file-size=4M",
                       f"--tmpdir={home}",      # a server that starts removes the temporary tables of others
                       "--innodb-flush-method=nosync", "--skip-name-resolve"),
            cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PATH": os.environ["PATH"], "TMPDIR": str(home)})      # in /tmp, servers that start tidy up after each other
    except FileNotFoundError:
        raise RuntimeError("no MariaDB server: run scripts/setup test")
    if done.returncode != 0:
        raise RuntimeError(f"mariadb-install-db failed:\n{done.stdout}")
    os.rename(home / "data", made)
