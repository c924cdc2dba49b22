/* cron: expressions read into sets of numbers, and the next time they fire. */
#include "time/when.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum field { SECOND, MINUTE, HOUR, MONTH_DAY, MONTH, WEEKDAY, FIELD_COUNT };

struct field_kind {
    const char *name, *allowed;
    int low, high;
    const char *names; /* three letters each, the first for `first_named` */
    int first_named;
};

static const struct field_kind field_kinds[FIELD_COUNT] = {
    [SECOND] = {"second", "0-59", 0, 59, "", 0},
    [MINUTE] = {"minute", "0-59", 0, 59, "", 0},
    [HOUR] = {"hour", "0-23", 0, 23, "", 0},
    [MONTH_DAY] = {"day of month", "1-31 or L", 1, 31, "", 0},
    [MONTH] = {"month", "1-12 or JAN-DEC", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC", 1},
    [WEEKDAY] = {"weekday", "0-7 or SUN-SAT", 0, 7, "SUNMONTUEWEDTHUFRISAT", 0},
};

enum { MAX_NTH = 5, DAYS_PER_CYCLE = 146097, DAY_S = 86400, DAY_MINUTES = 1440 };
static const uint64_t every_hour = (UINT64_C(1) << 24) - 1;

/* A set holds n as bit n. Sunday is bit 0 of a set of weekdays, never 7. */
struct cron {
    uint64_t sets[FIELD_COUNT];
    bool last_month_day;
    uint64_t last_weekdays;             /* 5L */
    uint64_t nth_weekdays[MAX_NTH + 1]; /* MON#1 is in [1] */
    bool both_days;                     /* a day must be in both day fields, not in either */
    bool star_hour;                     /* the hour field begins with * */
};

/* --- parsing --------------------------------------------------------------------------------- */

/* What a parse is about, for its errors; `at` moves through one field, which ends at `end`. */
struct scan {
    const char *whole; /* the expression */
    enum field field;
    const char *item, *item_end; /* the part of a list being read */
    const char *at;
    struct err *e;
};

enum { SHOWN = 100 };

static const struct field_kind *kind_of(const struct scan *s)
{
    return &field_kinds[s->field];
}

static int shown(const char *from, const char *to)
{
    return to - from < SHOWN ? (int)(to - from) : SHOWN;
}

static int refuse_value(const struct scan *s, const char *from, const char *to)
{
    return err_set(s->e, ERR_CONTRACT, "cron '%.*s': %s '%.*s' is not in %s", SHOWN, s->whole,
                   kind_of(s)->name, shown(from, to), from, kind_of(s)->allowed);
}

static int refuse_item(const struct scan *s, const char *why)
{
    return err_set(s->e, ERR_CONTRACT, "cron '%.*s': %s '%.*s' %s", SHOWN, s->whole, kind_of(s)->name,
                   shown(s->item, s->item_end), s->item, why);
}

static bool accept(struct scan *s, char c)
{
    if (s->at == s->item_end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool accept_l(struct scan *s)
{
    return accept(s, 'L') || accept(s, 'l');
}

static bool scan_digits(struct scan *s, int *ret)
{
    const char *from = s->at;
    int value = 0;
    for (; s->at < s->item_end && *s->at >= '0' && *s->at <= '9'; s->at++)
        if (value < 1000) /* enough to be out of every range */
            value = value * 10 + (*s->at - '0');
    *ret = value;
    return s->at > from;
}

static bool scan_name(struct scan *s, int *ret)
{
    const char *names = kind_of(s)->names;
    if (s->item_end - s->at < 3)
        return false;
    for (int i = 0; names[i]; i += 3)
        if (strncasecmp(s->at, names + i, 3) == 0) {
            s->at += 3;
            *ret = kind_of(s)->first_named + i / 3;
            return true;
        }
    return false;
}

static int scan_value(struct scan *s, int *ret)
{
    const char *from = s->at;
    int value;
    if (!scan_digits(s, &value) && !scan_name(s, &value))
        return refuse_value(s, from, s->item_end);
    if (value < kind_of(s)->low || value > kind_of(s)->high)
        return refuse_value(s, from, s->at);
    *ret = value;
    return 0;
}

static int scan_step(struct scan *s, int *ret)
{
    const char *from = s->at;
    int most = kind_of(s)->high - kind_of(s)->low + (s->field != WEEKDAY); /* 7 is 0 again */
    int step;
    if (!scan_digits(s, &step) || s->at != s->item_end || step < 1 || step > most)
        return err_set(s->e, ERR_CONTRACT, "cron '%.*s': %s step '%.*s' is not in 1-%d", SHOWN, s->whole,
                       kind_of(s)->name, shown(from, s->item_end), from, most);
    *ret = step;
    return 0;
}

static void add_range(struct cron *c, enum field field, int low, int high, int step)
{
    for (int value = low; value <= high; value += step)
        c->sets[field] |= UINT64_C(1) << (field == WEEKDAY ? value % 7 : value);
}

/* After a weekday: #n or L. Returns 1 if it was one of these, 0 if not, -1 on error. */
static int scan_weekday_suffix(struct cron *c, struct scan *s, int weekday)
{
    uint64_t bit = UINT64_C(1) << (weekday % 7);
    int nth;
    if (accept_l(s)) {
        c->last_weekdays |= bit;
    } else if (accept(s, '#')) {
        if (!scan_digits(s, &nth) || nth < 1 || nth > MAX_NTH)
            return refuse_item(s, "has no number in 1-5 behind #");
        c->nth_weekdays[nth] |= bit;
    } else {
        return 0;
    }
    return s->at == s->item_end ? 1 : refuse_item(s, "goes on after its end; write it like FRIL or MON#1");
}

/* A value, a range, or a star, with an optional step. */
static int scan_range(struct cron *c, struct scan *s)
{
    const struct field_kind *kind = kind_of(s);
    int low = kind->low, high = s->field == WEEKDAY ? 6 : kind->high, step = 1;
    if (!accept(s, '*')) {
        if (scan_value(s, &low) < 0)
            return -1;
        int suffix = s->field == WEEKDAY ? scan_weekday_suffix(c, s, low) : 0;
        if (suffix)
            return suffix < 0 ? -1 : 0;
        bool to_the_end = s->at < s->item_end && *s->at == '/'; /* 5/15 is 5-59/15 */
        if (accept(s, '-')) {
            if (scan_value(s, &high) < 0)
                return -1;
            if (s->field == WEEKDAY && high == 0 && low > 0)
                high = 7; /* FRI-SUN */
        } else if (!to_the_end) {
            high = low;
        }
        if (to_the_end && high < low)
            high = low;
        if (high < low)
            return refuse_item(s, "runs backwards; write two ranges with a comma");
    }
    if (accept(s, '/') && scan_step(s, &step) < 0)
        return -1;
    if (s->at != s->item_end)
        return refuse_value(s, s->item, s->item_end);
    add_range(c, s->field, low, high, step);
    return 0;
}

static int scan_item(struct cron *c, struct scan *s)
{
    if (s->at == s->item_end)
        return refuse_item(s, "has an empty part; write a value, a range, or *");
    if (s->field == MONTH_DAY && accept_l(s)) {
        c->last_month_day = true;
        return s->at == s->item_end ? 0 : refuse_value(s, s->item, s->item_end);
    }
    return scan_range(c, s);
}

static int scan_field(struct cron *c, const char *whole, enum field field, const char *from, const char *end,
                      struct err *e)
{
    struct scan s = {.whole = whole, .field = field, .e = e};
    bool is_day = field == MONTH_DAY || field == WEEKDAY;
    if (is_day && *from == '*')
        c->both_days = true;
    if (field == HOUR && *from == '*')
        c->star_hour = true;
    if (is_day && *from == '?' && end - from == 1) {
        c->both_days = true;
        add_range(c, field, field_kinds[field].low, field_kinds[field].high, 1);
        return 0;
    }
    for (;;) {
        const char *comma = memchr(from, ',', (size_t)(end - from));
        s.item = s.at = from;
        s.item_end = comma ? comma : end;
        if (scan_item(c, &s) < 0)
            return -1;
        if (!comma)
            return 0;
        from = comma + 1;
    }
}

struct nickname {
    const char *name, *means;
};

static const struct nickname nicknames[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
    {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@hourly", "0 * * * *"},
};

static const char blanks[] = " \t";

static int expand_nickname(const char *s, const char **ret, struct err *e)
{
    size_t len = strcspn(s, blanks);
    bool alone = !s[len + strspn(s + len, blanks)];
    for (size_t i = 0; alone && i < COUNT_OF(nicknames); i++)
        if (len == strlen(nicknames[i].name) && strncasecmp(s, nicknames[i].name, len) == 0) {
            *ret = nicknames[i].means;
            return 0;
        }
    return err_set(
        e, ERR_CONTRACT,
        "cron '%.*s' is not known; known are @yearly, @annually, @monthly, @weekly, @daily, @midnight, "
        "@hourly",
        SHOWN, s);
}

static const char *skip_prefix(const char *s)
{
    s += strspn(s, blanks);
    if (strncasecmp(s, "cron", 4) == 0 && s[4] && strchr(blanks, s[4]))
        s += 4 + strspn(s + 4, blanks);
    return s;
}

static int scan_fields(struct cron *c, const char *whole, const char *fields, struct err *e)
{
    const char *from[FIELD_COUNT], *end[FIELD_COUNT];
    int count = 0;
    for (const char *p = fields; *p; p += strspn(p, blanks), count++) {
        size_t len = strcspn(p, blanks);
        if (count < FIELD_COUNT) {
            from[count] = p;
            end[count] = p + len;
        }
        p += len;
    }
    if (count != FIELD_COUNT && count != FIELD_COUNT - 1)
        return err_set(
            e, ERR_CONTRACT,
            "cron '%.*s' has %d field%s; write 5 (minute, hour, day of month, month, weekday) or 6 with "
            "leading seconds",
            SHOWN, whole, count, count == 1 ? "" : "s");
    int left_out = FIELD_COUNT - count;
    if (left_out)
        c->sets[SECOND] = 1;
    for (int i = 0; i < count; i++)
        if (scan_field(c, whole, (enum field)(i + left_out), from[i], end[i], e) < 0)
            return -1;
    return 0;
}

/* --- firing ------------------------------------------------------------------------------------ */

static bool in_set(uint64_t set, int value)
{
    return set >> value & 1;
}

/* The least member >= from, or -1. */
static int next_in_set(uint64_t set, int from)
{
    uint64_t rest = from < 64 ? set >> from : 0;
    return rest ? from + __builtin_ctzll(rest) : -1;
}

static bool day_matches(const struct cron *c, struct civil date, int64_t days)
{
    int weekday = civil_weekday(days), length = civil_month_days(date.year, date.month);
    bool by_date = in_set(c->sets[MONTH_DAY], date.day) || (c->last_month_day && date.day == length);
    bool by_weekday = in_set(c->sets[WEEKDAY], weekday) ||
                      in_set(c->nth_weekdays[(date.day + 6) / 7], weekday) ||
                      (in_set(c->last_weekdays, weekday) && date.day > length - 7);
    return c->both_days ? by_date && by_weekday : by_date || by_weekday;
}

/* The first matching day in from..last. Months that do not match are left out whole. */
static bool next_day(const struct cron *c, int64_t from, int64_t last, int64_t *ret)
{
    for (int64_t days = from; days <= last;) {
        struct civil date = civil_from_days(days);
        int month_end = civil_month_days(date.year, date.month);
        if (in_set(c->sets[MONTH], date.month))
            for (; date.day <= month_end && days <= last; date.day++, days++)
                if (day_matches(c, date, days)) {
                    *ret = days;
                    return true;
                }
        days += month_end - date.day + 1;
    }
    return false;
}

/* The first matching time of a day at or after `from`, in seconds, or -1. Each unit that has to move on sets
 * the smaller ones back to their first. */
static int next_time(const struct cron *c, int from)
{
    int hour = from / 3600, minute = from / 60 % 60, second = next_in_set(c->sets[SECOND], from % 60);
    int found = next_in_set(c->sets[MINUTE], second < 0 ? minute + 1 : minute);
    if (found != minute)
        second = next_in_set(c->sets[SECOND], 0);
    minute = found;
    found = next_in_set(c->sets[HOUR], minute < 0 ? hour + 1 : hour);
    if (found != hour) {
        minute = next_in_set(c->sets[MINUTE], 0);
        second = next_in_set(c->sets[SECOND], 0);
    }
    return found < 0 ? -1 : found * 3600 + minute * 60 + second;
}

/* The calendar repeats after 400 years: what does not fire within them never does. */
static bool ever_fires(const struct cron *c)
{
    int64_t day;
    return next_day(c, 0, DAYS_PER_CYCLE, &day);
}

int cron_parse(const char *s, struct cron **ret, struct err *e)
{
    const char *whole = skip_prefix(s), *fields = whole;
    if (*whole == '@' && expand_nickname(whole, &fields, e) < 0)
        return -1;
    AUTO(cron_free_p) struct cron *c = mem_alloc(sizeof(*c));
    if (scan_fields(c, whole, fields, e) < 0)
        return -1;
    if (!ever_fires(c))
        return err_set(e, ERR_CONTRACT, "cron '%.*s' never fires: no month has such a day", SHOWN, whole);
    *ret = c;
    c = NULL;
    return 0;
}

void cron_free(struct cron *c)
{
    free(c);
}

void cron_free_p(struct cron **c)
{
    cron_free(*c);
    *c = NULL;
}

bool cron_is_interval(const struct cron *c)
{
    return c->star_hour || c->sets[HOUR] == every_hour;
}

bool cron_fires_within(const struct cron *c, int from, int to)
{
    for (int minute = 0; minute < DAY_MINUTES; minute++) {
        bool inside = from < to ? from <= minute && minute < to : from <= minute || minute < to;
        if (inside && in_set(c->sets[HOUR], minute / 60) && in_set(c->sets[MINUTE], minute % 60))
            return true;
    }
    return false;
}

/* The first matching local time at or after `from`, through the day `last`; in seconds. */
static bool next_local(const struct cron *c, int64_t from, int64_t last, int64_t *ret)
{
    int64_t first = when_floor_div(from, DAY_S), day;
    if (!next_day(c, first, last, &day))
        return false;
    int time = next_time(c, day == first ? (int)when_floor_mod(from, DAY_S) : 0);
    if (time < 0) { /* too late on the first day; any other day has a time */
        if (!next_day(c, first + 1, last, &day))
            return false;
        time = next_time(c, 0);
    }
    *ret = day * DAY_S + time;
    return true;
}

/* The first match while the clock shows times again, at or after from_s and before before_s. */
static bool next_repeated(const struct cron *c, const struct zone *z, int64_t from_s, int64_t before_s,
                          int64_t *ret)
{
    int64_t begins, ends, local;
    for (int64_t s = from_s; zone_second_pass(z, s, &begins, &ends) && begins < before_s; s = ends) {
        int64_t offset = zone_offset_at(z, begins * US_PER_S), first = begins > from_s ? begins : from_s;
        int64_t last_day = when_floor_div(ends + offset, DAY_S);
        if (next_local(c, first + offset, last_day, &local) && local - offset < ends) {
            *ret = local - offset;
            return true;
        }
    }
    return false;
}

bool cron_next(const struct cron *c, const struct zone *z, instant after, instant *ret)
{
    int64_t from_s = when_floor_div(after, US_PER_S) + 1, last_day = civil_to_days(9999, 12, 31);
    int64_t local, repeated, before_s = last_day * DAY_S;
    bool found = next_local(c, zone_first_local_s(z, from_s), last_day, &local);
    if (found) {
        *ret = zone_first_instant(z, local * US_PER_S);
        before_s = when_floor_div(*ret, US_PER_S);
    }
    if (!cron_is_interval(c) || !next_repeated(c, z, from_s, before_s, &repeated))
        return found;
    *ret = repeated * US_PER_S;
    return true;
}
