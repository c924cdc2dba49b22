/* Tests of src/time/cron.c: every form of every field, clock changes, and expressions that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "time/when.h"

static struct cron *parse(const char *text)
{
    struct cron *c = NULL;
    struct err e = ERR_INIT;
    if (cron_parse(text, &c, &e) < 0)
        fail_msg("%s", e.text);
    return c;
}

static instant time_of(const char *text)
{
    instant at;
    if (!when_parse(text, strlen(text), NULL, &at))
        fail_msg("bad time in a test: %s", text);
    return at;
}

/* Fires after `after` exactly at these times, in this order. */
static void check_fires(const char *expression, const char *zone, const char *after,
                        const char *const expected[], size_t count)
{
    AUTO(cron_free_p) struct cron *c = parse(expression);
    AUTO(zone_free_p) struct zone *z = NULL;
    assert_int_equal(zone_open(zone, &z, NULL), 0);
    instant at = time_of(after);
    for (size_t i = 0; i < count && expected[i]; i++) {
        assert_true(cron_next(c, z, at, &at));
        char buf[WHEN_TEXT_SIZE];
        if (at != time_of(expected[i]))
            fail_msg("'%s' %s after %s, number %zu: %s", expression, zone, after, i + 1,
                     when_format(at, buf));
    }
}

