"""The house: who may include whom, and where a database's client may be seen."""
import fnmatch
import re
import unittest
from pathlib import Path

from harness import ROOT

# A file includes only headers of its own folder, or of a folder above it in this list. Of folders on one line, none knows
# another. `internal.h` is for its own folder alone.
ORDER = [
    "base",
    "time",
    "contract",
    "schedule",
    "schema",
    "plan",
    "store",
    "store/sql",
    "store/sqlite store/postgres store/mariadb",
    "guard",
    "record",
    "check",
    "draft",
    "sweep",
    "purge",
    "explain",
    "report",
    "watch",
    "page",
    "command",
    "daemon",
]
MOST_FILES = 40     # in a folder
# What only one file may know: the databases' clients and the YAML library; JSON has a file for each part that speaks it.
CLIENTS = {"sqlite3.h": "src/store/sqlite/store.c", "libpq-fe.h": "src/store/postgres/store.c",
           "mysql.h": "src/store/mariadb/store.c"}
LIBRARIES = {"libfyaml.h": "src/contract/yaml.c", "jansson.h": "src/*json.c"}
PUBLIC = {"lapse.h", "lapse_purge.h"}


def place(folder):
    """The line of ORDER that a folder of src/ stands on."""
    for n, line in enumerate(ORDER):
        if folder in line.split():
            return n
    return None


def folder_of(path):
    return str(path.relative_to(ROOT / "src").parent)


def files(*folders):
    return sorted(p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in (".c", ".h"))


def includes(path, brackets=False):
    pattern = r'^\s*#\s*include\s*<([^>]+)>' if brackets else r'^\s*#\s*include\s*"([^"]+)"'
    return re.findall(pattern, path.read_text(), re.M)


class Includes(unittest.TestCase):
    def test_every_file_is_in_a_folder_of_the_flow(self):
        lost = [str(p.relative_to(ROOT)) for p in files("src") if place(folder_of(p)) is None]
        self.assertEqual(lost, [], "add its folder to ORDER")
        there = {folder_of(p) for p in files("src")}
        self.assertEqual({f for line in ORDER for f in line.split()} - there, set(), "folders that are gone")

    def test_no_folder_is_crowded(self):
        folders = [folder_of(p) for p in files("src")]
        self.assertEqual([f for f in set(folders) if folders.count(f) > MOST_FILES], [])

    def test_a_file_includes_only_its_own_folder_and_folders_above_it(self):
        wrong = []
        for p in files("src"):
            for header in includes(p):
                if header in PUBLIC:
                    continue
                folder, _, name = header.rpartition("/")
                here = folder_of(p)
                above = place(folder) is not None and place(folder) < place(here) and name != "internal.h"
                if not (ROOT / "src" / header).is_file() or folder != here and not above:
                    wrong.append(f"{p.relative_to(ROOT)} includes {header}")
        self.assertEqual(wrong, [])

    def test_a_client_header_is_included_in_one_file(self):
        def users(header):
            return [str(p.relative_to(ROOT)) for p in files("src", "prog", "include")
                    if header in includes(p) + includes(p, brackets=True)]

        for header, only in CLIENTS.items():
            self.assertEqual(users(header), [only], header)
        for header, only in LIBRARIES.items():
            self.assertTrue(users(header), header)
            self.assertEqual([u for u in users(header) if not fnmatch.fnmatchcase(u, only)], [], header)

    def test_the_program_includes_only_the_public_header(self):
        own = {p.name for p in files("prog")}
        wrong = [f"{p.relative_to(ROOT)} includes {header}" for p in files("prog") for header in includes(p)
                 if header != "lapse.h" and header.rsplit("/", 1)[-1] not in own]
        self.assertEqual(wrong, [])

    def test_the_public_header_stands_alone(self):
        self.assertEqual(includes(ROOT / "include" / "lapse.h"), [])

    def test_only_one_file_reads_a_clock(self):
        clocks = re.compile(r"\b(clock_gettime|gettimeofday|time|nanosleep|usleep|sleep|localtime_r?|tzset)\s*\(")
        wrong = []
        for p in files("src"):
            code = re.sub(r'/\*.*?\*/|"(\\.|[^"\\])*"', "", p.read_text(), flags=re.S)
            if p.relative_to(ROOT / "src") != Path("time/when.c") and clocks.search(code):
                wrong.append(f"{p.relative_to(ROOT)}: {clocks.search(code).group(0)})")
        self.assertEqual(wrong, [])

    def test_the_library_neither_prints_nor_exits(self):
        loud = re.compile(r"\b(printf|puts|perror|exit|_exit)\s*\(|\bstd(out|err)\b")
        wrong = []
        for p in files("src"):
            code = re.sub(r'/\*.*?\*/|//[^\n]*|"(\\.|[^"\\])*"', "", p.read_text(), flags=re.S)
            found = loud.search(code)
            if found and p.relative_to(ROOT / "src") != Path("base/base.c"):      # out of memory: the one thing said at the end
                wrong.append(f"{p.relative_to(ROOT)}: {found.group(0)}")
        self.assertEqual(wrong, [])

    def test_the_first_line_says_the_purpose(self):
        wrong = [str(p.relative_to(ROOT)) for p in files("src", "prog", "include")
                 if not p.read_text().startswith("/* ")]
        self.assertEqual(wrong, [])
