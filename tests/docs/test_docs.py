#!/usr/bin/python3
"""The documents are true: every example of a page runs and prints what the page says, the reference is what the
program prints, the man page knows every command and option, the demo runs and prints what the README shows, the tables of
metrics and log events are those of the program.

    test_docs.py --write [PAGE…]     writes what the examples and the demo really print into the pages; also docs/reference.md and
                             the tables
"""
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]
from daemon import Daemon
from harness import ROOT, Sqlite, _environment, program
from clusters import ClusterTerminal
from mariadb_page import STORE, MariadbTerminal
from postgres_page import PostgresTerminal
from terminal import Terminal

GUIDE = ROOT / "docs" / "guide.md"
RUNNING = ROOT / "docs" / "running.md"
PURGES = ROOT / "docs" / "purges.md"
CLUSTERS = ROOT / "docs" / "clusters.md"
MARIADB = ROOT / "docs" / "mariadb.md"
PARTITIONS = ROOT / "docs" / "partitions.md"
PAGES = (GUIDE, RUNNING, PURGES, CLUSTERS, MARIADB, PARTITIONS)
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "reference.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


def run(command, folder):
    """One shell line, in a terminal of its own."""
    return Terminal(folder).run(command)


def commands(text):
    """[(command, what it is said to print)] of a console block."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def examples(text):
    """Runs the page: yields each console block's position, its text, and what it should be. A page with a daemon gets a
    port of its own; one that speaks of postgresql, a server."""
    with tempfile.TemporaryDirectory(prefix="lapse-docs-") as folder:
        terminal = (ClusterTerminal if "\n$ ssh db" in text else MariadbTerminal if STORE in text
                    else PostgresTerminal if "\nstore: postgresql:///app\n" in text and "partitions: drop" in text else Terminal)(folder)
        if re.search(r"^\$ systemctl .* postgresql", text, re.M):
            terminal.server()
        try:
            for block in BLOCK.finditer(text):
                language, name, body = block.groups()
                if language == "sql" and name == "run":
                    terminal.sql(body)
                elif language == "yaml" and name:
                    (Path(folder) / name).write_text(
                        terminal.contract(body) if re.search(r"^\$ (lapse run|ssh db)", text, re.M) or STORE in text else body)
                elif language == "console":
                    yield block, body, "".join(f"$ {c}\n{one(terminal, c, said)}" for c, said in commands(body))
        finally:
            terminal.close()


def one(terminal, command, said):
    """What a command prints; what threads log side by side may come in any order."""
    real = terminal.run(command, said)
    same = terminal.jobs and sorted(steady(said).splitlines()) == sorted(steady(real).splitlines())
    return said if same else real


def steady(text, dates=False):
    """A transcript without what differs from run to run: durations, rates, and the blanks that align them; times of the
    real clock (the examples' own are of 2024), with dates all of them."""
    year = r"\d{4}" if dates else r"20(?:2[5-9]|[3-9]\d)"
    text = re.sub(year + r"-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?", "WHEN", text)
    text = re.sub(r"\b1[7-9]\d{8}(?:\d{3})?\b", "WHEN", text) if dates else text      # seconds, ms since 1970
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    text = re.sub(r"(\d+m )?<?\d[\d.,]*(ms|s)\b", "TIME", text)
    text = re.sub(r"\d[\d,]* rows/s", "RATE", text)
    text = re.sub(r"\"duration_ms\": [\d.]+", "TIME", text)
    text = re.sub(r"\b[\w.-]+:\d+:[0-9a-f]{8}\b", "OWNER", text)                       # a process
    text = re.sub(r"\"duration\": ?[\d.]+", "TIME", text)
    text = re.sub(r"\bby \S+@\S+$", "by WHO", text, flags=re.M)                       # who did it, and where
    text = re.sub(r"\bin (\d+[dhm] )?\d+[hm]$", "in TIME", text, flags=re.M)              # the next run, …
    text = re.sub(r"\b\d+m ago\b", "TIME ago", text)                                     # … the last
    text = re.sub(r"\b[0-9a-f]{32}\b", "ID", text)
    text = re.sub(r"\b\d+ ticks? failed", "TICKS failed", text)
    text = re.sub(r"^ +waited: TIME for latency\n", "", text, flags=re.M)                # a machine that is busy otherwise …
    text = re.sub(r"\"batches\": \d+", "BATCHES", text)                                 # … has smaller batches
    text = re.sub(r"failed: (FATAL: +the database system is shutting down|No such file or directory; Is the server running locally "
                  r"and accepting connections on that socket\?)", "failed: AWAY", text)      # while it stops, and after
    text = re.sub(r"(_sum\S* |_timestamp_seconds\S* )[\d.]+", r"\1NUMBER", text)
    return re.sub(r"[ \t]+", " ", text)


def demo():
    """What the demo's commands print."""
    p = subprocess.run([str(ROOT / "scripts" / "demo"), program()], env=_environment({}), stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    out = p.stdout.decode()
    if p.returncode != 0:
        raise AssertionError(f"the demo ended with {p.returncode}:\n{out}{p.stderr.decode()}")
    transcript = re.search(r"^\$ lapse check\n.*(?=^What you saw)", out, re.M | re.S)[0]
    return re.sub(r"^(\$ .*\n)\n", r"\1", transcript, flags=re.M).rstrip() + "\n"


def readme_transcript(text):
    return re.search(r"^```text\n(.*?)^```$", text, re.M | re.S)


# --- tables of the program's own

def metrics_table():
    """From src/watch/meter.c, which is also what /metrics says."""
    text = joined((ROOT / "src" / "watch" / "meter.c").read_text())
    rows = re.findall(r'\[METRIC_\w+\] = \{"(\w+)",\s*(COUNTER|GAUGE|HISTOGRAM),\s*\{([^}]*)\},[^"]*"([^"]*)"\}', text)
    return table(("metric", "type", "labels", "meaning"),
                 [(f"`{name}`", kind.lower(), ", ".join(f"`{x}`" for x in re.findall(r'"(\w+)"', labels)), help)
                  for name, kind, labels, help in rows])


def events_table():
    text = joined((ROOT / "src" / "watch" / "event.c").read_text())
    rows = re.findall(r'\[EVENT_\w+\] =\s*\{"([\w.]+)",\s*LEVEL_(\w+),\s*(true|false),\s*(?:true|false),\s*"([^"]*)"\}', text)
    return table(("event", "level", "said when"),
                 [("`" + ("" if "." in word else "<scheduler>." if of == "true" else "lapse.") + f"{word}`", level.lower(), help)
                  for word, level, of, help in rows])


def joined(text):
    """Texts that C joins."""
    return re.sub(r'"\s*\n\s*"', "", text)


def table(head, rows):
    lines = [f"| {' | '.join(line)} |" for line in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]]) + "\n"


