/* Tests of src/time/zone.c: real zones against known facts, every zone against the meaning of its functions, and
 * hostile files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "time/when.h"

#define H (3600 * US_PER_S)

static struct zone *open_zone(const char *name)
{
    struct zone *z = NULL;
    struct err e = ERR_INIT;
    if (zone_open(name, &z, &e) < 0)
        fail_msg("%s", e.text);
    return z;
}

static int64_t time_of(const char *text)
{
    instant at;
    if (!when_parse(text, strlen(text), NULL, &at))
        fail_msg("bad time in a test: %s", text);
    return at;
}

static uint64_t seed = 42;

static int64_t random_between(int64_t low, int64_t high)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((seed >> 11) % (uint64_t)(high - low + 1));
}

/* --- known facts ------------------------------------------------------------------------------- */

static void offsets_are_those_of_the_zone(void **state)
{
    (void)state;
    static const struct {
        const char *zone, *at;
        int32_t offset_s;
    } cases[] = {
        {"Europe/Prague", "2026-01-01 00:00", 3600},
        {"Europe/Prague", "2026-03-29 00:59:59", 3600},
        {"Europe/Prague", "2026-03-29 01:00", 7200},
        {"Europe/Prague", "2026-10-25 00:59:59.999999", 7200},
        {"Europe/Prague", "2026-10-25 01:00", 3600},
        {"Europe/Prague", "2500-07-01 00:00", 7200},
        {"Europe/Prague", "9999-07-01 00:00", 7200},
        {"Europe/Prague", "9999-12-31 23:00", 3600},
        {"Europe/Prague", "0001-01-01 00:00", 3464},
        {"America/New_York", "2026-07-01 00:00", -14400},
        {"America/New_York", "3026-01-01 00:00", -18000},
        {"Asia/Kathmandu", "1985-12-31 18:29:59", 19800},
        {"Asia/Kathmandu", "1985-12-31 18:30", 20700},
        {"Asia/Kathmandu", "9000-01-01 00:00", 20700},
        {"Australia/Lord_Howe", "2026-01-01 00:00", 39600},
        {"Australia/Lord_Howe", "2026-07-01 00:00", 37800},
        {"Australia/Lord_Howe", "7777-01-01 00:00", 39600},
        {"America/St_Johns", "2026-01-01 00:00", -12600},
        {"America/St_Johns", "2026-07-01 00:00", -9000},
        {"America/St_Johns", "1988-07-01 00:00", -5400}, /* double summer time */
        {"Africa/Casablanca", "2025-01-01 00:00", 3600},
        {"Africa/Casablanca", "2025-03-01 00:00", 0}, /* Ramadan */
        {"Europe/Dublin", "2026-01-01 00:00", 0},     /* negative daylight saving time */
        {"Europe/Dublin", "2026-07-01 00:00", 3600},
        {"Europe/Dublin", "6000-07-01 00:00", 3600},
        {"Pacific/Apia", "2011-12-30 09:59:59", -36000},
        {"Pacific/Apia", "2011-12-30 10:00", 50400},
        {"Asia/Gaza", "2026-01-01 00:00", 7200},
        {"Etc/GMT+12", "2026-01-01 00:00", -43200},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(zone_free_p) struct zone *z = open_zone(cases[i].zone);
        int32_t got = zone_offset_at(z, time_of(cases[i].at));
        if (got != cases[i].offset_s)
            fail_msg("%s at %s: %d", cases[i].zone, cases[i].at, got);
    }
}

