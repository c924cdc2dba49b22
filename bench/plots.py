"""The figures as pictures (Debian's python3-matplotlib). draw(data, folder) returns the names of the files it wrote."""
import race
from goals import NAMES
from missing import Missing

OURS, OTHERS, FLOOR, GOAL = "#1b6ca8", "#b9c3cc", "#5b6770", "#c8553d"
PHASES = {"idle": OTHERS, "lapse": OURS, "lapse, pace off": "#7fb2d9", "floor": FLOOR}
GOALS = {("sweep-fk postgresql", "lapse"): 1.0, ("sweep-fk postgresql", "lapse, 2 workers"): 1.4, ("sweep postgresql", "lapse"): 0.85,
         ("sweep postgresql", "lapse, 2 workers"): 1.5, ("sweep-fk sqlite", "lapse"): 1.2, ("sweep-fk mariadb", "lapse"): 0.9}


def library():
    try:
        import matplotlib
    except ImportError:
        raise Missing("no plots: python3-matplotlib is not installed: run scripts/setup bench")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 11,
                         "axes.titleweight": "bold", "axes.titlelocation": "left", "figure.dpi": 110, "legend.frameon": False})
    return plt


def panels(plt, n, height, across=1, **more):
    """So many pictures in one, always as a flat list."""
    down = (n + across - 1) // across
    figure, axes = plt.subplots(down, across, figsize=(8.5, height), squeeze=False, layout="constrained", **more)
    flat = [a for row in axes for a in row]
    for unused in flat[n:]:
        unused.set_visible(False)
    return figure, flat


def colour(name):
    return OURS if name.startswith("lapse") else FLOOR if name == "floor" else OTHERS


def title(found):
    return f"{NAMES[found['engine']]}, {found['title']}"


def races(plt, data):
    """A bar per contender: of the floor, median, with its spread; the goal as a line through lapse's own bars."""
    there = {k: f for k, f in data.get("races", {}).items() if len(race.ratios(f["contenders"])) > 1}
    if not there:
        return None
    counts = [len(race.ratios(f["contenders"])) for f in there.values()]
    figure, axes = panels(plt, len(there), 0.8 * len(there) + 0.34 * sum(counts), gridspec_kw={"height_ratios": [n + 1 for n in counts]})
    for axis, (key, found) in zip(axes, there.items()):
        each = race.ratios(found["contenders"])
        wide = max(max(v) for v in each.values()) > 10
        for y, (name, values) in enumerate(reversed(each.items())):
            mid = race.median(values)
            axis.barh(y, mid, color=colour(name), height=0.7)
            axis.plot([min(values), max(values)], [y, y], color="black", linewidth=1, alpha=0.6)
            text = f"{mid:.0f}" if mid >= 10 else f"{mid:.2f}" if mid >= 0.095 else f"{mid:.3f}"
            axis.annotate(text, (max(mid, max(values)), y), xytext=(5, 0), textcoords="offset points", va="center")
            goal = GOALS.get((key, name))
            if goal:
                axis.plot([goal, goal], [y - 0.45, y + 0.45], color=GOAL, linewidth=2.5)
        axis.set_yticks(range(len(each)), reversed(each))
        axis.axvline(1, color=FLOOR, linewidth=0.8, linestyle=":")
        axis.set_title(f"{title(found)} ({found['rows']:,} rows)")
        if wide:
            axis.set_xscale("log")
        axis.margins(x=0.12)
    axes[len(there) - 1].set_xlabel("rows per second, as a ratio to the floor of the same turn (red: goal; thin line: spread)")
    return figure


