"""What `make` installs and builds: no more than a build needs. What the tests need comes with `make test`."""
import json
import os
import re
import subprocess
import unittest
from pathlib import Path

from harness import ROOT, new_path

SETUP = ROOT / "scripts" / "setup"
NODE = ROOT / "tests" / "node"
TOOLS = ("sh", "dirname", "realpath", "grep", "cmp", "mkdir", "cp", "cat", "env")


class Machine:
    """A Debian whose package tools write down what they are told, before the script of the folder that is under test."""

    def __init__(self, *tools, installed="", user="0"):
        self.home = new_path("machine")
        (self.home / "bin").mkdir(parents=True)
        (self.home / "scripts").mkdir()
        (self.home / "scripts" / "setup").write_bytes(SETUP.read_bytes())
        (self.home / "tests").mkdir()
        (self.home / "tests" / "node").symlink_to(NODE)
        for name in TOOLS:
            (self.home / "bin" / name).symlink_to(f"/usr/bin/{name}")
        self.tool("id", f"echo {user}")
        self.tool("dpkg-query", f'case " {installed} " in *" $3 "*) printf installed ;; *) exit 1 ;; esac')
        for name in tools:
            self.tool(name, f'echo "{name} $*" >>"{self.home}/told"')

    def tool(self, name, body):
        path = self.home / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def setup(self, *sets):
        return subprocess.run(["/bin/sh", str(self.home / "scripts" / "setup"), *sets], capture_output=True, text=True,
                              env={"PATH": str(self.home / "bin")}, timeout=60)

    def told(self):
        told = self.home / "told"
        return told.read_text().splitlines() if told.exists() else []

    def asked(self):
        """The packages that apt was asked for."""
        return [set(line.split()[4:]) for line in self.told() if line.startswith("apt-get install -y --no-install-recommends ")]


def packages(name):
    """Those of a set, as the script installs them."""
    machine = Machine("apt-get")
    done = machine.setup(name)
    assert done.returncode == 0, done.stderr
    (asked,) = machine.asked()
    return asked