static void local_times_read_as_the_later_instant(void **state)
{
    (void)state;
    static const struct {
        const char *zone, *local, *later, *first;
    } cases[] = {
        /* plain */
        {"Europe/Prague", "2026-07-01 12:00", "2026-07-01T10:00:00Z", "2026-07-01T10:00:00Z"},
        /* skipped */
        {"Europe/Prague", "2026-03-29 01:59:59", "2026-03-29T00:59:59Z", "2026-03-29T00:59:59Z"},
        {"Europe/Prague", "2026-03-29 02:00", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"},
        {"Europe/Prague", "2026-03-29 02:30", "2026-03-29T01:30:00Z", "2026-03-29T01:00:00Z"},
        {"Europe/Prague", "2026-03-29 02:59:59.999999", "2026-03-29T01:59:59.999999Z",
         "2026-03-29T01:00:00Z"},
        {"Europe/Prague", "2026-03-29 03:00", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"},
        {"America/New_York", "2026-03-08 02:30", "2026-03-08T07:30:00Z", "2026-03-08T07:00:00Z"},
        {"Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-03T15:45:00Z", "2026-10-03T15:30:00Z"},
        {"America/St_Johns", "2026-03-08 02:30", "2026-03-08T06:00:00Z", "2026-03-08T05:30:00Z"},
        {"Europe/Dublin", "2026-03-29 01:30", "2026-03-29T01:30:00Z", "2026-03-29T01:00:00Z"},
        {"Africa/Casablanca", "2025-04-06 02:30", "2025-04-06T02:30:00Z", "2025-04-06T02:00:00Z"},
        {"Asia/Kathmandu", "1986-01-01 00:10", "1985-12-31T18:40:00Z", "1985-12-31T18:30:00Z"},
        {"Pacific/Apia", "2011-12-30 12:00", "2011-12-30T22:00:00Z", "2011-12-30T10:00:00Z"},
        /* repeated */
        {"Europe/Prague", "2026-10-25 01:59:59", "2026-10-24T23:59:59Z", "2026-10-24T23:59:59Z"},
        {"Europe/Prague", "2026-10-25 02:00", "2026-10-25T01:00:00Z", "2026-10-25T00:00:00Z"},
        {"Europe/Prague", "2026-10-25 02:59:59", "2026-10-25T01:59:59Z", "2026-10-25T00:59:59Z"},
        {"Europe/Prague", "2026-10-25 03:00", "2026-10-25T02:00:00Z", "2026-10-25T02:00:00Z"},
        {"America/New_York", "2026-11-01 01:30", "2026-11-01T06:30:00Z", "2026-11-01T05:30:00Z"},
        {"Australia/Lord_Howe", "2026-04-05 01:45", "2026-04-04T15:15:00Z", "2026-04-04T14:45:00Z"},
        {"America/St_Johns", "2026-11-01 01:30", "2026-11-01T05:00:00Z", "2026-11-01T04:00:00Z"},
        {"Europe/Dublin", "2026-10-25 01:30", "2026-10-25T01:30:00Z", "2026-10-25T00:30:00Z"},
        {"Africa/Casablanca", "2025-02-23 02:30", "2025-02-23T02:30:00Z", "2025-02-23T01:30:00Z"},
        /* by the rule, far away: the calendar of 2026 returns in 2426 and in 9626 */
        {"Europe/Prague", "2426-03-29 02:30", "2426-03-29T01:30:00Z", "2426-03-29T01:00:00Z"},
        {"Europe/Prague", "9626-10-25 02:30", "9626-10-25T01:30:00Z", "9626-10-25T00:30:00Z"},
        {"America/New_York", "9626-11-01 01:30", "9626-11-01T06:30:00Z", "9626-11-01T05:30:00Z"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(zone_free_p) struct zone *z = open_zone(cases[i].zone);
        char later[WHEN_TEXT_SIZE], first[WHEN_TEXT_SIZE];
        when_format(zone_instant(z, time_of(cases[i].local)), later);
        when_format(zone_first_instant(z, time_of(cases[i].local)), first);
        if (strcmp(later, cases[i].later) != 0 || strcmp(first, cases[i].first) != 0)
            fail_msg("%s %s: %s, %s", cases[i].zone, cases[i].local, later, first);
    }
}

static void bounds_have_their_simplest_form(void **state)
{
    (void)state;
    AUTO(zone_free_p) struct zone *z = open_zone("Europe/Prague");
    static const struct {
        const char *cutoff;
        bool or_equal;
        const char *below, *hole_from, *hole_to;
    } cases[] = {
        {"2026-07-01 10:00", false, "2026-07-01 12:00:00", NULL, NULL},
        {"2026-07-01 10:00", true, "2026-07-01 12:00:00.000001", NULL, NULL},
        {"2026-03-29 01:00", false, "2026-03-29 02:00:00", NULL, NULL},
        {"2026-03-29 01:20", false, "2026-03-29 03:20:00", "2026-03-29 02:20:00", "2026-03-29 03:00:00"},
        {"2026-03-29 01:59:59.999999", true, "2026-03-29 04:00:00", NULL, NULL},
        {"2026-10-25 00:30", false, "2026-10-25 02:00:00", NULL, NULL},
        {"2026-10-25 01:00", false, "2026-10-25 02:00:00", NULL, NULL},
        {"2026-10-25 01:30", false, "2026-10-25 02:30:00", NULL, NULL},
        {"2426-03-29 01:20", false, "2426-03-29 03:20:00", "2426-03-29 02:20:00", "2426-03-29 03:00:00"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct local_bound b = zone_bound(z, time_of(cases[i].cutoff), cases[i].or_equal);
        assert_true(b.below == time_of(cases[i].below));
        assert_int_equal(b.hole_from == b.hole_to, cases[i].hole_from == NULL);
        if (cases[i].hole_from)
            assert_true(b.hole_from == time_of(cases[i].hole_from) && b.hole_to == time_of(cases[i].hole_to));
    }
}

/* --- what holds for every zone, every cutoff and every local time ---------------------------------- */

static bool within(struct local_bound b, int64_t local)
{
    return local < b.below && !(b.hole_from <= local && local < b.hole_to);
}

static void check_bound(const struct zone *z, instant cutoff, int64_t local)
{
    instant at = zone_instant(z, local);
    bool before = within(zone_bound(z, cutoff, false), local);
    bool until = within(zone_bound(z, cutoff, true), local);
    bool infinite = at == INT64_MAX || local == INT64_MAX; /* the exception of the header */
    if (before != (at < cutoff && !infinite) || until != (at <= cutoff && !infinite))
        fail_msg("%s: cutoff %lld local %lld", zone_name(z), (long long)cutoff, (long long)local);
}

/* Around one instant: every pair of a cutoff and a local time that could be decided differently. */
static void check_bounds_around(const struct zone *z, int64_t at)
{
    static const int64_t steps[] = {0,     1,     -1,    H,      -H,     H / 2,  -H / 2,
                                    H - 1, 1 - H, H + 1, -H - 1, 24 * H, -24 * H};
    for (size_t i = 0; i < COUNT_OF(steps); i++)
        for (int j = 0; j < 6; j++) {
            instant cutoff = at + (j ? random_between(-2 * H, 2 * H) : 0) + steps[i];
            int64_t local = cutoff + zone_offset_at(z, cutoff) * US_PER_S;
            check_bound(z, cutoff, local);
            check_bound(z, cutoff, local + 1);
            check_bound(z, cutoff, local - 1);
            check_bound(z, cutoff, local + random_between(-2 * H, 2 * H));
            check_bound(z, cutoff, local + random_between(-26 * H, 26 * H));
            /* the very edges of the bound */
            struct local_bound b = zone_bound(z, cutoff, j & 1);
            check_bound(z, cutoff, b.below);
            check_bound(z, cutoff, b.below - 1);
            check_bound(z, cutoff, b.hole_from);
            check_bound(z, cutoff, b.hole_to);
        }
}

/* The first instant at which the wall clock shows at least this. */
static void check_first(const struct zone *z, int64_t local)
{
    instant first = zone_first_instant(z, local);
    assert_true(first + zone_offset_at(z, first) * US_PER_S >= local);
    for (int i = 0; i < 4; i++) {
        instant earlier = first - (i ? random_between(1, 30 * H) : 1);
        assert_true(earlier + zone_offset_at(z, earlier) * US_PER_S < local);
    }
    for (int i = 0; i < 4; i++) {
        int64_t at_s = when_floor_div(first, US_PER_S) + (i ? random_between(-3600, 3600) : 0);
        int64_t least = zone_first_local_s(z, at_s);
        assert_true(zone_first_instant(z, least * US_PER_S) >= at_s * US_PER_S);
        assert_true(zone_first_instant(z, (least - 1) * US_PER_S) < at_s * US_PER_S);
    }
}

/* The steps say of every local time what zone_instant says: around each, and far from any. */
static void check_steps(const struct zone *z, int64_t until_s)
{
    int64_t from, next = INT64_MIN;
    int32_t offset, ahead = 0;
    size_t n = 0;
    for (; zone_step(z, n, &from, &offset) && from < until_s; n++) {
        assert_true(n == 0 ? from == INT64_MIN : from > next);
        int64_t local = n ? from * US_PER_S : 0;
        if (n) {
            assert_int_equal(zone_instant(z, local), local - offset * US_PER_S);
            assert_int_equal(zone_instant(z, local - 1), local - 1 - ahead * US_PER_S);
        }
        next = from, ahead = offset;
    }
    assert_true(n >= 1);
}

static void test_steps(void **state)
{
    (void)state;
    static const char *const names[] = {"Europe/Prague", "America/St_Johns", "Australia/Lord_Howe",
                                        "Pacific/Apia",  "Etc/GMT-3",        "UTC"};
    struct err e = ERR_INIT;
    int64_t from;
    int32_t offset;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        AUTO(zone_free_p) struct zone *z = NULL;
        assert_int_equal(zone_open(names[i], &z, &e), 0);
        check_steps(z, INT64_C(4102444800));
    }
    assert_true(zone_step(NULL, 0, &from, &offset));
    assert_int_equal(offset, 0);
    assert_false(zone_step(NULL, 1, &from, &offset));
}

/* What zone_instant says reads back, unless the time is skipped; and no later instant shows the same. */
static void check_later(const struct zone *z, int64_t local)
{
    instant at = zone_instant(z, local);
    bool skipped = at + zone_offset_at(z, at) * US_PER_S != local;
    if (skipped) {
        instant change = zone_first_instant(z, local);
        assert_true(at == local - zone_offset_at(z, change - 1) * US_PER_S);
        return;
    }
    for (int64_t jump = H / 4; jump <= 24 * H; jump += H / 4)
        assert_true(at + jump + zone_offset_at(z, at + jump) * US_PER_S != local);
}

static void check_around(const struct zone *z, instant at)
{
    check_bounds_around(z, at);
    for (int i = 0; i < 8; i++) {
        instant near = at + (i ? random_between(-3 * H, 3 * H) : 0);
        check_later(z, near + zone_offset_at(z, near) * US_PER_S);
        check_first(z, near + zone_offset_at(z, near) * US_PER_S);
        near += random_between(-26 * H, 26 * H);
        check_later(z, near);
        check_first(z, near);
    }
}

/* Finds the changes between two instants by halving, and checks around each; steps over what lasted less than
 * the step. Returns how many it found. */
static int check_changes(const struct zone *z, instant from, instant to, int64_t step)
{
    int found = 0;
    for (instant p = from; p < to; p += step) {
        instant low = p, high = p + step;
        if (zone_offset_at(z, low) == zone_offset_at(z, high))
            continue;
        while (high - low > 1) {
            instant middle = low + (high - low) / 2;
            if (zone_offset_at(z, middle) == zone_offset_at(z, low))
                low = middle;
            else
                high = middle;
        }
        check_around(z, high);
        found++;
    }
    return found;
}

static void bounds_agree_with_instants_in_many_zones(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int least_changes;
    } zones[] = {
        {"UTC", 0},
        {"Europe/Prague", 150},
        {"America/New_York", 150},
        {"Asia/Kathmandu", 2},
        {"Australia/Lord_Howe", 100},
        {"America/St_Johns", 150},
        {"Africa/Casablanca", 50},
        {"Africa/El_Aaiun", 30},
        {"Europe/Dublin", 150},
        {"Pacific/Apia", 5},
        {"Pacific/Kwajalein", 2},
        {"Asia/Manila", 3},
        {"America/Juneau", 100},
        {"Antarctica/Troll", 100},
        {"Antarctica/Casey", 10},
        {"Asia/Gaza", 150},
        {"America/Nuuk", 50},
        {"Asia/Tehran", 50},
        {"Africa/Monrovia", 2},
        {"Pacific/Chatham", 100},
        {"America/Scoresbysund", 50},
        {"Asia/Pyongyang", 3},
        {"Africa/Cairo", 150},
        {"Europe/London", 200},
    };
    for (size_t i = 0; i < COUNT_OF(zones); i++) {
        AUTO(zone_free_p) struct zone *z = open_zone(zones[i].name);
        int found = check_changes(z, time_of("1840-01-01 00:00"), time_of("2100-01-01 00:00"), 10 * 24 * H);
        if (found < zones[i].least_changes)
            fail_msg("%s: only %d changes", zones[i].name, found);
        check_changes(z, time_of("2430-01-01 00:00"), time_of("2445-01-01 00:00"), 10 * 24 * H);
        check_changes(z, time_of("9985-01-01 00:00"), time_of("9998-01-01 00:00"), 10 * 24 * H);
        for (int k = 0; k < 20; k++)
            check_around(z, random_between(time_of("0001-01-05 00:00"), time_of("9999-12-25 00:00")));
    }
}

static void the_ends_of_time_do_not_overflow(void **state)
{
    (void)state;
    static const char *const names[] = {"UTC", "Europe/Prague", "America/New_York", "Etc/GMT-14",
                                        "Etc/GMT+12"};
    static const int64_t extremes[] = {INT64_MIN,
                                       INT64_MIN + 1,
                                       INT64_MIN + 4 * H,
                                       INT64_MIN + 14 * H,
                                       INT64_MIN + 14 * H + 1,
                                       -1,
                                       0,
                                       1,
                                       INT64_MAX - 14 * H,
                                       INT64_MAX - 2 * H,
                                       INT64_MAX - 2 * H - 1,
                                       INT64_MAX - 1,
                                       INT64_MAX};
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        AUTO(zone_free_p) struct zone *z = open_zone(names[n]);
        for (size_t i = 0; i < COUNT_OF(extremes); i++) {
            zone_offset_at(z, extremes[i]);
            zone_first_instant(z, extremes[i]);
            for (size_t j = 0; j < COUNT_OF(extremes); j++)
                check_bound(z, extremes[i], extremes[j]);
        }
    }
}

static void no_zone_is_utc(void **state)
{
    (void)state;
    assert_true(zone_is_utc(NULL));
    assert_string_equal(zone_name(NULL), "UTC");
    assert_int_equal(zone_offset_at(NULL, 5), 0);
    assert_int_equal(zone_instant(NULL, 5), 5);
    check_around(NULL, 0);
    static const char *const utc[] = {"UTC", "Etc/UTC", "Zulu", "Etc/GMT"};
    for (size_t i = 0; i < COUNT_OF(utc); i++) {
        AUTO(zone_free_p) struct zone *z = open_zone(utc[i]);
        assert_true(zone_is_utc(z));
        assert_string_equal(zone_name(z), utc[i]);
    }
    AUTO(zone_free_p) struct zone *london = open_zone("Europe/London");
    assert_false(zone_is_utc(london));
    AUTO(zone_free_p) struct zone *fixed = open_zone("Etc/GMT+12");
    assert_false(zone_is_utc(fixed));
    zone_free(NULL);
}

static void bad_names_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *why;
    } cases[] = {
        {"", "is no time zone name"},
        {"/etc/passwd", "is no time zone name"},
        {"../../../etc/passwd", "is no time zone name"},
        {"Europe/../Europe/Prague", "is no time zone name"},
        {"./UTC", "is no time zone name"},
        {"Europe/Prague\n", "is no time zone name"},
        {"Europe Prague", "is no time zone name"},
        {"Europe/Praha", "no time zone 'Europe/Praha'"},
        {"Europe/Prague/", "no time zone"},
        {"Europe/Prague/x", "no time zone"},
        {"Mars", "write an IANA name like Europe/Prague or UTC"},
        {"Europe", "'Europe' is no time zone"},
        {"leapseconds", "does not start as a TZif file does"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct zone *z = NULL;
        struct err e = ERR_INIT;
        assert_int_equal(zone_open(cases[i].name, &z, &e), -1);
        assert_null(z);
        if (!strstr(e.text, cases[i].why))
            fail_msg("'%s' gave: %s", cases[i].name, e.text);
    }
}

