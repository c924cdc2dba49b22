"""lapse as a process, with its peak of memory; and the same sweep with a line per batch."""
import contextlib
import os
import re
import select
import subprocess
import tempfile
import time
from pathlib import Path

import harness


class Failed(Exception):
    """lapse ended with `code`; what it said."""

    def __init__(self, code, said):
        super().__init__(said)
        self.code = code


class Done:
    """What a process that ended well said and used."""

    def __init__(self, out, err, seconds, peak_kb):
        self.out, self.err, self.seconds, self.peak_kb = out, err, seconds, peak_kb


def watch(p):
    """Waits for its end; its peak of memory. The kernel's own figure would begin with that of this process."""
    ended, peak_kb = os.pidfd_open(p.pid), 0
    try:
        while not select.select([ended], [], [], 0.01)[0]:
            with contextlib.suppress(OSError):
                found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{p.pid}/status").read_text())
                peak_kb = max(peak_kb, int(found[1]) if found else 0)
    finally:
        os.close(ended)
    p.wait()
    return peak_kb


def run(args, env=None, before=()):
    """Runs a program; `before`: a command that runs it, like valgrind."""
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    start = time.monotonic()
    p = subprocess.Popen([*before, *map(str, args)], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                         env=harness._environment(env), cwd=harness.folder())
    try:
        peak_kb = watch(p)
    except BaseException:
        p.kill()
        p.wait()
        raise
    seconds = time.monotonic() - start
    texts = [os.pread(f.fileno(), 1 << 28, 0).decode(errors="replace") for f in (out, err)]
    if p.returncode:
        raise Failed(p.returncode, f"$ {' '.join(map(str, args))}   (ended with {p.returncode})\n{''.join(texts)}")
    return Done(*texts, seconds, peak_kb)


def lapse(db, contract, *args, **how):
    return run([harness.program(), "-f", harness.contract_file(db, contract), *args], **how)


def sweep(db, contract, now, **how):
    """lapse sweep, its report as JSON."""
    return lapse(db, contract, "sweep", "--no-progress", "--json", "--now", now, **how)


def batches_program():
    """It is built beside lapse; one of elsewhere may have none."""
    return Path(harness.program()).parent / "bench_batches"


def batches(db, contract, now):
    """The same sweep by the library: [(ended_us, took_us, rows), …], a tuple per batch."""
    done = run([batches_program(), harness.contract_file(db, contract), now])
    return [tuple(map(int, line.split())) for line in done.out.splitlines()]
