"""The oracle: which rows a sweep must delete, and which it must detach, told from the contract and the raw rows alone.

It knows no SQL and shares no code with the program. Everything is a loop over rows in memory; an instant is a count of
microseconds since 1970 in a Python integer, so nothing overflows.

    schema = Schema([Table(...), ...])
    state  = {table: {row_id: {column: value}}}
    for name, verdict in sweep(contract, schema, state, now):    # policies in order; state is changed as they run
        verdict.gone, verdict.detached, verdict.why, verdict.refused

Values are as the database gives them: None, int, float, str, bytes, bool; timestamptz, timestamp and date as the text
PostgreSQL shows in UTC.
"""
import datetime
import re
import unicodedata
from dataclasses import dataclass, field
from fractions import Fraction
from zoneinfo import ZoneInfo

import yaml

SECOND = 1_000_000
DAY = 86400 * SECOND
UNITS = {"s": SECOND, "ms": 1000, "us": 1}
NEVER = None            # a keep that never ends

BLANKS, CASE, MARKS, ALL = "blanks", "case", "marks", "all"

UNUSABLE = "unusable"   # a time that cannot be read as an instant (NULL is None)


# --- what the tables look like -------------------------------------------------------------------------------------

@dataclass(eq=False)
class Column:
    name: str
    kind: str               # int, real, text, bool, bytes, uuid, timestamptz, timestamp, date
    nullable: bool = True
    order: list = None      # of an enum: its values from the least to the greatest
    folds: str = None       # texts that the column takes for equal differ in BLANKS at the end; in CASE; in MARKS (accents)
                            # and case; or in ALL of these


@dataclass(eq=False)
class Foreign:
    columns: list           # names, in this table
    table: "Table"
    targets: list           # names, in that one


@dataclass(eq=False)
class Table:
    name: str
    columns: dict           # name -> Column
    key: list = field(default_factory=list)         # the primary key's columns; empty: it has none
    foreign: list = field(default_factory=list)
    schema: str = None
    unique: list = field(default_factory=list)      # what stands for the key where there is none

    def __repr__(self):
        return f"{self.schema}.{self.name}" if self.schema else self.name

    def column(self, written):
        return self.columns[_match(written, list(self.columns))]


class Schema:
    def __init__(self, tables):
        self.tables = tables

    def table(self, written):
        """A table by its name as the contract writes it."""
        names = split_names(written)
        found = [t for t in self.tables if len(names) == 1 or t.schema == _match(names[0], [t.schema])]
        if len(names) == 1:
            found = [t for t in found if t.schema in (None, "public")]
        return {t.name: t for t in found}[_match(names[-1], [t.name for t in found])]


class Name(str):
    """A name; quoted ones match exactly only."""
    quoted = False


_NAME = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s".,()]+))\s*')


def _name(text, at):
    m = _NAME.match(text, at)
    if not m:
        raise ValueError(f"no name at {at} of {text!r}")
    name = Name(m[1].replace('""', '"') if m[1] is not None else m[2])
    name.quoted = m[1] is not None
    return name, m.end()


def split_names(text):
    """schema.table -> its names."""
    names, at = [], 0
    while True:
        name, at = _name(text, at)
        names.append(name)
        if at == len(text):
            return names
        if text[at] != ".":
            raise ValueError(f"not a name: {text!r}")
        at += 1


def _match(written, names):
    if isinstance(written, str) and not isinstance(written, Name):
        (written,) = split_names(written)
    if written in names:
        return str(written)
    folded = [n for n in names if n is not None and n.lower() == written.lower()]
    if written.quoted or not folded:
        raise ValueError(f"{written} is none of {names}")
    return folded[0]


class Ref:
    """table(column, …) [-> (column, …)], seen from the table that is referred to."""

    def __init__(self, text, schema, owner):
        self.text = text
        self.table, self.columns, arrow = _table_and_columns(text, schema)
        if arrow:
            if not arrow.startswith("->"):
                raise ValueError(f"not a reference: {text!r}")
            inside, _, end = _split_close(arrow[2:].strip()[1:])
            self.targets = [owner.column(n).name for n in _name_list(inside)]
        else:
            self.targets = list(owner.key)
            for f in self.table.foreign:
                if f.table is owner and sorted(f.columns) == sorted(self.columns):
                    to = dict(zip(f.columns, f.targets))
                    self.targets = [to[c] for c in self.columns]
        if len(self.targets) != len(self.columns):
            raise ValueError(f"{text}: {len(self.columns)} columns against {self.targets}")

    def rows_of(self, row, state):
        """(id, row) of the rows that refer to this row. NULL refers to nothing."""
        wanted = [row[c] for c in self.targets]
        if None in wanted:
            return
        for i, r in state[self.table].items():
            if all(same(r[c], v) for c, v in zip(self.columns, wanted)):
                yield i, r


