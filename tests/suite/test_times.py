"""Times are compared as instants, however a column holds them."""
from harness import *


def at(text):
    """Milliseconds of an ISO time in UTC."""
    import datetime
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


@every_engine
class Integers(Case):
    def due(self, column, one, unit=None, ddl="bigint"):
        """one: what the column counts in a second."""
        self.given(f"create table t (id integer primary key, {column} {ddl})")
        self.insert("t", (1, S * one - 1), (2, S * one), (3, S * one + 1), (4, None))
        self.swept(f"policies: {{t: {{table: t, expires: '{column}'{', unit: ' + unit if unit else ''}}}}}",
                   gone={"t": 2}, kept={"null_time": 1, "unreadable_time": 0})
        self.left("t", 3, 4)

    def test_seconds(self):
        self.due("expires_at", 1, "s")

    def test_seconds_by_suffix(self):
        self.due("expires_at_s", 1)

    def test_seconds_in_32_bits(self):
        self.due("expires_at_s", 1, ddl="integer")

    def test_milliseconds(self):
        self.due("expires_at", 1000, "ms")

    def test_milliseconds_by_suffix(self):
        self.due("expires_at_ms", 1000)

    def test_microseconds(self):
        self.due("expires_at", 1_000_000, "us")

    def test_microseconds_by_suffix(self):
        self.due("expires_at_us", 1_000_000)

    def test_the_suffix_in_capitals(self):
        self.due('"EXPIRES_AT_MS"', 1000)

    def test_a_cutoff_between_two_seconds(self):
        self.given("create table t (id integer primary key, at_s bigint)")
        self.insert("t", (1, S - 1), (2, S), (3, S + 1))
        self.swept("policies: {t: {table: t, expires: at_s}}", gone={"t": 2}, now="2024-06-15T12:00:00.999Z")
        self.left("t", 3)

    def test_an_age_between_two_seconds(self):
        self.given("create table t (id integer primary key, at_s bigint)")
        self.insert("t", (1, S - 1), (2, S), (3, S + 1))
        # cutoff 12:00:00.5: 12:00:00 lies strictly before it
        self.swept("policies: {t: {table: t, age: at_s, keep: 1500ms}}", gone={"t": 2}, now="2024-06-15T12:00:02Z")
        self.left("t", 3)

    def test_no_unit_is_an_error(self):
        self.given("create table t (id integer primary key, expires_at bigint)")
        self.insert("t", (1, 0))
        with self.untouched():
            r = self.sweep("policies: {t: {table: t, expires: expires_at}}", code=3)
        p = r.policy("t")
        self.assertEqual(p["outcome"], "refused")
        self.assertIn("unit", p["error"])


