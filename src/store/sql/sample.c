/* sample: what a few rows of a table look like. See sqlstore.h. */
#include "store/sql/store_internal.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE_ROWS = 1000, RECENT_ROWS = 10000 };

enum { EXAMPLE_SIZE = sizeof(((struct time_sample *)0)->example) };
_Static_assert(sizeof(((struct disorder *)0)->one) == EXAMPLE_SIZE, "examples are of one size");

static void print_example(char to[EXAMPLE_SIZE], const struct value *v)
{
    AUTO(text_release) struct text t = {0};
    value_print(v, &t);
    size_t len = t.len < EXAMPLE_SIZE - 1 ? t.len : EXAMPLE_SIZE - 1;
    memcpy(to, text_str(&t), len);
    to[len] = '\0';
}

static void set_example(struct time_sample *ret, const struct value *v)
{
    if (!ret->example[0])
        print_example(ret->example, v);
}

/* PostgreSQL gives whole numbers as texts; SQLite keeps in a column of whole numbers any text that is none.
 */
static bool is_whole(const struct value *v)
{
    if (v->kind != VALUE_TEXT)
        return v->kind == VALUE_INTEGER;
    size_t sign = v->text[0] == '-';
    return v->len > sign && strspn(v->text + sign, "0123456789") == v->len - sign;
}

static void sample_integer(const struct time_column *t, const struct value *v, struct time_sample *ret)
{
    if (!is_whole(v)) {
        ret->unreadable++;
        set_example(ret, v);
        return;
    }
    int64_t i = sqlstore_number(v);
    ret->plausible_s += time_is_plausible(i, US_PER_S);
    ret->plausible_ms += time_is_plausible(i, US_PER_MS);
    ret->plausible_us += time_is_plausible(i, 1);
    if (!time_is_plausible(i, t->unit_us))
        set_example(ret, v);
}

static void sample_text(const struct time_column *t, const struct value *v, struct time_sample *ret)
{
    instant ignored;
    size_t len = v->kind == VALUE_TEXT ? v->len : 0;
    while (len && v->text[len - 1] == ' ') /* a char(n) comes padded */
        len--;
    if (len && when_parse(v->text, len, t->zone, &ignored))
        return;
    ret->unreadable++;
    set_example(ret, v);
}

static int sample_of(struct sql_store *s, const struct plan *p, const struct column *c, struct rows *ret,
                     struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    sql_sample(&st, s->engine->dialect, p, c, SAMPLE_ROWS);
    int r = sqlstore_reading(s, p, e);
    if (r == 0)
        r = s->engine->query(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_sample(struct store *store, const struct plan *p, size_t time, struct time_sample *ret,
                    struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    const struct time_column *t = &p->times[time];
    AUTO(rows_release) struct rows found = {0};
    *ret = (struct time_sample){0};
    int r = sample_of(s, p, t->column, &found, e);
    for (size_t i = 0; r == 0 && i < found.n_rows; i++) {
        ret->n++;
        if (t->encoding == TIME_INTEGER)
            sample_integer(t, rows_at(&found, i), ret);
        else if (t->encoding == TIME_TEXT)
            sample_text(t, rows_at(&found, i), ret);
    }
    return r;
}

int sqlstore_recent(struct store *store, const struct plan *p, struct recent *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    *ret = (struct recent){0};
    sql_recent(&st, s->engine->dialect, p, RECENT_ROWS);
    int r = sqlstore_reading(s, p, e);
    if (r == 0)
        r = s->engine->query(s, &st, &found, e);
    s->engine->rollback(s);
    if (r < 0 || !found.n_rows)
        return r;
    const struct value *row = rows_at(&found, 0);
    ret->rows = sqlstore_number(&row[0]);
    ret->due = sqlstore_number(&row[1]);
    ret->more = ret->rows == RECENT_ROWS;
    ret->has_newest = row[2].kind != VALUE_NULL;
    ret->newest = ret->has_newest ? sqlstore_number(&row[2]) : 0;
    return 0;
}

static bool is_number(const struct value *v)
{
    return v->kind == VALUE_INTEGER || v->kind == VALUE_REAL;
}

/* How a time is written, as far as it decides how texts sort: what stands between date and time, whether
 * there are seconds, and the offset. A fraction moves a time by less than a second. */
struct form {
    char between;
    bool seconds;
    const char *offset;
    size_t offset_len;
};

static bool form_of(const struct value *v, struct form *ret)
{
    instant ignored;
    size_t len = v->kind == VALUE_TEXT ? v->len : 0;
    while (len && v->text[len - 1] == ' ')
        len--;
    if (len < 16 || !when_parse(v->text, len, NULL, &ignored))
        return false;
    size_t at = 16; /* YYYY-MM-DDTHH:MM */
    *ret = (struct form){.between = v->text[10], .seconds = v->text[at] == ':'};
    while (at < len && !strchr("Zz+-", v->text[at]))
        at++;
    ret->offset = v->text + at;
    ret->offset_len = len - at;
    return true;
}

static bool same_form(const struct form *a, const struct form *b)
{
    return a->between == b->between && a->seconds == b->seconds && a->offset_len == b->offset_len &&
           memcmp(a->offset, b->offset, a->offset_len) == 0;
}

static bool clash(const struct value *a, const struct value *b, struct disorder *ret)
{
    struct form of_a, of_b;
    ret->of_times = is_number(a) == is_number(b);
    if (ret->of_times && (!form_of(a, &of_a) || !form_of(b, &of_b) || same_form(&of_a, &of_b)))
        return false;
    print_example(ret->one, a);
    print_example(ret->other, b);
    return true;
}

/* Each against the first of all, which is a number or none, and against the first that is a time. */
static void find_disorder(const struct rows *r, struct disorder *ret)
{
    struct form ignored;
    const struct value *time = NULL;
    for (size_t i = 0; i < r->n_rows && !ret->found; i++) {
        const struct value *v = rows_at(r, i);
        ret->found = clash(rows_at(r, 0), v, ret) || (time && clash(time, v, ret));
        if (!time && form_of(v, &ignored))
            time = v;
    }
}

int sqlstore_disorder(struct store *store, const struct plan *p, const struct column *c, struct disorder *ret,
                      struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    *ret = (struct disorder){0};
    int r = sample_of(sqlstore_of(store), p, c, &found, e);
    if (r == 0)
        find_disorder(&found, ret);
    return r;
}
