"""The house: who may include whom, and where a database's client may be seen."""
import fnmatch
import re
import unittest

from harness import ROOT

# A file includes only headers of its own line and of the lines above. Names are without their ending; * stands for
# anything.
ORDER = [
    "base",
    "thread",
    "quote",
    "when zone cron",
    "policy policy_hash",
    "mistake",
    "key",
    "yaml",
    "reader",
    "condition",
    "rule",
    "contract",
    "ticker beat",
    "facts bounded",
    "plan plan_*",
    "own purges purges_* keyed",
    "store",
    "sql sql_* scan",
    "sqlstore sqlstore_* sqlown sqlown_* look",
    "store_* dialect dialect_* catalog_*",
    "fuse lease history history_*",
    "check check_*",
    "draft draft_*",
    "retry pace",
    "sweep sweep_*",
    "purging",
    "lapse_purge purge purge_*",
    "explain explain_*",
    "report report_*",
    "event event_* meter gauge",
    "trouble",
    "page page_*",
    "lapse lapse_*",
    "daemon daemon_*",
]
ENGINES = ["sqlite", "postgres", "mariadb"]
# What only one file may know: the databases' clients and the YAML library; JSON has a file for each part that speaks it.
CLIENTS = {"sqlite3.h": "src/store_sqlite.c", "libpq-fe.h": "src/store_postgres.c",
           "mysql.h": "src/store_mariadb.c"}
LIBRARIES = {"libfyaml.h": "src/yaml.c", "jansson.h": "src/*_json.c"}


def place(stem):
    """The line of ORDER that a file stands on."""
    for n, line in enumerate(ORDER):
        if any(fnmatch.fnmatchcase(stem, name) for name in line.split()):
            return n
    return None


def files(*folders):
    return sorted(p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in (".c", ".h"))


def includes(path, brackets=False):
    pattern = r'^\s*#\s*include\s*<([^>]+)>' if brackets else r'^\s*#\s*include\s*"([^"]+)"'
    return re.findall(pattern, path.read_text(), re.M)


class Includes(unittest.TestCase):
    def test_every_file_has_its_place(self):
        lost = [str(p.relative_to(ROOT)) for p in files("src") if place(p.stem) is None]
        self.assertEqual(lost, [], "add them to ORDER")

    def test_a_file_includes_only_what_stands_above_it(self):
        wrong = []
        for p in files("src"):
            for header in includes(p):
                stem = header.rsplit("/", 1)[-1].removesuffix(".h")
                if place(stem) is None or place(stem) > place(p.stem):
                    wrong.append(f"{p.relative_to(ROOT)} includes {header}")
        self.assertEqual(wrong, [])

    def test_an_engine_does_not_know_another(self):
        wrong = [f"{p.relative_to(ROOT)} includes {header}" for p in files("src") for header in includes(p)
                 for engine in ENGINES if engine in header and engine not in p.stem]
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
            if p.stem != "when" and clocks.search(code):
                wrong.append(f"{p.relative_to(ROOT)}: {clocks.search(code).group(0)})")
        self.assertEqual(wrong, [])

    def test_the_library_neither_prints_nor_exits(self):
        loud = re.compile(r"\b(printf|puts|perror|exit|_exit)\s*\(|\bstd(out|err)\b")
        wrong = []
        for p in files("src"):
            code = re.sub(r'/\*.*?\*/|//[^\n]*|"(\\.|[^"\\])*"', "", p.read_text(), flags=re.S)
            found = loud.search(code)
            if found and p.stem != "base":      # out of memory: the one thing said at the end
                wrong.append(f"{p.relative_to(ROOT)}: {found.group(0)}")
        self.assertEqual(wrong, [])

    def test_the_first_line_says_the_purpose(self):
        wrong = [str(p.relative_to(ROOT)) for p in files("src", "prog", "include")
                 if not p.read_text().startswith("/* ")]
        self.assertEqual(wrong, [])