TABLES = {"metrics": metrics_table, "events": events_table}


def place(page, name):
    """Where a table stands in a page."""
    return re.search(rf"(?<=<!-- {name}: written by make docs -->\n)(.*?)(?=^<!-- end -->)", page, re.M | re.S)


# --- writing

def write_page(page):
    text, shift = page.read_text(), 0
    for block, said, real in examples(page.read_text()):
        if steady(said) != steady(real):
            start, end = block.start(3) + shift, block.end(3) + shift
            text = text[:start] + real + text[end:]
            shift += len(real) - len(said)
    page.write_text(text)


def write(*names):
    for page in PAGES:
        if not names or page.stem in names:
            write_page(page)
    running = RUNNING.read_text()
    for name, make in TABLES.items():
        at = place(running, name)
        running = running[:at.start()] + make() + running[at.end():]
    RUNNING.write_text(running)
    with tempfile.TemporaryDirectory() as folder:
        REFERENCE.write_text(run("lapse keys", folder))
    if names:
        return
    readme, shown = README.read_text(), demo()
    said = readme_transcript(readme)
    if steady(said[1], dates=True) != steady(shown, dates=True):
        README.write_text(readme[:said.start(1)] + shown + readme[said.end(1):])


class Documents(unittest.TestCase):
    maxDiff = None

    def prints_what_it_says(self, page, least):
        found = 0
        for _, said, real in examples(page.read_text()):
            found += 1
            self.assertEqual(steady(said), steady(real), f"{page.name} (make docs updates it)")
        self.assertGreaterEqual(found, least)

    def test_the_guide_prints_what_it_says(self):
        self.prints_what_it_says(GUIDE, 20)

    def test_the_page_on_running_prints_what_it_says(self):
        self.prints_what_it_says(RUNNING, 5)

    def test_the_page_on_purges_prints_what_it_says(self):
        self.prints_what_it_says(PURGES, 1)

    def test_the_page_on_partitions_prints_what_it_says(self):
        self.prints_what_it_says(PARTITIONS, 2)

    def test_the_tables_are_the_program_s(self):
        for name, make in TABLES.items():
            self.assertEqual(place(RUNNING.read_text(), name)[0], make(), f"the {name} of docs/running.md (make docs)")
        header = (ROOT / "src" / "watch" / "meter.h").read_text(), (ROOT / "src" / "watch" / "event.h").read_text()
        self.assertEqual(metrics_table().count("\n") - 2, len(re.findall(r"^    METRIC_\w+,", header[0], re.M)))
        self.assertEqual(events_table().count("\n") - 2, len(re.findall(r"^    EVENT_\w+,", header[1], re.M)))

    def test_the_alerts_are_about_metrics_that_there_are(self):
        """tests/suite/test_prometheus.py has when they fire."""
        rules = next(body for language, name, body in BLOCK.findall(RUNNING.read_text()) if name == "alerts.yml")
        self.assertLessEqual(set(re.findall(r"\b(?:lapse|lifecycle)_\w+", rules)),
                             set(re.findall(r"\| `(\w+)` \|", metrics_table())))

    def test_the_table_of_metrics_is_what_is_served(self):
        """Name, type, words and labels of all that a running daemon shows."""
        db, page = Sqlite(), place(RUNNING.read_text(), "metrics")[0]
        db.script("create table t (id integer primary key, at_ms integer); create index t_at on t (at_ms)")
        with Daemon(db, "schedulers: { a: { every: 1h, exclusive: true } }\n"
                        "policies: { t: { table: t, expires: at_ms } }", "--install") as d:
            d.wait_for("lifecycle_pruned")
            text = d.metrics_text()
        helps, types = (dict(re.findall(rf"^# {word} (\w+) (.*)$", text, re.M)) for word in ("HELP", "TYPE"))
        self.assertGreater(len(helps), 8)
        for name, words in helps.items():
            labels = re.search(rf"^{name}(?:_bucket)?\{{(.*)\}} ", text, re.M)[1]
            labels = ", ".join(f"`{x}`" for x in re.findall(r'(\w+)="', labels) if x != "le")
            self.assertIn(f"| `{name}` | {types[name]} | {labels} | {words} |", page)

    def test_the_demo_prints_what_the_readme_shows(self):
        shown = demo()
        self.assertIn("nothing was due", shown.split("$ lapse sweep")[2])
        self.assertEqual(steady(readme_transcript(README.read_text())[1], dates=True), steady(shown, dates=True))

    def test_the_reference_is_what_the_program_prints(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(REFERENCE.read_text(), run("lapse keys", folder))

    def test_every_key_is_explained(self):
        for line in REFERENCE.read_text().splitlines():
            if line.startswith("| `"):
                self.assertRegex(line, r"\.( \*later\*)? \|$", "a key without a sentence")

    def test_the_man_page_knows_every_command_and_option(self):
        page = (ROOT / "docs" / "lapse.1").read_text().replace("\\-", "-")
        with tempfile.TemporaryDirectory() as folder:
            help = run("lapse --help", folder)
        commands = re.findall(r"^  ([a-z]+)\b", help, re.M)
        options = re.findall(r"--[a-z-]+", help)
        self.assertGreaterEqual(set(commands), {"check", "plan", "sweep", "keys", "help"})
        self.assertGreaterEqual(set(options), {"--file", "--json", "--now", "--help", "--version"})
        for word in commands:
            self.assertRegex(page, rf"(?m)^\.BR? {word}\b", "a command that docs/lapse.1 does not explain")
        for word in options:
            self.assertRegex(page, rf"(?m)^\.BR? .*{word}\b", "an option that docs/lapse.1 does not explain")
        self.assertIn(f'"lapse {version()}"', page)

    def test_the_man_page_is_well_formed(self):
        page = (ROOT / "docs" / "lapse.1").read_text()
        for section in ("NAME", "SYNOPSIS", "COMMANDS", "OPTIONS", '"?EXIT STATUS'):
            self.assertRegex(page, rf"(?m)^\.SH {section}")

    def test_every_command_explains_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            listed = re.findall(r"^  ([a-z]+)  ", run("lapse --help", folder), re.M)
            self.assertGreaterEqual(len(listed), 11)
            for command in listed:
                self.assertIn(f"usage: lapse [OPTIONS] {command}", run(f"lapse help {command}", folder))
                self.assertEqual(run(f"lapse {command} --help", folder), run(f"lapse help {command}", folder))

    def test_the_readme_s_contract_works(self):
        contract = re.search(r"^```yaml lapse.yaml\n(.*?)^```$", README.read_text(), re.M | re.S)[1]
        self.assertEqual(len(contract.splitlines()), 5)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "lapse.yaml").write_text(contract)
            db = sqlite3.connect(Path(folder) / "app.db")
            db.executescript("create table sessions (id integer primary key, expires_at_ms integer);"
                             "create index i on sessions (expires_at_ms, id);"
                             "insert into sessions values (1, 1718452800000), (2, 4102444800000)")
            self.assertIn("fits the schema", run("lapse check", folder))
            self.assertIn("1 row gone", run("lapse sweep", folder))
            self.assertEqual(db.execute("select id from sessions").fetchall(), [(2,)])
            db.close()

    def test_links_lead_somewhere(self):
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
                self.assertTrue((page.parent / target).exists(), f"{page.name} links to {target}")


def version():
    with tempfile.TemporaryDirectory() as folder:
        return run("lapse --version", folder).split()[1]


if __name__ == "__main__" and sys.argv[1:2] == ["--write"]:
    write(*sys.argv[2:])
