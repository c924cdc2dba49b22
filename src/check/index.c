/* index: does an index serve the due query and each reference? If not, the statement that makes one. */
#include "check/internal.h"

#include <string.h>

struct columns {
    const struct column **list;
    size_t n;
};

static bool has_column(const struct columns *in, const struct column *c)
{
    for (size_t i = 0; i < in->n; i++)
        if (in->list[i] == c)
            return true;
    return false;
}

static void add_column(struct arena *a, struct columns *to, const struct column *c)
{
    if (has_column(to, c))
        return;
    to->list = arena_push(a, to->list, to->n, sizeof(const struct column *));
    to->list[to->n++] = c;
}

/* --- CREATE INDEX ----------------------------------------------------------------------------------- */

/* Where the engine does not make up a free one itself. MariaDB takes no more than so many characters. */
static void add_index_name(struct text *out, const struct facts *f, const struct table *t,
                           const struct columns *on)
{
    enum { NAME_MOST = 64 };
    AUTO(text_release) struct text name = {0};
    text_add(&name, t->name);
    for (size_t i = 0; i < on->n; i++)
        text_addf(&name, "_%s", on->list[i]->name);
    size_t len = name.len < NAME_MOST ? name.len : NAME_MOST;
    while (len < name.len && (text_str(&name)[len] & 0xC0) == 0x80)
        len--;
    AUTO(mem_free_p) char *cut = mem_strdup(text_str(&name));
    cut[len] = '\0';
    text_add(out, " ");
    sql_word(out, f, cut);
}

/* No index holds a long text whole, and one that holds its beginning serves no order. */
static const struct column *column_cut(const struct columns *on)
{
    for (size_t i = 0; i < on->n; i++)
        if (on->list[i]->cut_in_indexes)
            return on->list[i];
    return NULL;
}

static void add_index_columns(struct text *out, const struct facts *f, const struct columns *on)
{
    text_add(out, " (");
    for (size_t i = 0; i < on->n; i++) {
        text_add(out, i ? ", " : "");
        sql_word(out, f, on->list[i]->name);
    }
    text_add(out, ")");
}

static const char *create_index(const struct survey *s, const struct table *t, const struct columns *on)
{
    AUTO(text_release) struct text out = {0};
    const struct facts *f = s->plan->facts;
    const struct column *cut = column_cut(on);
    if (cut)
        return arena_printf(s->findings->arena,
                            "make %s shorter than %s: an index can hold only its beginning", cut->name,
                            cut->sql_type);
    /* PostgreSQL cannot build the index of a partitioned table CONCURRENTLY. */
    text_add(&out, f->create_index && t->kind != KIND_PARTITIONED ? f->create_index : "CREATE INDEX");
    if (f->names_indexes)
        add_index_name(&out, f, t, on);
    text_add(&out, " ON ");
    sql_table_words(&out, f, t);
    add_index_columns(&out, f, on);
    text_add(&out, f->end_of_index ? f->end_of_index : "");
    return arena_strdup(s->findings->arena, text_str(&out));
}

const char *index_words(const struct survey *s, const struct table *t, const struct column **columns,
                        size_t n)
{
    struct columns on = {columns, n};
    return create_index(s, t, &on);
}

/* --- the due query ------------------------------------------------------------------------------------ */

/* A prefix or NULL is not one value that an index groups rows by. */
static bool has_no_value(const struct cond *c)
{
    for (size_t i = 0; i < c->n_values; i++)
        if (c->values[i].prefix || c->values[i].null)
            return true;
    return false;
}

/* Columns that `rows` pins to at most `most` values. */
static void add_pinned(const struct survey *s, const struct cond *c, size_t most, struct columns *ret)
{
    if (!c)
        return;
    for (size_t i = 0; c->op == COND_ALL && i < c->n_kids; i++)
        add_pinned(s, c->kids[i], most, ret);
    if (c->op != COND_IN || c->n_values > most || has_no_value(c))
        return;
    const struct column *column = table_column(s->plan->facts, s->plan->root.table, &c->column);
    if (column && !column->cut_in_indexes)
        add_column(s->findings->arena, ret, column);
}

static struct columns due_columns(const struct survey *s)
{
    struct arena *a = s->findings->arena;
    const struct table *t = s->plan->root.table;
    struct columns on = {0};
    add_pinned(s, s->plan->policy->rows, 1, &on);
    add_column(a, &on, s->plan->times[0].column);
    for (size_t i = 0; i < t->n_key; i++)
        add_column(a, &on, t->key[i]);
    return on;
}

static const char *due_index(const struct survey *s)
{
    struct columns on = due_columns(s);
    return create_index(s, s->plan->root.table, &on);
}

