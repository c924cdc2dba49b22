"""What random rounds are made of: zones and their changes of clocks, odd names and texts, and how SQL and YAML write
them."""
import datetime
import json
from functools import lru_cache
from zoneinfo import ZoneInfo

import oracle

ZONES = ["Europe/Prague", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo",
         "Africa/Casablanca", "Pacific/Apia", "America/St_Johns", "Europe/Dublin"]
S, MS = 1_000_000, 1000
LATEST = 1_750_000_000 * S          # no sweep runs ahead of the database's clock
MINUTE, HOUR, DAY = 60 * S, 3600 * S, 86400 * S


@lru_cache(None)
def transitions(zone):
    """The instants at which the clocks of a zone change, 2000 to 2025."""
    z, utc = ZoneInfo(zone), datetime.timezone.utc

    def offset(second):
        return datetime.datetime.fromtimestamp(second, utc).astimezone(z).utcoffset()

    found, step = [], 10 * 86400
    start = int(datetime.datetime(2000, 1, 1, tzinfo=utc).timestamp())
    end = int(datetime.datetime(2025, 12, 31, tzinfo=utc).timestamp())
    for low in range(start, end, step):
        high = low + step
        if offset(low) != offset(high):
            a, b = low, high
            while b - a > 1:
                middle = (a + b) // 2
                a, b = (middle, b) if offset(middle) == offset(low) else (a, middle)
            found.append(b * S)
    return found


def iso(instant):
    return oracle.show_server(instant, False).replace(" ", "T") + "Z"


def sql_name(name):
    return '"' + name.replace('"', '""') + '"'


def literal(v):
    if v is None:
        return "NULL"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (int, float)):
        return repr(v)
    return "'" + v.replace("'", "''") + "'"


def unshared(value):
    """A copy in which nothing appears twice: YAML would write an alias."""
    if isinstance(value, dict):
        return {k: unshared(v) for k, v in value.items()}
    return [unshared(v) for v in value] if isinstance(value, list) else value


def flow(value):
    """YAML in one line: JSON, but for keys that are no strings."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


ODD_COLUMNS = ["order", "Group By", 'a"b', "ünï", "x.y", "CamelCase", "it's", "a,b", "(p)", "->", "$1", ":now", "%s",
               "select", "user", "this", "key", "a-b", "x*", "#", "rowid", "oid", "now"]
ODD_TABLES = ["Mixed", "two words", 'q"uote', "dot.ted", "ümlaut", "select", "it's", "a-b", "(p)", "this", "UPPER",
              "%s"]
ODD_TEXT = ["a'b", 'a"b', "", " ", "\\", "a\\'b", "a,b", "{x}", "%", "_", "NULL", "null", "ünï", "日本", "🙂", "a\nb",
            "\t",
            "x" * 300, "0", "1", "01", "1.0", "TRUE", "A", "a", " a", "a ", "$1", "?", ":now", "--", "/*", ";", "()"]
WORDS = ["done", "failed", "Done", "new", "cancelled", "do%e", "do_e", "done*", "dÖne", "x\\y", "doneX", "d"]
GARBAGE = ["", " ", "never", "2025-13-01T00:00:00Z", "2025-02-30 00:00:00", "2023-02-29T12:00", "2020-01-01",
           " 2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z ", "2020-1-1 00:00:00", "20200101T000000Z", "1577836800",
           "1577836800000", "2020-01-01T24:00:00Z", "2020-01-01T00:00:60Z", "2020-01-01T00:60:00Z",
           "2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00+16:00", "2020-01-01T00:00:00+5", "2020-01-01T00:00:00.",
           "2020-01-01T00:00:00.Z", "2020-01-01T00:00.5Z", "0000-01-01T00:00:00Z", "+2020-01-01T00:00:00Z",
           "2020-01-01T00:00:00Z\n", "2020-01-01T00", "2020-01-01T00Z", "2020-01-01  00:00:00", "2020-01-01_00:00:00",
           "2020-01-01T00:00:00+01:60", "2020-01-01T00:00:00 UTC", "2020-01-01T00:00:00ZZ", "2020/01/01 00:00:00",
           "٢٠٢٠-01-01T00:00:00Z", "2020-01-01T00:00:00+01:0", "2020-01-01T00:00:00 +", "-2020-01-01T00:00:00Z",
           "2020-01-01T00:00:00\t+01", "2020-01-01 00:00:00 Europe/Prague", "epoch", "infinity", "today", "now",
           "2020-01-01T-1:00:00Z", "2020-01-01T00:00:00 ", "2020-001T00:00:00Z", "2020-00-10T00:00:00Z",
           "2020-01-00T00:00:00Z", "2020-01-32T00:00:00Z", "2020-04-31 10:00", "1900-02-29T00:00:00Z",
           "12020-01-01T00:00:00Z", "2020-01-01T00:00:00Z+01:00", "2020-01-01T00:00:00--01"]
FAR = ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+15:59", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-15:59",
       "2000-02-29T00:00Z", "1969-12-31 23:59:59.999999", "1600-02-29 00:00:00+00", "1970-01-01t00:00z"]