@every_engine
class Texts(Case):
    """Text on every engine, forms mixed in one column."""

    def texts(self, due, kept, unreadable=(), now=NOW, more=""):
        self.given("create table t (id integer primary key, expires_at text)")
        rows = list(enumerate([*due, *kept, *unreadable], 1))
        self.insert("t", *rows)
        self.swept(f"policies: {{t: {{table: t, expires: expires_at{more}}}}}", gone={"t": len(due)} if due else {},
                   kept={"unreadable_time": len(unreadable)}, now=now)
        self.left("t", *[text for _, text in rows[len(due):]], column="expires_at")

    def test_iso_utc(self):
        self.texts(due=["2024-06-15T11:59:59Z", "2024-06-15T12:00:00Z", "1999-01-01T00:00:00Z"],
                   kept=["2024-06-15T12:00:01Z", "2025-01-01T00:00:00Z"])

    def test_with_a_blank(self):
        self.texts(due=["2024-06-15 11:59:59", "2024-06-15 12:00:00"], kept=["2024-06-15 12:00:01"])

    def test_fractions(self):
        self.texts(due=["2024-06-15T12:00:00.5Z", "2024-06-15 12:00:00.499999", "2024-06-15T12:00:00.500Z",
                        "2024-06-15T12:00:00.500000Z", "2024-06-15T12:00:00Z"],
                   kept=["2024-06-15T12:00:00.501Z", "2024-06-15 12:00:00.500001", "2024-06-15T12:00:00.6Z"],
                   now="2024-06-15T12:00:00.5Z")

    def test_offsets(self):
        self.texts(due=["2024-06-15T14:00:00+02:00", "2024-06-15T07:00:00-05:00", "2024-06-15 17:30:00+0530",
                        "2024-06-15T13:59:59.999+02"],
                   kept=["2024-06-15T14:00:01+02:00", "2024-06-15T07:00:01-05:00", "2024-06-15T11:00:00-05:00"])

    def test_an_offset_across_midnight(self):
        # the text sorts after the cutoff's, or before it, but the instant decides
        self.texts(due=["2024-06-16T01:00:00+14:00", "2024-06-15T23:59:00+12:00"],
                   kept=["2024-06-15T00:30:00-12:00", "2024-06-15T01:00:00-11:30"])

    def test_all_forms_in_one_column(self):
        self.texts(due=["2024-06-15T12:00:00Z", "2024-06-15 11:00:00", "2024-06-15 13:30:00.25+02:00",
                        "2024-06-14T23:00:00.123456Z"],
                   kept=["2024-06-15T12:00:00.1Z", "2024-06-15 12:30:00", "2024-06-15T07:30:00-05:00"])

    def test_blank_and_t_sort_differently(self):
        # ' ' < 'T' in every collation that compares bytes
        self.texts(due=["2024-06-15T11:59:00", "2024-06-15 12:00:00", "2024-06-15T12:00:00"],
                   kept=["2024-06-15 12:00:01", "2024-06-15T12:00:01"])

    def test_unreadable_is_kept_and_counted(self):
        self.texts(due=["2024-06-15T11:00:00Z"], kept=["2024-06-15T13:00:00Z"],
                   unreadable=["", "never", "0000-00-00 00:00:00", "2024-02-30T00:00:00Z", "2024-13-01T00:00:00Z",
                               "2024-06-15T25:00:00Z", "15.06.2023 10:00:00", "1700000000", "-infinity", "infinity",
                               "2024-06-15T11:00:00Zzz", " 2024-06-15T11:00:00Z", "2024-06-15T11:00:00+99:00",
                               "2023-02-29 00:00:00", "1e3", "12:00:00"])

    def test_years_at_the_ends(self):
        self.texts(due=["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z"], kept=["9999-12-31T23:59:59Z"])

    def test_small_letters_short_forms_and_far_offsets(self):
        self.texts(due=["2024-06-15t12:00:00z", "2024-06-15T12:00Z", "2024-06-15 12:00:00 +00:00", "2024-06-15 03:00:00-09",
                        "2024-06-16T03:59:00+15:59", "2024-06-14T20:01:00-15:59"],
                   kept=["2024-06-15t12:00:01z", "2024-06-16T04:00:00+15:59", "2024-06-14T20:02:00-15:59"])

    def test_with_age(self):
        self.given("create table t (id integer primary key, made text)")
        self.insert("t", (1, "2024-06-15T10:59:59.999Z"), (2, "2024-06-15T11:00:00Z"), (3, "2024-06-15 12:59:59+02:00"),
                    (4, "2024-06-15T13:00:00.000+02:00"), (5, None), (6, "yesterday"))
        self.swept("policies: {t: {table: t, age: made, keep: 1h}}", gone={"t": 2},
                   kept={"null_time": 1, "unreadable_time": 1})
        self.left("t", 2, 4, 5, 6)

    def test_the_zone_reads_text_without_an_offset(self):
        # Prague is two hours ahead in June
        self.texts(due=["2024-06-15 14:00:00", "2024-06-15T12:00:00Z"], kept=["2024-06-15 14:00:01"],
                   more=", zone: Europe/Prague")

    def test_varchar(self):
        self.given("create table t (id integer primary key, expires_at varchar(40))")
        self.insert("t", (1, "2024-06-15T12:00:00Z"), (2, "2024-06-15T12:00:01Z"))
        self.swept("policies: {t: {table: t, expires: expires_at}}", gone={"t": 1})
        self.left("t", 2)

    def test_oldest_and_newest_are_instants(self):
        self.given("create table t (id integer primary key, expires_at text)")
        self.insert("t", (1, "2024-06-15T05:00:00-05:00"), (2, "2024-06-15 09:00:00"), (3, "2024-06-15T12:30:00+04:00"))
        p = self.plan("policies: {t: {table: t, expires: expires_at}}").policy("t")
        self.assertEqual((p["oldest"][:19], p["newest"][:19]), ("2024-06-15T08:30:00", "2024-06-15T10:00:00"))


