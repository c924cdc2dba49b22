/* zone: TZif files read by our own code, and the two ways between instants and wall clocks.
 *
 * A zone is one sorted table of offset changes. The rule in the footer, which governs all years after the
 * last change listed in the file, is written out into the same table for a little more than the 400 years
 * after which the calendar repeats; later times are moved back by whole cycles before they are looked up. So
 * there is one lookup and no special case for the far future. */
#include "time/when.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char zoneinfo_dir[] = "/usr/share/zoneinfo";

enum { MAX_FILE_SIZE = 1 << 20 };
enum { MIN_OFFSET_S = -93599, MAX_OFFSET_S = 93599 }; /* below 26 hours: beyond what any zone has */
enum { DAY_S = 86400 };

static const int64_t cycle_s = INT64_C(146097) * DAY_S; /* 400 years */

/* At the instant `at` (seconds) the offset changes. The wall clock then jumps from at + before to at + after.
 */
struct change {
    int64_t at;
    int32_t before, after;
};

struct zone {
    char *name;
    struct change *changes; /* before != after, and far apart: see check_spacing */
    size_t count;
    int32_t first_offset; /* until the first change */
    int64_t cycle_from;   /* times from here on repeat those one cycle before; INT64_MAX: none */
};

/* --- building the table ------------------------------------------------------------------------ */

static int32_t last_offset(const struct zone *z)
{
    return z->count ? z->changes[z->count - 1].after : z->first_offset;
}

/* A change at the same instant as the last one replaces it; one that changes nothing is left out. */
static void add_change(struct zone *z, int64_t at, int32_t after)
{
    if (z->count && z->changes[z->count - 1].at == at)
        z->count--;
    int32_t before = last_offset(z);
    if (after != before)
        z->changes[z->count++] = (struct change){at, before, after};
}

static int64_t jump_size(const struct change *c)
{
    return c->after > c->before ? (int64_t)c->after - c->before : (int64_t)c->before - c->after;
}

/* Every function below relies on this: the wall clock times that one change skips or repeats, and the
 * instants they can be read as, never touch those of the next. In real zones they are days apart. */
static bool check_spacing(const struct zone *z)
{
    for (size_t i = 1; i < z->count; i++) {
        const struct change *c = &z->changes[i];
        if (c->at - c[-1].at <= jump_size(c) + jump_size(c - 1))
            return false;
    }
    return true;
}

/* --- the rule in the footer: a POSIX TZ string --------------------------------------------------- */

struct rule_date {
    enum { DAY_JULIAN, DAY_ZERO_BASED, DAY_OF_WEEK } kind;
    int day;         /* Jn: 1..365, never counts 29 February; n: 0..365; Mm.w.d: the weekday */
    int month, week; /* Mm.w.d; week 5 is the last */
    int32_t time_s;  /* on the wall clock before the change; may lie on another day */
};

struct rule {
    bool has_dst;
    int32_t std_offset, dst_offset; /* seconds east */
    struct rule_date start, end;    /* of daylight saving time */
};

static bool accept(const char **p, char c)
{
    if (**p != c)
        return false;
    ++*p;
    return true;
}

static bool read_number(const char **p, int low, int high, int *ret)
{
    int value = 0, digits = 0;
    for (; **p >= '0' && **p <= '9'; ++*p, digits++)
        if ((value = value * 10 + (**p - '0')) > high)
            return false;
    *ret = value;
    return digits && value >= low;
}

