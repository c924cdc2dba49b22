"""What MariaDB has of its own in random rounds: its types, their ranges, texts that fold, zero dates."""
import re

import oracle
from round_words import ODD_TEXT, S

EXACT = " COLLATE utf8mb4_nopad_bin"
TEXT = f"varchar(120){EXACT}"
FOLDING = ["varchar(120)", "varchar(120) COLLATE utf8mb4_unicode_520_ci", "varchar(120) COLLATE utf8mb4_bin"]
KEYS = [("int", "integer"), ("int", "bigint"), ("int", "int unsigned"), ("text", TEXT), ("text", f"varchar(110){EXACT}"),
        ("bytes", "varbinary(40)"), ("bytes", "binary(4)")]
ALTERNATES = KEYS + [("uuid", "uuid")]       # sorts in an order of its own, so it is no key
SHORT_TEXT = [t for t in ODD_TEXT if len(t) <= 110]
RANGES = {"smallint": (-2**15, 2**15 - 1), "integer": (-2**31, 2**31 - 1), "int unsigned": (0, 2**32 - 1),
          "bigint": (-2**63, 2**63 - 1), "bigint unsigned": (0, 2**64 - 1)}
FIRST, LAST = 1 * S, (2**31 - 1) * S        # of a TIMESTAMP


def quoted(name):
    """A name in an SQL condition: the program's session has no "quoted" names."""
    return "`" + name.replace("`", "``") + "`"


class Mariadb:
    def maria_key_value(self, kind, sql_type, few):
        rng = self.rng
        if kind == "text":
            return rng.choice(SHORT_TEXT) if self.chance(0.7) else f"k{rng.randrange(10000)}"
        if kind == "bytes":
            fixed = re.fullmatch(r"binary\((\d)\)", sql_type)
            if few or self.chance(0.3):
                return self.pick(b"aaaa", b"AAAA", b"\0\1\2\3")[:int(fixed[1]) if fixed else None]
            return rng.randbytes(int(fixed[1])) if fixed else \
                self.pick(b"", b"a", b"a ", b"A", b"\0", b"\xff", rng.randbytes(rng.randrange(1, 40)))
        low, high = RANGES[sql_type]
        if few:
            return self.pick(0, 1, max(low, -1))
        if self.chance(0.7):
            return rng.randrange(1, 60)
        return self.pick(rng.randrange(max(low, -5), 1000), rng.randrange(low, high + 1), low, high, 0)

    def maria_time_type(self, encoding, unit):
        if encoding == "int":
            return self.pick(*(("integer", "int unsigned") if unit == "s" else ()), "bigint", "bigint", "bigint unsigned")
        if encoding == "text":
            return self.pick(TEXT, *FOLDING)
        digits = self.pick("(6)", "(6)", "(3)", "")
        return {"timestamptz": f"timestamp{digits}", "timestamp": f"datetime{digits}", "date": "date"}[encoding]

    def maria_integer(self, sql_type, value):
        low, high = RANGES[sql_type]
        if self.chance(0.01) and "bigint" in sql_type:
            self.use("extreme integer")
            value = self.pick(high, high - 1, low, 0, max(low, -1), 2**63 - 1)
        return max(low, min(high, value))

    def maria_time(self, kind, sql_type, at):
        """A TIMESTAMP, DATETIME or DATE as read_server() wants it."""
        end = "+00" if kind == "timestamptz" else ""
        if self.chance(0.04):
            self.use("zero date")
            zero = self.pick("0000-00-00", *(() if end else ("2020-00-00", "2020-02-00", "0000-01-01")))
            return zero if kind == "date" else f"{zero} 00:00:00{end}"
        if self.chance(0.02):
            self.use("far time")
            if end:
                return self.pick("1970-01-01 00:00:01+00", "2038-01-19 03:14:07+00")
            return self.pick("0002-01-01", "9998-12-31") + ("" if kind == "date" else " 00:00:00")
        if end:
            local = max(FIRST, min(LAST, at))
        else:
            local = self.local_time(at)
        if kind == "date":
            return oracle.show_server(self.some_day(local), False)[:10]
        digits = re.search(r"\((\d)\)", sql_type)
        step = 10 ** (6 - int(digits[1])) if digits else S
        return oracle.show_server(local // step * step, bool(end))