@every_engine
class Zones(Case):
    """Clock changes in Prague: back at 2023-10-29 03:00 CEST (01:00Z), forward at 2024-03-31 02:00 CET (01:00Z)."""

    def zoned(self, local, instant, zone="Europe/Prague"):
        """A local time is due exactly from the instant on."""
        types = ["text"] if self.on_sqlite else ["text", "timestamp"]
        for n, kind in enumerate(types):
            table = f"t{n}"
            self.given(f"create table {table} (id integer primary key, expires_at {kind})")
            self.insert(table, (1, local))
            contract = f"policies: {{t: {{table: {table}, expires: expires_at, zone: {zone}}}}}"
            before = iso(at(instant) - 1)
            with self.untouched():
                self.assertEqual(self.gone(self.sweep(contract, now=before)), {}, f"{kind} {local} at {before}")
            r = self.swept(contract, gone={table: 1}, now=instant)
            self.assertEqual(r.policy("t")["rows"], 1)

    def test_winter(self):
        self.zoned("2024-01-15 12:00:00", "2024-01-15T11:00:00Z")

    def test_summer(self):
        self.zoned("2024-06-15 12:00:00", "2024-06-15T10:00:00Z")

    def test_an_ambiguous_time_is_the_later_instant(self):
        self.zoned("2023-10-29 02:30:00", "2023-10-29T01:30:00Z")

    def test_the_edges_of_the_ambiguous_hour(self):
        self.zoned("2023-10-29 02:00:00", "2023-10-29T01:00:00Z")

    def test_before_the_ambiguous_hour(self):
        self.zoned("2023-10-29 01:59:59", "2023-10-28T23:59:59Z")

    def test_after_the_ambiguous_hour(self):
        self.zoned("2023-10-29 03:00:00", "2023-10-29T02:00:00Z")

    def test_a_skipped_time(self):
        self.zoned("2024-03-31 02:30:00", "2024-03-31T01:30:00Z")

    def test_after_the_skipped_hour(self):
        self.zoned("2024-03-31 03:00:00", "2024-03-31T01:00:00Z")

    def test_before_the_skipped_hour(self):
        self.zoned("2024-03-31 01:59:59", "2024-03-31T00:59:59Z")

    def test_a_zone_with_a_half_hour_change(self):
        # Lord Howe goes back half an hour at 2024-04-07 02:00 (+11 to +10:30)
        self.zoned("2024-04-07 01:45:00", "2024-04-06T15:15:00Z", "Australia/Lord_Howe")

    def test_without_a_zone_it_is_utc(self):
        self.given("create table t (id integer primary key, expires_at text)")
        self.insert("t", (1, "2024-06-15 12:00:00"), (2, "2024-06-15 12:00:01"))
        self.swept("policies: {t: {table: t, expires: expires_at}}", gone={"t": 1})

    def test_a_zone_does_not_move_an_instant(self):
        self.given("create table t (id integer primary key, expires_at_ms bigint)")
        self.insert("t", (1, MS), (2, MS + 1))
        self.swept("policies: {t: {table: t, expires: expires_at_ms, zone: Europe/Prague}}", gone={"t": 1})

    def test_both_sides_of_the_skipped_hour_in_one_sweep(self):
        # at 01:15Z the local 03:10 has passed and the skipped 02:20 reads as 01:20Z: not yet
        self.given("create table t (id integer primary key, expires_at text)")
        self.insert("t", (1, "2024-03-31 01:30:00"), (2, "2024-03-31 02:10:00"), (3, "2024-03-31 02:20:00"),
                    (4, "2024-03-31 03:10:00"), (5, "2024-03-31 03:20:00"))
        self.swept("policies: {t: {table: t, expires: expires_at, zone: Europe/Prague}}", gone={"t": 3},
                   now="2024-03-31T01:15:00Z")
        self.left("t", 3, 5)