static bool read_abbreviation(const char **p)
{
    const char *start = *p;
    if (accept(p, '<')) {
        *p += strcspn(*p, ">");
        return accept(p, '>');
    }
    *p += strspn(*p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    return *p - start >= 3;
}

/* [+-]hh[:mm[:ss]] */
static bool read_hms(const char **p, int max_hours, int32_t *ret)
{
    int hours, minutes = 0, seconds = 0;
    bool negative = accept(p, '-');
    if (!negative)
        accept(p, '+');
    if (!read_number(p, 0, max_hours, &hours))
        return false;
    if (accept(p, ':') && !read_number(p, 0, 59, &minutes))
        return false;
    if (accept(p, ':') && !read_number(p, 0, 59, &seconds))
        return false;
    int32_t total = hours * 3600 + minutes * 60 + seconds;
    *ret = negative ? -total : total;
    return true;
}

static bool read_rule_date(const char **p, struct rule_date *ret)
{
    struct rule_date d = {.time_s = 2 * 3600};
    bool ok;
    if (accept(p, 'M')) {
        d.kind = DAY_OF_WEEK;
        ok = read_number(p, 1, 12, &d.month) && accept(p, '.') && read_number(p, 1, 5, &d.week) &&
             accept(p, '.') && read_number(p, 0, 6, &d.day);
    } else if (accept(p, 'J')) {
        d.kind = DAY_JULIAN;
        ok = read_number(p, 1, 365, &d.day);
    } else {
        d.kind = DAY_ZERO_BASED;
        ok = read_number(p, 0, 365, &d.day);
    }
    if (!ok || (accept(p, '/') && !read_hms(p, 167, &d.time_s)))
        return false;
    *ret = d;
    return true;
}

static bool read_rule(const char *p, struct rule *ret)
{
    struct rule r = {0};
    int32_t west;
    if (!read_abbreviation(&p) || !read_hms(&p, 24, &west))
        return false;
    r.std_offset = -west;
    r.has_dst = *p != '\0';
    if (r.has_dst) {
        if (!read_abbreviation(&p))
            return false;
        r.dst_offset = r.std_offset + 3600;
        if (*p != ',') {
            if (!read_hms(&p, 24, &west))
                return false;
            r.dst_offset = -west;
        }
        if (!accept(&p, ',') || !read_rule_date(&p, &r.start) || !accept(&p, ',') ||
            !read_rule_date(&p, &r.end))
            return false;
    }
    *ret = r;
    return *p == '\0';
}

static int64_t rule_day(const struct rule_date *d, int64_t year)
{
    int64_t new_year = civil_to_days(year, 1, 1);
    if (d->kind == DAY_ZERO_BASED)
        return new_year + d->day;
    if (d->kind == DAY_JULIAN)
        return new_year + d->day - 1 + (d->day >= 60 && civil_month_days(year, 2) == 29);
    int64_t first = civil_to_days(year, d->month, 1);
    int64_t day = (d->day - civil_weekday(first) + 7) % 7 + (d->week - 1) * 7;
    while (day >= civil_month_days(year, d->month))
        day -= 7;
    return first + day;
}

struct rule_change {
    int64_t at;
    int32_t after;
    bool starts_dst;
};

/* Where one year's end meets the next year's start, the start comes last and so wins: that is how a rule says
 * daylight saving time all year. */
static int compare_rule_changes(const void *left, const void *right)
{
    const struct rule_change *a = left, *b = right;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->starts_dst - b->starts_dst;
}

/* A cycle, and some years on each side so that whatever is moved into it has its true neighbours. */
enum { RULE_YEARS = 406 };

static void write_out_rule(struct zone *z, const struct rule *r, bool has_last, int64_t last_at)
{
    struct rule_change list[2 * RULE_YEARS];
    int64_t first_year = has_last ? civil_from_days(when_floor_div(last_at, DAY_S)).year : 1;
    for (int i = 0; i < RULE_YEARS; i++) {
        int64_t start = rule_day(&r->start, first_year + i) * DAY_S + r->start.time_s - r->std_offset;
        int64_t end = rule_day(&r->end, first_year + i) * DAY_S + r->end.time_s - r->dst_offset;
        list[2 * i] = (struct rule_change){start, r->dst_offset, true};
        list[2 * i + 1] = (struct rule_change){end, r->std_offset, false};
    }
    qsort(list, COUNT_OF(list), sizeof(list[0]), compare_rule_changes);
    for (size_t i = 0; i < COUNT_OF(list); i++)
        if (!has_last || list[i].at > last_at)
            add_change(z, list[i].at, list[i].after);
    z->cycle_from = list[COUNT_OF(list) - 1].at - 2 * 366 * (int64_t)DAY_S;
}

/* --- the file ------------------------------------------------------------------------------------ */

struct reader {
    const unsigned char *at;
    size_t left;
};

static const unsigned char *take(struct reader *r, uint64_t size)
{
    if (size > r->left)
        return NULL;
    const unsigned char *p = r->at;
    r->at += size;
    r->left -= (size_t)size;
    return p;
}

static uint32_t big_endian_32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t big_endian_signed(const unsigned char *p, unsigned size)
{
    if (size == 4)
        return (int32_t)big_endian_32(p);
    return (int64_t)((uint64_t)big_endian_32(p) << 32 | big_endian_32(p + 4));
}

struct header {
    unsigned char version;
    uint32_t utc_count, std_count, leap_count, time_count, type_count, char_count;
};

static bool read_header(struct reader *r, struct header *ret)
{
    const unsigned char *p = take(r, 44);
    if (!p || memcmp(p, "TZif", 4) != 0)
        return false;
    *ret = (struct header){
        .version = p[4],
        .utc_count = big_endian_32(p + 20),
        .std_count = big_endian_32(p + 24),
        .leap_count = big_endian_32(p + 28),
        .time_count = big_endian_32(p + 32),
        .type_count = big_endian_32(p + 36),
        .char_count = big_endian_32(p + 40),
    };
    return true;
}

/* The arrays of a data block that matter here; time_size is 4 or 8 bytes. */
struct block {
    struct header header;
    unsigned time_size;
    const unsigned char *times, *indices, *types;
};

static bool read_block(struct reader *r, const struct header *h, unsigned time_size, struct block *ret)
{
    struct block b = {.header = *h, .time_size = time_size};
    b.times = take(r, (uint64_t)h->time_count * time_size);
    b.indices = b.times ? take(r, h->time_count) : NULL;
    b.types = b.indices ? take(r, (uint64_t)h->type_count * 6) : NULL;
    uint64_t rest =
        h->char_count + (uint64_t)h->leap_count * (time_size + 4) + (uint64_t)h->std_count + h->utc_count;
    if (!b.types || !take(r, rest))
        return false;
    *ret = b;
    return true;
}

/* The footer is the rule between two newlines; empty means there is none. */
static bool read_footer(struct reader *r, char *buf, size_t room)
{
    if (!r->left || *r->at != '\n')
        return false;
    const unsigned char *end = memchr(r->at + 1, '\n', r->left - 1);
    size_t len = end ? (size_t)(end - r->at - 1) : 0;
    if (!end || len >= room || memchr(r->at + 1, '\0', len))
        return false;
    memcpy(buf, r->at + 1, len);
    buf[len] = '\0';
    return true;
}

/* The offset of type number i, or false if there is no such type or no such place on Earth. */
static bool type_offset(const struct block *b, unsigned i, int32_t *ret)
{
    if (i >= b->header.type_count)
        return false;
    int64_t offset = big_endian_signed(b->types + 6 * (size_t)i, 4);
    *ret = (int32_t)offset;
    return offset >= MIN_OFFSET_S && offset <= MAX_OFFSET_S;
}

/* Changes before any instant only decide the first offset; changes after any instant do not matter. The two
 * days keep sums with offsets within what was checked here. */
static const int64_t earliest_s = INT64_MIN / US_PER_S + 2 * DAY_S;
static const int64_t latest_s = INT64_MAX / US_PER_S - 2 * DAY_S;

static const char *add_listed_changes(struct zone *z, const struct block *b, bool *ret_any, int64_t *ret_last)
{
    int64_t former = INT64_MIN;
    if (!type_offset(b, 0, &z->first_offset))
        return "it has no valid first offset";
    for (size_t i = 0; i < b->header.time_count; i++) {
        int64_t at = big_endian_signed(b->times + i * b->time_size, b->time_size);
        int32_t offset;
        if (!type_offset(b, b->indices[i], &offset))
            return "an offset is missing or beyond 26 hours";
        if (i && at <= former)
            return "its changes are not in order";
        former = at;
        if (at < earliest_s) {
            z->first_offset = offset;
        } else if (at <= latest_s) {
            add_change(z, at, offset);
            *ret_any = true;
            *ret_last = at;
        }
    }
    return NULL;
}

/* Fills the zone; returns what is wrong with the file, or NULL. */
static const char *read_tzif(struct zone *z, struct reader *r)
{
    struct header h;
    struct block b;
    char footer[256] = "";
    if (!read_header(r, &h))
        return "it does not start as a TZif file does";
    if (!read_block(r, &h, 4, &b))
        return "it is cut short";
    if (h.version >= '2') { /* the first block is there for readers of version 1 alone */
        if (!read_header(r, &h) || !read_block(r, &h, 8, &b))
            return "its second part is cut short";
        if (!read_footer(r, footer, sizeof(footer)))
            return "its footer is missing or malformed";
    }
    if (h.leap_count)
        return "it counts leap seconds; use the zone of the same name outside right/";

    z->changes = mem_grow(NULL, (size_t)h.time_count + 2 * RULE_YEARS, sizeof(*z->changes));
    bool any = false;
    int64_t last_at = 0;
    const char *wrong = add_listed_changes(z, &b, &any, &last_at);
    if (wrong)
        return wrong;
    struct rule rule = {0};
    if (*footer && !read_rule(footer, &rule))
        return "the rule in its footer is malformed";
    if (rule.has_dst)
        write_out_rule(z, &rule, any, last_at);
    return check_spacing(z) ? NULL : "its changes are too close together";
}

int zone_from_bytes(const char *name, const void *bytes, size_t len, struct zone **ret, struct err *e)
{
    struct zone *z = mem_alloc(sizeof(*z));
    z->name = mem_strdup(name);
    z->cycle_from = INT64_MAX;
    const char *wrong = read_tzif(z, &(struct reader){bytes, len});
    if (wrong) {
        zone_free(z);
        return err_set(e, ERR_SYSTEM, "time zone '%.100s' cannot be used: %s", name, wrong);
    }
    *ret = z;
    return 0;
}

static void close_p(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static bool stays_in_folder(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
    return name[0] && name[0] != '/' && strspn(name, allowed) == strlen(name) && strlen(name) < 100;
}

/* Reads the whole of a regular file that is not absurdly large. */
static int read_file(const char *path, const char *name, struct text *ret, struct err *e)
{
    AUTO(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return err_set(e, ERR_CONTRACT,
                       "no time zone '%s' in %s; write an IANA name like Europe/Prague or UTC", name,
                       zoneinfo_dir);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, ERR_SYSTEM, "time zone '%s': %s: %s", name, path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > MAX_FILE_SIZE)
        return err_set(e, ERR_CONTRACT, "'%s' is no time zone; write an IANA name like Europe/Prague or UTC",
                       name);
    char part[8192];
    ssize_t got;
    while ((got = read(fd, part, sizeof(part))) > 0 && ret->len <= MAX_FILE_SIZE)
        text_add_n(ret, part, (size_t)got);
    if (got < 0)
        return err_set(e, ERR_SYSTEM, "time zone '%s': %s: %s", name, path, strerror(errno));
    return 0;
}

static struct zone *utc_zone(const char *name)
{
    struct zone *z = mem_alloc(sizeof(*z));
    z->name = mem_strdup(name);
    z->cycle_from = INT64_MAX;
    return z;
}

int zone_open(const char *name, struct zone **ret, struct err *e)
{
    /* The default must work on a system without zoneinfo too. */
    if (strcmp(name, "UTC") == 0 || strcmp(name, "Etc/UTC") == 0) {
        *ret = utc_zone(name);
        return 0;
    }
    if (!stays_in_folder(name))
        return err_set(e, ERR_CONTRACT,
                       "'%.100s' is no time zone name; write an IANA name like Europe/Prague or UTC", name);
    AUTO(text_release) struct text path = {0};
    AUTO(text_release) struct text bytes = {0};
    text_addf(&path, "%s/%s", zoneinfo_dir, name);
    if (read_file(text_str(&path), name, &bytes, e) < 0)
        return -1;
    return zone_from_bytes(name, text_str(&bytes), bytes.len, ret, e);
}

void zone_free(struct zone *z)
{
    if (!z)
        return;
    free(z->changes);
    free(z->name);
    free(z);
}

void zone_free_p(struct zone **z)
{
    zone_free(*z);
    *z = NULL;
}

/* --- looking up ----------------------------------------------------------------------------------
 * Everything is found in seconds, where no sum can overflow, and applied in microseconds, where it may. */

static const struct zone utc = {.cycle_from = INT64_MAX};

static int64_t plus_seconds(int64_t us, int64_t seconds)
{
    int64_t sum;
    if (add_i64(us, seconds * US_PER_S, &sum))
        return sum;
    return us < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t seconds_to_us(int64_t seconds)
{
    int64_t us;
    if (mul_i64(seconds, US_PER_S, &us))
        return us;
    return seconds < 0 ? INT64_MIN : INT64_MAX;
}

/* By how much to move a time back so that it lies in the table. */
static int64_t whole_cycles(const struct zone *z, int64_t s)
{
    return s < z->cycle_from ? 0 : ((s - z->cycle_from) / cycle_s + 1) * cycle_s;
}

/* Where a change begins to matter: its instant, or the lower of the two wall clock times around it. */
enum axis { AXIS_INSTANT, AXIS_LOCAL };

static int64_t change_start(const struct change *c, enum axis axis)
{
    if (axis == AXIS_INSTANT)
        return c->at;
    return c->at + (c->before < c->after ? c->before : c->after);
}

/* How many changes have begun at s; halves the range until nothing is left between the two ends. */
static size_t changes_begun(const struct zone *z, int64_t s, enum axis axis)
{
    size_t low = 0, high = z->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (change_start(&z->changes[middle], axis) <= s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *zone_name(const struct zone *z)
{
    return z ? z->name : "UTC";
}

bool zone_is_utc(const struct zone *z)
{
    return !z || (z->count == 0 && z->first_offset == 0);
}

static int32_t offset_after(const struct zone *z, size_t changes)
{
    return changes ? z->changes[changes - 1].after : z->first_offset;
}

int32_t zone_offset_at(const struct zone *z, instant at)
{
    z = z ? z : &utc;
    int64_t s = when_floor_div(at, US_PER_S);
    return offset_after(z, changes_begun(z, s - whole_cycles(z, s), AXIS_INSTANT));
}

/* The change that skips or repeats the local time s (already moved into the table), or NULL. */
static const struct change *change_around(const struct zone *z, int64_t s, size_t begun)
{
    const struct change *c = begun ? &z->changes[begun - 1] : NULL;
    return c && s < change_start(c, AXIS_LOCAL) + jump_size(c) ? c : NULL;
}

instant zone_instant(const struct zone *z, int64_t local_us)
{
    z = z ? z : &utc;
    int64_t s = when_floor_div(local_us, US_PER_S);
    s -= whole_cycles(z, s);
    size_t begun = changes_begun(z, s, AXIS_LOCAL);
    const struct change *c = change_around(z, s, begun);
    bool skipped = c && c->after > c->before;
    return plus_seconds(local_us, -(int64_t)(skipped ? c->before : offset_after(z, begun)));
}

/* Whether a change skips times or repeats them: those before at + after read with the offset before it. */
bool zone_step(const struct zone *z, size_t i, int64_t *ret_local_s, int32_t *ret_offset_s)
{
    z = z ? z : &utc;
    if (i > z->count)
        return false;
    *ret_offset_s = offset_after(z, i);
    *ret_local_s = i ? z->changes[i - 1].at + *ret_offset_s : INT64_MIN;
    return true;
}

instant zone_first_instant(const struct zone *z, int64_t local_us)
{
    z = z ? z : &utc;
    int64_t s = when_floor_div(local_us, US_PER_S);
    int64_t cycles = whole_cycles(z, s);
    size_t begun = changes_begun(z, s - cycles, AXIS_LOCAL);
    const struct change *c = change_around(z, s - cycles, begun);
    if (c && c->after > c->before)
        return seconds_to_us(c->at + cycles);
    return plus_seconds(local_us, -(int64_t)(c ? c->before : offset_after(z, begun)));
}

int64_t zone_first_local_s(const struct zone *z, int64_t at_s)
{
    z = z ? z : &utc;
    int64_t cycles = whole_cycles(z, at_s);
    int64_t s = at_s - cycles;
    size_t begun = changes_begun(z, s, AXIS_INSTANT);
    int64_t local = s + offset_after(z, begun);
    const struct change *c = begun ? &z->changes[begun - 1] : NULL;
    if (c && s == c->at && c->after > c->before)
        local = c->at + c->before; /* all the skipped times happen now */
    if (c && local < c->at + c->before)
        local = c->at + c->before; /* the repeated times have already happened */
    return local + cycles;
}

bool zone_second_pass(const struct zone *z, int64_t at_s, int64_t *ret_from, int64_t *ret_to)
{
    z = z ? z : &utc;
    int64_t cycles = whole_cycles(z, at_s);
    int64_t s = at_s - cycles;
    size_t begun = changes_begun(z, s, AXIS_INSTANT);
    for (size_t i = begun ? begun - 1 : 0; i < z->count; i++) {
        const struct change *c = &z->changes[i];
        if (c->after < c->before && s < c->at + jump_size(c)) {
            *ret_from = c->at + cycles;
            *ret_to = *ret_from + jump_size(c);
            return true;
        }
    }
    return false;
}

/* Where zone_instant jumps, a cutoff meets one of two cases. Before a clock is set back, the times up to the
 * repeated ones may all be earlier than the cutoff while the repeated ones, read as late, are not: the bound
 * stops there. After a clock was set forward, the skipped times read as the instants that follow the change,
 * which ordinary times share: those of them not yet reached are the hole. */
struct local_bound zone_bound(const struct zone *z, instant cutoff, bool or_equal)
{
    z = z ? z : &utc;
    if (or_equal && cutoff < INT64_MAX)
        cutoff++;
    struct local_bound bound = {cutoff, 0, 0};
    if (cutoff == INT64_MIN) /* nothing is before; results that were cut to fit must not look so */
        return bound;
    int64_t s = when_floor_div(cutoff, US_PER_S);
    int64_t cycles = whole_cycles(z, s);
    size_t begun = changes_begun(z, s - cycles, AXIS_INSTANT);
    bound.below = plus_seconds(cutoff, offset_after(z, begun));

    const struct change *next = begun < z->count ? &z->changes[begun] : NULL;
    if (next && next->after < next->before) {
        int64_t repeated_from = seconds_to_us(next->at + next->after + cycles);
        if (bound.below > repeated_from)
            bound.below = repeated_from;
    }
    const struct change *last = begun ? &z->changes[begun - 1] : NULL;
    if (last && last->after > last->before) {
        int64_t hole_from = plus_seconds(cutoff, last->before);
        int64_t hole_to = seconds_to_us(last->at + last->after + cycles);
        if (hole_from < hole_to && hole_to < bound.below)
            bound.hole_from = hole_from, bound.hole_to = hole_to;
        else if (hole_from < hole_to)
            bound.below = hole_from;
    }
    return bound;
}
