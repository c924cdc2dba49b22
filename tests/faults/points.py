"""Another session comes in before any one statement of a sweep, and what counts depends on where.

A row is judged for the last time by the last SELECT before the batch deletes: what others committed before that one
counts."""
from harness import NOW, lapse
from proxy import Proxy, Session


class Come:
    """How one sweep went that another session came into."""

    def __init__(self, other, result, seen, at, waited):
        self.other, self.result, self.seen, self.at, self.waited = other, result, seen, at, waited

    @property
    def in_time(self):
        """Whether it was done before the rows were judged for the last time."""
        return not self.waited and self.at.number <= last_judgement(self.seen)

    def __str__(self):
        return f"before {self.at}\nin time: {self.in_time}, had to wait: {self.waited}\n" \
               f"{self.seen}\nother: {self.other.rows} {self.other.error}\n{self.result}"


def last_judgement(seen):
    """The number of the last SELECT before something is deleted in a batch that is not rolled back."""
    batch = []
    for s in seen:
        batch = [s] if s.begins_batch else batch + [s]
        if s.ends_batch and s.sql.startswith("COMMIT") and any(b.sql.startswith("DELETE") for b in batch):
            first = next(i for i, b in enumerate(batch) if b.sql.startswith("DELETE"))
            return max(b.number for b in batch[:first] if b.sql.startswith(("SELECT", "WITH")))
    return seen[-1].number


class Points:
    """Mixed into a case on a server that has RESET, which sets the tables back."""

    def through(self, contract, before=None):
        with Proxy(self.db, before, looks=False) as proxy:
            r = lapse(proxy.dsn, contract, "sweep", "--json", "--now", NOW)
        return r, list(proxy.seen)

    def points(self, contract, reset):
        """Every statement from the one reading that finds the rows to the one after the first batch."""
        self.given(reset)
        r, seen = self.through(contract)
        self.assertEqual(r.code, 0, r)
        begins = next(i for i, s in enumerate(seen) if s.begins_batch)
        ends = next(s for s in seen[begins:] if s.ends_batch)
        self.assertTrue(ends.sql.startswith("COMMIT"), seen)
        reading = max(i for i, s in enumerate(seen[:begins]) if s.begins)
        self.assertIn(last_judgement(seen), range(seen[begins].number, ends.number), seen)
        return range(seen[reading].number, min(ends.number + 2, len(seen) + 1))

    def each(self, contract, act, check, early=(), reset=None, codes=(0,), ever_late=True):
        """Runs the sweep once for every point. early: what the other session does before it begins (an open
        transaction); act: what it does at the point. check(how) looks at the result. ever_late=False: the program waits
        for what the other session began, so that it is never too late."""
        reset = reset or self.RESET
        times = []
        for point in self.points(contract, reset):
            with self.subTest(point=point):
                self.given(reset)
                with Session(self.db) as other:
                    other.do(*early)
                    came = []

                    def come_in(statement):
                        if statement.number == point:
                            other.do(*act)
                            came.append((statement, other.waits()))

                    r, seen = self.through(contract, come_in)
                    other.finish()
                    self.assertTrue(came, f"the point was never reached: {seen}")
                    how = Come(other, r, seen, *came[0])
                    self.assertIn(r.code, codes, how)
                    times.append(how.in_time)
                    check(how)
        self.assertEqual(set(times), {True, False} if ever_late else {True}, "it came in before and after the last judgement")
