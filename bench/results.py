"""What was measured, kept as JSON: table and plots are drawn from it, and a run adds to what others found before.

    {"machine": {…},
     "races":  {"CASE ENGINE": {case, engine, rows, date, commit, contenders: {name: {runs, watched} | {missing}}}},
     "growth": {…}, "cost": {…}, "load": {…}}
"""
import datetime
import json
import os
import platform
import subprocess

import harness
from engines import ENGINES

FILE = "results.json"
CASES = ["sweep-fk", "sweep", "partitions", "pg-boss"]


def machine():
    """What the figures depend on. No name and no path of the machine."""
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) / 1024 / 1024
    return {"processor": model, "cores": len(os.sched_getaffinity(0)), "memory_gib": round(memory),
            "kernel": platform.release(), "system": system(), "lapse": version(),
            "engines": {name: engine.version() for name, engine in ENGINES.items()}}


def system():
    with open("/etc/os-release") as f:
        found = dict(line.rstrip().split("=", 1) for line in f if "=" in line)
    return found.get("PRETTY_NAME", "").strip('"')


def version():
    return subprocess.run([harness.program(), "--version"], capture_output=True, text=True).stdout.strip()


def commit():
    """Which lapse it was, where the sources are a repository."""
    done = subprocess.run(["git", "-C", str(harness.ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def order(key):
    """As they are shown: by engine, then as they were thought of."""
    *case, engine = key.split()
    return ("postgresql", "sqlite", "mariadb").index(engine), CASES.index(case[0]) if case else 0


class Results:
    def __init__(self, folder):
        self.folder, self.path = folder, folder / FILE
        self.data = json.loads(self.path.read_text()) if self.path.is_file() else {}

    def add(self, part, key, found):
        """Keeps what was found, in the place of what was there under this key."""
        now = datetime.datetime.now(datetime.timezone.utc)
        found = {**found, "date": now.date().isoformat(), "commit": commit(), "load": round(os.getloadavg()[2], 1)}
        self.data["machine"] = machine()
        there = {**self.data.get(part, {}), key: found}
        self.data[part] = {k: there[k] for k in sorted(there, key=order)}
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.data, indent=None, separators=(",", ":")).replace('},"', '},\n"') + "\n")

