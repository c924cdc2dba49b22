/* http_pages: the table of paths and the answers. */
#include "http_pages.h"

#include <stdlib.h>
#include <string.h>

#include "http_guard.h"

static const char text_type[] = "text/plain; charset=utf-8";
static const char json_type[] = "application/json";
static const char html_type[] = "text/html; charset=utf-8";
static const char metrics_type[] = "text/plain; version=0.0.4; charset=utf-8";

enum { LAST_IF_NOT_SAID = 20, MOST_RUNS = 1000 };

/* --- making texts --- */

static FILE *begin(struct answer *a)
{
    FILE *out = open_memstream(&a->body, &a->len);
    if (!out)
        abort();
    return out;
}

static void end(FILE *out, struct answer *a, int status, const char *type)
{
    if (fclose(out) != 0)
        abort();
    a->status = status;
    a->type = type;
}

/* The length of the UTF-8 character at s; 0: it is none. */
static size_t character(const unsigned char *s)
{
    static const struct {
        unsigned char lead, mask;
    } forms[] = {{0xc0, 0xe0}, {0xe0, 0xf0}, {0xf0, 0xf8}}; /* of two, three and four bytes */
    if (*s < 0x80)
        return 1;
    for (size_t n = 0; n < 3; n++) {
        if ((*s & forms[n].mask) != forms[n].lead)
            continue;
        for (size_t i = 1; i <= n + 1; i++)
            if ((s[i] & 0xc0) != 0x80)
                return 0;
        bool overlong = *s < 0xc2 || (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90);
        bool beyond = (*s == 0xed && s[1] > 0x9f) || (*s == 0xf4 && s[1] > 0x8f) || *s > 0xf4;
        return overlong || beyond ? 0 : n + 2;
    }
    return 0;
}

/* Up to the end of the line or of the text; bytes that are no UTF-8 become U+FFFD. */
static const char *put_json_line(FILE *out, const char *s)
{
    putc('"', out);
    while (*s && *s != '\n') {
        size_t n = character((const unsigned char *)s);
        if (n == 0)
            fputs("\\ufffd", out);
        else if (n == 1 && (unsigned char)*s < ' ')
            fprintf(out, "\\u%04x", (unsigned)*s);
        else
            fprintf(out, "%s%.*s", *s == '"' || *s == '\\' ? "\\" : "", (int)n, s);
        s += n ? n : 1;
    }
    putc('"', out);
    return *s ? s + 1 : s;
}

void answer_error(const char *path, int status, const char *why, struct answer *a)
{
    bool json = strncmp(path, "/api/", strlen("/api/")) == 0;
    FILE *out = begin(a);
    if (json) {
        fputs("{\"error\": ", out);
        put_json_line(out, why);
        fputs("}\n", out);
    } else
        fprintf(out, "%s\n", why);
    end(out, a, status, json ? json_type : text_type);
}

/* A text that the daemon made; NULL: why not, both free()d or handed on here. */
static void hand_on(const char *path, char *body, char *why, const char *type, struct answer *a)
{
    if (body)
        *a = (struct answer){.status = 200, .type = type, .body = body, .len = strlen(body)};
    else
        answer_error(path, 503, why ? why : "nothing is known yet", a);
    free(why);
}

/* --- the pages --- */

static void make_metrics(const struct ask *ask, struct answer *a)
{
    hand_on("/metrics", lapse_daemon_metrics(ask->daemon), NULL, metrics_type, a);
}

static void make_health(const struct ask *ask, struct answer *a)
{
    bool alive = lapse_daemon_alive(ask->daemon);
    FILE *out = begin(a);
    if (ask->json)
        fprintf(out, "{\"alive\": %s}\n", alive ? "true" : "false");
    else
        fputs(alive ? "alive\n" : "not alive: its loop does not turn\n", out);
    end(out, a, alive ? 200 : 503, ask->json ? json_type : text_type);
}

/* The reasons, one a line, as a JSON array. */
static void put_reasons(FILE *out, const char *why)
{
    putc('[', out);
    for (const char *s = why; *s;) {
        fputs(s == why ? "" : ", ", out);
        s = put_json_line(out, s);
    }
    putc(']', out);
}

static void make_ready(const struct ask *ask, struct answer *a)
{
    char *why = NULL;
    bool ready = lapse_daemon_ready(ask->daemon, &why);
    FILE *out = begin(a);
    if (ask->json) {
        fprintf(out, "{\"ready\": %s, \"reasons\": ", ready ? "true" : "false");
        put_reasons(out, !ready && why ? why : "");
        fputs("}\n", out);
    } else if (ready)
        fputs("ready\n", out);
    else
        fprintf(out, "not ready\n%s%s", why ? why : "",
                why && *why && why[strlen(why) - 1] != '\n' ? "\n" : "");
    free(why);
    end(out, a, ready ? 200 : 503, ask->json ? json_type : text_type);
}