class Hardening(unittest.TestCase):
    """What makes a mistake in the program harder to use, in every type of build."""

    def test_the_program_has_it(self):
        build = Path(os.environ.get("LAPSE_BUILD_PLAIN") or ROOT / "build")
        for name, kind in (("lapse", "DYN"), ("liblapse.so", "DYN")):
            with self.subTest(name):
                said = subprocess.run(["readelf", "-hldW", "--dyn-syms", str(build / name)], capture_output=True, text=True)
                self.assertEqual(said.returncode, 0, said.stderr)
                self.assertRegex(said.stdout, rf"Type:\s+{kind}")
                self.assertRegex(said.stdout, r"\(FLAGS\)\s+.*BIND_NOW")
                self.assertRegex(said.stdout, r"\(FLAGS_1\).*NOW")
                self.assertIn("GNU_RELRO", said.stdout)
                self.assertRegex(said.stdout, r"GNU_STACK .* RW ")
                self.assertIn("__stack_chk_fail", said.stdout)
                self.assertRegex(said.stdout, r"__(vsn|vfp|fp|memcpy|read)\w*_chk")
                if name == "lapse":
                    self.assertRegex(said.stdout, r"\(FLAGS_1\).*PIE")

    def configured(self, *options):
        place = new_path("build")
        done = subprocess.run(["meson", "setup", str(place), str(ROOT), "-Dtests=disabled", "--werror", *options],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return place

    def test_every_type_of_build(self):
        for kind, fortified in (("debug", False), ("plain", False), ("debugoptimized", True), ("release", True), ("minsize", True)):
            with self.subTest(kind):
                place = self.configured(f"--buildtype={kind}")
                commands = [c["command"] for c in json.loads((place / "compile_commands.json").read_text())]
                self.assertGreater(len(commands), 100)
                for command in commands:
                    self.assertIn("-fstack-protector-strong", command)
                    self.assertIn(" -fPI", command)
                    self.assertEqual("-D_FORTIFY_SOURCE=3" in command, fortified, command)
                links = re.findall(r"^ LINK_ARGS = (.*-Wl.*)$", (place / "build.ninja").read_text(), re.M)
                self.assertGreater(len(links), 2)
                for link in links:
                    self.assertIn("-Wl,-z,relro -Wl,-z,now", link)

    def test_without_optimizing(self):
        """Nothing is warned of, and it links: a function that only an optimizer puts in place comes from its library."""
        place = self.configured("--buildtype=debug")
        done = subprocess.run(["ninja", "-C", str(place), "lapse"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        self.assertNotIn("warning", done.stdout)
        self.assertEqual(subprocess.run([str(place / "lapse"), "--version"], capture_output=True).returncode, 0)


class Sets(unittest.TestCase):
    def test_a_build_needs_no_server_and_no_test_tool(self):
        build = packages("build")
        self.assertLessEqual({"gcc", "libc6-dev", "meson", "ninja-build", "libpq-dev", "libsystemd-dev"}, build)
        self.assertEqual({p for p in build if not re.fullmatch(
            r"gcc|make|pkg-config|meson|ninja-build|python3|lib\w+-dev|libc6-dev", p)}, set())
        self.assertNotIn("libcmocka-dev", build)

    def test_each_holds_the_one_before(self):
        build, demo, test, bench = map(packages, ("build", "demo", "test", "bench"))
        self.assertEqual(demo - build, {"sqlite3"})
        self.assertLess(demo, test)
        self.assertLessEqual({"postgresql", "mariadb-server", "libcmocka-dev", "prometheus"}, test - demo)
        self.assertLess(test, bench)

    def test_nothing_is_missing(self):
        machine = Machine("apt-get", "sudo", "npm", installed=" ".join(packages("build")))
        done = machine.setup("build")
        self.assertEqual((done.returncode, done.stdout, done.stderr, machine.told()), (0, "", "", []))

    def test_a_set_that_is_not_there(self):
        for sets in ((), ("tests",)):
            done = Machine("apt-get").setup(*sets)
            self.assertEqual((done.returncode, done.stderr), (2, "usage: scripts/setup build|demo|test|cluster|bench\n"))

    def test_which_command_installs_which(self):
        for goal, sets in (("all", ["build"]), ("demo", ["build", "demo"]), ("sanitized", ["build", "test"]),
                           ("test", ["build", "test"]), ("quick", ["build", "test"])):
            said = subprocess.run(["make", "-n", goal], cwd=ROOT, capture_output=True, text=True, timeout=60).stdout
            self.assertEqual(re.findall(r"^scripts/setup (\w+)$", said, re.M), sets, goal)

    def test_no_root(self):
        """Neither root nor sudo: it says what to install."""
        machine = Machine("apt-get", user="1000", installed=" ".join(packages("build") - {"meson", "libpq-dev"}))
        done = machine.setup("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("As root, run\n    apt-get install --no-install-recommends meson libpq-dev\n", done.stderr)
        self.assertEqual(machine.told(), [])

    def test_sudo(self):
        machine = Machine("sudo", user="1000", installed=" ".join(packages("build") - {"meson"}))
        self.assertEqual(machine.setup("build").returncode, 0)
        self.assertEqual(machine.told()[-1],
                         "sudo -n DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends meson")

    def test_no_debian(self):
        machine = Machine("apt-get")
        (machine.home / "bin" / "dpkg-query").unlink()
        self.assertEqual((machine.setup("build").returncode, machine.told()), (0, []))


class Node(unittest.TestCase):
    def npm(self, name):
        machine = Machine("apt-get", "npm")
        self.assertEqual(machine.setup(name).returncode, 0)
        return [line for line in machine.told() if line.startswith("npm")], machine

    def test_only_tests_have_modules(self):
        for name in ("build", "demo"):
            self.assertEqual(self.npm(name)[0], [])
        for name in ("test", "bench"):
            told, machine = self.npm(name)
            self.assertEqual(told, ["npm ci --ignore-scripts --no-audit --no-fund"])
            self.assertTrue((machine.home / "build-node" / "package-lock.json").is_file())
            machine.setup(name)
            self.assertEqual([line for line in machine.told() if line.startswith("npm")], told, "installed twice")

    def test_every_version_is_pinned(self):
        wanted = json.loads((NODE / "package.json").read_text())["dependencies"]
        lock = json.loads((NODE / "package-lock.json").read_text())["packages"]
        for name, version in wanted.items():
            self.assertRegex(version, r"^\d+\.\d+\.\d+$", name)
            self.assertEqual(lock[f"node_modules/{name}"]["version"], version)
        self.assertGreater(len(lock), 10)
        for name, entry in lock.items():
            if name:
                self.assertIn("integrity", entry, name)
                self.assertNotIn("resolved", entry, name)        # npm takes it from the registry that the machine uses
                self.assertNotIn("hasInstallScript", entry, name)


class Targets(unittest.TestCase):
    """A build folder as `make` makes it, and one of another kind."""

    def introspect(self, *options):
        build = new_path("build")
        subprocess.run(["meson", "setup", str(build), str(ROOT), *options], check=True, capture_output=True, timeout=300)

        def asked(what):
            return json.loads(subprocess.run(["meson", "introspect", what, str(build)], check=True, capture_output=True).stdout)
        return {t["name"] for t in asked("--targets")}, {d["name"] for d in asked("--dependencies")}

    def test_make_builds_no_tests(self):
        plain = re.search(r"^MESON_PLAIN = (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()
        targets, dependencies = self.introspect(*plain)
        self.assertIn("lapse", targets)
        self.assertEqual({t for t in targets if t.startswith("test_")} | targets & {"backlog", "cron_next", "http_alone"}, set())
        self.assertNotIn("cmocka", dependencies)
        targets, dependencies = self.introspect("-Dtests=enabled")
        self.assertIn("test_base", targets)
        self.assertIn("cmocka", dependencies)
