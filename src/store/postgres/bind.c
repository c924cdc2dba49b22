/* bind: the parameters of a statement as texts. See store.h. */
#include "store/postgres/store.h"

#include <stdlib.h>
#include <string.h>

void bound_release(struct bound *b)
{
    for (size_t i = 0; i < b->n; i++)
        text_release(&b->texts[i]);
    free(b->texts);
    free(b->values);
}

/* As the server reads it; a NULL is bound apart. */
static void add_value(struct text *t, const struct value *v)
{
    if (v->kind != VALUE_BLOB) {
        value_print(v, t);
        return;
    }
    text_add(t, "\\x");
    for (size_t i = 0; i < v->len; i++)
        text_addf(t, "%02x", (unsigned char)v->text[i]);
}

/* What must be escaped begins the next run of bytes. */
static void add_quoted(struct text *t, const char *s, size_t len)
{
    size_t from = 0;
    text_add_n(t, "\"", 1);
    for (size_t i = 0; i < len; i++) {
        if (s[i] != '"' && s[i] != '\\')
            continue;
        text_add_n(t, s + from, i - from);
        text_add_n(t, "\\", 1);
        from = i;
    }
    text_add_n(t, s + from, len - from);
    text_add_n(t, "\"", 1);
}

void postgres_add_item(struct text *array, const char *item)
{
    text_add(array, array->len ? "," : "{");
    if (item)
        add_quoted(array, item, strlen(item));
    else
        text_add(array, "NULL");
}

void postgres_end_array(struct text *array)
{
    text_add(array, array->len ? "}" : "{}");
}

static void add_array(struct text *t, const struct rows *rows, size_t column)
{
    AUTO(text_release) struct text one = {0};
    for (size_t i = 0; i < rows->n_rows; i++) {
        const struct value *v = &rows->cells[i * rows->n_columns + column];
        text_add_n(t, i ? "," : "{", 1);
        if (v->kind == VALUE_TEXT) {
            add_quoted(t, v->text, v->len);
        } else if (v->kind == VALUE_INTEGER) {
            text_add_i64(t, v->integer);
        } else if (v->kind == VALUE_NULL) {
            text_add(t, "NULL");
        } else {
            text_clear(&one);
            add_value(&one, v);
            add_quoted(t, one.data, one.len);
        }
    }
    postgres_end_array(t);
}

static void add_numbers(struct text *t, const int64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        text_add_n(t, i ? "," : "{", 1);
        text_add_i64(t, numbers[i]);
    }
    postgres_end_array(t);
}

static void add_part(struct text *t, struct rows *rows, const struct param *p)
{
    const struct runs *runs = p->part == ROWS_EACH ? NULL : rows_runs(rows, p->set_column, VALUE_TEXT);
    if (p->part == ROWS_EACH)
        add_array(t, rows, p->set_column);
    else if (runs)
        add_numbers(t, p->part == ROWS_FIRSTS ? runs->first : runs->last, runs->n);
    else
        text_add(t, "{}");
}

/* A column of a key set as an array literal, made once for all statements that ask about the set. One that is
 * not there yet (the statement is only looked at) is empty. */
static const char *set_column(struct sql_store *s, const struct param *p)
{
    struct rows *rows = (size_t)p->set < s->n_sets ? &s->sets[p->set].rows : NULL;
    if (!rows || !rows->n_rows)
        return "{}";
    if (!rows->sent)
        rows->sent = mem_alloc(N_ROWS_PARTS * rows->n_columns * sizeof(*rows->sent));
    struct text *array = &rows->sent[p->part * rows->n_columns + p->set_column];
    if (!array->len)
        add_part(array, rows, p);
    return text_str(array);
}

void postgres_bind(struct sql_store *s, const struct stmt *st, struct bound *b)
{
    b->n = st->n_params;
    b->values = mem_alloc(b->n * sizeof(*b->values));
    b->texts = mem_alloc(b->n * sizeof(*b->texts));
    for (size_t i = 0; i < b->n; i++) {
        const struct param *p = &st->params[i];
        if (p->set >= 0) {
            b->values[i] = set_column(s, p);
        } else if (p->value.kind != VALUE_NULL) {
            add_value(&b->texts[i], &p->value);
            b->values[i] = text_str(&b->texts[i]);
        }
    }
}