static void make_status(const struct ask *ask, struct answer *a)
{
    hand_on("/api/", lapse_daemon_status(ask->daemon), NULL, json_type, a);
}

static void make_policies(const struct ask *ask, struct answer *a)
{
    hand_on("/api/", lapse_daemon_policies(ask->daemon), NULL, json_type, a);
}

static void make_runs(const struct ask *ask, struct answer *a)
{
    char *why = NULL;
    char *body = lapse_daemon_runs(ask->daemon, *ask->scheduler ? ask->scheduler : NULL, ask->last, &why);
    hand_on("/api/", body, why, json_type, a);
}

static void make_openapi(const struct ask *ask, struct answer *a)
{
    (void)ask;
    char *body = strdup(openapi);
    if (!body)
        abort();
    hand_on("/api/", body, NULL, json_type, a);
}

static void make_list(const struct ask *ask, struct answer *a);

static const struct page pages[] = {
    {"/", "This page.", .make = make_list},
    {"/metrics", "The metrics, as Prometheus reads them.", .make = make_metrics},
    {"/healthz", "Whether the daemon's loop turns.", .health = true, .make = make_health},
    {"/readyz", "Whether it can do its work, and if not, why.", .health = true, .make = make_ready},
    {"/api/status", "The schedulers, as they stand.", .make = make_status},
    {"/api/policies", "The policies and what became of them last.", .make = make_policies},
    {"/api/runs", "Past runs, the newest first; ?scheduler=NAME&amp;last=N.", .slow = true, .query = true,
     .make = make_runs},
    {"/api/openapi.json", "All of this for machines.", .make = make_openapi},
};
enum { N_PAGES = sizeof(pages) / sizeof(pages[0]) };

static void make_list(const struct ask *ask, struct answer *a)
{
    (void)ask;
    FILE *out = begin(a);
    fprintf(out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>lapse</title></head>"
            "<body>\n<h1>lapse %s</h1>\n<dl>\n",
            lapse_version());
    for (size_t i = 0; i < N_PAGES; i++)
        fprintf(out, "<dt><a href=\"%s\">%s</a></dt><dd>%s</dd>\n", pages[i].path, pages[i].path,
                pages[i].about);
    fputs("</dl>\n</body></html>\n", out);
    end(out, a, 200, html_type);
}

const struct page *page_find(const char *path, size_t len)
{
    for (size_t i = 0; i < N_PAGES; i++)
        if (strlen(pages[i].path) == len && strncmp(pages[i].path, path, len) == 0)
            return &pages[i];
    return NULL;
}

/* --- the query --- */

static bool read_last(const char *value, int64_t *ret)
{
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || digits > 6 || value[digits])
        return false;
    *ret = strtol(value, NULL, 10);
    return *ret >= 1 && *ret <= MOST_RUNS;
}

/* One name=value; what is wrong with it, or NULL. */
static const char *read_parameter(const char *s, size_t len, struct ask *ask)
{
    char value[sizeof(ask->scheduler)];
    const char *equals = memchr(s, '=', len);
    size_t name = equals ? (size_t)(equals - s) : len;
    if (name == strlen("scheduler") && strncmp(s, "scheduler", name) == 0) {
        if (*ask->scheduler)
            return "scheduler is given twice";
        if (!equals || !query_decode(equals + 1, len - name - 1, value, sizeof(value)) || !*value)
            return "scheduler must be the name of a scheduler";
        memcpy(ask->scheduler, value, sizeof(value));
        return NULL;
    }
    if (name == strlen("last") && strncmp(s, "last", name) == 0) {
        if (ask->last)
            return "last is given twice";
        if (!equals || !query_decode(equals + 1, len - name - 1, value, sizeof(value)) ||
            !read_last(value, &ask->last))
            return "last must be a number from 1 to 1000";
        return NULL;
    }
    return "unknown parameter; allowed: scheduler=NAME, last=N (1 to 1000)";
}

bool page_query(const struct page *p, const char *query, struct ask *ask, struct answer *a)
{
    const char *wrong = NULL;
    if (query && *query && !p->query)
        wrong = "this path takes no parameters";
    for (const char *s = query; s && *s && !wrong;) {
        size_t len = strcspn(s, "&");
        wrong = read_parameter(s, len, ask);
        s += len + (s[len] == '&');
    }
    if (wrong)
        answer_error(p->path, 400, wrong, a);
    if (!ask->last)
        ask->last = LAST_IF_NOT_SAID;
    return !wrong;
}