/* --- files made by hand -------------------------------------------------------------------------- */

static void put_u32(struct text *t, uint32_t v)
{
    char bytes[4] = {(char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v};
    text_add_n(t, bytes, 4);
}

static void put_u64(struct text *t, uint64_t v)
{
    put_u32(t, (uint32_t)(v >> 32));
    put_u32(t, (uint32_t)v);
}

struct made {
    char version;
    uint32_t leaps, types;
    int32_t offsets[3];
    uint32_t times;
    int64_t at[4];
    unsigned char index[4];
    const char *footer; /* NULL: none at all */
};

static void put_header(struct text *t, const struct made *m, bool empty)
{
    char version_and_reserve[16] = {m->version};
    text_add(t, "TZif");
    text_add_n(t, version_and_reserve, 16);
    put_u32(t, 0);
    put_u32(t, 0);
    put_u32(t, empty ? 0 : m->leaps);
    put_u32(t, empty ? 0 : m->times);
    put_u32(t, empty ? 1 : m->types);
    put_u32(t, empty ? 1 : 4);
}

static void put_block(struct text *t, const struct made *m, bool wide)
{
    for (uint32_t i = 0; i < m->times; i++) {
        if (wide)
            put_u64(t, (uint64_t)m->at[i]);
        else
            put_u32(t, (uint32_t)m->at[i]);
    }
    text_add_n(t, (const char *)m->index, m->times);
    for (uint32_t i = 0; i < m->types; i++) {
        put_u32(t, (uint32_t)m->offsets[i]);
        text_add_n(t, "\0\0", 2);
    }
    text_add_n(t, "ABC\0", 4);
    for (uint32_t i = 0; i < m->leaps; i++) {
        put_u64(t, 0);
        put_u32(t, 1);
    }
}

static void make_file(const struct made *m, struct text *t)
{
    if (m->version) {
        put_header(t, m, true);
        text_add_n(t, "\0\0\0\0\0\0\0", 7); /* one type, one character */
    }
    put_header(t, m, false);
    put_block(t, m, m->version != 0);
    if (m->footer)
        text_addf(t, "\n%s\n", m->footer);
}

static int read_made(const struct made *m, struct zone **z, struct err *e)
{
    AUTO(text_release) struct text t = {0};
    make_file(m, &t);
    return zone_from_bytes("Made", t.data, t.len, z, e);
}

static void made_files_are_read(void **state)
{
    (void)state;
    static const struct {
        struct made file;
        const char *at;
        int32_t offset_s;
    } cases[] = {
        {{.types = 1, .offsets = {3600}}, "2026-01-01 00:00", 3600},
        {{.types = 2, .offsets = {0, 7200}, .times = 1, .at = {86400}, .index = {1}},
         "1970-01-01 23:59:59",
         0},
        {{.types = 2, .offsets = {0, 7200}, .times = 1, .at = {86400}, .index = {1}},
         "1970-01-02 00:00",
         7200},
        {{.types = 2, .offsets = {0, 7200}, .times = 1, .at = {-86400}, .index = {1}},
         "1969-12-31 00:00",
         7200},
        {{'2', .types = 1, .offsets = {3600}, .footer = ""}, "2026-01-01 00:00", 3600},
        /* without any change the rule holds for all years */
        {{'2', .types = 1, .offsets = {3600}, .footer = "CET-1CEST,M3.5.0,M10.5.0/3"},
         "0500-07-01 00:00",
         7200},
        {{'2', .types = 1, .offsets = {3600}, .footer = "CET-1CEST,M3.5.0,M10.5.0/3"},
         "2026-07-01 00:00",
         7200},
        {{'3', .types = 1, .offsets = {3600}, .footer = "<+01>-1<+02>,J60/0,J305/0"},
         "2024-02-29 22:59",
         3600},
        {{'3', .types = 1, .offsets = {3600}, .footer = "<+01>-1<+02>,J60/0,J305/0"},
         "2024-02-29 23:00",
         7200},
        {{'3', .types = 1, .offsets = {3600}, .footer = "<+01>-1<+02>,59/0,304/0"}, "2024-02-28 23:00", 7200},
        {{'3', .types = 1, .offsets = {-10800}, .footer = "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1"},
         "2026-03-29 00:59:59",
         -10800},
        {{'3', .types = 1, .offsets = {-10800}, .footer = "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1"},
         "2026-03-29 01:00",
         -7200},
        /* daylight saving time all year, both ways of writing it */
        {{'3', .types = 1, .offsets = {-14400}, .footer = "EST5EDT,0/0,J365/25"}, "2026-01-01 04:30", -14400},
        {{'3', .types = 1, .offsets = {-14400}, .footer = "EST5EDT,0/0,J365/25"}, "9999-12-31 04:30", -14400},
        {{'3', .types = 1, .offsets = {-14400}, .footer = "XXX3EDT4,0/0,J365/23"},
         "3026-12-31 23:59",
         -14400},
        /* a first change before all time */
        {{'4', .types = 2, .offsets = {0, -1800}, .times = 1, .at = {INT64_MIN}, .index = {1}, .footer = ""},
         "0001-01-01 00:00",
         -1800},
        {{'4', .types = 2, .offsets = {0, 1800}, .times = 1, .at = {INT64_MAX}, .index = {1}, .footer = ""},
         "9999-01-01 00:00",
         0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(zone_free_p) struct zone *z = NULL;
        struct err e = ERR_INIT;
        if (read_made(&cases[i].file, &z, &e) < 0)
            fail_msg("%zu: %s", i, e.text);
        int32_t got = zone_offset_at(z, time_of(cases[i].at));
        if (got != cases[i].offset_s)
            fail_msg("%zu: %s: %d", i, cases[i].at, got);
        check_changes(z, time_of("1960-01-01 00:00"), time_of("2030-01-01 00:00"), 24 * H);
        check_around(z, 0);
    }
}

static void bad_files_say_why(void **state)
{
    (void)state;
    static const struct {
        struct made file;
        const char *why;
    } cases[] = {
        {{.types = 0}, "no valid first offset"},
        {{.types = 1, .offsets = {100000}}, "no valid first offset"},
        {{.types = 1, .offsets = {INT32_MIN}}, "no valid first offset"},
        {{.types = 1, .times = 1, .at = {5}, .index = {1}}, "an offset is missing"},
        {{.types = 2, .offsets = {0, -100000}, .times = 1, .at = {5}, .index = {1}}, "beyond 26 hours"},
        {{.types = 2, .offsets = {0, 3600}, .times = 2, .at = {5, 5}, .index = {1, 0}}, "not in order"},
        {{.types = 2, .offsets = {0, 3600}, .times = 2, .at = {9000000, 5}, .index = {1, 0}}, "not in order"},
        {{.types = 2, .offsets = {0, 3600}, .times = 2, .at = {5, 7205}, .index = {1, 0}},
         "too close together"},
        {{'2', .types = 1, .leaps = 1, .footer = ""}, "leap seconds"},
        {{'2', .types = 1}, "footer"},
        {{'2', .types = 1, .footer = "garbage"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CE-1"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-25"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "<CET-1"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-1CEST"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-1CEST,M3.5.0"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-1CEST,M13.5.0,M10.5.0"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-1CEST,M3.6.0,M10.5.0"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-1CEST,M3.5.7,M10.5.0"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-1CEST,J0,M10.5.0"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-1CEST,366,M10.5.0"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-1CEST,M3.5.0/168,M10.5.0"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-1CEST,M3.5.0,M10.5.0 "}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-99999999999999999999"}, "rule in its footer"},
        {{'2', .types = 1, .footer = "CET-1CEST,M3.5.0/0,M3.5.0/2"}, "too close together"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct zone *z = NULL;
        struct err e = ERR_INIT;
        if (read_made(&cases[i].file, &z, &e) != -1 || z)
            fail_msg("%zu was accepted", i);
        if (!strstr(e.text, cases[i].why) || !strstr(e.text, "'Made'"))
            fail_msg("%zu gave: %s", i, e.text);
    }
}

static void load(const char *path, struct text *t)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char part[4096];
    size_t got;
    while ((got = fread(part, 1, sizeof(part), f)) > 0)
        text_add_n(t, part, got);
    fclose(f);
}

static void every_cut_of_a_file_is_refused(void **state)
{
    (void)state;
    AUTO(text_release) struct text t = {0};
    load("/usr/share/zoneinfo/Europe/Prague", &t);
    for (size_t len = 0; len <= t.len; len++) {
        AUTO(mem_free_p) char *exact = mem_alloc(len);
        memcpy(exact, t.data, len);
        AUTO(zone_free_p) struct zone *z = NULL;
        struct err e = ERR_INIT;
        int result = zone_from_bytes("Cut", exact, len, &z, &e);
        assert_int_equal(result, len == t.len ? 0 : -1);
    }
}

/* Whatever is accepted, however wrong, must still keep the promises between the functions. */
static void damaged_files_do_no_harm(void **state)
{
    (void)state;
    static const char *const names[] = {"Europe/Prague", "Australia/Lord_Howe", "Asia/Kathmandu"};
    int accepted = 0;
    for (int i = 0; i < 6000; i++) {
        AUTO(text_release) struct text t = {0};
        AUTO(text_release) struct text path = {0};
        text_addf(&path, "/usr/share/zoneinfo/%s", names[(size_t)i % COUNT_OF(names)]);
        load(text_str(&path), &t);
        for (int64_t k = random_between(1, 4); k > 0; k--)
            t.data[random_between(i % 2 ? 0 : (int64_t)t.len / 2, (int64_t)t.len - 1)] =
                (char)random_between(-128, 127);
        AUTO(zone_free_p) struct zone *z = NULL;
        if (zone_from_bytes("Damaged", t.data, t.len, &z, NULL) < 0)
            continue;
        accepted++;
        check_bounds_around(z, random_between(time_of("1900-01-01 00:00"), time_of("2500-01-01 00:00")));
        if (i % 16 == 0)
            check_changes(z, time_of("1900-01-01 00:00"), time_of("2050-01-01 00:00"), 10 * 24 * H);
    }
    assert_true(accepted > 500);
}

static void second_passes_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *zone, *at, *from, *to; /* from NULL: none */
    } cases[] = {
        {"Europe/Prague", "2026-01-01 00:00", "2026-10-25 01:00", "2026-10-25 02:00"},
        {"Europe/Prague", "2026-10-25 01:00", "2026-10-25 01:00", "2026-10-25 02:00"},
        {"Europe/Prague", "2026-10-25 01:59:59", "2026-10-25 01:00", "2026-10-25 02:00"},
        {"Europe/Prague", "2026-10-25 02:00", "2027-10-31 01:00", "2027-10-31 02:00"},
        {"Australia/Lord_Howe", "2026-01-01 00:00", "2026-04-04 15:00", "2026-04-04 15:30"},
        {"Europe/Prague", "9626-10-25 01:30", "9626-10-25 01:00", "9626-10-25 02:00"},
        {"UTC", "2026-01-01 00:00", NULL, NULL},
        {"Asia/Kathmandu", "2026-01-01 00:00", NULL, NULL},
        {"Asia/Tehran", "2022-09-21 20:00", "2022-09-21 19:30", "2022-09-21 20:30"},
        {"Asia/Tehran", "2022-09-21 20:30", NULL, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(zone_free_p) struct zone *z = open_zone(cases[i].zone);
        int64_t from = 0, to = 0;
        bool found = zone_second_pass(z, time_of(cases[i].at) / US_PER_S, &from, &to);
        assert_int_equal(found, cases[i].from != NULL);
        if (found)
            assert_true(from == time_of(cases[i].from) / US_PER_S && to == time_of(cases[i].to) / US_PER_S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_are_those_of_the_zone),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(local_times_read_as_the_later_instant),
        cmocka_unit_test(bounds_have_their_simplest_form),
        cmocka_unit_test(bounds_agree_with_instants_in_many_zones),
        cmocka_unit_test(second_passes_are_found),
        cmocka_unit_test(the_ends_of_time_do_not_overflow),
        cmocka_unit_test(no_zone_is_utc),
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(made_files_are_read),
        cmocka_unit_test(bad_files_say_why),
        cmocka_unit_test(every_cut_of_a_file_is_refused),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
