"""The case `load`: what an application feels, alone and while its tables are swept.

Several clients, each a process with a connection of its own, read executions with their logs, insert new ones, end running
ones, and now and then bring one back to life that is about to expire. They think for a few milliseconds between two
transactions: the machine is not full before the sweep begins. What is measured is what they wait for.

    idle                nobody sweeps
    lapse               lapse sweep as it comes
    lapse, pace off     the same, told to look at nobody
    floor               one DELETE per table in one transaction

A sweep may be over sooner than it should be watched: then there is another, on fresh data, until the time is full.
"""
import contextlib
import multiprocessing
import random
import signal
import sqlite3
import sys
import threading
import time

import harness
import pymysql
import psycopg2
import race
import tables
from engines import ENGINES
from missing import Missing

CLIENTS = 4
THINK_S = 0.005
WARM_S = 1.0
LEAST_S = 5             # of a sweep: it has to begin, too
TURN_S = 20             # the phases take turns: what else the machine does is then felt by all of them
ERRORS = (sqlite3.Error, psycopg2.Error, pymysql.Error)
MARK = {"sqlite": "?", "postgresql": "%s", "mariadb": "%s"}
OFTEN = {"read": 50, "insert": 25, "update": 20, "revive": 5}      # of a hundred


# --- a client ---------------------------------------------------------------------------------------------------