def _table_and_columns(text, schema):
    """table(column, …) rest -> the table, the names of its columns, the rest."""
    head, _, rest = _split_at_paren(text)
    inside, _, rest = _split_close(rest)
    table = schema.table(head)
    return table, [table.column(n).name for n in _name_list(inside)], rest.strip()


def _outside_quotes(text, mark):
    quoted = False
    for i, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif c == mark and not quoted:
            return i
    raise ValueError(f"no {mark} in {text!r}")


def _split_at_paren(text):
    i = _outside_quotes(text, "(")
    return text[:i].strip(), "(", text[i + 1:]


def _split_close(text):
    i = _outside_quotes(text, ")")
    return text[:i], ")", text[i + 1:]


def _name_list(text):
    names, at = [], 0
    while True:
        name, at = _name(text, at)
        names.append(name)
        if at == len(text):
            return names
        if text[at] != ",":
            raise ValueError(f"not a list of names: {text!r}")
        at += 1


# --- durations -----------------------------------------------------------------------------------------------------

_SPANS = {"ms": 1000, "millisecond": 1000,
          "s": SECOND, "sec": SECOND, "second": SECOND, "m": 60 * SECOND, "min": 60 * SECOND, "minute": 60 * SECOND,
          "h": 3600 * SECOND, "hr": 3600 * SECOND, "hour": 3600 * SECOND, "d": DAY, "day": DAY, "w": 7 * DAY,
          "week": 7 * DAY}


