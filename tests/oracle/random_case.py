"""The random rounds as test cases: all rounds agree with the oracle, and every feature was really exercised."""
import unittest

import random_rounds

# Every one of these must have come up in a full run, on the engines named (all, if none).
FEATURES = """
1 µs off the cutoff; after; after and with; after below with; after on the table itself; after where
after where below with; age; age of several columns; any; at the cutoff; batch 1; batch 1000; batch 2-5; batch default
batch null; comparison; cutoff near a clock change; cycle of rows; dependent without a key
detach; detach below with; detach of part of the columns; detach on a dependent itself; detach on the table itself
detached; detached and gone; disabled policy; dropped column; eq; escaped star; expires; extreme integer
extreme keep; foreign key
garbage text; hold; inclusive; index; keep by; keep column; keep now; keep otherwise; keep plain; kept: held; kept: null
kept: out; kept: unreadable; kept: waiting after; kept: waiting where
kept: waiting below: held; kept: waiting below: null; kept: waiting below: out; kept: waiting below: unreadable
kept: young; key bigint; key integer
key of 2 columns; key of 3 columns; key varchar; like; list with null; name in other case; newer_than
no foreign key; not
not null; nothing goes; odd names; older_than; on delete cascade; on delete restrict; on delete set null; order; prefix
policies for root and dependent; root refers to its dependents; time in the key
reference of several columns; reference to a unique key; reference with ->; reference within the key; rows
rows with null; second policy; skipped time; something goes; split; split below; something stays; sql condition; sql condition on another table
subtree with where; text with offset; text without offset; three tables lose rows; time int ms; time int s; time int us
time text; two paths; two references; two references emptied in a row
 unique key only; where; with 1 deep; with 2 deep; with 3 deep
cap; cap of a dependent; cap per 0; cap per 1; cap per several; cap: NULL group; cap: NULL is oldest
cap: a held row counts; cap: group of N; cap: group of N+1; cap: group of N-1; cap: the key decides
keep_newest; keep_newest per 0; keep_newest per 1; keep_newest per several; keep_newest: NULL group
keep_newest: NULL is oldest; keep_newest: a held row counts; keep_newest: group of N; keep_newest: group of N+1
keep_newest: group of N-1; keep_newest: the key decides; newest of several columns
orphan; orphan by default; orphan deleted; orphan deleted_or_unmatched; orphan never; orphan sourceDocumentDeleted
orphan sourceDocumentDeletedOrNoLongerMatching; orphan without grace; orphan of the table itself; keep default
orphan by int; orphan by text; orphan by one column; orphan by several columns; matching; matching in sql
orphan: NULL by; orphan: NULL in a part of by; orphan: a source key that is not unique; orphan: foreign key to the source
orphan: match unknown; orphan: parts of several sources; orphan: source deleted; orphan: source unmatched
empty source allowed; empty source refused; policies for source and orphans
kept: has a source; kept: among the newest; kept: waiting below: has a source; kept: waiting below: among the newest
with on a dependent itself; with on the table itself; with where; with where below; workers; young descendant goes; zone
found by index; found by key; found by index, workers; found by key, workers; text that folds; keep by a text that folds
"""
ONLY = {"sqlite": "deferred foreign key; key text; strict; without rowid; integer column with other values; text column with other values; key int;"
                  " key not declared NOT NULL; orphan: by holds another type;"
                  " groups or order of several types",
        "postgres": "found by place; found by place, workers; deferred foreign key; key text; enum; domain; infinity; key smallint; key uuid; partitioned; partitioned by time; schema;"
                    " time date; time timestamp; time timestamptz; orphan by uuid; orphan by bool",
        "mariadb": "enum; zero date; far time; key int unsigned; key varbinary; key binary; time date;"
                   " time timestamp; time timestamptz; orphan by uuid; orphan by bool; orphan by bytes"}


def expected(engine):
    return {f.strip() for line in (FEATURES + ONLY[engine]).split("\n") for f in line.split(";") if f.strip()}


class RandomRounds:
    """Mixed with unittest.TestCase by one file per engine, so that both run at once."""
    engine = None

    def test_rounds(self):
        shown = []
        played = random_rounds.Played(self.engine, random_rounds.base_seed(), random_rounds.ROUNDS, shown.append).play()
        print("\n".join("# " + line for line in played.table().splitlines()), flush=True)
        if played.failed:
            seeds = ", ".join(str(r.seed) for r, _ in played.failed[:50])
            self.fail("\n".join(shown) + f"\n{len(played.failed)} of {played.rounds} rounds failed: seeds {seeds}")
        self.assertGreaterEqual(played.rounds, 2000)
        missing = expected(self.engine) - set(played.features)
        self.assertFalse(missing, f"never exercised: {sorted(missing)}")
        for feature, share in (("something goes", 0.4), ("something stays", 0.5), ("nothing goes", 0.1)):
            self.assertGreater(played.features[feature], share * played.rounds, f"too few rounds in which {feature}")


__all__ = ["RandomRounds", "unittest"]
