"""The figures as Markdown: printed at the end of a run and kept beside the plots."""
import race
from goals import NAMES, goals

PLOTS = (("races.png", "Rows per second of the floor's, median and spread"), ("batches.png", "How long each transaction took"),
         ("load.png", "What an application feels meanwhile"), ("growth.png", "Time and memory, from few to many due rows"))


def between(values, form="{:.2f}"):
    """The median, and from where to where."""
    if not values:
        return "–"
    if len(values) == 1:
        return form.format(values[0])
    return f"{form.format(race.median(values))} ({form.format(min(values))} to {form.format(max(values))})"


def ms(seconds):
    """Short times in milliseconds."""
    return f"{1000 * seconds:,.0f} ms" if seconds < 10 else f"{seconds:,.0f} s"


def number(value, form="{:,.0f}"):
    return "–" if value is None else form.format(value)


def table(head, rows):
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows), ""]


def facts(data):
    m = data["machine"]
    return ["# Benchmark", "",
            f"{m['cores']} cores of {m['processor']}, {m['memory_gib']} GiB, Linux {m['kernel']}, {m['system']}; "
            f"{', '.join(m['engines'].values())}; {m['lapse']}. Servers with default durability (each commit is on the disk), "
            "1 GB of buffers, autovacuum off; data in memory when a contender begins.", "",
            "Absolute times mean little on such a machine. Contenders take turns on copies of the same data, and are compared in rows per "
            "second with the *floor* of the same turn: one DELETE per table in one transaction, children first. More is better; "
            "a median, in brackets the spread. `make bench` measures all of this again; `results.json` holds every run.", ""]


def goals_table(data):
    found = goals(data)
    if not found:
        return []
    word = {True: "met", False: "**missed**", None: "not measured"}
    return ["## Goals", "", *table(("goal", "wanted", "found", ""), ((g.what, g.wanted, g.found or "–", word[g.met]) for g in found))]


def race_row(name, result, each):
    if "missing" in result:
        return (name, "–", "–", "–", "–", "–", "–", f"takes no part: {result['missing']}")
    runs = result["runs"]
    longest, tenths = race.longest_s(result), [t for t in map(race.tenths, result.get("watched", ())) if t]
    wal = [r["wal_bytes"] / r["rows"] for r in runs if "wal_bytes" in r]
    peak = race.median([r["peak_kb"] / 1024 for r in runs if "peak_kb" in r])
    parts = {r["part"] for r in runs if "part" in r}
    return (name, between(each), number(race.median(race.rates(result))), ms(race.median(longest)) if longest else "–",
            number(race.median(tenths), "{:.2f}"), number(race.median(wal)), number(peak, "{:.1f}"),
            "a part of the rows" if parts else "")


def busy(data, found):
    """Whether others had more of the machine than the benchmark: then such figures say little."""
    if found.get("load", 0) <= 2 * data["machine"]["cores"]:
        return ""
    return f" **The machine was busy with other work (load {found['load']:.0f}): measure again before you rely on it.**"


def races(data):
    lines = []
    for key, found in data.get("races", {}).items():
        results = found["contenders"]
        each = race.ratios(results)
        head = ("contender", "of the floor", "rows/s", "longest transaction", "last tenth / first", "WAL bytes per row", "peak, MB", "")
        lines += [f"## {NAMES[found['engine']]}, {found['title']}", "",
                  f"{found['rows']:,} rows, {found['repeats']} turns. {found['date']}, {found['commit']}.{busy(data, found)}", "",
                  *table(head, (race_row(n, r, each.get(n)) for n, r in results.items()))]
    return lines


def cost(data):
    found = data.get("cost", {})
    if not found:
        return []
    head = ("engine", "instructions per row", "allocations per batch", "bytes allocated per batch")
    return ["## The program itself", "",
            "Of lapse's own process, counted (not timed) as the difference between two sweeps. On SQLite the database is a part of "
            "it.", "",
            *table(head, ((NAMES[k], number(c["instructions_per_row"]), number(c["allocations_per_batch"]),
                           number(c["bytes_per_batch"])) for k, c in found.items()))]


def growth(data):
    found = data.get("growth", {})
    if not found:
        return []
    rows = [(NAMES[k], f"{s['due']:,}", f"{s['seconds']:.1f}", f"{1e6 * s['seconds'] / s['due']:.1f}", f"{s['peak_kb'] / 1024:.1f}")
            for k, g in found.items() for s in g["sizes"]]
    return ["## From few to many", "", *table(("engine", "due rows", "seconds", "µs per row", "peak of lapse, MB"), rows)]


def load(data):
    rows = [(NAMES[k], p["phase"], number(p["rate"]), number(p["writes_s"]), f"{p['p50_ms']:.2f}", f"{p['p99_ms']:.2f}",
             f"{p['max_ms']:.0f}", str(p["errors"]), number(p.get("swept_s")))
            for k, found in data.get("load", {}).items() for p in found["phases"]]
    if not rows:
        return []
    head = ("engine", "meanwhile", "statements/s", "writes/s", "p50, ms", "p99, ms", "longest, ms", "errors", "rows swept/s")
    return ["## What an application feels", "", *table(head, rows)]


def text(data, plots=()):
    lines = facts(data) + goals_table(data) + races(data) + growth(data) + load(data) + cost(data)
    for file, title in PLOTS:
        if file in plots:
            lines += [f"![{title}]({file})", ""]
    return "\n".join(lines).rstrip() + "\n"
