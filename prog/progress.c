/* progress: lines on stderr while a sweep runs, or a plan is counted. On a terminal a bar per policy, redrawn in place, that leaves
 * one finished line; elsewhere just that line, plain. */
#include <stdlib.h>
#include <string.h>

#include "prog.h"

enum {
    REDRAW_US = 100 * 1000,  /* at most ten times a second */
    SMOOTH_US = 2000 * 1000, /* the rate follows the last seconds */
    BAR_MOST = 30,
    BAR_LEAST = 6,
    LINE_SIZE = 512,
};

struct progress {
    struct terminal terminal;
    bool drawn;       /* an unfinished line stands there */
    int64_t drawn_us; /* when, in the policy's own time */
    int64_t seen_us, seen_rows;
    double rate;          /* rows per second, smoothed; < 0: not known yet */
    int64_t said_wait_us; /* how long it had waited when that was last said, where there is no bar */
};

struct progress *progress_new(const struct call *call)
{
    if (given(call, OPTION_JSON) || given(call, OPTION_NO_PROGRESS))
        return NULL;
    struct progress *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->terminal = terminal_of(stderr);
    p->rate = -1;
    return p;
}

bool progress_live(const struct progress *p)
{
    return p && p->terminal.is;
}

/* --- texts -------------------------------------------------------------------------------------- */

/* 1234567 -> "1,234,567" */
static const char *number(int64_t n, char buf[32])
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)n), at = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-')
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

/* "48ms", "3.2s", "1m 12s", "2h 5m" */
static const char *duration(int64_t us, char buf[32])
{
    long long s = us / 1000000;
    if (us < 1000)
        snprintf(buf, 32, "<1ms");
    else if (us < 1000000)
        snprintf(buf, 32, "%lldms", (long long)(us / 1000));
    else if (s < 60)
        snprintf(buf, 32, "%lld.%llds", s, (long long)(us / 100000 % 10));
    else if (s < 3600)
        snprintf(buf, 32, "%lldm %llds", s / 60, s % 60);
    else
        snprintf(buf, 32, "%lldh %lldm", s / 3600, s / 60 % 60);
    return buf;
}

static void time_left(double seconds, char buf[64])
{
    char text[32];
    if (seconds < 1)
        snprintf(buf, 64, "<1s left");
    else if (seconds < 60)
        snprintf(buf, 64, "%ds left", (int)seconds);
    else if (seconds < 100 * 3600)
        snprintf(buf, 64, "%s left", duration((int64_t)(seconds * 1e6), text));
    else
        buf[0] = '\0';
}

/* A line under construction, and the columns it takes. */
struct line {
    char text[LINE_SIZE];
    size_t len;
    int columns;
};

static void add(struct line *l, int columns, const char *s)
{
    size_t n = strlen(s);
    if (l->len + n >= sizeof(l->text))
        return;
    memcpy(l->text + l->len, s, n + 1);
    l->len += n;
    l->columns += columns;
}

/* A part that is there whole or not at all. */
static void add_part(struct line *l, int room, const char *s)
{
    int columns = (int)strlen(s) + 2;
    if (!*s || l->columns + columns > room)
        return;
    add(l, 2, "  ");
    add(l, columns - 2, s);
}

/* A policy's name, cut to so many columns; a column per character, control characters shown as '?'. */
static void add_name(struct line *l, const char *name, int most)
{
    for (const char *s = name; *s;) {
        char c[5] = "";
        size_t n = 1;
        while (n < 4 && ((unsigned char)s[n] & 0xC0) == 0x80)
            n++;
        memcpy(c, s, n);
        if ((unsigned char)c[0] < 0x20 || c[0] == 0x7F)
            c[0] = '?';
        if (most-- <= 0)
            return;
        add(l, 1, c);
        s += n;
    }
}

/* --- the bar ------------------------------------------------------------------------------------ */