class PostgresTypes(Case, PostgresTest):
    def typed(self, kind, due, kept, now=NOW, more="", unreadable=0):
        self.given(f"create table t (id integer primary key, expires_at {kind})")
        rows = list(enumerate([*due, *kept], 1))
        self.insert("t", *rows)
        self.swept(f"policies: {{t: {{table: t, expires: expires_at{more}}}}}", gone={"t": len(due)}, now=now,
                   kept={"unreadable_time": unreadable})
        self.left("t", *[n for n, _ in rows[len(due):]])

    def test_timestamptz(self):
        self.typed("timestamptz", due=["2024-06-15T12:00:00Z", "2024-06-15T14:00:00+02:00", "0044-03-15 BC"],
                   kept=["2024-06-15T12:00:00.000001Z", None])

    def test_timestamptz_infinite(self):
        self.typed("timestamptz", due=["2024-06-15T12:00:00Z"], kept=["infinity", "-infinity"], unreadable=2)

    def test_timestamp(self):
        self.typed("timestamp", due=["2024-06-15 12:00:00", "1970-01-01 00:00:00"],
                   kept=["2024-06-15 12:00:00.000001", None])

    def test_timestamp_infinite(self):
        self.typed("timestamp", due=["2024-06-15 12:00:00"], kept=["infinity", "-infinity"], unreadable=2)

    def test_timestamp_in_a_zone(self):
        self.typed("timestamp", due=["2024-06-15 14:00:00"], kept=["2024-06-15 14:00:00.000001"],
                   more=", zone: Europe/Prague")

    def test_timestamp_of_whole_seconds(self):
        self.typed("timestamp(0)", due=["2024-06-15 12:00:00"], kept=["2024-06-15 12:00:01"])

    def test_date(self):
        self.typed("date", due=["2024-06-15", "2024-06-14"], kept=["2024-06-16", None], now="2024-06-15T00:00:00Z")

    def test_date_a_moment_before_midnight(self):
        self.typed("date", due=["2024-06-14"], kept=["2024-06-15"], now="2024-06-14T23:59:59.999999Z")

    def test_date_infinite(self):
        self.typed("date", due=["2024-06-14"], kept=["infinity", "-infinity"], unreadable=2)

    def test_date_in_a_zone(self):
        # midnight in Prague in June is 22:00Z of the day before
        self.typed("date", due=["2024-06-15"], kept=["2024-06-16"], now="2024-06-14T22:00:00Z",
                   more=", zone: Europe/Prague")

    def test_date_with_age(self):
        self.given("create table t (id integer primary key, day date)")
        self.insert("t", (1, "2024-06-13"), (2, "2024-06-14"), (3, "2024-06-15"))
        self.swept("policies: {t: {table: t, age: day, keep: 1d}}", gone={"t": 1}, now="2024-06-15T00:00:00Z")
        self.left("t", 2, 3)

    def test_age_list_of_every_type(self):
        self.given("create table t (id integer primary key, a timestamptz, b timestamp, c date, d text, e_ms bigint)")
        old, new = "2024-06-10 00:00:00", "2024-06-15 11:30:00"
        oldz, newz = "2024-06-10T00:00:00Z", "2024-06-15T11:30:00Z"
        day, today = "2024-06-10", "2024-06-16"
        self.insert("t", (1, oldz, old, day, oldz, 0), (2, newz, old, day, oldz, 0), (3, oldz, new, day, oldz, 0),
                    (4, oldz, old, today, oldz, 0), (5, oldz, old, day, newz, 0), (6, oldz, old, day, oldz, MS),
                    (7, None, None, day, None, None), (8, None, None, None, None, None),
                    (9, "infinity", old, day, oldz, 0))
        self.swept("policies: {t: {table: t, age: [a, b, c, d, e_ms], keep: 1h}}", gone={"t": 2},
                   kept={"null_time": 1, "unreadable_time": 1})
        self.left("t", 2, 3, 4, 5, 6, 8, 9)

    def test_minus_infinity_in_an_age_list(self):
        # an unusable time is never a reason to delete
        self.given("create table t (id integer primary key, a timestamptz, b timestamptz)")
        self.insert("t", (1, "-infinity", "2024-01-01T00:00:00Z"), (2, "-infinity", None),
                    (3, "2024-01-01T00:00:00Z", None))
        self.swept("policies: {t: {table: t, age: [a, b], keep: 1h}}", gone={"t": 1})
        self.left("t", 1, 2)

    def test_keep_per_row_with_timestamptz(self):
        self.given("create table t (id integer primary key, made timestamptz, ttl integer)")
        self.insert("t", (1, "2024-06-15T11:59:49.999999Z", 10), (2, "2024-06-15T11:59:50Z", 10), (3, "infinity", 1),
                    (4, "-infinity", 1), (5, "2020-01-01Z", None))
        self.swept("policies: {t: {table: t, age: made, keep: {column: ttl, unit: s}}}", gone={"t": 1})
        self.left("t", 2, 3, 4, 5)

    def test_smallint_and_numeric_ttl(self):
        self.given("create table t (id integer primary key, made timestamptz, ttl smallint)")
        self.insert("t", (1, "2024-06-15T11:59:00Z", 59), (2, "2024-06-15T11:59:00Z", 61))
        self.swept("policies: {t: {table: t, age: made, keep: {column: ttl, unit: s}}}", gone={"t": 1})

    def test_the_sessions_own_settings_do_not_matter(self):
        self.given(f"""
            alter database "{self.db.name}" set timezone = 'America/St_Johns';
            alter database "{self.db.name}" set datestyle = 'German, DMY';
            alter database "{self.db.name}" set default_transaction_isolation = 'serializable';
            alter database "{self.db.name}" set standard_conforming_strings = off;
            alter database "{self.db.name}" set search_path = 'nowhere', public""")
        self.typed("timestamp", due=["2024-06-15 12:00:00"], kept=["2024-06-15 12:00:00.000001"])

    def test_text_in_a_collation_of_its_own(self):
        self.typed('text collate "en-x-icu"',
                   due=["2024-06-15T12:00:00Z", "2024-06-15t11:00:00z", "2024-06-16T01:00:00+14:00", "2024-06-15 11:00:00"],
                   kept=["2024-06-15 12:00:01", "2024-06-15T12:00:01Z"])

    def test_text_that_is_padded(self):
        self.typed("char(40)", due=["2024-06-15T12:00:00Z", "2024-06-15 11:00:00"], kept=["2024-06-15 12:00:01"])

    def test_a_domain_over_a_time(self):
        self.given("create domain moment as timestamptz")
        self.typed("moment", due=["2024-06-15T12:00:00Z"], kept=["2024-06-15T12:00:01Z"])


