/* page: the operators' page, made and held against one that was committed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/internal.h"
#include "page/page.h"

static void render(const struct contract *c, enum lapse_page_form form, struct text *out)
{
    AUTO(page_free_p) struct page *page = page_make(c);
    if (form == LAPSE_PAGE_HTML)
        page_html(page, out);
    else if (form == LAPSE_PAGE_JSON)
        page_json(page, out);
    else
        page_markdown(page, out);
}

char *lapse_page(const struct lapse_contract *c, enum lapse_page_form form)
{
    struct text t = {0};
    render(c->contract, form, &t);
    return t.data;
}

static void file_close_p(FILE **f)
{
    if (*f)
        fclose(*f);
}

/* More than any page, so that a wrong path (a device, a dump) ends. */
enum { PAGE_MOST_BYTES = 64 * 1024 * 1024 };

/* *ret_missing: there is no such file. */
static int read_page(const char *path, struct text *out, bool *ret_missing, struct err *e)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe would be waited for */
    *ret_missing = fd < 0 && errno == ENOENT;
    AUTO(file_close_p) FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
    char piece[16384];
    size_t n;
    if (f && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(e, ERR_USAGE, "cannot read %s: it is no file", path);
    while (f && out->len < PAGE_MOST_BYTES && (n = fread(piece, 1, sizeof(piece), f)) > 0)
        text_add_n(out, piece, n);
    if (!f || ferror(f))
        return err_set(e, ERR_USAGE, "cannot read %s: %s", path, strerror(errno));
    return 0;
}

/* A word of the command line, quoted where a shell would read it otherwise. */
static void add_word(struct text *t, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@%,";
    if (*word && strspn(word, plain) == strlen(word)) {
        text_addf(t, " %s", word);
        return;
    }
    text_add(t, " '");
    for (; *word; word++)
        text_add_n(t, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    text_add(t, "'");
}

static const char *refresh_command(struct arena *a, const char *file, const struct lapse_options *o)
{
    AUTO(text_release) struct text t = {0};
    text_add(&t, "lapse");
    if (strcmp(file, "lapse.yaml") != 0) {
        text_add(&t, " -f");
        add_word(&t, file);
    }
    text_addf(&t, " contract%s -o", o->html ? " --html" : "");
    add_word(&t, o->page);
    return arena_strdup(a, text_str(&t));
}

static void compare(struct report *r, const struct contract *c, const struct lapse_options *o,
                    const struct text *found)
{
    AUTO(text_release) struct text expected = {0};
    struct page_difference d;
    render(c, o->html ? LAPSE_PAGE_HTML : LAPSE_PAGE_MARKDOWN, &expected);
    if (!page_differs(r->arena, text_str(&expected), text_str(found), found->len, &d)) {
        r->remarks = arena_push(r->arena, r->remarks, r->n_remarks, sizeof(*r->remarks));
        r->remarks[r->n_remarks++] = arena_printf(r->arena, "%s is up to date with %s", o->page, c->file);
        return;
    }
    r->kind = REPORT_CHECK;
    findings_add(&r->findings, FINDING_ERROR, NULL, d.at, refresh_command(r->arena, c->file, o),
                 "the page is out of date with %s; expected: %s; found: %s", c->file, d.expected, d.found);
}

struct lapse_report *lapse_page_check(const struct lapse_contract *c, const struct lapse_options *o)
{
    struct err e = ERR_INIT;
    AUTO(text_release) struct text found = {0};
    struct report *r = report_new(REPORT_ERROR, "contract");
    r->contract = c->contract;
    r->file = arena_strdup(r->arena, o->page);
    bool missing, failed = read_page(o->page, &found, &missing, &e) < 0;
    if (missing) {
        r->kind = REPORT_CHECK;
        findings_add(&r->findings, FINDING_ERROR, NULL, (struct place){0},
                     refresh_command(r->arena, c->contract->file, o), "there is no such page");
    } else if (failed) {
        r->error = arena_strdup(r->arena, e.text);
        r->exit = LAPSE_BAD_INPUT;
    } else {
        compare(r, c->contract, o, &found);
    }
    if (r->findings.errors)
        r->exit = LAPSE_FINDINGS;
    return boxed(r);
}