def duration(value):
    """Microseconds, or NEVER."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value * 1000
    text = value.strip().lower()
    if text == "never":
        return NEVER
    if text == "now":
        return 0
    total, at = Fraction(0), 0
    part = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")
    while at < len(text):
        m = part.match(text, at)
        unit = m[2] if m[2] in _SPANS else m[2][:-1] if m[2].endswith("s") else m[2]
        total += Fraction(m[1]) * _SPANS[unit]
        at = m.end()
    if total.denominator != 1:
        raise ValueError(f"{value} is no whole number of microseconds")
    return int(total)


# --- times ---------------------------------------------------------------------------------------------------------

def days_of(year, month, day):
    """Days since 1970-01-01 in the Gregorian calendar, of any year (0 is 1 BC)."""
    y = year - (month <= 2)
    era, yoe = divmod(y, 400)
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + yoe * 365 + yoe // 4 - yoe // 100 + doy - 719468


def civil_of(days):
    era, doe = divmod(days + 719468, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + (3 if mp < 10 else -9)
    return yoe + era * 400 + (month <= 2), month, doy - (153 * mp + 2) // 5 + 1


def instant_of_local(local, zone):
    """The instant at which the clocks of a zone show this (microseconds as if it were UTC). Of two instants, and of
    the two ways to read a time that the clocks skip, it is the later one."""
    if zone in (None, "UTC"):
        return local
    year, month, day = civil_of(local // DAY)
    if not 1 < year < 9999:
        return local        # nowhere near any cutoff
    rest = local % DAY
    wall = datetime.datetime(year, month, day, tzinfo=ZoneInfo(zone)) + datetime.timedelta(microseconds=rest)
    readings = [wall.replace(fold=f).utcoffset() for f in (0, 1)]
    return max(local - r // datetime.timedelta(microseconds=1) for r in readings)


def local_of_instant(instant, zone):
    if zone in (None, "UTC"):
        return instant
    utc = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(microseconds=instant)
    return instant + utc.astimezone(ZoneInfo(zone)).utcoffset() // datetime.timedelta(microseconds=1)


_DIGITS = "0123456789"


def read_text(text, zone):
    """An instant, or UNUSABLE. Read by hand: a letter at a time."""
    at = 0

    def digits(n):
        nonlocal at
        part = text[at:at + n]
        if len(part) != n or any(c not in _DIGITS for c in part):
            raise ValueError
        at += n
        return int(part)

    def mark(allowed):
        nonlocal at
        if text[at:at + 1] == "" or text[at] not in allowed:
            raise ValueError
        at += 1
        return text[at - 1]

    try:
        year = digits(4)
        mark("-")
        month = digits(2)
        mark("-")
        day = digits(2)
        mark("Tt ")
        hour = digits(2)
        mark(":")
        minute = digits(2)
        second = fraction = 0
        if text[at:at + 1] == ":":
            at += 1
            second = digits(2)
            if text[at:at + 1] == ".":
                at += 1
                start = at
                while text[at:at + 1] and text[at] in _DIGITS:
                    at += 1
                if at == start:
                    raise ValueError
                fraction = int((text[start:at] + "000000")[:6])
        datetime.date(year, month, day)
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError
        local = days_of(year, month, day) * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + fraction
        if at == len(text):
            return instant_of_local(local, zone)
        while text[at:at + 1] == " ":
            at += 1
        sign = mark("Zz+-")
        offset = 0
        if sign in "+-":
            hours, minutes = digits(2), 0
            if at < len(text):
                if text[at] == ":":
                    at += 1
                minutes = digits(2)
            if hours > 15 or minutes > 59:
                raise ValueError
            offset = (hours * 60 + minutes) * 60 * SECOND * (1 if sign == "+" else -1)
        if at != len(text):
            raise ValueError
        return local - offset
    except ValueError:
        return UNUSABLE


_SERVER = re.compile(r"(\d{4,})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?(\+00)?( BC)?$")


def read_server(text):
    """Local microseconds of a date or timestamp as PostgreSQL shows it in UTC."""
    if text in ("infinity", "-infinity"):
        return UNUSABLE
    m = _SERVER.match(text)
    year = int(m[1])
    if not int(m[2]) or not int(m[3]) or not year:      # MariaDB: no date
        return UNUSABLE
    days = days_of(1 - year if m[9] else year, int(m[2]), int(m[3]))
    hour, minute, second = (int(m[i] or 0) for i in (4, 5, 6))
    return days * DAY + ((hour * 60 + minute) * 60 + second) * SECOND + int((m[7] or "0").ljust(6, "0"))


def show_server(local, zoned):
    """The other way round."""
    year, month, day = civil_of(local // DAY)
    rest, fraction = divmod(local % DAY, SECOND)
    text = f"{year if year > 0 else 1 - year:04}-{month:02}-{day:02}" \
           f" {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    if fraction:
        text += f".{fraction:06}".rstrip("0")
    return text + ("+00" if zoned else "") + (" BC" if year <= 0 else "")


def unit_of(column, said):
    suffix = column.name.rsplit("_", 1)[-1] if "_" in column.name else None
    return UNITS[suffix if suffix in UNITS else said]


def instant(value, column, unit=None, zone=None):
    """None for NULL, UNUSABLE, or microseconds since 1970."""
    if value is None:
        return None
    if column.kind == "int":
        return value * unit_of(column, unit) if type(value) is int else UNUSABLE
    if column.kind == "text":
        return read_text(value, zone) if type(value) is str else UNUSABLE
    local = read_server(value)
    if local is UNUSABLE or column.kind == "timestamptz":
        return local
    return instant_of_local(local, zone)


# --- conditions ----------------------------------------------------------------------------------------------------

def same(a, b):
    """Equal as values of one column type; NULL must have been ruled out by the caller."""
    return a is not None and b is not None and (type(a) is bytes) == (type(b) is bytes) and a == b


def all_of(truths):
    truths = list(truths)
    return False if False in truths else None if None in truths else True


def any_of(truths):
    truths = list(truths)
    return True if True in truths else None if None in truths else False


class Conditions:
    """Judges conditions for one policy: its unit, its zone, the run's now. sql: text of an SQL condition -> a function
    of (row, state) that tells what it says.

    A column may take texts for equal that are not the same. Then a row goes only for what is the same, and stays also
    for what is equal; `keeps` says that the condition is one that keeps rows."""

    def __init__(self, now, unit, zone, sql):
        self.now, self.unit, self.zone, self.sql = now, unit, zone, sql

    def truth(self, condition, table, row, state, prefixes=False, keeps=False):
        if condition is None:
            return True
        if isinstance(condition, str):
            return self.sql[condition](row, state)
        return all_of(
            any_of(self.truth(c, table, row, state, keeps=keeps) for c in value) if key == "any"
            else self._column(table.column(key), row, value, prefixes, keeps) for key, value in condition.items())

    def _column(self, column, row, said, prefixes, keeps):
        value = row[column.name]
        if not isinstance(said, dict):
            return self._is_in(value, column, said, prefixes, keeps)
        return all_of(self._compare(value, column, op, operand, keeps) for op, operand in said.items())

    def _compare(self, value, column, op, operand, keeps):
        if op == "eq":
            return self._is_in(value, column, operand, False, keeps)
        if op == "not":
            found = self._is_in(value, column, operand, False, not keeps)
            return None if found is None else not found
        if op in ("older_than", "newer_than"):
            at = instant(value, column, self.unit, self.zone)
            if at is None or at is UNUSABLE:
                return None
            span = duration(operand)
            if span is NEVER:
                return op == "newer_than"
            return at < self.now - span if op == "older_than" else at > self.now - span
        if value is None or operand is None:
            return None
        if op == "like":
            folds = CASE if column.folds == MARKS else column.folds     # PostgreSQL's patterns know no accents
            return like(value, operand) or keeps and like(letters(value, folds), letters(operand, folds))
        return {"lt": value < operand, "lte": value <= operand, "gt": value > operand, "gte": value >= operand}[op]

    def _is_in(self, value, column, wanted, prefixes, folded):
        wanted = wanted if isinstance(wanted, list) else [wanted]
        return any_of(self._is(value, w, column, prefixes, folded) for w in wanted)

    @staticmethod
    def _is(value, wanted, column, prefixes, folded):
        if wanted is None:
            return value is None
        if value is None:
            return None
        if prefixes and column.kind == "text" and isinstance(wanted, str):
            if wanted.endswith("\\*"):
                wanted = wanted[:-2] + "*"
            elif wanted.endswith("*"):
                return type(value) is str and value.startswith(wanted[:-1])
        if column.kind == "uuid":
            return value.lower() == wanted.lower()
        if folded and column.folds:
            return same(fold(value, column.folds), fold(wanted, column.folds))
        return same(value, wanted)


def fold(text, how):
    return letters(text.rstrip(" ") if how in (BLANKS, ALL) else text, how)


def letters(text, how):
    """Without the differences that a column does not see."""
    if how in (MARKS, ALL):
        text = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))
    return text if how in (None, BLANKS) else text.upper()


def like(value, pattern):
    out, at = "", 0
    while at < len(pattern):
        c = pattern[at]
        if c == "\\" and at + 1 < len(pattern):
            at += 1
            out += re.escape(pattern[at])
        else:
            out += ".*" if c == "%" else "." if c == "_" else re.escape(c)
        at += 1
    return re.fullmatch(out, value, re.S) is not None


# --- which of two rows is newer, and which rows have a source -----------------------------------------------------

_INFINITE = {"-infinity": float("-inf"), "infinity": float("inf")}


def place(value, column):
    """What sorts the values of a column from the oldest to the newest. NULLs are oldest; on SQLite a column may hold
    several types: numbers come before texts, texts before blobs."""
    if value is None:
        return 0, 0
    if column.order:
        return 1, column.order.index(value)
    if column.kind in ("timestamptz", "timestamp", "date"):
        return 1, _INFINITE[value] if value in _INFINITE else in_order(value)
    return {str: 2, bytes: 3}.get(type(value), 1), value


def in_order(text):
    """A number that grows with what a server shows, be it a time or a date with zeros in it."""
    m = _SERVER.match(text)
    number = 1 - int(m[1]) if m[9] else int(m[1])
    for part, most in zip(m.groups()[1:6], (13, 32, 24, 60, 60)):
        number = number * most + int(part or 0)
    return number * SECOND + int((m[7] or "0").ljust(6, "0"))


class Newest:
    """cap and keep_newest: {rows, per, newest}."""

    def __init__(self, said, table, instants=None):
        """instants: the policy's age columns -> a function of a row that tells the instant. By these its rows are old,
        so by these they are new; a time that cannot be used is as old as NULL."""
        self.rows = said["rows"]
        self.instants = instants or {}
        self.per = [table.column(c).name for c in listed(said.get("per"))]
        names = [table.column(c).name for c in listed(said["newest"])]
        self.newest = [table.columns[c] for c in names]
        self.key = [table.columns[c] for c in table.key or table.unique]

    def place(self, row):
        return [self.place_of(row, c) for c in self.newest] + [place(row[c.name], c) for c in self.key]

    def place_of(self, row, column):
        if column.name not in self.instants:
            return place(row[column.name], column)
        at = self.instants[column.name](row)
        return (0, 0) if at in (None, UNUSABLE) else (1, at)

    def has(self, row, population):
        """Whether the row is among the newest of its group. A NULL group is a group."""
        group, at = [row[c] for c in self.per], self.place(row)
        newer = sum(1 for r in population if [r[c] for c in self.per] == group and self.place(r) > at)
        return newer < self.rows


class Orphan:
    """orphan: {of, by, matching, delete_when, allow_empty}."""
    WHEN = {"sourceDocumentDeleted": "deleted", "sourceDocumentDeletedOrNoLongerMatching": "deleted_or_unmatched"}

    def __init__(self, said, table, schema):
        self.source, self.key, _ = _table_and_columns(said["of"], schema)
        self.by = [table.column(c).name for c in listed(said["by"])]
        when = said.get("delete_when", "deleted")
        self.when = self.WHEN.get(when, when)
        self.matching = said.get("matching")
        self.allow_empty = said.get("allow_empty", False)

    def refuses(self, state, losing):
        """Everything would be an orphan of a source that has nothing in it; and a policy that deletes rows of its own
        source would make orphans as it goes. losing: the tables that it deletes from."""
        empty = not state[self.source] and not self.allow_empty and self.when != "never"
        return empty or self.source in losing

    def sources(self, row, state):
        wanted = [row[c] for c in self.by]
        return [r for r in state[self.source].values() if all(same(r[c], v) for c, v in zip(self.key, wanted))]

    def lost(self, row, state, conditions):
        """Whether the row's source is gone, or none of that name matches any more."""
        if self.when == "never" or None in [row[c] for c in self.by]:
            return False
        found = self.sources(row, state)
        if self.when == "deleted_or_unmatched":
            found = [r for r in found if conditions.truth(self.matching, self.source, r, state, keeps=True) is True]
        return not found


