/* when: the clock, the calendar, durations and timestamps as text. */
#include "time/when.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* --- the clock ------------------------------------------------------------------------------- */

static int64_t read_clock_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * US_PER_S + t.tv_nsec / 1000;
}

instant when_now(void)
{
    return read_clock_us(CLOCK_REALTIME);
}

int64_t when_monotonic_us(void)
{
    return read_clock_us(CLOCK_MONOTONIC);
}

int64_t when_boot_us(void)
{
    return read_clock_us(CLOCK_BOOTTIME);
}

void when_sleep_us(int64_t us)
{
    if (us <= 0)
        return;
    struct timespec t = {.tv_sec = (time_t)(us / US_PER_S), .tv_nsec = (long)(us % US_PER_S * 1000)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

/* --- the calendar ------------------------------------------------------------------------------
 * Years are counted from 1 March, so that the leap day is the last of its year, and in eras of 400 years,
 * after which the calendar repeats. */

enum { DAYS_PER_ERA = 146097, DAYS_BEFORE_1970 = 719468 };

int64_t when_floor_div(int64_t value, int64_t positive)
{
    return value / positive - (value % positive < 0);
}

int64_t when_floor_mod(int64_t value, int64_t positive)
{
    int64_t rest = value % positive;
    return rest < 0 ? rest + positive : rest;
}

int64_t civil_to_days(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = when_floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_1970;
}

struct civil civil_from_days(int64_t days)
{
    days += DAYS_BEFORE_1970;
    int64_t era = when_floor_div(days, DAYS_PER_ERA);
    int64_t day_of_era = when_floor_mod(days, DAYS_PER_ERA);
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / (DAYS_PER_ERA - 1)) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    int month = (int)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
    return (struct civil){
        .year = era * 400 + year_of_era + (month <= 2),
        .month = month,
        .day = (int)(day_of_year - (153 * month_from_march + 2) / 5 + 1),
    };
}

int civil_month_days(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

int civil_weekday(int64_t days)
{
    return (int)((when_floor_mod(days, 7) + 4) % 7); /* 1970-01-01 was a Thursday */
}

/* --- durations ------------------------------------------------------------------------------- */

enum { SHOWN = 60 }; /* how much of a bad text an error repeats */

struct unit {
    const char *name;
    bool takes_s; /* the plural */
    int64_t us;
};

static const struct unit units[] = {
    {"ms", false, US_PER_MS},        {"s", false, US_PER_S},         {"sec", true, US_PER_S},
    {"second", true, US_PER_S},      {"m", false, 60 * US_PER_S},    {"min", true, 60 * US_PER_S},
    {"minute", true, 60 * US_PER_S}, {"h", false, 3600 * US_PER_S},  {"hr", true, 3600 * US_PER_S},
    {"hour", true, 3600 * US_PER_S}, {"d", false, US_PER_DAY},       {"day", true, US_PER_DAY},
    {"w", false, 7 * US_PER_DAY},    {"week", true, 7 * US_PER_DAY},
};

/* Known so that the error can say why not. */
static const struct unit lengthless_units[] = {
    {"mo", true, 0}, {"mon", true, 0}, {"month", true, 0},
    {"y", false, 0}, {"yr", true, 0},  {"year", true, 0},
};

static bool is_unit(const struct unit *unit, const char *word, size_t len)
{
    size_t name_len = strlen(unit->name);
    if (len < name_len || strncasecmp(word, unit->name, name_len) != 0)
        return false;
    bool plural = len == name_len + 1 && (word[name_len] == 's' || word[name_len] == 'S');
    return len == name_len || (plural && unit->takes_s);
}

static const struct unit *find_unit(const struct unit *table, size_t count, const char *word, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (is_unit(&table[i], word, len))
            return &table[i];
    return NULL;
}

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

static size_t digits_at(const char *s)
{
    return strspn(s, "0123456789");
}

static bool parse_digits(const char *s, size_t len, int64_t *ret)
{
    int64_t value = 0;
    for (size_t i = 0; i < len; i++)
        if (!mul_i64(value, 10, &value) || !add_i64(value, s[i] - '0', &value))
            return false;
    *ret = value;
    return true;
}

static bool is_letter(char c)
{
    unsigned char u = (unsigned char)c;
    return (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || u >= 0x80; /* so that µs is one word */
}

/* One `number unit` of a duration, as found in the text. */
struct part {
    const char *whole, *fraction, *word;
    size_t whole_len, fraction_len, word_len;
};

static int scan_part(const char *all, const char **at, struct part *ret, struct err *e)
{
    const char *p = *at;
    struct part part = {.whole = p, .whole_len = digits_at(p)};
    if (*p == '-' || *p == '+')
        return err_set(e, ERR_CONTRACT, "'%.*s' has a sign; a duration has none", SHOWN, all);
    if (!part.whole_len)
        return err_set(
            e, ERR_CONTRACT,
            "'%.*s' is no duration; write numbers with units like 1h30m, 60 seconds, 1.5h, or never "
            "or now",
            SHOWN, all);
    p += part.whole_len;
    if (*p == '.') {
        part.fraction = p + 1;
        part.fraction_len = digits_at(p + 1);
        if (!part.fraction_len)
            return err_set(e, ERR_CONTRACT, "'%.*s': a digit must follow the decimal point", SHOWN, all);
        p += 1 + part.fraction_len;
    }
    int number_len = (int)(p - part.whole < SHOWN ? p - part.whole : SHOWN);
    p = skip_blanks(p);
    part.word = p;
    while (is_letter(*p))
        p++;
    part.word_len = (size_t)(p - part.word);
    if (!part.word_len && (!*p || digits_at(p)))
        return err_set(e, ERR_CONTRACT,
                       "'%.*s' has no unit; write %.*ss, %.*sm, %.*sh, %.*sd, %.*sw or %.*sms", SHOWN, all,
                       number_len, part.whole, number_len, part.whole, number_len, part.whole, number_len,
                       part.whole, number_len, part.whole, number_len, part.whole);
    if (!part.word_len)
        return err_set(e, ERR_CONTRACT, "'%.*s': '%.*s' is not expected; write it like 1h30m or 1.5h", SHOWN,
                       all, SHOWN, p);
    *at = skip_blanks(p);
    *ret = part;
    return 0;
}

/* Digits behind the point that can still matter: a week is 2^13 * 5^8 * 189 us, so a fraction that does not
 * end in 0 is a whole number of microseconds with at most 13 digits. */
enum { FRACTION_DIGITS = 13 };

static bool fraction_us(const struct part *part, int64_t unit_us, int64_t *ret)
{
    size_t len = part->fraction_len;
    while (len && part->fraction[len - 1] == '0')
        len--;
    int64_t digits;
    if (len > FRACTION_DIGITS || !parse_digits(part->fraction, len, &digits))
        return false;
    __int128 scaled = (__int128)digits * unit_us; /* below 10^13 * 10^12 */
    for (size_t i = 0; i < len; i++) {
        if (scaled % 10)
            return false;
        scaled /= 10;
    }
    *ret = (int64_t)scaled;
    return true;
}

static int add_part(const char *all, const struct part *part, int64_t *total, struct err *e)
{
    int word_len = (int)(part->word_len < SHOWN ? part->word_len : SHOWN);
    if (part->word_len == 1 && *part->word == 'M')
        return err_set(
            e, ERR_CONTRACT,
            "'%.*s': M means months elsewhere, which have no fixed length; write m for minutes, or "
            "days",
            SHOWN, all);
    if (find_unit(lengthless_units, COUNT_OF(lengthless_units), part->word, part->word_len))
        return err_set(e, ERR_CONTRACT, "'%.*s': months and years have no fixed length; use days", SHOWN,
                       all);
    const struct unit *unit = find_unit(units, COUNT_OF(units), part->word, part->word_len);
    if (!unit)
        return err_set(e, ERR_CONTRACT,
                       "'%.*s': unknown unit '%.*s'; units are ms, s sec second, m min minute, h hr hour, d "
                       "day, w week",
                       SHOWN, all, word_len, part->word);
    int64_t fraction, whole;
    if (!fraction_us(part, unit->us, &fraction))
        return err_set(e, ERR_CONTRACT, "'%.*s' is not a whole number of microseconds", SHOWN, all);
    if (!parse_digits(part->whole, part->whole_len, &whole) || !mul_i64(whole, unit->us, &whole) ||
        !add_i64(whole, fraction, &whole) || !add_i64(*total, whole, total) || *total == INT64_MAX)
        return err_set(e, ERR_CONTRACT, "'%.*s' is too long; the longest is about 292000 years, or never",
                       SHOWN, all);
    return 0;
}

static bool is_word(const char *s, const char *word)
{
    size_t len = strlen(word);
    return strncasecmp(s, word, len) == 0 && !*skip_blanks(s + len);
}

int span_parse(const char *s, struct span *ret, struct err *e)
{
    const char *p = skip_blanks(s);
    if (is_word(p, "never")) {
        *ret = (struct span){SPAN_NEVER, INT64_MAX};
        return 0;
    }
    if (is_word(p, "now")) {
        *ret = (struct span){SPAN_NOW, 0};
        return 0;
    }
    int64_t total = 0;
    do {
        struct part part = {0};
        if (scan_part(s, &p, &part, e) < 0 || add_part(s, &part, &total, e) < 0)
            return -1;
    } while (*p);
    *ret = (struct span){SPAN_TIME, total};
    return 0;
}

int span_parse_ms(const char *digits, struct span *ret, struct err *e)
{
    size_t len = digits_at(digits);
    if (*digits == '-' || *digits == '+')
        return err_set(e, ERR_CONTRACT, "'%.*s' has a sign; a duration has none", SHOWN, digits);
    if (!len || digits[len])
        return err_set(e, ERR_CONTRACT,
                       "'%.*s' is no number of milliseconds; write digits, or a unit as in 30s", SHOWN,
                       digits);
    int64_t us;
    if (!parse_digits(digits, len, &us) || !mul_i64(us, US_PER_MS, &us))
        return err_set(e, ERR_CONTRACT, "'%.*s' milliseconds is too long; the longest is about 292000 years",
                       SHOWN, digits);
    *ret = (struct span){SPAN_TIME, us};
    return 0;
}

static const struct {
    const char *name, *word;
    int64_t us;
} printed_units[] = {
    {"d", "day", US_PER_DAY},
    {"h", "hour", 3600 * US_PER_S},
    {"m", "minute", 60 * US_PER_S},
    {"s", "second", US_PER_S},
};

/* The magnitude as unsigned, for that of INT64_MIN does not fit. */
static uint64_t take_sign(int64_t us, struct text *out)
{
    if (us >= 0)
        return (uint64_t)us;
    text_add(out, "-");
    return -(uint64_t)us;
}

static void add_milliseconds(uint64_t us, struct text *out)
{
    text_addf(out, "%u", (unsigned)(us / 1000));
    if (us % 1000) {
        text_addf(out, ".%03u", (unsigned)(us % 1000));
        while (out->data[out->len - 1] == '0')
            out->data[--out->len] = '\0';
    }
}

static void add_span(int64_t us, bool in_words, struct text *out)
{
    if (us == 0 || us == INT64_MAX) {
        text_add(out, us ? "never" : "now");
        return;
    }
    uint64_t left = take_sign(us, out);
    const char *gap = "";
    for (size_t i = 0; i < COUNT_OF(printed_units); i++) {
        uint64_t n = left / (uint64_t)printed_units[i].us;
        left %= (uint64_t)printed_units[i].us;
        if (!n)
            continue;
        text_addf(out, "%s%llu%s%s%s", gap, (unsigned long long)n, in_words ? " " : "",
                  in_words ? printed_units[i].word : printed_units[i].name, in_words && n != 1 ? "s" : "");
        gap = " ";
    }
    if (left) {
        text_add(out, gap);
        add_milliseconds(left, out);
        text_add(out, !in_words ? "ms" : left == US_PER_MS ? " millisecond" : " milliseconds");
    }
}

void span_format(int64_t us, struct text *out)
{
    add_span(us, false, out);
}

void span_format_words(int64_t us, struct text *out)
{
    add_span(us, true, out);
}

/* Rounded to the smaller of the two units before it is split, so that 59.9s does not read 60s. */
static void add_two_units(uint64_t us, size_t big, struct text *out)
{
    uint64_t big_us = (uint64_t)printed_units[big].us, small_us = (uint64_t)printed_units[big + 1].us;
    uint64_t small = (us + small_us / 2) / small_us, per_big = big_us / small_us;
    text_addf(out, "%llu%s", (unsigned long long)(small / per_big), printed_units[big].name);
    if (small % per_big)
        text_addf(out, " %llu%s", (unsigned long long)(small % per_big), printed_units[big + 1].name);
}

void span_format_rough(int64_t us, struct text *out)
{
    if (us == INT64_MAX) {
        text_add(out, "never");
        return;
    }
    if (us > -1000 && us < 1000) {
        text_add(out, us ? "<1ms" : "0ms");
        return;
    }
    uint64_t size = take_sign(us, out);
    unsigned long long tenths = (size + 50000) / 100000, seconds = (size + 500000) / 1000000;
    if (size < 999500)
        text_addf(out, "%llums", (unsigned long long)((size + 500) / 1000));
    else if (tenths < 100)
        text_addf(out, "%llu.%llus", tenths / 10, tenths % 10);
    else if (seconds < 60)
        text_addf(out, "%llus", seconds);
    else if (seconds < 3600)
        add_two_units(size, 2, out);
    else if ((seconds + 30) / 60 < 24 * 60)
        add_two_units(size, 1, out);
    else
        add_two_units(size, 0, out);
}

/* --- units ---------------------------------------------------------------------------------------- */

const struct time_unit time_units[TIME_UNITS] = {
    {US_PER_S, "s", "seconds"},
    {US_PER_MS, "ms", "milliseconds"},
    {1, "us", "microseconds"},
};

const struct time_unit *time_unit_of(int64_t us)
{
    for (size_t i = 0; i < TIME_UNITS; i++)
        if (time_units[i].us == us)
            return &time_units[i];
    return NULL;
}

/* --- timestamps as text ------------------------------------------------------------------------
 * A cursor over bytes that need not end in NUL; every read checks the end first. */

struct cursor {
    const char *at, *end;
};

static bool take_char(struct cursor *c, const char *any_of)
{
    if (c->at == c->end || !*c->at || !strchr(any_of, *c->at))
        return false;
    c->at++;
    return true;
}

static bool take_digit(struct cursor *c, int *ret)
{
    if (c->at == c->end || *c->at < '0' || *c->at > '9')
        return false;
    *ret = *c->at++ - '0';
    return true;
}

static bool take_number(struct cursor *c, int digits, int low, int high, int *ret)
{
    int value = 0, digit;
    for (int i = 0; i < digits; i++) {
        if (!take_digit(c, &digit))
            return false;
        value = value * 10 + digit;
    }
    *ret = value;
    return low <= value && value <= high;
}

static bool take_date(struct cursor *c, int64_t *ret_days)
{
    int year, month, day;
    if (!take_number(c, 4, 1, 9999, &year) || !take_char(c, "-") || !take_number(c, 2, 1, 12, &month) ||
        !take_char(c, "-") || !take_number(c, 2, 1, civil_month_days(year, month), &day))
        return false;
    *ret_days = civil_to_days(year, month, day);
    return true;
}

static bool take_fraction(struct cursor *c, int64_t *ret_us)
{
    int64_t us = 0, place = US_PER_S / 10;
    int digit;
    if (!take_digit(c, &digit))
        return false;
    do {
        us += digit * place;
        place /= 10; /* 0 past the microseconds: further digits count nothing */
    } while (take_digit(c, &digit));
    *ret_us = us;
    return true;
}

static bool take_time(struct cursor *c, int64_t *ret_us)
{
    int hour, minute, second = 0;
    int64_t fraction = 0;
    if (!take_number(c, 2, 0, 23, &hour) || !take_char(c, ":") || !take_number(c, 2, 0, 59, &minute))
        return false;
    if (take_char(c, ":")) {
        if (!take_number(c, 2, 0, 59, &second))
            return false;
        if (take_char(c, ".") && !take_fraction(c, &fraction))
            return false;
    }
    *ret_us = (hour * 3600 + minute * 60 + second) * US_PER_S + fraction;
    return true;
}

static bool take_offset(struct cursor *c, int32_t *ret_s)
{
    int hours, minutes = 0;
    if (take_char(c, "Zz")) {
        *ret_s = 0;
        return true;
    }
    bool west = c->at != c->end && *c->at == '-';
    if (!take_char(c, "+-") || !take_number(c, 2, 0, 15, &hours))
        return false;
    bool colon = take_char(c, ":");
    if ((colon || c->at != c->end) && !take_number(c, 2, 0, 59, &minutes))
        return false;
    int32_t offset = hours * 3600 + minutes * 60;
    *ret_s = west ? -offset : offset;
    return true;
}

bool when_parse_parts(const char *s, size_t len, int64_t *ret_local_us, bool *ret_has_offset,
                      int32_t *ret_offset_s)
{
    if (!len)
        return false;
    struct cursor c = {s, s + len};
    int64_t days, time_us;
    int32_t offset = 0;
    if (!take_date(&c, &days) || !take_char(&c, "Tt ") || !take_time(&c, &time_us))
        return false;
    bool has_offset = c.at != c.end;
    while (take_char(&c, " "))
        ;
    if (has_offset && (!take_offset(&c, &offset) || c.at != c.end))
        return false;
    *ret_local_us = days * US_PER_DAY + time_us;
    *ret_has_offset = has_offset;
    *ret_offset_s = offset;
    return true;
}

bool when_parse(const char *s, size_t len, const struct zone *z, instant *ret)
{
    int64_t local_us;
    bool has_offset;
    int32_t offset_s;
    if (!when_parse_parts(s, len, &local_us, &has_offset, &offset_s))
        return false;
    *ret = has_offset ? local_us - offset_s * US_PER_S : zone_instant(z, local_us);
    return true;
}

/* Appends to buf as snprintf does, and cuts off what has no room. */
static PRINTF(2, 3) void put(char buf[WHEN_TEXT_SIZE], const char *fmt, ...)
{
    size_t used = strlen(buf);
    va_list args;
    va_start(args, fmt);
    vsnprintf(buf + used, WHEN_TEXT_SIZE - used, fmt, args);
    va_end(args);
}

static void put_date(int64_t local_us, char buf[WHEN_TEXT_SIZE])
{
    struct civil d = civil_from_days(when_floor_div(local_us, US_PER_DAY));
    bool usual = d.year >= 1 && d.year <= 9999;
    put(buf, usual ? "%04lld-%02d-%02d" : "%lld-%02d-%02d", (long long)d.year, d.month, d.day);
}

static void put_fraction(int64_t us, int digits, char buf[WHEN_TEXT_SIZE])
{
    if (digits <= 0)
        return;
    for (int i = digits; i < 6; i++)
        us /= 10;
    put(buf, ".%0*d", digits > 6 ? 6 : digits, (int)us);
}

static void put_date_time(int64_t local_us, char between, char buf[WHEN_TEXT_SIZE])
{
    int seconds = (int)(when_floor_mod(local_us, US_PER_DAY) / US_PER_S);
    put_date(local_us, buf);
    put(buf, "%c%02d:%02d:%02d", between, seconds / 3600, seconds / 60 % 60, seconds % 60);
}

const char *when_format(instant at, char buf[WHEN_TEXT_SIZE])
{
    int64_t us = when_floor_mod(at, US_PER_S);
    int digits = us ? 6 : 0;
    for (int64_t rest = us; digits && rest % 10 == 0; rest /= 10)
        digits--;
    buf[0] = '\0';
    put_date_time(at, 'T', buf);
    put_fraction(us, digits, buf);
    put(buf, "Z");
    return buf;
}

const char *when_format_local(int64_t local_us, int digits, char buf[WHEN_TEXT_SIZE])
{
    buf[0] = '\0';
    put_date_time(local_us, ' ', buf);
    put_fraction(when_floor_mod(local_us, US_PER_S), digits, buf);
    return buf;
}

const char *when_format_date(int64_t local_us, char buf[WHEN_TEXT_SIZE])
{
    buf[0] = '\0';
    put_date(local_us, buf);
    return buf;
}