static void add_bar(const struct progress *p, struct line *l, double done, int cells)
{
    int full = (int)(done * cells + 0.5);
    add(l, 1, p->terminal.utf8 ? "" : "[");
    for (int i = 0; i < cells; i++)
        add(l, 1, i < full ? (p->terminal.utf8 ? "█" : "#") : (p->terminal.utf8 ? "░" : "."));
    add(l, 1, p->terminal.utf8 ? "" : "]");
}

/* The rate over the last seconds: each new measurement weighs as much as the time it covers. */
static void measure(struct progress *p, const struct lapse_progress *now)
{
    int64_t us = now->elapsed_us - p->seen_us;
    if (us < REDRAW_US)
        return;
    double fresh = (double)(now->rows - p->seen_rows) * 1e6 / (double)us;
    double weight = (double)us / (double)(us + SMOOTH_US);
    p->rate = p->rate < 0 ? fresh : p->rate + weight * (fresh - p->rate);
    p->seen_us = now->elapsed_us;
    p->seen_rows = now->rows;
}

/* What fits into the width, the least important left out first: time left, rate, bar, counts, name. */
static void compose(const struct progress *p, const struct lapse_progress *now, int width, struct line *l)
{
    char a[32], b[32], rows[80], rate[64] = "", left[64] = "", percent[16] = "";
    double done = now->due > 0 ? (double)now->rows / (double)now->due : 0;
    done = done > 1 ? 1 : done;
    if (now->due > 0) {
        snprintf(rows, sizeof(rows), "%s/%s", number(now->rows, a), number(now->due, b));
        snprintf(percent, sizeof(percent), "%3d%%", (int)(done * 100));
    } else {
        snprintf(rows, sizeof(rows), "%s rows", number(now->rows, a));
    }
    if (p->rate >= 0)
        snprintf(rate, sizeof(rate), "%s rows/s", number((int64_t)p->rate, a));
    if (asked_to_stop(NULL))
        snprintf(left, sizeof(left), "stopping");
    else if (now->waiting_us)
        snprintf(left, sizeof(left), "waiting for %s", duration(now->waiting_us, a));
    else if (p->rate > 0 && now->due > now->rows)
        time_left((double)(now->due - now->rows) / p->rate, left);

    int room = width - 1; /* the last column would wrap on some terminals */
    add_name(l, now->policy, room < 40 ? room / 2 : room - 30);
    int spare = room - l->columns - (int)(strlen(rows) + strlen(percent) + strlen(rate) + strlen(left)) - 12;
    int cells = spare > BAR_MOST ? BAR_MOST : spare;
    if (now->due > 0 && cells >= BAR_LEAST) {
        add(l, 2, "  ");
        add_bar(p, l, done, cells);
    }
    add_part(l, room, percent);
    add_part(l, room, rows);
    add_part(l, room, rate);
    add_part(l, room, left);
    if (now->pace && *now->pace)
        add_part(l, room, l->columns + (int)strlen(now->pace_text) + 2 <= room ? now->pace_text : now->pace);
}

static void draw(struct progress *p, const struct lapse_progress *now)
{
    struct line l = {.len = 0};
    int width = terminal_width(stderr); /* it may have been resized */
    compose(p, now, width > 0 ? width : 80, &l);
    fprintf(stderr, "\r%s\033[K", l.text);
    fflush(stderr);
    p->drawn = true;
    p->drawn_us = now->elapsed_us;
}

static void draw_counting(struct progress *p, const struct lapse_progress *now)
{
    struct line l = {.len = 0};
    int width = terminal_width(stderr);
    int room = (width > 0 ? width : 80) - 1;
    add_name(&l, now->policy, room < 40 ? room / 2 : room - 30);
    add_part(&l, room, p->terminal.utf8 ? "counting …" : "counting ...");
    fprintf(stderr, "\r%s\033[K", l.text);
    fflush(stderr);
    p->drawn = true;
    p->drawn_us = -REDRAW_US;
}

/* --- the finished line ----------------------------------------------------------------------------- */

static bool is_elsewhere(const char *outcome)
{
    return strcmp(outcome, "held_elsewhere") == 0;
}

