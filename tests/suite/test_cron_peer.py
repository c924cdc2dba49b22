"""Cron beside others: croniter over ten years, and a walk through every minute of a year in zones that change clocks.

croniter judges the calendar: it is asked for wall clock times, without a zone. What a zone makes of them is decided
here, with Python's zoneinfo and the words of the documentation: a skipped time fires at the instant of the change, a
repeated one once, and an expression that says how often (its hour field begins with * or holds every hour) both
times. $LAPSE_SEED gives other random expressions.
"""
import bisect
import datetime as dt
import functools
import os
import random
import re
import subprocess
import unittest
from pathlib import Path
from zoneinfo import ZoneInfo

from croniter import croniter

from harness import program

FROM, TO = dt.datetime(2019, 1, 1), dt.datetime(2029, 1, 1)      # Tehran changed clocks until 2022
ZONES = ["UTC", "Europe/Prague", "America/New_York", "Australia/Lord_Howe", "Asia/Tehran", "Africa/Casablanca",
         "America/Santiago", "America/St_Johns", "Asia/Kathmandu"]
UTC, EPOCH = dt.timezone.utc, dt.datetime(1970, 1, 1)
RARE = 3700             # so many times in ten years are compared one by one: once a day
DAYS = "sun mon tue wed thu fri sat".split()
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()

# An expression, and where croniter writes it in another way: how, or a list of which any may fire.
TABLE = [
    ("0 0 * * *",), ("30 2 * * *",), ("15 3 1 * *",), ("59 23 31 12 *",), ("0 0 29 2 *",), ("0 12 31 * *",),
    ("0 0 1,15 * *",), ("5,10,50 4 * * 1",), ("0 9 * * 1-5",), ("0 9 * * MON-FRI",), ("0 9 * * mon,Wed,FRI",),
    ("0 3 * JAN,jul *",), ("0 3 * MAR-MAY SUN",), ("0 3 * 3-11/4 *",), ("0 0 * * 7",), ("0 0 * * 0",),
    ("0 0 * * 5-7",), ("0 0 * * FRI-SUN",), ("0 0 * * 0-7/3",), ("30 1 ? * 2",), ("30 1 2 * ?",), ("30 1 ? * ?",),
    ("0 0 L * *",), ("0 0 L 2 *",), ("0 0 15,L * *",), ("0 6 l */3 *",),
    ("0 0 * * 5L", "0 0 * * L5"), ("0 0 * * FRIL", "0 0 * * L5"), ("0 0 * * 0L", "0 0 * * L0"),
    ("0 0 * * 7l", "0 0 * * L0"), ("0 0 * 2 1L,4L", "0 0 * 2 L1,L4"),
    ("0 0 * * MON#1",), ("0 0 * * 2#5",), ("0 0 * * sun#2,5#4", "0 0 * * 0#2,5#4"), ("0 0 * 11 THU#4",),
    ("0 0 13 * 5",), ("0 0 1,15 * MON",), ("0 0 1-7 * 6,0",), ("0 0 */2 * 1-3",), ("0 0 1-7 * */2",),
    ("0 0 L * 1", ["0 0 L * *", "0 0 * * 1"]), ("0 0 1 * MON#1", ["0 0 1 * *", "0 0 * * MON#1"]),
    ("0 0 13 * 5L", ["0 0 13 * *", "0 0 * * L5"]), ("0 0 * * 1,5L", ["0 0 * * 1", "0 0 * * L5"]),
    ("0 0 */10 * *",), ("0 0 5/10 * *",), ("0 0 29-31 * *",), ("0 0 31 */2 *",), ("0 22 29 2 1",),
    ("* * * * *",), ("*/5 * * * *",), ("7/13 * * * *",), ("10-40/7 * * * *",), ("0 * * * *",), ("30 */2 * * *",),
    ("0 1/5 * * *",), ("45 0-23 * * *",), ("*/20 8-18/3 * * 1-5",), ("0,59 0,23 * * *",), ("* 2 29 2 *",),
    ("@yearly",), ("@annually",), ("@monthly",), ("@weekly",), ("@daily",), ("@midnight",), ("@hourly",),
    ("CRON 0 4 * * *", "0 4 * * *"), ("cron @weekly", "@weekly"),
    ("30 15 3 * * *",), ("*/20 * * * * *",), ("0,30 0 12 L * ?",), ("5-59/9 30 2 * * MON#2",), ("59 59 23 31 12 *",),
    ("0 */10 2-3 * 3,10 *",), ("* * * * * *",),
]