# --- policies ------------------------------------------------------------------------------------------------------

@dataclass
class Verdict:
    table: Table
    roots: list = field(default_factory=list)       # ids of the due rows that go with all they own
    gone: set = field(default_factory=set)          # (table, id), the roots among them
    detached: dict = field(default_factory=dict)    # (table, id) -> columns set to NULL; these rows stay
    emptied: dict = field(default_factory=dict)     # (table, id, columns of a reference) -> (table, id) it referred to;
                                                    # every reference that a detach reaches, in rows that go, too
    roots_of: dict = field(default_factory=dict)    # (table, id) that goes -> ids of the roots that take it along
    times: dict = field(default_factory=dict)       # root id -> its instant
    why: dict = field(default_factory=dict)         # id -> what became of the row
    refused: bool = False                           # the policy may not run at all; nothing goes

    def count(self, word):
        return sum(1 for w in self.why.values() if w.startswith(word))

    def may_count(self, reference, splits=False):
        """Whether a sweep may count this reference as emptied: in a row that stays it does; a row that is due itself
        does not count; one that goes with others may, if it goes in a later batch than what it referred to, which
        with split may go ahead."""
        at, owner = reference[:2], self.emptied[reference]
        if at not in self.gone:
            return True
        if at[0] is self.table and at[1] in self.roots:
            return False
        return splits or not self.roots_of[owner] <= self.roots_of[at]


