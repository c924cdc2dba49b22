"""The benchmark's cases about purges: many that are due, and many more that are not."""
TABLES = ("step", "note", "event")
ROWS_EACH = 5                                   # of an instance, in each table
PER_PURGE = 10                                  # --rows is so many times the number of instances
OLD = "2025-06-01T00:00:00.000Z"


class Purges:
    """Instances whose purge is due, five rows each in three tables, beside one set-based DELETE per table."""
    limit = 1.43                                # 0.7 of the rows per second
    deletes = True
    install = True
    command = ("purge", "due")
    contract = "purges: { job: { erases: [" + ", ".join(f"{t}(job)" for t in TABLES) + "] } }"
    by_hand = [f"DELETE FROM {t} WHERE job IN (SELECT instance FROM lapse_purge WHERE space = 'job' AND "
               "scheduled_at < '2025-12-01T00:00:00.000Z')" for t in TABLES] + [
        "DELETE FROM lapse_purge WHERE space = 'job' AND scheduled_at < '2025-12-01T00:00:00.000Z'"]

    @staticmethod
    def schema(rows):
        made = []
        for t in TABLES:
            made += [f"CREATE TABLE {t} (id bigint PRIMARY KEY, job text NOT NULL, payload text)",
                     f"INSERT INTO {t} SELECT n * {ROWS_EACH} + k, 'job-' || n, 'something that was noted of ' || n "
                     f"FROM numbers, (SELECT 0 AS k UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) "
                     f"AS five WHERE n <= {rows // PER_PURGE * 2}",
                     f"CREATE INDEX {t}_job ON {t}(job)"]
        return made + ["INSERT INTO lapse_purge (space, instance, reason, scheduled_at) "
                       f"SELECT 'job', 'job-' || (n * 2), 'completed', '{OLD}' FROM numbers WHERE n <= {rows // PER_PURGE}"]

    @staticmethod
    def expected(rows):
        return rows // PER_PURGE * (len(TABLES) * ROWS_EACH + 1)

    @staticmethod
    def count(result):
        s = result["spaces"][0]
        return s["rows"] + s["executed"]


class PurgesIdle(Purges):
    """Purges that are not due: a look at what is due, beside the same look at a table without them."""
    limit = 1.25
    deletes = False

    @staticmethod
    def schema(rows):
        return [f"CREATE TABLE {t} (id bigint PRIMARY KEY, job text NOT NULL)" for t in TABLES] + [
            "INSERT INTO lapse_purge (space, instance, reason, scheduled_at) SELECT 'job', 'job-' || n, "
            "CASE n % 3 WHEN 0 THEN 'completed' WHEN 1 THEN 'failed' END, '2026-01-01T23:59:30.000Z' FROM numbers"]

    by_hand = None                              # the same command, of a space that has none
    other_contract = Purges.contract.replace("job:", "nothing:", 1)

    @staticmethod
    def expected(rows):
        return 0
