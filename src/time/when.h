/* when: the clock, durations, time zones, timestamps as text, cron. The only module that reads a clock.
 *
 * An instant is a signed 64-bit count of microseconds since 1970-01-01T00:00:00Z.
 * A local time is the same count for a wall clock: as if that wall clock showed UTC. */
#ifndef LAPSE_TIME_WHEN_H
#define LAPSE_TIME_WHEN_H

#include "base/base.h"

typedef int64_t instant; /* microseconds since the epoch, UTC */

#define US_PER_MS  INT64_C(1000)
#define US_PER_S   INT64_C(1000000)
#define US_PER_DAY (86400 * US_PER_S)

instant when_now(void);          /* the system's wall clock */
int64_t when_monotonic_us(void); /* for durations only */
int64_t when_boot_us(void);      /* the same, and it counts while the machine is suspended */
void when_sleep_us(int64_t us);  /* returns early on a signal */

/* --- the calendar: proleptic Gregorian, days counted from 1970-01-01 ---------------------------- */
struct civil {
    int64_t year;
    int month, day; /* from 1 */
};
int64_t civil_to_days(int64_t year, int month, int day); /* year within +-10^9, month 1..12 */
struct civil civil_from_days(int64_t days);              /* days within +-10^11 */
int civil_month_days(int64_t year, int month);
int civil_weekday(int64_t days);                         /* 0 is Sunday */
int64_t when_floor_div(int64_t value, int64_t positive); /* rounds down, also below zero */
int64_t when_floor_mod(int64_t value, int64_t positive); /* 0 <= result < positive */

/* --- durations ------------------------------------------------------------------------------- */
enum span_kind { SPAN_TIME, SPAN_NOW, SPAN_NEVER };
struct span {
    enum span_kind kind;
    int64_t us; /* SPAN_TIME: >= 0; SPAN_NOW: 0; SPAN_NEVER: INT64_MAX */
};
/* A string as SPEC says: one or more `number unit`, or `never`, or `now`; a string of digits alone is
 * refused, and so are a lone M (elsewhere it means months) and what is not a whole number of microseconds.
 * The error text says what was read and what is allowed, without file and line. */
int span_parse(const char *s, struct span *ret, struct err *e);
/* An integer of milliseconds, written in decimal digits (as YAML gave it). Refuses signs and overflow. */
int span_parse_ms(const char *digits, struct span *ret, struct err *e);
/* "7d", "1h 30m", "250ms", "1.5ms", "never" (INT64_MAX), "now" (0). Exact: span_parse reads it back to the
 * same number. A negative one has a leading "-". */
void span_format(int64_t us, struct text *out);
/* The same in full words, for sentences: "30 milliseconds", "1 hour 30 minutes". */
void span_format_words(int64_t us, struct text *out);
/* "3.2s", "1m 12s", "48ms", "<1ms": a rounded duration for progress and tables. */
void span_format_rough(int64_t us, struct text *out);

/* --- what an integer may count since 1970 ------------------------------------------------------ */
enum { TIME_UNITS = 3 };
struct time_unit {
    int64_t us;
    const char *sign, *words; /* "ms", "milliseconds" */
};
extern const struct time_unit time_units[TIME_UNITS];
const struct time_unit *time_unit_of(int64_t us); /* NULL: none */

/* --- time zones ------------------------------------------------------------------------------- */
struct zone;
/* name: IANA ("Europe/Prague", "UTC"). Read from the system's zoneinfo (TZif v1 to v4, with the POSIX rule in
 * the footer for later years). Names that leave the folder are refused. Never touches TZ or tzset(). */
int zone_open(const char *name, struct zone **ret, struct err *e);
/* The same from the bytes of a TZif file. Refused beside malformed ones: files that count leap seconds,
 * offsets beyond 26 hours, and changes so close together that their skipped or repeated times would mix. */
int zone_from_bytes(const char *name, const void *bytes, size_t len, struct zone **ret, struct err *e);
void zone_free(struct zone *z);
void zone_free_p(struct zone **z);
const char *zone_name(const struct zone *z);
bool zone_is_utc(const struct zone *z);                   /* offset 0 always */
int32_t zone_offset_at(const struct zone *z, instant at); /* seconds east of UTC */
/* In all of these z NULL is UTC, and a result beyond 64 bits is the nearest that fits. */
/* The instant of a local time. Ambiguous (clock set back): the later instant. Skipped (clock set forward):
 * read with the offset before the change, so also the later of the two readings. */