def listed(value):
    return value if isinstance(value, list) else [] if value is None else [value]


def emptied_columns(ref):
    """What a detach sets to NULL: what may be NULL and is not part of the key."""
    return tuple(c for c in ref.columns if ref.table.columns[c].nullable and c not in ref.table.key)


class Owner:
    """A level of ownership: a table and what is listed for its rows."""

    def __init__(self, said, table, schema):
        self.table = table
        self.detach = [Ref(d, schema, table) for d in listed(said.get("detach"))]
        self.after = []
        for a in listed(said.get("after")):
            a = a if isinstance(a, dict) else {"ref": a}
            self.after.append((Ref(a["ref"], schema, table), a.get("where")))
        self.owned = []
        for w in listed(said.get("with")):
            w = w if isinstance(w, dict) else {"ref": w}
            ref = Ref(w["ref"], schema, table)
            # on the table itself: the rows below are rows of this same level
            level = self if ref.table is table else Owner(w, ref.table, schema)
            self.owned.append((ref, w.get("where"), level))

    def losing(self):
        """The tables that lose rows, here and below."""
        return {self.table}.union(*(below.losing() for _, _, below in self.owned if below is not self))

    def detachable(self):
        """(table, columns) of every reference that may be emptied, here and below."""
        found = {(r.table, emptied_columns(r)) for r in self.detach}
        return found.union(*(below.detachable() for _, _, below in self.owned if below is not self))