def batches(plt, data):
    """Every transaction of a sweep, on a logarithmic scale, with the floor's one."""
    there = [f for f in data.get("races", {}).values() if f["case"].startswith("sweep") and
             f["contenders"].get("lapse", {}).get("watched", [[]])[0]]
    if not there:
        return None
    figure, axes = panels(plt, len(there), 2.6 * ((len(there) + 1) // 2), across=2 if len(there) > 1 else 1, sharey=True)
    for axis, found in zip(axes, there):
        watched = found["contenders"]["lapse"]["watched"]
        for n, run in enumerate(watched):
            axis.plot([b[0] / 1e6 for b in run], [b[1] / 1000 for b in run], ".", markersize=3, alpha=0.6, color=OURS,
                      label=None if n else "lapse, a dot per transaction")
        axis.axhline(1000 * race.median(race.longest_s(found["contenders"]["floor"])), color=FLOOR, label="floor: one transaction")
        if "loop" in found["contenders"] and race.longest_s(found["contenders"]["loop"]):
            axis.axhline(1000 * race.median(race.longest_s(found["contenders"]["loop"])), color="#8d99a3", linestyle="--",
                         label="loop: its longest")
        axis.axhline(100, color=GOAL, linewidth=1.2, label="goal: 100 ms")
        axis.set(yscale="log", xlabel="seconds since the sweep began", ylabel="ms")
        axis.set_title(title(found), fontsize=9.5)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0), ncol=4, fontsize=9)
    return figure


def load(plt, data):
    """What the application's statements took in each phase: p50, p99 and the longest, and how many there were."""
    there = data.get("load", {})
    if not there:
        return None
    figure, axes = panels(plt, 2 * len(there), 2.5 * len(there), across=2)
    for n, found in enumerate(there.values()):
        left, right = axes[2 * n:2 * n + 2]
        names = [p["phase"] for p in found["phases"]]
        for y, p in enumerate(reversed(found["phases"])):
            c = PHASES.get(p["phase"], OTHERS)
            left.plot([p["p50_ms"], p["max_ms"]], [y, y], color=c, linewidth=2)
            for what, mark in (("p50_ms", "|"), ("p99_ms", "o"), ("max_ms", "x")):
                left.plot(p[what], y, mark, color=c, markersize=8, markeredgewidth=2)
            left.annotate(f"{p['p99_ms']:.1f}", (p["p99_ms"], y), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8.5)
            right.barh(y, p["rate"], color=c, height=0.65)
            right.annotate(f"{p['rate']:,.0f}", (p["rate"], y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8.5)
        left.axvline(2 * found["phases"][0]["p99_ms"], color=GOAL, linewidth=1.2)
        left.set(xscale="log", xlabel="ms: | p50, ● p99, × longest; red: twice the idle p99")
        for axis in (left, right):
            axis.set_yticks(range(len(names)), reversed(names))
            axis.set_ylim(-0.6, len(names) - 0.3)
        right.tick_params(labelleft=False)
        right.set_xlabel("statements per second")
        right.margins(x=0.15)
        left.set_title(f"{NAMES[found['engine']]}: an application's statements")
    return figure


def growth(plt, data):
    """Time and memory against the number of due rows; a straight line is proportional."""
    there = data.get("growth", {})
    if not there:
        return None
    figure, (left, right) = panels(plt, 2, 3.4, across=2)
    for found, mark, c in zip(there.values(), "osD", (OURS, "#e0a030", "#4f9d69")):
        due = [s["due"] for s in found["sizes"]]
        left.plot(due, [s["seconds"] for s in found["sizes"]], f"-{mark}", color=c, label=NAMES[found["engine"]])
        left.plot(due, [s["floor_seconds"] for s in found["sizes"]], f":{mark}", color=c, alpha=0.5, markersize=4)
        right.plot(due, [s["peak_kb"] / 1024 for s in found["sizes"]], f"-{mark}", color=c)
    left.set(xscale="log", yscale="log", xlabel="due rows", ylabel="seconds", title="Time (dotted: the floor)")
    left.legend()
    right.set(xscale="log", xlabel="due rows", ylabel="MB", title="Peak memory of lapse")
    right.set_ylim(bottom=0)
    return figure


def draw(data, folder):
    plt = library()
    written = []
    for name, picture in (("races.png", races), ("batches.png", batches), ("load.png", load), ("growth.png", growth)):
        figure = picture(plt, data)
        if figure is not None:
            figure.savefig(folder / name, metadata={"Software": None}, bbox_inches="tight")
            plt.close(figure)
            written.append(name)
    return written