class Client:
    """One connection of the application."""

    def __init__(self, place, rows, number):
        self.place, self.rows, self.number = place, rows, number
        self.new, self.chance = 0, random.Random(number)
        self.connection = place.application()
        self.cursor = self.connection.cursor()
        self.mark = MARK[place.engine]
        self.now = tables.at(place.engine, tables.CUTOFF_MS + 20 * 60 * 1000)

    def run(self, sql, *values):
        self.cursor.execute(sql.replace("?", self.mark), values)

    def read(self):
        self.run("SELECT metadata.*, log.message FROM metadata LEFT JOIN log ON log.metadata_id = metadata.id WHERE metadata.id = ?",
                 self.chance.randint(1, self.rows))
        self.cursor.fetchall()

    def insert(self):
        """A new execution with a log row and its place in the queue, in one transaction."""
        self.new += 1
        n = self.rows * 10 + self.number * 100_000_000 + self.new
        self.run("BEGIN IMMEDIATE" if self.place.engine == "sqlite" else "START TRANSACTION")
        self.run(f"INSERT INTO metadata VALUES (?, ?, 'in_progress', {self.now}, NULL, '{{}}')", n, tables.NAMES[0])
        self.run("INSERT INTO log VALUES (?, ?, 'information', 'begun')", n, n)
        self.run("INSERT INTO work_queue VALUES (?, ?, 'queued', 0)", n, n)
        self.run("COMMIT")

    def update(self):
        """A running execution ends: one of the newer ones, which then have their time to stay."""
        self.run(f"UPDATE metadata SET train_state = 'completed', end_time = {self.now} WHERE id = ?",
                 self.chance.randint(tables.old(self.rows) // 10 + 1, max(2, self.rows // 10)) * 10)

    def revive(self):
        """One that has ended, whatever its age, begins again."""
        self.run(f"UPDATE metadata SET train_state = 'in_progress', start_time = {self.now} WHERE id = ?",
                 self.chance.randint(1, self.rows))

    def again(self):
        """After an error: whatever was begun is undone."""
        with contextlib.suppress(*ERRORS):
            self.cursor.execute("ROLLBACK")


def work(place, rows, number, measuring, stop, answer):
    """A client's life: (kind, seconds) of each transaction that began while `measuring` was set, and its errors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    client = Client(place, rows, number)
    kinds = random.Random(number + 1000).choices(list(OFTEN), OFTEN.values(), k=5000)
    took, errors, said, n = {k: [] for k in OFTEN}, 0, None, 0
    while not stop.is_set():
        kind, counts = kinds[n % len(kinds)], measuring.is_set()
        n += 1
        start = time.monotonic()
        try:
            getattr(client, kind)()
        except ERRORS as e:
            client.again()
            errors, said = errors + counts, str(e)
        if counts:
            took[kind].append(time.monotonic() - start)
        time.sleep(THINK_S)
    answer.send((took, errors, said))
    answer.close()


class Application:
    """All clients, from their start to what they measured."""

    def __init__(self, place, rows):
        self.measuring, self.stop = multiprocessing.Event(), multiprocessing.Event()
        self.clients, self.answers = [], []
        for number in range(CLIENTS):
            answer, theirs = multiprocessing.Pipe(False)
            p = multiprocessing.Process(target=work, args=(place, rows, number, self.measuring, self.stop, theirs), daemon=True)
            p.start()
            theirs.close()
            self.clients.append(p)
            self.answers.append(answer)
        time.sleep(WARM_S)

    def measure(self, meanwhile):
        """What `meanwhile()` returns, and for how long it was measured."""
        self.measuring.set()
        start = time.monotonic()
        result = meanwhile()
        seconds = time.monotonic() - start
        self.measuring.clear()
        return result, seconds

    def end(self):
        self.stop.set()
        found = [answer.recv() for answer in self.answers]
        for p in self.clients:
            p.join()
        return found


# --- who sweeps meanwhile ---------------------------------------------------------------------------------------

def nobody(_place, seconds):
    time.sleep(seconds)
    return 0


def floor(place, _seconds):
    """An application that writes meanwhile may make it fail: then nothing went, and it was felt all the same."""
    with contextlib.suppress(*ERRORS):
        return place.by_hand(tables.Tables.floor_sql(place.engine))
    return 0


class Sweep:
    """lapse, asked to stop when the time is full."""

    def __init__(self, *variants):
        self.lapse = race.Lapse(*variants)

    def __call__(self, place, seconds):
        contract = self.lapse.contract(place, tables.Tables)
        p = harness.Lapse.start(place.db, contract, "sweep", "--no-progress", "--json", "--now", tables.NOW)
        late = threading.Timer(max(seconds, LEAST_S), p.signal, (signal.SIGTERM,))
        late.start()
        r = p.wait(seconds + 600)
        late.cancel()
        if r.code not in (0, 6):
            sys.exit(f"lapse failed: {r}")
        return sum(t["rows"] for one in r.json["policies"] for t in one["tables"])


PHASES = {"idle": nobody, "lapse": Sweep(), "lapse, pace off": Sweep(*race.PACE_OFF), "floor": floor}


# --- the phases -------------------------------------------------------------------------------------------------

def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def summary(phase, rounds):
    """Of all rounds of a phase."""
    seconds = sum(s for _, s, _ in rounds)
    kinds = {k: [t for _, _, clients in rounds for took, _, _ in clients for t in took[k]] for k in OFTEN}
    everything = [t for each in kinds.values() for t in each]
    writes = len(everything) - len(kinds["read"])
    return {"phase": phase, "seconds": seconds, "rate": len(everything) / seconds, "writes_s": writes / seconds,
            "p50_ms": 1000 * percentile(everything, 0.5), "p99_ms": 1000 * percentile(everything, 0.99),
            "max_ms": 1000 * max(everything), "errors": sum(e for _, _, clients in rounds for _, e, _ in clients),
            "said": next((said for _, _, clients in rounds for _, _, said in clients if said), None),
            "kinds": {k: {"p50_ms": 1000 * percentile(v, 0.5), "p99_ms": 1000 * percentile(v, 0.99)} for k, v in kinds.items() if v},
            "swept_s": sum(n for n, _, _ in rounds) / seconds}


def one_round(place, rows, sweeper, seconds):
    race.prepared(place)
    application = Application(place, rows)
    try:
        swept, took = application.measure(lambda: sweeper(place, seconds))
    finally:
        clients = application.end()
    place.end()
    return swept, took, clients


def slice_of(place, rows, sweeper, seconds):
    """Rounds of one phase until they took so long."""
    rounds = []
    while sum(s for _, s, _ in rounds) < seconds:
        rounds.append(one_round(place, rows, sweeper, seconds - sum(s for _, s, _ in rounds)))
    return rounds


def measure(engine, rows, seconds, say=lambda text: None):
    """Every phase on this engine, in turns, each for at least so long in all."""
    place, rounds = ENGINES[engine](tables.Tables, rows), {phase: [] for phase in PHASES}
    turns = max(1, round(seconds / TURN_S))
    for turn in range(turns):
        for phase in (list(rounds) if turn % 2 == 0 else list(rounds)[::-1]):
            try:
                rounds[phase] += slice_of(place, rows, PHASES[phase], seconds / turns)
            except Missing as e:
                say(f"load on {engine}: {phase} takes no part: {e}")
                del rounds[phase]
    place.drop()
    phases = [summary(phase, done) for phase, done in rounds.items()]
    for p in phases:
        say(f"load on {engine}: {p['phase']}: {p['rate']:.0f} a second, p50 {p['p50_ms']:.2f} ms, p99 {p['p99_ms']:.2f} ms, longest "
            f"{p['max_ms']:.0f} ms, {p['errors']} errors, {p['swept_s']:.0f} rows swept a second")
    return {"engine": engine, "rows": rows, "clients": CLIENTS, "phases": phases}