static bool begins_with(const struct index *x, const struct columns *on)
{
    return x->n_columns >= on->n && memcmp(x->columns, on->list, on->n * sizeof(*on->list)) == 0;
}

const char *better_index_words(const struct survey *s)
{
    const struct table *t = s->plan->root.table;
    struct columns on = due_columns(s);
    for (size_t i = 0; i < t->n_indexes; i++)
        if (begins_with(&t->indexes[i], &on))
            return NULL;
    return create_index(s, t, &on);
}

/* With several age columns the latest counts, which no index knows: batches follow the key. */
static void check_key_walk(const struct survey *s)
{
    const struct table *t = s->plan->root.table;
    struct columns key = {t->key, t->n_key};
    if (table_index_on(t, t->key, t->n_key))
        return;
    findings_add(s->findings, FINDING_NOTE, s->plan->policy->name, s->plan->policy->at,
                 create_index(s, t, &key),
                 "no index can serve the latest of several age columns, and none leads with the key of %s: "
                 "each batch reads the whole table",
                 t->print);
}

static void check_due_index(const struct survey *s)
{
    const struct plan *p = s->plan;
    if (p->n_times > 1)
        check_key_walk(s);
    if (p->n_times != 1 || p->examines) /* which finds its few rows among many old ones */
        return;
    const struct column *time = p->times[0].column;
    if (!p->index)
        findings_add(s->findings, FINDING_WARNING, p->policy->name, p->times[0].at, due_index(s),
                     "no index of %s serves the search by %s: each sweep reads the whole table",
                     p->root.table->print, time->name);
}

/* --- the newest rows of groups ------------------------------------------------------------------------- */

/* Leads with the columns of `per` in any order, and goes on with those of `newest`; one that `rows` pins to a
 * value may stand anywhere between. */
static bool serves_ranking(const struct index *x, const struct ranking *r, const struct columns *pinned)
{
    const struct columns per = {r->per, r->n_per};
    size_t n_per = 0, n_newest = 0;
    for (size_t i = 0; i < x->n_columns && !x->partial && n_newest < r->n_newest; i++) {
        const struct column *c = x->columns[i];
        if (n_per < r->n_per && c && has_column(&per, c))
            n_per++;
        else if (n_per == r->n_per && c == r->newest[n_newest].column)
            n_newest++;
        else if (!c || !has_column(pinned, c))
            return false;
    }
    return n_newest == r->n_newest;
}

static void check_rank_index(const struct survey *s)
{
    const struct plan *p = s->plan;
    const struct table *t = p->root.table;
    const struct ranking *r = p->beyond ? p->beyond->ranking : NULL;
    struct columns on = {0};
    if (!r)
        return;
    add_pinned(s, p->policy->rows, 1, &on);
    for (size_t i = 0; i < t->n_indexes; i++)
        if (serves_ranking(&t->indexes[i], r, &on))
            return;
    for (size_t i = 0; i < r->n_per; i++)
        add_column(s->findings->arena, &on, r->per[i]);
    for (size_t i = 0; i < r->n_newest; i++)
        add_column(s->findings->arena, &on, r->newest[i].column);
    findings_add(s->findings, FINDING_WARNING, p->policy->name, r->newest[0].at, create_index(s, t, &on),
                 "no index of %s serves the order (%s): each batch that is judged reads the whole table",
                 t->print, column_words(s->findings->arena, on.list, on.n));
}

/* --- references ---------------------------------------------------------------------------------------- */

static bool is_same_search(const struct reference *a, const struct reference *b)
{
    struct columns columns = {a->join.child, a->join.n};
    if (a->child != b->child || a->join.n != b->join.n)
        return false;
    for (size_t i = 0; i < b->join.n; i++)
        if (!has_column(&columns, b->join.child[i]))
            return false;
    return true;
}

static bool is_said_before(const struct survey *s, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_same_search(&s->references[i], &s->references[at]))
            return true;
    return false;
}

static void check_reference_index(const struct survey *s, const struct reference *r)
{
    struct columns on = {r->join.child, r->join.n};
    if (table_index_on(r->child, r->join.child, r->join.n))
        return;
    findings_add(s->findings, FINDING_WARNING, s->plan->policy->name, r->at, create_index(s, r->child, &on),
                 "no index of %s leads with (%s): for each row of %s that is deleted the whole table is read",
                 r->child->print, column_words(s->findings->arena, on.list, on.n),
                 r->parent->node->table->print);
}

void check_indexes(const struct survey *s)
{
    if (!s->timeless)
        check_due_index(s);
    check_rank_index(s);
    for (size_t i = 0; i < s->n_references; i++)
        if (!is_said_before(s, i))
            check_reference_index(s, &s->references[i]);
    check_orphan_index(s);
}
