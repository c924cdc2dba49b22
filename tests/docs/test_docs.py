#!/usr/bin/python3
"""The documents are true: every example of the guide runs and prints what the page says, the reference is what the
program prints, the man page knows every command and option, the demo runs and prints what the README shows.

    test_docs.py --write     writes what the examples and the demo really print into the pages; also docs/reference.md
"""
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness import ROOT, _environment, program

GUIDE = ROOT / "docs" / "guide.md"
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "reference.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


def run(command, folder):
    """A shell line in which `lapse` is the program; what it prints, or else what it says on standard error."""
    bin = Path(folder) / "bin"
    bin.mkdir(exist_ok=True)
    if not (bin / "lapse").exists():
        (bin / "lapse").symlink_to(program())
    env = _environment({"PATH": f"{bin}:{os.environ['PATH']}"})
    p = subprocess.run(["sh", "-c", command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=60)
    return (p.stdout or p.stderr).decode()


def commands(text):
    """[(command, what it is said to print)] of a console block."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def examples(text):
    """Runs the page: yields each console block's position, its text, and what it should be."""
    with tempfile.TemporaryDirectory(prefix="lapse-docs-") as folder:
        for block in BLOCK.finditer(text):
            language, name, body = block.groups()
            if language == "sql" and name == "run":
                db = sqlite3.connect(Path(folder) / "app.db")
                db.executescript(body)
                db.close()
            elif language == "yaml" and name:
                (Path(folder) / name).write_text(body)
            elif language == "console":
                real = "".join(f"$ {c}\n{run(c, folder)}" for c, _ in commands(body))
                yield block, body, real


def steady(text, dates=False):
    """A transcript without what differs from run to run: durations, rates, and the blanks that align them; times of the
    real clock (the examples' own are of 2024), with dates all of them."""
    year = r"\d{4}" if dates else r"20(?:2[5-9]|[3-9]\d)"
    text = re.sub(year + r"-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?", "WHEN", text)
    text = re.sub(r"\b1[7-9]\d{8}(?:\d{3})?\b", "WHEN", text) if dates else text      # seconds, ms since 1970
    text = re.sub(r"(\d+m )?<?\d[\d.,]*(ms|s)\b", "TIME", text)
    text = re.sub(r"\d[\d,]* rows/s", "RATE", text)
    text = re.sub(r"\"duration_ms\": [\d.]+", "TIME", text)
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


def write():
    text, shift = GUIDE.read_text(), 0
    for block, said, real in examples(GUIDE.read_text()):
        if steady(said) != steady(real):
            start, end = block.start(3) + shift, block.end(3) + shift
            text = text[:start] + real + text[end:]
            shift += len(real) - len(said)
    GUIDE.write_text(text)
    with tempfile.TemporaryDirectory() as folder:
        REFERENCE.write_text(run("lapse keys", folder))
    readme, shown = README.read_text(), demo()
    said = readme_transcript(readme)
    if steady(said[1], dates=True) != steady(shown, dates=True):
        README.write_text(readme[:said.start(1)] + shown + readme[said.end(1):])


class Documents(unittest.TestCase):
    maxDiff = None

    def test_the_guide_prints_what_it_says(self):
        found = 0
        for _, said, real in examples(GUIDE.read_text()):
            found += 1
            self.assertEqual(steady(said), steady(real), "docs/guide.md (tests/docs/test_docs.py --write updates it)")
        self.assertGreater(found, 5)

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


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    write()
