"""A real MySQL for tests (`make test-mysql`; scripts/mysql unpacks one): the MariaDB suites run on it.

The suites are written in MariaDB's words; what MySQL lacks of these is said differently on every connection."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from mariadb import Connection, Mariadb, _as_server, _prepared_lock, _server_user
from servers import folder, new_path

# A word of MariaDB -> MySQL's.
WORDS = {
    r"\butf8mb4_nopad_bin\b": "utf8mb4_0900_bin",
    r"\butf8mb4_(general|unicode)_nopad_ci\b": "utf8mb4_0900_ai_ci",
    r"\bseq_(\d+)_to_(\d+)\b": r"(with recursive _s(seq) as (select \1 union all select seq + 1 from _s where seq < \2)"
                               r" select seq from _s) seq_\1_to_\2",
}


class _Connection(Connection):
    def query(self, sql, unbuffered=False):
        for said, meant in WORDS.items():
            sql = re.sub(said, meant, sql) if isinstance(sql, str) else re.sub(said.encode(), meant.encode(), sql)
        return super().query(sql, unbuffered)


class Mysql(Mariadb):
    CONNECTION = _Connection
    SETTINGS = {
        "character-set-server": "utf8mb4", "collation-server": "utf8mb4_general_ci", "default-time-zone": Mariadb.ZONE,
        "innodb-buffer-pool-size": "64M", "max-connections": "150", "max-allowed-packet": "64M",
        "cte-max-recursion-depth": "4294967295", "skip-name-resolve": "ON", "performance-schema": "OFF", "mysqlx": "OFF",
        "wait-timeout": "600", "skip-log-bin": "",
    }
    CARELESS = {"innodb-flush-log-at-trx-commit": "0", "innodb-doublewrite": "OFF", "innodb-flush-method": "nosync"}

    def _create(self, like=None):
        self.home.mkdir()
        shutil.copytree(like or _prepared(), self.data)
        if os.getuid() == 0:
            user = _server_user()
            for path in (self.home, self.data, *self.data.rglob("*")):
                os.chown(path, user.pw_uid, user.pw_gid)

    def program(self):
        return _program()


def _program():
    """The server with the libraries it was built with."""
    root = Path(os.environ["LAPSE_MYSQL"])
    libraries = root / "usr/lib/x86_64-linux-gnu"
    return [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries), str(root / "usr/sbin/mysqld"),
            "--no-defaults", f"--lc-messages-dir={root}/usr/share/mysql", f"--plugin-dir={root}/usr/lib/mysql/plugin",
            f"--character-sets-dir={root}/usr/share/mysql/charsets", "--secure-file-priv=NULL"]


def _prepared():
    made = folder() / "mysql-prepared"
    with _prepared_lock:
        if not made.exists():
            home = new_path("mysql-install")
            home.mkdir()
            if os.getuid() == 0:
                shutil.chown(home, _server_user().pw_name)
            done = subprocess.run(_as_server(*_program(), "--initialize-insecure", f"--datadir={home / 'data'}",
                                             "--innodb-flush-method=nosync", "--collation-server=utf8mb4_general_ci"),
                                  cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                raise RuntimeError(f"mysqld --initialize failed:\n{done.stdout}")
            (home / "data/auto.cnf").unlink()       # each server makes its own
            os.rename(home / "data", made)
    return made