def seconds(wall):
    return int((wall - EPOCH).total_seconds())


def wall_of(number):
    return EPOCH + dt.timedelta(seconds=number)


# --- lapse -----------------------------------------------------------------------------------------------------

def answered(questions):
    """A line for each (expression, zone, from, to, most)."""
    tool = Path(program()).parent / "tests" / "cron_next"
    lines = "".join("\t".join(map(str, q)) + "\n" for q in questions)
    done = subprocess.run([tool], input=lines, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and not done.stderr, done.stderr[:2000]
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(questions), (len(answers), len(questions))
    return answers


def asked(questions):
    """Instants for each; the first is after `from`, all are before `to`."""
    answers = answered(questions)
    for question, answer in zip(questions, answers):
        assert not answer.startswith("refused"), f"{question[0]}: {answer}"
    return [[int(n) for n in a.split()] for a in answers]


# --- croniter ----------------------------------------------------------------------------------------------------

def fields(expression):
    return re.sub(r"^cron\s+", "", expression, flags=re.I).split()


def day_fields(expression):
    parts = fields(expression)
    return ("*", "*") if len(parts) < 5 else (parts[-3], parts[-1])


def both_days(expression):
    """As cron does: a day must be in both fields if one of them begins with a star."""
    return any(f[0] in "*?" for f in day_fields(expression))


def for_croniter(expression):
    parts = fields(expression)
    parts = parts[1:] + parts[:1] if len(parts) == 6 else parts      # seconds come last there
    return " ".join(parts).replace("?", "*")


def stretches_between(begin, end):
    """From one 1 March to the next: croniter 1.3.5 loses the first days of March after a February that is too short
    for a day of its list, unless it is asked from there."""
    march = [seconds(dt.datetime(year, 3, 1)) for year in range(wall_of(begin).year, wall_of(end).year + 1)]
    edges = [m for m in march if begin < m < end] + [end]
    return list(zip([begin] + [e - 1 for e in edges], edges))


@functools.lru_cache(None)
def fired(expression, peers, begin, end, most):
    """The same from croniter, as wall clock times in seconds."""
    times = set()
    for peer in peers:
        count = 0
        for after, before in stretches_between(begin, end):
            walk = croniter(peer, wall_of(after), day_or=not both_days(expression), ret_type=dt.datetime)
            while count < most and (at := seconds(walk.get_next())) < before:
                times.add(at)
                count += 1
            if count == most:
                break
    return sorted(times)[:most]


def cases():
    for expression, *peer in TABLE:
        peers = peer[0] if peer else for_croniter(expression)
        yield expression, (peers,) if isinstance(peers, str) else tuple(peers)


class Random:
    """Expressions of every form that both understand in the same way."""
    def __init__(self, seed):
        self.random = random.Random(seed)

    def item(self, low, high, names):
        r = self.random
        a, b = sorted(r.sample(range(low, high + 1), 2))
        name = lambda n: r.choice([str.upper, str.lower, str.title])(names[n - low]) if names and r.random() < .4 else str(n)
        return r.choice([lambda: name(a), lambda: name(a), lambda: f"{name(a)}-{name(b)}",
                         lambda: f"{name(a)}-{name(b)}/{r.randint(1, b - a)}", lambda: f"{a}-{high}/{r.randint(1, 9) % 6 + 1}",
                         lambda: f"{a}/{r.randint(1, 5)}" if names is not DAYS else name(a)])()

    def field(self, low, high, names=None, star=.3):
        r = self.random
        if r.random() < star:
            return "*" if r.random() < .6 else f"*/{r.randint(2, (high - low) // 2)}"
        return ",".join(self.item(low, high, names) for _ in range(r.choice([1, 1, 1, 2, 3])))

    def days(self):
        r = self.random
        while True:
            by_date = r.choice(["L", f"L,{r.randint(1, 28)}", "?"]) if r.random() < .15 else self.field(1, 31, star=.5)
            if self.parse(by_date, 1, 31) != set(range(1, 32)) or by_date[0] in "*?":
                break
        if by_date[0] in "*?" and r.random() < .3:
            return by_date, r.choice([f"{r.randint(0, 6)}L", f"{r.choice(DAYS)}#{r.randint(1, 5)}"])
        while True:
            by_weekday = self.field(0, 6, DAYS, star=.5)
            if self.parse(by_weekday, 0, 6) != set(range(7)) or by_weekday[0] == "*":
                return by_date, by_weekday

    @staticmethod
    def parse(text, low, high):
        return Fields.numbers(text.replace("?", "*"), low, high)

    def expression(self):
        by_date, by_weekday = self.days()
        parts = [self.field(0, 59), self.field(0, 23), by_date, self.field(1, 12, MONTHS, star=.6), by_weekday]
        if self.random.random() < .2:
            parts.insert(0, self.field(0, 59, star=.1))
        return " ".join(parts)


# --- what is written here ------------------------------------------------------------------------------------------

class Fields:
    """A reader of five fields that shares nothing with the other two; days by date and weekday only."""
    def __init__(self, expression):
        self.minute, self.hour, self.date, self.month, self.weekday = expression.split()
        self.minutes, self.hours = self.numbers(self.minute, 0, 59), self.numbers(self.hour, 0, 23)
        self.dates, self.months = self.numbers(self.date, 1, 31), self.numbers(self.month, 1, 12)
        self.weekdays = {n % 7 for n in self.numbers(self.weekday, 0, 7)}
        self.often = self.hour[0] == "*" or len(self.hours) == 24

    @staticmethod
    def numbers(text, low, high):
        for n, name in [*enumerate(DAYS), *enumerate(MONTHS, 1)]:
            text = re.sub(name, str(n), text, flags=re.I)
        found = set()
        for part in text.split(","):
            if part == "L":
                continue
            span, _, step = part.partition("/")
            first, _, last = span.partition("-")
            first, last = (low, high) if first == "*" else (int(first), int(last or (high if step else first)))
            found.update(range(first, last + 1, int(step or 1)))
        return found

    def on_day(self, year, month, day):
        by_date, by_weekday = day in self.dates, (dt.date(year, month, day).weekday() + 1) % 7 in self.weekdays
        both = self.date[0] == "*" or self.weekday[0] == "*"
        return month in self.months and (by_date and by_weekday if both else by_date or by_weekday)


@functools.lru_cache(None)
def walked(zone, year):
    """Every minute of the year, as the clock on the wall showed it: {date: [(minute of the day, instant, again)]}; a
    minute that was never shown stands at the instant at which the clock jumped over it."""
    z, shown, seen, last = ZoneInfo(zone), {}, set(), None
    begin, end = seconds(dt.datetime(year, 1, 1)), seconds(dt.datetime(year + 1, 1, 1))
    for at in range(begin, end, 60):
        local = dt.datetime.fromtimestamp(at, z)
        wall = (local.toordinal() * 24 + local.hour) * 60 + local.minute
        for missed in range(last + 1, wall) if last is not None else ():
            shown.setdefault(missed // 1440, []).append((missed % 1440, at, False))
        shown.setdefault(wall // 1440, []).append((wall % 1440, at, wall in seen))
        seen.add(wall)
        last = wall
    return {tuple(dt.date.fromordinal(day).timetuple()[:3]): minutes for day, minutes in shown.items()}


def walked_times(expression, zone, year):
    f, times = Fields(expression), set()
    for date, minutes in walked(zone, year).items():
        if f.on_day(*date):
            times.update(at for minute, at, again in minutes
                         if minute // 60 in f.hours and minute % 60 in f.minutes and (f.often or not again))
    return sorted(times)


@functools.lru_cache(None)
def changes(zone):
    """[(instant, offset before, offset after)] of the ten years and a little more."""
    z, found = ZoneInfo(zone), []
    offset = lambda at: int(dt.datetime.fromtimestamp(at, z).utcoffset().total_seconds())
    for hour in range(seconds(FROM) - 10 * 86400, seconds(TO) + 10 * 86400, 3600):
        if offset(hour) != offset(hour + 3600):
            low, high = hour, hour + 3600
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == offset(hour) else (low, middle)
            found.append((high, offset(hour), offset(high)))
    return found


def instants(walls, zone, often):
    """What a zone makes of wall clock times."""
    z, times = ZoneInfo(zone), set()
    jumps = [c for c in changes(zone) if c[1] < c[2]]
    for wall in walls:
        i = bisect.bisect(jumps, wall, key=lambda c: c[0] + c[1])
        if i and wall < jumps[i - 1][0] + jumps[i - 1][2]:
            times.add(jumps[i - 1][0])
            continue
        for fold in (0, 1) if often else (0,):
            times.add(int(wall_of(wall).replace(tzinfo=z, fold=fold).timestamp()))
    return sorted(times)


def is_often(expression):
    parts = fields(expression)
    return parts == ["@hourly"] or (len(parts) >= 5 and (parts[-4][0] == "*" or parts[-4] == "0-23"))


def difference(got, expected):
    first = min(set(got) ^ set(expected))
    return f"{wall_of(first)} is {'too much' if first in got else 'missing'} ({len(got)} times, {len(expected)} expected)"


class Peers(unittest.TestCase):
    seed = int(os.environ.get("LAPSE_SEED") or 4711)

    def same(self, what, got, expected):
        if got != expected:
            self.fail(f"{what}: {difference(got, expected)}; LAPSE_SEED={self.seed}")

    def compare_calendar(self, all_cases, rare):
        """All times of ten years, or of many stretches where there are too many."""
        begin, end = seconds(FROM), seconds(TO)
        counts = asked([(e, "UTC", begin, end, rare + 1) for e, _ in all_cases])
        r, stretches, compared = random.Random(self.seed), [], 0
        for (expression, peers), times in zip(all_cases, counts):
            if len(times) <= rare:
                self.same(expression, times, fired(expression, peers, begin, end, rare + 1))
                compared += len(times)
            else:
                stretches += [(expression, peers, r.randrange(begin, end)) for _ in range(12)]
        answers = asked([(e, "UTC", at, end + 10 ** 9, 30) for e, _, at in stretches])
        for (expression, peers, at), times in zip(stretches, answers):
            self.same(f"{expression} after {wall_of(at)}", times, fired(expression, peers, at, end + 10 ** 9, 30))
            compared += len(times)
        return compared

    def test_the_table(self):
        self.assertGreater(self.compare_calendar(list(cases()), RARE), 20_000)

    def test_random_expressions(self):
        made, r = [], Random(self.seed)
        for _ in range(300):
            expression = r.expression()
            peer = re.sub(r" (\d)L$", r" L\1", for_croniter(expression))
            peer = re.sub(r" (\d)L (\S+)$", r" L\1 \2", peer)
            by_date, by_weekday = day_fields(expression)
            split = "L" in by_date and by_weekday[0] != "*"
            made.append((expression, (peer,) if not split or both_days(expression) else self.apart(peer)))
        answers = answered([(e, "UTC", 0, 1, 1) for e, _ in made])
        kept = [c for c, answer in zip(made, answers) if "never fires" not in answer]
        self.assertGreater(len(kept), 280)
        self.assertGreater(self.compare_calendar(kept, RARE // 5), 100_000)

    @staticmethod
    def apart(peer):
        parts = peer.split()
        by_date, by_weekday = parts[:], parts[:]
        by_date[4] = by_weekday[2] = "*"
        return " ".join(by_date), " ".join(by_weekday)

    def test_rare_times_in_zones_over_ten_years(self):
        begin, end = seconds(FROM), seconds(TO)
        inner = begin + 5 * 86400, end - 5 * 86400
        counts = asked([(e, "UTC", begin, end, RARE + 1) for e, _ in cases()])
        rare = [c for c, times in zip(cases(), counts) if len(times) <= RARE]
        self.assertGreater(len(rare), 40)
        answers = iter(asked([(e, z, *inner, RARE + 1) for e, _ in rare for z in ZONES]))
        compared = 0
        for expression, peers in rare:
            walls = fired(expression, peers, begin, end, RARE + 1)
            for zone, times in zip(ZONES, answers):
                expected = [t for t in instants(walls, zone, is_often(expression)) if inner[0] < t < inner[1]]
                self.same(f"{expression} {zone}", times, expected)
                compared += len(times)
        self.assertGreater(compared, 100_000)

    def test_every_time_near_every_change(self):
        """Whatever fires within some hours of any clock change of the ten years."""
        expressions = ["* * * * *", "*/5 * * * *", "0 * * * *", "30 * * * *", "45 */2 * * *", "15 0-23 * * *",
                       "*/10 0-22 * * *", "*/15 1-3 * * *", "30 2,3 * * *", "0 0,1 * * *", "59 23 * * *"]
        compared, near = 0, 5 * 3600
        places = [(zone, at, before) for zone in ZONES for at, before, _ in changes(zone)]
        answers = iter(asked([(e, zone, at - near, at + near, 9999) for zone, at, _ in places for e in expressions]))
        for zone, at, before in places:
            local = (at + before) // 60 * 60
            for expression, times in zip(expressions, answers):
                f = Fields(expression)
                walls = [w for w in range(local - 2 * near, local + 2 * near, 60)
                         if w // 3600 % 24 in f.hours and w // 60 % 60 in f.minutes]
                expected = [t for t in instants(walls, zone, f.often) if at - near < t < at + near]
                self.same(f"{expression} {zone} near {wall_of(at)}", times, expected)
                compared += len(times)
        self.assertGreater(compared, 50_000)

    def test_every_minute_of_a_year(self):
        expressions = ["* * * * *", "*/5 * * * *", "30 * * * *", "0 */2 * * *", "30 2 * * *", "0 3 * * *",
                       "*/20 0-3 * * *", "15 0 * * 0", "45 1 * * 6,0", "*/7 1-2 1-7 * 0", "0 0 31 * *", "5 2 */9 * sun"]
        begin, end = seconds(dt.datetime(2021, 1, 1)), seconds(dt.datetime(2022, 1, 1))
        for zone in ["Europe/Prague", "Australia/Lord_Howe", "Asia/Tehran", "Africa/Casablanca", "America/Santiago"]:
            answers = asked([(e, zone, begin - 1, end, 10 ** 6) for e in expressions])
            for expression, times in zip(expressions, answers):
                self.same(f"{expression} {zone}", times, walked_times(expression, zone, 2021))
            walked.cache_clear()

    def test_a_repeated_hour_is_not_silent(self):
        """Said once more in plain numbers: Prague, 25 October 2026, 00:00 to 02:00 UTC is 02:00 to 03:00 twice."""
        begin = seconds(dt.datetime(2026, 10, 25)) - 1
        counts = [len(t) for t in asked([(e, "Europe/Prague", begin, begin + 7200, 999)
                                         for e in ("*/5 * * * *", "*/5 2 * * *", "@hourly", "0 2 * * *")])]
        self.assertEqual(counts, [24, 12, 2, 1])

    def test_the_judges_can_disagree(self):
        """A comparison that finds no difference where there is one is none."""
        begin = seconds(FROM)
        times = asked([("0 0 13 * 5", "UTC", begin, seconds(TO), RARE)])[0]
        for other in ("0 0 13 * *", "0 0 * * 5", "0 1 13 * 5"):
            self.assertNotEqual(times, fired(other, (other,), begin, seconds(TO), RARE))
        self.assertNotEqual(walked_times("30 2 * * *", "Europe/Prague", 2021), walked_times("30 2 * * *", "UTC", 2021))