class Judge:
    def __init__(self, said, schema, now, sql=None):
        self.said, self.now = said, now
        self.table = schema.table(said["table"])
        self.unit, self.zone = said.get("unit"), said.get("zone")
        self.conditions = Conditions(now, self.unit, self.zone, sql or {})
        self.owner = Owner(said, self.table, schema)
        self.times = [self.table.column(c) for c in listed(said.get("expires", said.get("age")))]
        instants = {c.name: lambda row, c=c: instant(row[c.name], c, self.unit, self.zone) for c in self.times}
        self.cap = Newest(said["cap"], self.table) if "cap" in said else None
        self.keep_newest = Newest(said["keep_newest"], self.table, instants) if "keep_newest" in said else None
        self.orphan = Orphan(said["orphan"], self.table, schema) if "orphan" in said else None

    # --- a row on its own

    def cutoff(self, row):
        """(the instant, whether it is included), or NEVER."""
        if "expires" in self.said:
            return self.now, True
        keep = self.said.get("keep", "24h") if self.orphan else self.said["keep"]
        inclusive = self.said.get("inclusive", False)
        if not isinstance(keep, dict):
            span = duration(keep)
        elif "by" in keep:
            column = self.table.column(keep["by"])
            value = row[column.name]
            spans = [duration(v) for k, v in keep["values"].items() if self.taken_for(value, k, column)]
            if not any(value is not None and same(value, k) for k in keep["values"]):
                spans.append(duration(keep.get("otherwise", "never")))
            span = NEVER if NEVER in spans else max(spans)
        else:
            column = self.table.column(keep["column"])
            value = row[column.name]
            if type(value) is not int or value <= 0:
                return NEVER
            span = value * (UNITS[keep["unit"]] if "unit" in keep else unit_of(column, None))
            if span > self.now:
                return NEVER        # beyond 1970: a number that means "for ever"
        return NEVER if span is NEVER else (self.now - span, inclusive)

    @staticmethod
    def taken_for(value, named, column):
        """Whether the column takes its value for one that is named: then that is how long it is kept at least."""
        if value is None or same(value, named):
            return value is not None
        return bool(column.folds) and fold(value, column.folds) == fold(named, column.folds)

    def latest(self, row):
        """The latest of its times; None if all are NULL; UNUSABLE if one cannot be read."""
        read = [instant(row[c.name], c, self.unit, self.zone) for c in self.times]
        if UNUSABLE in read:
            return UNUSABLE
        return max((t for t in read if t is not None), default=None)

    def in_scope(self, row, state):
        return self.conditions.truth(self.said.get("rows"), self.table, row, state, prefixes=True) is True \
            and self.conditions.truth(self.said.get("where"), self.table, row, state) is True

    def held(self, row, state):
        return "hold" in self.said and self.conditions.truth(self.said["hold"], self.table, row, state, keeps=True) is True

    def timed(self):
        """Whether a row's age plays a part."""
        return bool(self.times)

    def of_time(self, row):
        """What its times say: None if they let it go; null, unreadable or young."""
        if not self.timed():
            return None
        at = self.latest(row)
        if at is None:
            return "null"
        if at is UNUSABLE:
            return "unreadable"
        cutoff = self.cutoff(row)
        if cutoff is NEVER:
            return "young"
        return None if at < cutoff[0] or cutoff[1] and at == cutoff[0] else "young"

    def of_others(self, row, state):
        """What other rows say: None if they let it go; has a source, or among the newest."""
        if self.orphan and not self.orphan.lost(row, state, self.conditions):
            return "has a source"
        for newest in (self.cap, self.keep_newest):
            if newest and newest.has(row, self.population(state)):
                return "among the newest"
        return None

    def population(self, state):
        """What a cap counts: held and waiting rows, too."""
        return [r for r in state[self.table].values() if self.in_scope(r, state)]

    def of_row(self, row, state):
        """What it is on its own and among others: due, or why it stays."""
        if not self.in_scope(row, state):
            return "out"
        why = self.of_time(row) or self.of_others(row, state)
        if why:
            return why
        return "held" if self.held(row, state) else "due"

    def untouchable(self, row, state):
        """Why a row of the policy's own table may not go even below a due one, or None: its age does not matter there.
        """
        if not self.in_scope(row, state):
            return "out"
        if self.held(row, state):
            return "held"
        unusable = {None: "null", UNUSABLE: "unreadable"}.get(self.latest(row)) if self.timed() else None
        return unusable or self.of_others(row, state)

    # --- a row with all it owns

    def gather(self, root, state):
        """All that goes with a root, and the references that are emptied: (gone, emptied), or why it waits."""
        gone, emptied = set(), {}
        todo = [(self.owner, root)]
        seen = set()
        while todo:         # ends: every (level, row) is visited once
            level, i = todo.pop()
            if (level, i) in seen:
                continue
            seen.add((level, i))
            gone.add((level.table, i))
            row = state[level.table][i]
            for ref, where in level.after:
                for _, r in ref.rows_of(row, state):
                    if self.conditions.truth(where, ref.table, r, state, keeps=True) is True:
                        return "after"
            for ref, where, below in level.owned:
                for j, r in ref.rows_of(row, state):
                    if where is not None and self.conditions.truth(where, ref.table, r, state) is not True:
                        return "where"
                    if ref.table is self.table and self.untouchable(r, state):
                        return f"below: {self.untouchable(r, state)}"
                    todo.append((below, j))
            for ref in level.detach:
                columns = emptied_columns(ref)
                for j, _ in ref.rows_of(row, state):
                    emptied[ref.table, j, columns] = (level.table, i)
        return gone, emptied

    def verdict(self, state):
        v = Verdict(self.table)
        if self.orphan and self.orphan.refuses(state, self.owner.losing()):
            v.refused = True
            return v
        for i, row in state[self.table].items():
            v.why[i] = self.of_row(row, state)
            if v.why[i] != "due":
                continue
            whole = self.gather(i, state)
            if isinstance(whole, str):
                v.why[i] = f"waiting {whole}"
                continue
            v.roots.append(i)
            if self.timed():
                v.times[i] = self.latest(row)
            v.gone |= whole[0]
            v.emptied.update(whole[1])
            for at in whole[0]:
                v.roots_of.setdefault(at, set()).add(i)
        for table, i, columns in v.emptied:
            if (table, i) not in v.gone:
                v.detached.setdefault((table, i), set()).update(columns)
        return v


