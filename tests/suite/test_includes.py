"""The house: who may include whom, and where a database's client may be seen."""
import re
import unittest

from harness import ROOT

# A file includes only headers to its left. An entry names files without their ending; * stands for anything.
ORDER = ["base", "when", "policy", "yaml", "contract", "facts", "finding", "plan", "store", "sql", "sqlstore", "erase",
         "store_*", "check", "sweep", "report", "lapse"]
# What only one file may know: the databases' clients, and the YAML and JSON libraries.
CLIENTS = {"sqlite3.h": "src/store_sqlite.c", "libpq-fe.h": "src/store_postgres.c"}
LIBRARIES = ["libfyaml.h", "jansson.h"]


def place(stem):
    """Where in ORDER a file stands: an exact name before a pattern."""
    if stem in ORDER:
        return ORDER.index(stem)
    for n, entry in enumerate(ORDER):
        if entry.endswith("*") and stem.startswith(entry[:-1]):
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

    def test_a_file_includes_only_headers_to_its_left(self):
        wrong = []
        for p in files("src"):
            for header in includes(p):
                stem = header.rsplit("/", 1)[-1].removesuffix(".h")
                own = stem == p.stem
                if place(stem) is None or not own and place(stem) >= place(p.stem):
                    wrong.append(f"{p.relative_to(ROOT)} includes {header}")
        self.assertEqual(wrong, [])

    def test_a_client_header_is_included_in_one_file(self):
        def users(header):
            return [str(p.relative_to(ROOT)) for p in files("src", "prog", "include")
                    if header in includes(p) + includes(p, brackets=True)]

        for header, only in CLIENTS.items():
            self.assertEqual(users(header), [only], header)
        for header in LIBRARIES:
            self.assertEqual(len(users(header)), 1, f"{header} in {users(header)}")

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