static void every_form_fires_when_it_should(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *after;
        const char *fires[4];
    } cases[] = {
        /* 2026-01-01 is a Thursday */
        {"* * * * *", "2026-01-01 00:00", {"2026-01-01 00:01", "2026-01-01 00:02"}},
        {"* * * * *", "2026-01-01 00:00:59.999999", {"2026-01-01 00:01"}},
        {"* * * * *", "2026-12-31 23:59", {"2027-01-01 00:00"}},
        {"* * * * * *", "2026-01-01 00:00:58", {"2026-01-01 00:00:59", "2026-01-01 00:01"}},
        {"*/20 * * * * *", "2026-01-01 00:00:30", {"2026-01-01 00:00:40", "2026-01-01 00:01"}},
        {"30 15 3 * * *", "2026-01-01 00:00", {"2026-01-01 03:15:30", "2026-01-02 03:15:30"}},
        {"0 3 * * *", "2026-01-01 03:00", {"2026-01-02 03:00"}},
        {"0 3 * * *", "2026-01-01 02:59:59.999999", {"2026-01-01 03:00"}},
        {"5,10,20 * * * *", "2026-01-01 00:06", {"2026-01-01 00:10", "2026-01-01 00:20", "2026-01-01 01:05"}},
        {"10-12 * * * *", "2026-01-01 00:00", {"2026-01-01 00:10", "2026-01-01 00:11", "2026-01-01 00:12"}},
        {"*/25 * * * *", "2026-01-01 00:26", {"2026-01-01 00:50", "2026-01-01 01:00"}},
        {"10-40/15 * * * *",
         "2026-01-01 00:00",
         {"2026-01-01 00:10", "2026-01-01 00:25", "2026-01-01 00:40"}},
        {"50/4 * * * *", "2026-01-01 00:51", {"2026-01-01 00:54", "2026-01-01 00:58", "2026-01-01 01:50"}},
        {"0-1,58-59 23 * * *",
         "2026-01-01 23:01",
         {"2026-01-01 23:58", "2026-01-01 23:59", "2026-01-02 23:00"}},
        {"*/60 * * * *", "2026-01-01 00:01", {"2026-01-01 01:00"}},
        {"0 */24 * * *", "2026-01-01 00:01", {"2026-01-02 00:00"}},
        {"0 0 31 * *", "2026-01-31 00:00", {"2026-03-31 00:00", "2026-05-31 00:00"}},
        {"0 0 29 2 *", "2026-01-01 00:00", {"2028-02-29 00:00", "2032-02-29 00:00"}},
        {"0 0 29 2 *", "2096-03-01 00:00", {"2104-02-29 00:00"}},
        {"0 0 L * *", "2026-01-01 00:00", {"2026-01-31 00:00", "2026-02-28 00:00", "2026-03-31 00:00"}},
        {"0 0 l 2 ?", "2027-03-01 00:00", {"2028-02-29 00:00", "2029-02-28 00:00"}},
        {"0 0 15,L * *", "2026-02-01 00:00", {"2026-02-15 00:00", "2026-02-28 00:00"}},
        {"0 0 1 JAN,jul *", "2026-01-01 00:00", {"2026-07-01 00:00", "2027-01-01 00:00"}},
        {"0 0 1 mar-may *", "2026-01-01 00:00", {"2026-03-01 00:00", "2026-04-01 00:00", "2026-05-01 00:00"}},
        {"0 0 1 */6 *", "2026-01-01 00:00", {"2026-07-01 00:00", "2027-01-01 00:00"}},
        {"0 0 * * 0", "2026-01-01 00:00", {"2026-01-04 00:00", "2026-01-11 00:00"}},
        {"0 0 * * 7", "2026-01-01 00:00", {"2026-01-04 00:00", "2026-01-11 00:00"}},
        {"0 0 * * SUN", "2026-01-01 00:00", {"2026-01-04 00:00"}},
        {"0 0 ? * Mon-Fri", "2026-01-02 00:00", {"2026-01-05 00:00", "2026-01-06 00:00"}},
        {"0 0 * * 5-7", "2026-01-01 00:00", {"2026-01-02 00:00", "2026-01-03 00:00", "2026-01-04 00:00"}},
        {"0 0 * * FRI-SUN", "2026-01-03 00:00", {"2026-01-04 00:00", "2026-01-09 00:00"}},
        {"0 0 * * */2", "2026-01-01 00:00", {"2026-01-03 00:00", "2026-01-04 00:00", "2026-01-06 00:00"}},
        {"0 0 * * 1/3", "2026-01-01 00:00", {"2026-01-05 00:00", "2026-01-08 00:00", "2026-01-12 00:00"}},
        {"0 0 * * MON#1", "2026-01-01 00:00", {"2026-01-05 00:00", "2026-02-02 00:00", "2026-03-02 00:00"}},
        {"0 0 ? * 7#2", "2026-01-01 00:00", {"2026-01-11 00:00", "2026-02-08 00:00"}},
        {"0 0 * * THU#5", "2026-01-01 00:00", {"2026-01-29 00:00", "2026-04-30 00:00"}},
        {"0 0 * 2 SUN#5", "2026-01-01 00:00", {"2032-02-29 00:00", "2060-02-29 00:00"}},
        {"0 0 * * 5L", "2026-01-01 00:00", {"2026-01-30 00:00", "2026-02-27 00:00"}},
        {"0 0 * * 5L", "2026-07-01 00:00", {"2026-07-31 00:00", "2026-08-28 00:00"}},
        {"0 0 * * friL,MON#1",
         "2026-01-01 00:00",
         {"2026-01-05 00:00", "2026-01-30 00:00", "2026-02-02 00:00"}},
        /* both day fields: either; begun with a star: both */
        {"0 0 13 * FRI", "2026-01-01 00:00", {"2026-01-02 00:00", "2026-01-09 00:00", "2026-01-13 00:00"}},
        {"0 0 30 2 MON", "2026-01-01 00:00", {"2026-02-02 00:00", "2026-02-09 00:00"}},
        {"0 0 */2 * MON", "2026-01-01 00:00", {"2026-01-05 00:00", "2026-01-19 00:00", "2026-02-09 00:00"}},
        {"0 0 13 * */5", "2026-01-01 00:00", {"2026-02-13 00:00", "2026-03-13 00:00", "2026-09-13 00:00"}},
        {"0 0 13 * ?", "2026-01-01 00:00", {"2026-01-13 00:00", "2026-02-13 00:00"}},
        {"@yearly", "2026-01-01 00:00", {"2027-01-01 00:00"}},
        {"@annually", "2026-01-01 00:00", {"2027-01-01 00:00"}},
        {"@Monthly", "2026-01-01 00:00", {"2026-02-01 00:00"}},
        {"@weekly", "2026-01-01 00:00", {"2026-01-04 00:00"}},
        {"@daily", "2026-01-01 00:00", {"2026-01-02 00:00"}},
        {"@midnight", "2026-01-01 00:00", {"2026-01-02 00:00"}},
        {" cron  @hourly ", "2026-01-01 00:00", {"2026-01-01 01:00"}},
        {"CRON 0 3 * * *", "2026-01-01 00:00", {"2026-01-01 03:00"}},
        {"Cron\t0  3\t* * * ", "2026-01-01 00:00", {"2026-01-01 03:00"}},
        {"0 0 1 1 *", "1900-06-01 00:00", {"1901-01-01 00:00"}},
        {"0 0 1 1 *", "0001-01-01 00:00", {"0002-01-01 00:00"}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_fires(cases[i].expression, "UTC", cases[i].after, cases[i].fires, COUNT_OF(cases[i].fires));
}

static void clock_changes_neither_lose_nor_repeat(void **state)
{
    (void)state;
    static const struct {
        const char *zone, *expression, *after;
        const char *fires[4];
    } cases[] = {
        /* skipped: at the change, once */
        {"Europe/Prague", "30 2 * * *", "2026-03-28 12:00", {"2026-03-29 01:00", "2026-03-30 00:30"}},
        {"Europe/Prague", "0,30 2,3 * * *", "2026-03-29 00:00", {"2026-03-29 01:00", "2026-03-29 01:30"}},
        {"Europe/Prague", "*/15 * * * *", "2026-03-29 00:45", {"2026-03-29 01:00", "2026-03-29 01:15"}},
        {"Europe/Prague", "0 3 * * *", "2026-03-28 12:00", {"2026-03-29 01:00", "2026-03-30 01:00"}},
        {"America/New_York", "15 2 * * *", "2026-03-08 05:00", {"2026-03-08 07:00", "2026-03-09 06:15"}},
        {"Australia/Lord_Howe", "15 2 * * *", "2026-10-03 12:00", {"2026-10-03 15:30", "2026-10-04 15:15"}},
        {"America/St_Johns", "1 2 * * *", "2026-03-08 00:00", {"2026-03-08 05:30", "2026-03-09 04:31"}},
        {"Europe/Dublin", "30 1 * * *", "2026-03-28 12:00", {"2026-03-29 01:00", "2026-03-30 00:30"}},
        {"Africa/Casablanca", "30 2 * * *", "2025-04-05 12:00", {"2025-04-06 02:00", "2025-04-07 01:30"}},
        {"Asia/Kathmandu", "5 0 1 1 *", "1985-12-31 00:00", {"1985-12-31 18:30", "1986-12-31 18:20"}},
        /* a day that was left out: what was due on it runs at the change, with what is due then */
        {"Pacific/Apia", "0 12 * * *", "2011-12-29 23:00", {"2011-12-30 10:00", "2011-12-30 22:00"}},
        {"Pacific/Apia", "0 12 30 * *", "2011-12-29 23:00", {"2011-12-30 10:00", "2012-01-29 22:00"}},
        /* repeated: the first time only */
        {"Europe/Prague", "30 2 * * *", "2026-10-24 12:00", {"2026-10-25 00:30", "2026-10-26 01:30"}},
        {"Europe/Prague", "30 2 * * *", "2026-10-25 00:45", {"2026-10-26 01:30"}},
        {"Europe/Prague", "*/30 2 * * *", "2026-10-25 00:00", {"2026-10-25 00:30", "2026-10-26 01:00"}},
        {"Europe/Prague", "0 3 * * *", "2026-10-24 12:00", {"2026-10-25 02:00"}},
        {"Europe/Prague", "*/30 0-22 * * *", "2026-10-25 01:00", {"2026-10-25 02:00"}},
        {"Europe/Prague", "* 1-3 * * *", "2026-10-25 01:10", {"2026-10-25 02:00", "2026-10-25 02:01"}},
        {"America/New_York", "30 1 * * *", "2026-11-01 04:00", {"2026-11-01 05:30", "2026-11-02 06:30"}},
        {"Australia/Lord_Howe", "45 1 * * *", "2026-04-04 12:00", {"2026-04-04 14:45", "2026-04-05 15:15"}},
        {"America/St_Johns", "1 1 * * *", "2026-11-01 00:00", {"2026-11-01 03:31", "2026-11-02 04:31"}},
        {"Europe/Dublin", "30 1 * * *", "2026-10-24 12:00", {"2026-10-25 00:30", "2026-10-26 01:30"}},
        {"Africa/Casablanca", "30 2 * * *", "2025-02-22 12:00", {"2025-02-23 01:30", "2025-02-24 02:30"}},
        /* repeated, but an interval: both times */
        {"Europe/Prague",
         "*/30 * * * *",
         "2026-10-25 00:30",
         {"2026-10-25 01:00", "2026-10-25 01:30", "2026-10-25 02:00"}},
        {"Europe/Prague", "* * * * *", "2026-10-25 01:10", {"2026-10-25 01:11", "2026-10-25 01:12"}},
        {"Europe/Prague",
         "@hourly",
         "2026-10-24 23:30",
         {"2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 02:00"}},
        {"Europe/Prague",
         "0 */2 * * *",
         "2026-10-24 23:30",
         {"2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 03:00"}},
        {"Europe/Prague", "0 0-23 * * *", "2026-10-25 00:30", {"2026-10-25 01:00", "2026-10-25 02:00"}},
        {"Europe/Prague", "30 * 25 10 0", "2020-10-25 00:40", {"2020-10-25 01:30", "2020-10-25 02:30"}},
        {"Europe/Prague",
         "59 59 * * * *",
         "2026-10-25 00:59:59",
         {"2026-10-25 01:59:59", "2026-10-25 02:59:59"}},
        {"Australia/Lord_Howe",
         "45 * * * *",
         "2026-04-04 14:30",
         {"2026-04-04 14:45", "2026-04-04 15:15", "2026-04-04 16:15"}},
        {"Australia/Lord_Howe", "0 * * * *", "2026-04-04 14:00", {"2026-04-04 15:30", "2026-04-04 16:30"}},
        {"America/Santiago", "0 * * * 6", "2026-04-05 02:30", {"2026-04-05 03:00", "2026-04-11 04:00"}},
        {"Europe/Prague", "0 * * * *", "9626-10-25 00:30", {"9626-10-25 01:00", "9626-10-25 02:00"}},
        /* plain days, far days */
        {"Asia/Kathmandu", "0 3 * * *", "2026-01-01 00:00", {"2026-01-01 21:15", "2026-01-02 21:15"}},
        {"Europe/Prague", "30 2 29 3 *", "2425-12-01 00:00", {"2426-03-29 01:00"}},
        {"Europe/Prague", "30 2 25 10 *", "9625-12-01 00:00", {"9626-10-25 00:30"}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_fires(cases[i].expression, cases[i].zone, cases[i].after, cases[i].fires,
                    COUNT_OF(cases[i].fires));
}

/* Counted on: a daily time fires once for every date on the wall, whatever the clock does. */
static void a_daily_time_fires_once_a_day(void **state)
{
    (void)state;
    static const char *const zones[] = {"Europe/Prague",    "America/New_York",    "Asia/Kathmandu",
                                        "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca",
                                        "Europe/Dublin",    "Antarctica/Troll"};
    static const char *const expressions[] = {"0 0 * * *", "0 1 * * *",  "30 1 * * *", "0 2 * * *",
                                              "5 2 * * *", "30 2 * * *", "0 3 * * *"};
    for (size_t n = 0; n < COUNT_OF(zones); n++)
        for (size_t i = 0; i < COUNT_OF(expressions); i++) {
            AUTO(cron_free_p) struct cron *c = parse(expressions[i]);
            AUTO(zone_free_p) struct zone *z = NULL;
            assert_int_equal(zone_open(zones[n], &z, NULL), 0);
            instant at = time_of("2009-12-31 18:00");
            int count = 0;
            instant end = time_of("2025-12-31 18:00");
            while (cron_next(c, z, at, &at) && at <= end)
                count++;
            assert_int_equal(count, 16 * 365 + 4);
        }
}

/* From any instant the answer is the least firing time after it: the same as when asked from the last one. */
static void next_is_consistent_from_everywhere(void **state)
{
    (void)state;
    static const char *const expressions[] = {"*/7 1-3 * * *", "0 0 * * *", "13,47 * L * *",
                                              "10 */5 2 25-31 3,10 *"};
    AUTO(zone_free_p) struct zone *z = NULL;
    assert_int_equal(zone_open("Europe/Prague", &z, NULL), 0);
    for (size_t i = 0; i < COUNT_OF(expressions); i++) {
        AUTO(cron_free_p) struct cron *c = parse(expressions[i]);
        instant fire = 0, next;
        instant start = time_of("2026-03-28 20:00"), end = time_of("2026-03-30 04:00");
        bool known = false;
        for (instant at = start; at < end; at += 61 * US_PER_S + 7) {
            assert_true(cron_next(c, z, at, &next));
            assert_true(next > at);
            if (known && at < fire)
                assert_true(next == fire);
            fire = next;
            known = true;
        }
    }
}

static void it_ends_with_the_year_9999(void **state)
{
    (void)state;
    AUTO(cron_free_p) struct cron *c = parse("0 0 1 1 *");
    instant at = 77;
    assert_true(cron_next(c, NULL, time_of("9998-06-01 00:00"), &at));
    assert_true(at == time_of("9999-01-01 00:00"));
    assert_false(cron_next(c, NULL, at, &at));
    assert_false(cron_next(c, NULL, INT64_MAX, &at));
    assert_true(at == time_of("9999-01-01 00:00"));
    assert_true(cron_next(c, NULL, INT64_MIN, &at));
    AUTO(zone_free_p) struct zone *z = NULL;
    assert_int_equal(zone_open("Europe/Prague", &z, NULL), 0);
    assert_true(cron_next(c, z, INT64_MIN, &at));
    assert_false(cron_next(c, z, INT64_MAX, &at));
}

static void rare_expressions_are_found_fast(void **state)
{
    (void)state;
    AUTO(cron_free_p) struct cron *c = parse("59 59 23 29 2 */6");
    int64_t started = when_monotonic_us();
    instant at = time_of("1970-01-01 00:00");
    for (int i = 0; i < 200; i++)
        assert_true(cron_next(c, NULL, at, &at));
    assert_true(when_monotonic_us() - started < 10 * US_PER_S);
}

static void bad_expressions_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"61 * * * *", "cron '61 * * * *': minute '61' is not in 0-59"},
        {"60 * * * *", "minute '60' is not in 0-59"},
        {"60 * * * * *", "second '60' is not in 0-59"},
        {"* 24 * * *", "hour '24' is not in 0-23"},
        {"* * 0 * *", "day of month '0' is not in 1-31 or L"},
        {"* * 32 * *", "day of month '32' is not in 1-31 or L"},
        {"* * * 0 *", "month '0' is not in 1-12 or JAN-DEC"},
        {"* * * 13 *", "month '13' is not in 1-12 or JAN-DEC"},
        {"* * * * 8", "weekday '8' is not in 0-7 or SUN-SAT"},
        {"* * * FOO *", "month 'FOO' is not in 1-12"},
        {"* * * * MO", "weekday 'MO' is not in"},
        {"* * * * MONDAY", "weekday 'MONDAY' is not in"},
        {"MON * * * *", "minute 'MON' is not in 0-59"},
        {"5-61 * * * *", "minute '61' is not in 0-59"},
        {"-5 * * * *", "minute '-5' is not in 0-59"},
        {"5- * * * *", "minute '' is not in 0-59"},
        {"99999999999999999999 * * * *", "minute '99999999999999999999' is not in 0-59"},
        {"1.5 * * * *", "minute '1.5' is not in 0-59"},
        {"30-10 * * * *", "minute '30-10' runs backwards"},
        {"0 0 * * FRI-MON", "weekday 'FRI-MON' runs backwards"},
        {"*/0 * * * *", "minute step '0' is not in 1-60"},
        {"*/ * * * *", "minute step '' is not in 1-60"},
        {"*/90 * * * *", "minute step '90' is not in 1-60"},
        {"*/-5 * * * *", "minute step '-5' is not in 1-60"},
        {"*/5/5 * * * *", "minute step '5/5' is not in 1-60"},
        {"* */25 * * *", "hour step '25' is not in 1-24"},
        {"* * * * */8", "weekday step '8' is not in 1-7"},
        {"1,,2 * * * *", "minute '' has an empty part"},
        {"1, * * * *", "minute '' has an empty part"},
        {"*5 * * * *", "minute '*5' is not in 0-59"},
        {"? * * * *", "minute '?' is not in 0-59"},
        {"* * ?/2 * *", "day of month '?/2' is not in"},
        {"L * * * *", "minute 'L' is not in 0-59"},
        {"* * L-3 * *", "day of month 'L-3' is not in"},
        {"* * 15W * *", "day of month '15W' is not in"},
        {"* * 5L * *", "day of month '5L' is not in"},
        {"* * * * L", "weekday 'L' is not in"},
        {"* * * * MON#0", "weekday 'MON#0' has no number in 1-5 behind #"},
        {"* * * * MON#6", "weekday 'MON#6' has no number in 1-5 behind #"},
        {"* * * * MON#", "weekday 'MON#' has no number"},
        {"* * * * MON#1x", "weekday 'MON#1x' goes on after its end"},
        {"* * * * MON#1-3", "goes on after its end"},
        {"* * * * 5LL", "goes on after its end"},
        {"* * 1#1 * *", "day of month '1#1' is not in"},
        {"", "has 0 fields; write 5 (minute, hour, day of month, month, weekday) or 6 with leading seconds"},
        {"CRON ", "has 0 fields"},
        {"CRON", "has 1 field;"},
        {"* * * *", "has 4 fields"},
        {"0 0 0 1 1 ? 2026", "has 7 fields"},
        {"CRON0 3 * * *", "minute 'CRON0' is not in 0-59"},
        {"@reboot", "cron '@reboot' is not known; known are @yearly"},
        {"@dailyx", "is not known"},
        {"@daily 5", "is not known"},
        {"@", "is not known"},
        {"0 0 30 2 *", "cron '0 0 30 2 *' never fires"},
        {"0 0 31 4,6,9,11 *", "never fires"},
        {"0 0 30-31 FEB ?", "never fires"},
        {"\xc3\xa9 * * * *", "is not in 0-59"},
        {"*\n* * * *", "has 4 fields"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct cron *c = NULL;
        struct err e = ERR_INIT;
        if (cron_parse(cases[i].text, &c, &e) != -1 || c)
            fail_msg("'%s' was accepted", cases[i].text);
        assert_int_equal(e.kind, ERR_CONTRACT);
        if (!strstr(e.text, cases[i].why))
            fail_msg("'%s' gave: %s", cases[i].text, e.text);
    }
}

/* Noise made of the characters that mean something: never a crash, and what is accepted fires. */
static void noise_does_no_harm(void **state)
{
    (void)state;
    static const char letters[] = "0123456789*/-,?LW#@ \tMONJANSUNcron";
    uint64_t seed = 7;
    int accepted = 0;
    for (int i = 0; i < 100000; i++) {
        char text[24] = "";
        size_t fixed = i % 2 ? 0 : 8; /* half of them begin as a good one does */
        memcpy(text, "0 0 * 2 ", fixed);
        for (size_t k = fixed; k < fixed + 3 + (size_t)i % 8; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[k] = letters[(seed >> 33) % (sizeof(letters) - 1)];
        }
        AUTO(cron_free_p) struct cron *c = NULL;
        instant at;
        if (cron_parse(text, &c, NULL) < 0)
            continue;
        accepted++;
        assert_true(cron_next(c, NULL, 0, &at) && at > 0);
    }
    assert_true(accepted > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_fires_when_it_should),
        cmocka_unit_test(clock_changes_neither_lose_nor_repeat),
        cmocka_unit_test(a_daily_time_fires_once_a_day),
        cmocka_unit_test(next_is_consistent_from_everywhere),
        cmocka_unit_test(it_ends_with_the_year_9999),
        cmocka_unit_test(rare_expressions_are_found_fast),
        cmocka_unit_test(bad_expressions_say_why),
        cmocka_unit_test(noise_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
