#!/usr/bin/python3
"""What is written about the ready-made contracts is true: every example runs and prints what its page says, and every
line that docs/migrating.md quotes is in the contract it speaks of.

    test_pages.py --write     writes what the examples really print into the pages
"""
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent.parent / "docs")]
from harness import ROOT, _environment, at_end, postgres, program
from test_docs import BLOCK, commands, run, steady

HOME = ROOT / "contracts"
MIGRATING = ROOT / "docs" / "migrating.md"
READMES = sorted(HOME.glob("*/README.md"))
CONTRACTS = [p.parent.name for p in READMES]


def examples(page):
    """Runs the page: yields each console block, its text, and what it should be. A block runs in the folder of the
    contract that the page or the block's first line names."""
    with tempfile.TemporaryDirectory(prefix="lapse-pages-") as folder:
        shutil.copytree(HOME, Path(folder) / "contracts")
        for block in BLOCK.finditer(page.read_text()):
            language, name, body = block.groups()
            where = Path(folder) / (name or f"contracts/{page.parent.name}")
            if language == "console":
                yield block, body, "".join(f"$ {c}\n{run(c, where)}" for c, _ in commands(body))
            elif language == "yaml" and name:
                where.write_text(body)


def write():
    for page in (MIGRATING, *READMES):
        text, shift = page.read_text(), 0
        for block, said, real in list(examples(page)):
            if steady(said) != steady(real):
                start, end = block.start(3) + shift, block.end(3) + shift
                text = text[:start] + real + text[end:]
                shift += len(real) - len(said)
        page.write_text(text)


def plain(text):
    """Without comments and with single blanks, so that a quoted line can be found."""
    return re.sub(r"\s+", " ", re.sub(r"(^|\s)#.*", "", text, flags=re.M))


def sections():
    """The part of the page on each contract: {folder: text}"""
    parts = re.split(r"^## (.*)\n", MIGRATING.read_text(), flags=re.M)
    found = {}
    for text in parts[2::2]:
        named = re.search(r"\]\(\.\./contracts/([\w-]+)/lapse\.yaml\)", text)
        if named:
            found[named[1]] = text
    return found


def rows(text):
    """The rows of the section's table: [cells]"""
    lines = [line.strip().strip("|") for line in text.splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", line)] for line in lines if not re.match(r"^[-| ]+$", line)]


class Pages(unittest.TestCase):
    maxDiff = None

    def test_every_example_prints_what_its_page_says(self):
        for page in (MIGRATING, *READMES):
            found = 0
            for _, said, real in examples(page):
                found += 1
                self.assertEqual(steady(said), steady(real), f"{page} (tests/contracts/test_pages.py --write updates it)")
            self.assertGreater(found, 0, page)

    def test_what_a_readme_leaves_is_marked_to_stay(self):
        for page in READMES:
            left = re.search(r"^\$ sqlite3 app.db \"SELECT.*\n((?:.|\n)*?)```", page.read_text(), re.M)[1].split("\n")
            self.assertGreater(len(left), 3, page)
            for line in left[:-1]:
                self.assertRegex(line, r"^(\d+\|)?keep", page)

    def test_links_lead_somewhere(self):
        for page in (MIGRATING, HOME / "README.md", *READMES):
            for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
                self.assertTrue((page.parent / target).exists(), f"{page} links to {target}")

    def test_every_contract_has_its_section(self):
        self.assertEqual(sorted(sections()), CONTRACTS)

    def test_every_quoted_line_is_in_its_contract(self):
        quoted = 0
        for name, text in sections().items():
            contract = plain((HOME / name / "lapse.yaml").read_text())
            for cells in rows(text):
                self.assertEqual(len(cells), 3, cells)
                for line in re.findall(r"`([^`]+)`", cells[1]):
                    self.assertIn(plain(line), contract, f"quoted for {cells[0]} of {name}")
                    quoted += 1
        self.assertGreater(quoted, 80)

    def test_every_line_of_a_contract_is_explained(self):
        """The other way round: no key of a contract that the page leaves out."""
        for name, text in sections().items():
            quoted = " ".join(re.findall(r"`([^`]+)`", " ".join(c[1] for c in rows(text))))
            contract = re.sub(r"(^|\s)#.*", "", (HOME / name / "lapse.yaml").read_text(), flags=re.M)
            for key in set(re.findall(r"\b([a-z_]+):(?:\s|$)", contract)) - {"lapse", "store", "schedulers", "policies",
                                                                            "scheduler", "table", "metadata"}:
                self.assertRegex(quoted, rf"(^|\W){key}\b", f"{name} has a key that its section does not explain")

    def test_the_postgresql_lines_of_the_overview_work(self):
        lines = re.search(r"^```sh\n(.*?)^```$", (HOME / "README.md").read_text(), re.M | re.S)[1]
        server, bin = postgres(), Path(tempfile.mkdtemp(prefix="lapse-bin-"))
        at_end(lambda: shutil.rmtree(bin))
        (bin / "lapse").symlink_to(program())
        env = _environment({"PATH": f"{bin}:/usr/bin:/bin", "PGHOST": str(server.home), "PGUSER": server.USER})
        for name in CONTRACTS:
            server.admin("drop database if exists app with (force)")
            server.admin("create database app template template0")
            schema = re.search(r"^CREATE SCHEMA (\w+)", (HOME / name / "schema.postgresql.sql").read_text(), re.M)
            here = lines.replace("postgresql:///app", f"'postgresql:///app?options=-csearch_path%3D{schema[1]}'") \
                if schema else lines
            done = subprocess.run(["sh", "-ec", here], cwd=HOME / name, env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("fits the schema", done.stdout)
            self.assertRegex(done.stdout, r"\d+ rows gone")
        server.admin("drop database app with (force)")


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    write()