instant zone_instant(const struct zone *z, int64_t local_us);
/* Which local times lie before a cutoff: exactly those l with
 *     l < below && !(hole_from <= l && l < hole_to)
 * where the hole (empty when hole_from == hole_to) holds skipped local times that read as later instants.
 * With or_equal: those with zone_instant(l) <= cutoff, in the same form (below is then one more microsecond).
 * One exception: INT64_MAX ("infinity"), as a local time or as an instant, is never within. */
struct local_bound {
    int64_t below;
    int64_t hole_from, hole_to;
};
struct local_bound zone_bound(const struct zone *z, instant cutoff, bool or_equal);
/* zone_instant as a list of steps: from this local time on (in seconds), local times lie that many seconds
 * ahead of UTC. Step 0 begins before all times. False: there are no more, up to where the rules repeat. */
bool zone_step(const struct zone *z, size_t i, int64_t *ret_local_s, int32_t *ret_offset_s);
/* As a scheduler reads a wall clock. Ambiguous: the earlier instant. Skipped: the instant of the change. It
 * never decreases as local_us grows. */
instant zone_first_instant(const struct zone *z, int64_t local_us);
/* Its inverse: the least local time, in whole seconds, whose zone_first_instant is >= at_s. */
int64_t zone_first_local_s(const struct zone *z, int64_t at_s);
/* When the clock shows times for the second time: the first such stretch that ends after at_s, in seconds;
 * *ret_to is the first second behind it. False: none. */
bool zone_second_pass(const struct zone *z, int64_t at_s, int64_t *ret_from, int64_t *ret_to);

/* --- timestamps as text -------------------------------------------------------------------------
 * YYYY-MM-DD, then 'T', 't' or one blank, HH:MM with optional :SS and optional fraction (any digits; beyond
 * microseconds they are cut off; at least one), then optionally blanks and Z, z, +HH, +HHMM, +HH:MM (or -),
 * at most 15:59. Years 0001 to 9999; real dates only, 00:00:00 to 23:59:59; no leading or trailing blanks.
 * Without an offset it is in zone z (NULL: UTC). Returns false if it is anything else. */
bool when_parse(const char *s, size_t len, const struct zone *z, instant *ret);
/* The same without looking at a zone: the local time, and whether an offset was given (in seconds). */
bool when_parse_parts(const char *s, size_t len, int64_t *ret_local_us, bool *ret_has_offset,
                      int32_t *ret_offset_s);

enum { WHEN_TEXT_SIZE = 40 };
/* "2026-11-16T04:54:14.123456Z", the fraction shortened to what is not zero. Years outside 1..9999 print as
 * numbers. */
const char *when_format(instant at, char buf[WHEN_TEXT_SIZE]);
/* "2026-11-16 04:54:14.123456" of a local time; digits: 0 to 6 of the fraction, always that many. */
const char *when_format_local(int64_t local_us, int digits, char buf[WHEN_TEXT_SIZE]);
/* "2026-11-16" of a local time. */
const char *when_format_date(int64_t local_us, char buf[WHEN_TEXT_SIZE]);

/* --- cron ---------------------------------------------------------------------------------------
 * Five fields, or six with leading seconds; lists, ranges, steps, names, 7 = Sunday, ?, L (last day of the
 * month; in the weekday field 5L or FRIL = last Friday), MON#1, @yearly @annually @monthly @weekly @daily
 * @midnight @hourly; an optional `CRON ` prefix in any case. When both day fields are restricted, either may
 * match; a day field that begins with * is not restricted, so with a step (asterisk/2) both must match (as
 * cron does). An expression that never fires (30 February) is an error. */
struct cron;
int cron_parse(const char *s, struct cron **ret, struct err *e);
void cron_free(struct cron *c);
void cron_free_p(struct cron **c);
/* The first instant after `after` at which it fires in zone z (NULL: UTC). A local time that a clock change
 * skips fires at the next instant that exists; a repeated one fires once (the first time), unless
 * cron_is_interval: that would be silent while the clock shows the hour again. False: never again through the
 * year 9999. */
bool cron_next(const struct cron *c, const struct zone *z, instant after, instant *ret);
/* Whether it says how often and not at what time: its hour field begins with * or holds every hour. */
bool cron_is_interval(const struct cron *c);
/* Whether it fires in a part of the day (in minutes; to <= from: over midnight), as the wall clock shows it.
 */
bool cron_fires_within(const struct cron *c, int from, int to);

#endif
