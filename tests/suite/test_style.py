"""How the code is laid out, and what a second compiler says of it."""
import fnmatch
import json
import os
import re
import shlex
import subprocess
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import ROOT

FOLDERS = ("include", "src", "prog", "examples", "tests")
# What a file of its folder, or another one, tests along.
TESTED_BY = {"store/sql/*_sql": "store/sql/sql", "store/sql/own_*": "store/sql/own", "store/sql/purge_queue": "store/sql/own",
             "store/sql/*": "store/sql/sqlstore", "plan/purges_*": "plan/purges", "record/history_*": "record/history",
             "watch/event_*": "watch/event", "command/*": "command/lapse"}
BY_THE_SUITES = {"store/postgres", "store/mariadb"}         # what has no test of its own there needs a server
OF_THE_PROGRAM = {"http_guard"}                             # pure, in prog/


def run(command, folder=ROOT):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def compile_commands():
    """How the build compiles each file: (file, its arguments without compiler, output and sanitizers)."""
    build = Path(os.environ.get("LAPSE_BUILD", ROOT / "build"))
    for entry in json.loads((build / "compile_commands.json").read_text()):
        said = shlex.split(entry["command"])
        arguments, words = [], iter(said[2 if said[0].endswith("ccache") else 1:])
        for word in words:
            if word in ("-o", "-MF", "-MQ"):
                next(words)
            elif word not in ("-c", "-MD") and not word.startswith("-fsanitize"):
                arguments.append(word)
        yield entry["file"], arguments, entry["directory"]


class Style(unittest.TestCase):
    def test_everything_is_formatted(self):
        files = sorted(str(p) for folder in FOLDERS for p in (ROOT / folder).rglob("*.[ch]"))
        self.assertGreater(len(files), 50)
        done = run(["clang-format", "--dry-run", "-Werror", *files])
        self.assertEqual(done.returncode, 0, "run `make format`:\n" + done.stderr[:2000])

    def test_clang_has_nothing_to_say(self):
        def check(entry):
            file, arguments, folder = entry
            done = run(["clang", "-fsyntax-only", "-fno-color-diagnostics", "-Werror",
                        "-Wno-unknown-warning-option", *arguments], folder)
            return "" if done.returncode == 0 else f"{file}:\n{done.stderr[:2000]}"

        entries = {file: (file, arguments, folder) for file, arguments, folder in compile_commands()
                   if "/unit/" not in file}
        self.assertGreater(len(entries), 40)
        with ThreadPoolExecutor(2) as pool:
            said = "".join(pool.map(check, entries.values()))
        self.assertFalse(said, said)

    def test_unit_tests_mirror_the_sources(self):
        unit, src = ROOT / "tests" / "unit", ROOT / "src"
        there = {str(p.relative_to(unit).with_name(p.stem.removeprefix("test_"))) for p in unit.rglob("test_*.c")}

        def tested_by(p):
            name = str(p.relative_to(src).with_suffix(""))
            folder = name.rsplit("/", 1)[0]
            if name in there:           # a part may have a file of its own
                return name
            if folder in BY_THE_SUITES:
                return None
            whole = f"{folder}/{folder.rsplit('/', 1)[-1]}"
            return next((by for like, by in TESTED_BY.items() if fnmatch.fnmatchcase(name, like)),
                        whole if whole in there else name)

        wanted = {tested_by(p) for p in src.rglob("*.c")} - {None} | OF_THE_PROGRAM
        built = set(re.findall(r"^  '([\w/]+)',$", (ROOT / "tests" / "meson.build").read_text(), re.M))
        self.assertEqual(there, wanted)
        self.assertEqual(built, there)