static const char *mark(const struct terminal *t, const char *outcome)
{
    bool done = strcmp(outcome, "done") == 0;
    bool off = strcmp(outcome, "disabled") == 0 || is_elsewhere(outcome);
    if (!t->colour)
        return done ? (t->utf8 ? "✓ " : "+ ") : off ? "- " : t->utf8 ? "✗ " : "! ";
    return done  ? (t->utf8 ? "\033[32m✓\033[0m " : "\033[32m+\033[0m ")
           : off ? "- "
                 : (t->utf8 ? "\033[31m✗\033[0m " : "\033[31m!\033[0m ");
}

/* What is left standing of a policy: mark, name, and what fits of the rest (everything, when piped). */
static void compose_finished(const struct progress *p, const struct lapse_progress *now, struct line *l)
{
    char a[32], part[64];
    int room = p->terminal.is ? terminal_width(stderr) - 1 : LINE_SIZE;
    int64_t us = now->deleting_us > 0 ? now->deleting_us : now->elapsed_us > 0 ? now->elapsed_us : 1;
    bool done = strcmp(now->outcome, "done") == 0;
    if (p->terminal.is)
        add(l, 2, mark(&p->terminal, now->outcome));
    add_name(l, now->policy, room < 60 ? room / 2 : room - 30);
    add_part(l, room,
             done                                  ? now->rows_all ? "" : "nothing due"
             : is_elsewhere(now->outcome)          ? "held elsewhere"
             : strcmp(now->outcome, "budget") == 0 ? "out of budget"
                                                   : now->outcome);
    if (now->rows_all) {
        snprintf(part, sizeof(part), "%s row%s", number(now->rows, a), now->rows == 1 ? "" : "s");
        add_part(l, room, part);
    }
    if (done || now->rows_all)
        add_part(l, room, duration(now->elapsed_us, a));
    if (now->rows_all) {
        snprintf(part, sizeof(part), "%s rows/s", number((int64_t)((double)now->rows * 1e6 / (double)us), a));
        add_part(l, room, part);
    }
}

static void finish(struct progress *p, const struct lapse_progress *now)
{
    struct line l = {.len = 0};
    compose_finished(p, now, &l);
    bool last = p->terminal.is && now->number == now->of; /* the table follows */
    fprintf(stderr, "%s%s\n%s", p->drawn ? "\r\033[K" : "", l.text, last ? "\n" : "");
    *p = (struct progress){.terminal = p->terminal, .rate = -1};
}

/* Where no bar shows it, a wait that does not end is said: after a minute, then each ten; that the database
 * is not there, at once. */
static void say_wait(struct progress *p, const struct lapse_progress *now)
{
    char a[32];
    struct line name = {.len = 0};
    bool away = now->pace && strcmp(now->pace, "away") == 0;
    if (now->waiting_us < p->said_wait_us)
        p->said_wait_us = 0;
    int64_t first = (away ? 1 : 60) * INT64_C(1000000), more = 600 * INT64_C(1000000);
    if (now->waiting_us < (p->said_wait_us ? p->said_wait_us + more : first))
        return;
    p->said_wait_us = now->waiting_us;
    add_name(&name, now->policy, LINE_SIZE);
    if (away) {
        fprintf(stderr, "%s  waits: %s\n", name.text, now->pace_text);
        return;
    }
    fprintf(stderr, "%s  has waited for %s and deletes nothing meanwhile: %s\n", name.text,
            duration(now->waiting_us, a), now->pace_text);
}

void progress_show(void *progress, const struct lapse_progress *now)
{
    struct progress *p = progress;
    if (now->finished) {
        finish(p, now);
        return;
    }
    if (!p->terminal.is) {
        say_wait(p, now);
        return;
    }
    if (now->counting) {
        draw_counting(p, now);
        return;
    }
    measure(p, now);
    if (!p->drawn || now->elapsed_us - p->drawn_us >= REDRAW_US)
        draw(p, now);
}

void progress_clear(struct progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

void progress_free(struct progress *p)
{
    free(p);
}