def apply(verdict, state):
    for table, i in verdict.gone:
        del state[table][i]
    for (table, i), columns in verdict.detached.items():
        state[table][i] = {c: None if c in columns else v for c, v in state[table][i].items()}


def copy(state):
    return {t: dict(rows) for t, rows in state.items()}


def read(contract):
    return yaml.load(contract, yaml.CSafeLoader) if isinstance(contract, str) else contract


def sweep(contract, schema, state, now, sql=None, judge=Judge):
    """Yields (policy, Verdict) in the order of the file; each verdict is applied to the state before the next."""
    for name, said in read(contract)["policies"].items():
        if said.get("enabled", True):
            v = judge(said, schema, now, sql).verdict(state)
            apply(v, state)
            yield name, v


def exhausted(contract, schema, state, now, sql=None):
    """The state after as many runs as it takes until one deletes nothing: a later policy may free rows of an earlier
    one. Returns it."""
    state = copy(state)
    while any([v.gone for _, v in sweep(contract, schema, state, now, sql)]):
        pass                # ends: each run deletes rows
    return state


def at_most(said, schema, state, now, sql=None):
    """The most that one policy may delete in one run: batches come one after another, so a row may become free by
    what an earlier batch of the same run deleted. Returns the state when nothing more is due."""
    state = copy(state)
    while True:             # ends: each round deletes rows
        v = Judge(said, schema, now, sql).verdict(state)
        if not v.gone:
            return state
        apply(v, state)
