"""Percona's pt-archiver in purge mode, table by table, children first."""
import shutil
import subprocess
import sys

from missing import Missing


class Archiver:
    """With these options; one_of: on the first part of so many only, for what would take hours."""

    def __init__(self, *options, one_of=1):
        self.options, self.one_of = options, one_of

    def __call__(self, place, case, rows):
        program = shutil.which("pt-archiver")
        if not program:
            raise Missing("pt-archiver is not installed: run scripts/setup bench")
        most = rows // self.one_of
        due = f"{case.condition('mariadb', 'm')} AND m.id <= {most}"
        for table in ("log", "work_queue", "metadata"):
            where = case.condition("mariadb") + f" AND id <= {most}" if table == "metadata" else \
                f"EXISTS (SELECT 1 FROM metadata m WHERE m.id = {table}.metadata_id AND {due})"
            source = f"S={place.server.socket},D={place.db.name},t={table},u={place.server.USER},A=utf8mb4"
            done = subprocess.run([program, "--source", source, "--where", where, "--purge", "--no-check-charset", "--limit", "1000",
                                   "--no-version-check", *self.options], capture_output=True, text=True, cwd="/",
                                  env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "TZ": "UTC"})
            if done.returncode:
                sys.exit(f"pt-archiver failed: {done.stdout}{done.stderr}")
        return {"part": most} if self.one_of > 1 else {}
