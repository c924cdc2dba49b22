"""The case `growth`: time and memory of lapse from one size to ten times as many due rows. With the default --rows, from one million
to ten million. The floor beside it shows what the database itself does with so many.
"""
import race
import tables
from engines import ENGINES

STEPS = (1, 3, 10)


def sizes(rows):
    """So many executions that, with what goes along, --rows times each step are due."""
    return [max(100, rows * step * 3 // 8) for step in STEPS]


def due(rows):
    case = tables.Tables
    return sum(case.whole(rows).values()) - sum(case.left(rows).values())


def measure(engine, rows, repeats, say=lambda text: None):
    found = []
    for size in sizes(rows):
        place = ENGINES[engine](tables.Tables, size)
        runs = {"lapse": [], "floor": []}
        for turn in range(repeats):
            for who in (list(runs) if turn % 2 else reversed(runs)):
                runs[who].append(race.one(place, tables.Tables, who, size))
        place.drop()
        found.append({"due": due(size), "seconds": race.median([r["seconds"] for r in runs["lapse"]]),
                      "floor_seconds": race.median([r["seconds"] for r in runs["floor"]]),
                      "peak_kb": max(r["peak_kb"] for r in runs["lapse"])})
        say(f"growth on {engine}: {found[-1]['due']} due rows: {found[-1]['seconds']:.2f} s (the floor: "
            f"{found[-1]['floor_seconds']:.2f} s), {found[-1]['peak_kb'] / 1024:.1f} MB")
    return {"engine": engine, "sizes": found}
