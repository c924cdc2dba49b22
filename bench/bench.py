#!/usr/bin/python3
"""bench/bench.py [--rows N] [--repeats N] [--engine NAME] [--out DIR] [CASE…]: lapse beside the limit and beside what people use.

    sweep-fk, sweep     executions with their logs and queue rows, with and without foreign keys: the floor, lapse, the
                        common loop, pg_cron, pt-archiver (tables.py)
    partitions          events, a partition per day, beside pg_partman (partman.py)
    pg-boss             finished jobs in pg-boss's own tables (boss.py)
    orphans, cap-idle…  lapse beside a hand-written statement (hand.py)
    purges              many that are due, the transactions that schedule them, a daemon while many wait (purges.py)
    growth              time and memory from few due rows to ten times as many (growth.py)
    load                what an application feels meanwhile (load.py; --seconds N of each phase)
    cost                instructions and allocations of lapse itself (cost.py)
    daemon              what a daemon costs that has nothing to do (idle.py; --policies N, --seconds N, --ticks N)

Everything is compared in one run, alternating, as a ratio: a machine's absolute times mean nothing. Prints Markdown, and
ends with 1 if a goal is missed (with --report it only says so). What the races found is kept in DIR/results.json, from which
--draw alone draws the table and the plots again.
"""
import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TMPDIR", tempfile.gettempdir())      # on a disk, to which commits go: tests may do without
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import boss
import cost
import growth
import hand
import harness
import idle
import load
import page
import partman
import plots
import purges
import race
import tables
from engines import ENGINES
from goals import goals
from missing import Missing
from results import Results

DAEMON, WAITING = "daemon", "purges-idle"       # which are not compared with anything
RACES = {c.name: c for c in (tables.Tables, tables.TablesWithoutKeys, partman.Partitions, boss.Jobs)}
GROUPS = {"purges": ("purges-due", "purges-schedule", WAITING)}
MEASURES = ("growth", "load", "cost")
THERE = [*hand.CASES, WAITING, DAEMON, *RACES, *MEASURES]


def options():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--rows", type=int, default=1000000)
    args.add_argument("--repeats", type=int, default=5)
    args.add_argument("--engine", choices=ENGINES, action="append")
    args.add_argument("--only", action="append", metavar="CONTENDER", help="only this one, beside the floor")
    args.add_argument("--skip", action="append", default=[], metavar="CONTENDER", help="not this one")
    args.add_argument("--report", action="store_true", help="say what misses its goal, but end with 0")
    args.add_argument("--out", type=Path, default=harness.ROOT / "build" / "bench", metavar="DIR")
    args.add_argument("--policies", type=int, default=1000)
    args.add_argument("--seconds", type=float, default=60, help="how long an idle daemon is watched, and each phase of the load")
    args.add_argument("--draw", action="store_true", help="measure nothing; draw DIR/results.json again")
    args.add_argument("--ticks", type=int, default=10000, help="over which its memory is watched")
    args.add_argument("cases", nargs="*", metavar="CASE", help=", ".join([*THERE, *GROUPS]))
    o = args.parse_args()
    for name in o.cases:
        if name not in THERE and name not in GROUPS:
            args.error(f"there is no case '{name}'; there are {', '.join([*THERE, *GROUPS])}")
    o.cases = [one for name in o.cases or THERE for one in GROUPS.get(name, (name,))]
    return o


def say(text):
    print(text, file=sys.stderr, flush=True)


def takes_part(o):
    return lambda who: who == "floor" or who not in o.skip and (not o.only or who in o.only)


def run_race(o, case, engine, results):
    try:
        case.missing()
    except Missing as e:
        return say(f"{case.name}: takes no part: {e}")
    found = race.compare(case, engine, o.rows, o.repeats, takes_part(o), say)
    results.add("races", f"{case.name} {engine}", {"case": case.name, "title": case.title, "engine": engine, "rows": o.rows,
                                                    "repeats": o.repeats, "contenders": found})


def run_measures(o, engines, results):
    for engine in engines:
        if "growth" in o.cases:
            results.add("growth", engine, growth.measure(engine, o.rows, max(1, o.repeats // 2), say))
        if "load" in o.cases:
            results.add("load", engine, load.measure(engine, o.rows, o.seconds, say))
        if "cost" in o.cases:
            results.add("cost", engine, cost.measure(engine, say))


def publish(o, results):
    """The table, on the screen and beside the plots. Goals that are missed are said; there is nothing of what was not measured."""
    if not results.data:
        return []
    try:
        drawn = plots.draw(results.data, o.out)
    except Missing as e:
        drawn = []
        say(e)
    (o.out / "README.md").write_text(page.text(results.data, drawn))
    print(page.text(results.data))
    return [f"{g.what}: {g.found}, wanted {g.wanted}" for g in goals(results.data) if g.met is False]


def run_by_hand(o):
    """The cases that print a table of their own, on the two engines they know."""
    missed, engines = [], [e for e in o.engine or ("sqlite", "postgresql") if e != "mariadb"]
    by_hand = [n for n in o.cases if n in hand.CASES]
    if by_hand and engines:
        missed += hand.main(by_hand, engines, o.rows, o.repeats)
    if WAITING in o.cases and engines:
        missed += purges.idle({e: ENGINES[e] for e in engines}, o.rows, o.repeats, o.seconds / 5)
    if DAEMON in o.cases and engines:
        missed += idle.main(engines, o.policies, 5 if o.seconds > 5 else 1, o.seconds, o.ticks)
    return missed


def main():
    o = options()
    results, missed = Results(o.out), []
    if not o.draw:
        for name in [n for n in o.cases if n in RACES]:
            for engine in [e for e in RACES[name].engines if not o.engine or e in o.engine]:
                run_race(o, RACES[name], engine, results)
        run_measures(o, o.engine or ENGINES, results)
        missed = run_by_hand(o)
    if o.draw or any(n in RACES or n in MEASURES for n in o.cases):
        missed += publish(o, results)
    print("\nEvery goal is met." if not missed else "\nMissed: " + "; ".join(missed))
    return 1 if missed and not o.report else 0


if __name__ == "__main__":
    sys.exit(main())
