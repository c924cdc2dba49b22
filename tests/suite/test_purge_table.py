"""A key-value table in a database as the storage of the purge manager: what holds in memory holds there."""
import os
import subprocess
from pathlib import Path

from harness import *

BUILD = Path(os.environ.get("LAPSE_BUILD", ROOT / "build"))


@every_engine
class Table(Case):
    def manager(self, dsn=None):
        return subprocess.run([BUILD / "tests" / "test_purge"], env={**os.environ, "LAPSE_PURGE_DSN": dsn or self.db.dsn},
                              capture_output=True, text=True, timeout=300)

    def everything_holds(self, value):
        self.given(f"create table kv (instance text{self.exact} not null, \"key\" text{self.exact} not null, "
                   f"value {value}, primary key (instance, \"key\")); insert into kv (instance, \"key\") values ('wf-10', 'step:1'), ('wf-', 'step:1'), ('WF-1', 'step:1'), ('', '')")
        self.db.close()
        r = self.manager()
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertEqual(sorted(self.db.rows("select instance from kv where instance <> 'wf-1'")),
                         [("",), ("WF-1",), ("wf-",), ("wf-10",)])

    def test_texts(self):
        self.everything_holds("text")

    def test_bytes(self):
        self.everything_holds(self.per_engine(postgres="bytea", sqlite="blob", mariadb="longblob"))

    def folding(self):
        """Types by which another name is the same: purging one instance would erase another."""
        folds = self.per_engine(postgres=("char(8)", "citext", 'text collate "und-x-icu"'),
                                sqlite=("text collate nocase", "text collate rtrim"),
                                mariadb=("text", "text collate utf8mb4_bin", "text collate utf8mb4_general_nopad_ci"))
        exactly = "text" + self.exact
        return [(f, exactly) for f in folds] + [(exactly, f) for f in folds]

    def test_a_table_that_is_not_one(self):
        for ddl, said in (("", "there is no such table"), ("create table kv (a text)", "no columns instance, key and value"),
                          (f"create table kv (instance {self.per_engine(sqlite='integer', postgres='integer', mariadb='varbinary(90)')}, "
                           "\"key\" text, value text)", "must be texts"),
                          *((f"create table kv (instance {a}, \"key\" {b}, value text)", "compare exactly")
                            for a, b in self.folding())):
            with self.subTest(ddl):
                self.given(("create extension if not exists citext;" if "citext" in ddl else "") + f"drop table if exists kv; {ddl}")
                self.db.close()
                r = self.manager()
                self.assertNotEqual(r.returncode, 0)
                self.assertIn(said, r.stdout + r.stderr)
                self.assertIn("CREATE TABLE kv", r.stdout + r.stderr)