class SqliteTypes(Case, SqliteTest):
    def test_another_storage_class_is_kept(self):
        # SQLite columns hold anything: an integer in a text column is no timestamp
        self.given("create table t (id integer primary key, expires_at text, made_ms integer)")
        self.insert("t(id, made_ms)", (1, MS - 1), (2, "2020-01-01T00:00:00Z"), (3, "soon"), (4, b"\x01"), (5, MS + 1),
                    (6, float("inf")), (7, float("-inf")))
        self.swept("policies: {t: {table: t, expires: made_ms}}", gone={"t": 1})
        self.left("t", 2, 3, 4, 5, 6, 7)

    def test_declared_types(self):
        for kind in ("datetime", "timestamp", "date", "TEXT COLLATE NOCASE", ""):
            with self.subTest(kind):
                self.given(f"drop table if exists t; create table t (id integer primary key, expires_at {kind})")
                self.insert("t", (1, "2024-06-15T12:00:00Z"), (2, "2024-06-15 12:00:01"), (3, None))
                self.swept("policies: {t: {table: t, expires: expires_at}}", gone={"t": 1})
                self.left("t", 2, 3)

    def test_the_texts_that_sqlite_writes(self):
        self.given("create table t (id integer primary key, made text default current_timestamp)")
        self.db.execute("insert into t(id, made) values (1, datetime('now', '-2 hours'))")
        self.db.execute("insert into t(id, made) values (2, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-2 hours'))")
        self.db.execute("insert into t(id) values (3)")
        self.swept("policies: {t: {table: t, age: made, keep: 1h}}", gone={"t": 2}, now=None)
        self.left("t", 3)
