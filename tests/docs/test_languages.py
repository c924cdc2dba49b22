"""Every example of docs/purges.md in a language is run as it stands there, and does what the page says."""
import contextlib
import re
import subprocess
from pathlib import Path

from daemon import eventually
from harness import *

PAGE = (ROOT / "docs" / "purges.md").read_text()
BLOCKS = [m.groups() for m in re.finditer(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)]
CONTRACT = "purges: { workflow: { erases: [workflow(id)] } }"


def block(language):
    found = [body for name, body in BLOCKS if name == language]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} examples in {language}")
    return found[0]


def sql_blocks():
    return [body for name, body in BLOCKS if name == "sql"]


class Scheduling(Case):
    def setUp(self):
        super().setUp()
        self.given("create table workflow (id text primary key)")
        self.lapse(CONTRACT, "install", code=0)

    def scheduled(self, *instances):
        self.assertEqual(self.db.rows("select space, instance, reason from lapse_purge order by id"),
                         [("workflow", n, "completed") for n in instances])
        p = self.lapse(CONTRACT, "purge", "list", "--json", code=0).json["purges"]
        self.assertEqual(sorted((x["instance"], x["state"]) for x in p),
                         sorted((n, "repeated" if n in instances[:i] else "pending") for i, n in enumerate(instances)))


@every_engine
class Sql(Scheduling):
    def client(self, sql):
        self.db.close()
        words = ["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", self.db.dsn, "-c", sql] if self.on_postgres else \
            ["mariadb", "--no-defaults", f"--socket={self.db.server.socket}", "-u", self.db.server.USER, self.db.name, "-e", sql] \
            if self.on_mariadb else ["sqlite3", "-bail", self.db.path, sql]
        p = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_schedule_and_cancel(self):
        insert, delete = sql_blocks()[0].strip().splitlines()
        self.client(insert)
        self.scheduled("wf-1")
        self.client(insert)
        self.scheduled("wf-1", "wf-1")
        self.client(delete)
        self.scheduled()


class Languages(Scheduling, PostgresTest):
    ID = "wf-'1\" ä"

    def test_every_block_is_run_here_or_as_a_console(self):
        self.assertEqual({name for name, _ in BLOCKS} - {"sql", "python", "js", "csharp", "console", "yaml"}, set())
        self.assertEqual(len(sql_blocks()), 3)      # the grant is run by suite/purge

    def test_notify(self):
        with contextlib.closing(self.db.connect()) as c:
            c.autocommit = True
            c.cursor().execute("listen lapse_purge")
            p = subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", self.db.dsn, "-c", next(b for b in sql_blocks() if "NOTIFY" in b)],
                               capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stderr)
            eventually(lambda: c.poll() or c.notifies)
            self.assertEqual([n.channel for n in c.notifies], ["lapse_purge"])
        self.scheduled("wf-1")

    def test_python(self):
        with self.db.connect() as c:
            with c.cursor() as cursor:
                exec(block("python"), {"cursor": cursor, "id": self.ID})
            c.commit()
        self.scheduled(self.ID)

    def test_node(self):
        root = node_modules()
        if not root:
            return self.bound(*re.search(r'query\("(.*?)", \[(.*?)\]\);', block("js")).groups())
        script = ("const { Client } = require('pg'); (async () => { const [dsn, id] = process.argv.slice(1); "
                  "const client = new Client({ connectionString: dsn }); await client.connect(); "
                  f"{block('js')} await client.end(); }})().catch(e => {{ console.error(e); process.exit(1); }});")
        p = subprocess.run(["node", "-e", script, self.db.dsn, self.ID], capture_output=True, text=True,
                           env={"NODE_PATH": str(root), "PATH": "/usr/bin:/usr/local/bin"}, timeout=60)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.scheduled(self.ID)

    def bound(self, sql, values):
        """The statement with its values, by another driver: $1 is the first, @name the one of that name."""
        given = {"id": self.ID}
        values = [given.get(v.strip(), v.strip().strip('"')) for v in values.split(",")]
        self.assertEqual(re.findall(r"\$(\d)", sql), [str(i + 1) for i in range(len(values))])
        self.db.execute(re.sub(r"\$\d", "?", sql), values)
        self.scheduled(self.ID)

    def test_csharp(self):
        """No compiler for it here: the statement and the names and values bound to it are what counts."""
        text = block("csharp")
        sql = re.search(r'NpgsqlCommand\(\s*"(.*?)", connection, transaction\)', text)[1]
        values = dict(re.findall(r'Parameters\.AddWithValue\("(\w+)", (.*?)\);', text))
        names = re.findall(r"@(\w+)", sql)
        self.assertEqual(names, list(values))
        self.assertIn("await command.ExecuteNonQueryAsync();", text)
        self.bound(re.sub(r"@\w+", lambda m: f"${names.index(m[0][1:]) + 1}", sql), ",".join(values[n] for n in names))
