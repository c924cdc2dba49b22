/* text: a draft as the file it becomes. */
#include <string.h>

#include "draft/draft.h"
#include "base/quote.h"

enum { INDENT = 2, COMMENT_AT_MOST = 48 };

/* --- lines ------------------------------------------------------------------------------------------------
 */

/* A line of YAML and the remark behind it. */
struct line {
    const char *yaml, *remark; /* remark NULL: none */
};
struct page {
    struct arena *arena;
    struct line *lines;
    size_t n;
};

static void add_line(struct page *g, int depth, const char *yaml, const char *remark)
{
    g->lines = arena_push(g->arena, g->lines, g->n, sizeof(*g->lines));
    g->lines[g->n++] = (struct line){arena_printf(g->arena, "%*s%s", depth * INDENT, "", yaml), remark};
}

/* "key: value", the value as a scalar. */
static void add_pair(struct page *g, int depth, const char *key, const char *value, const char *remark)
{
    AUTO(text_release) struct text t = {0};
    text_addf(&t, "%s: ", key);
    yaml_scalar(&t, value, false);
    add_line(g, depth, text_str(&t), remark);
}

/* Remarks of a block begin in one column, unless a line is too long for it. */
static size_t remark_column(const struct page *g)
{
    size_t column = 0;
    for (size_t i = 0; i < g->n; i++) {
        size_t len = strlen(g->lines[i].yaml);
        if (g->lines[i].remark && len > column && len <= COMMENT_AT_MOST)
            column = len;
    }
    return column;
}

static void put_page(const struct page *g, bool commented, struct text *out)
{
    size_t column = remark_column(g);
    for (size_t i = 0; i < g->n; i++) {
        const struct line *l = &g->lines[i];
        size_t len = strlen(l->yaml);
        text_addf(out, "%s%s", commented ? "# " : "", l->yaml);
        if (l->remark) {
            text_addf(out, "%*s  # ", len < column ? (int)(column - len) : 0, "");
            yaml_comment(out, l->remark);
        }
        text_add(out, "\n");
    }
}

static void put_comment(struct text *out, const char *mark, const char *sentence)
{
    text_addf(out, "%*s## %s", INDENT, "", mark);
    yaml_comment(out, sentence);
    text_add(out, "\n");
}

static void put_comments(struct text *out, const char *mark, const struct draft_lines *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        put_comment(out, mark, lines->list[i]);
}

/* --- names -------------------------------------------------------------------------------------------------
 */

/* Real names: an exact match goes before a folded one, so case needs no quotes. */
static struct table_name table_name_of(const struct table *t)
{
    struct table_name n = {.table.text = t->name};
    if (t->schema && !t->bare)
        n.schema.text = t->schema;
    return n;
}

static const char *table_words(struct arena *a, const struct table *t)
{
    AUTO(text_release) struct text out = {0};
    struct table_name n = table_name_of(t);
    table_name_print(&n, &out);
    return arena_strdup(a, text_str(&out));
}

/* A column stands alone: only a quote at its beginning could be taken for something else. */
static const char *column_word(struct arena *a, const char *name)
{
    AUTO(text_release) struct text out = {0};
    if (*name != '"')
        return name;
    table_name_print(&(struct table_name){.table.text = name}, &out);
    return arena_strdup(a, text_str(&out));
}

static const char *ref_words(struct arena *a, const struct draft_ref *r)
{
    const struct fkey *k = r->fkey;
    struct ref ref = {.n_columns = k->n, .columns = arena_alloc(a, k->n * sizeof(struct name))};
    struct table_name written = {.schema.text = k->child_schema, .table.text = k->child_table};
    ref.table = r->child ? table_name_of(r->child) : written;
    for (size_t i = 0; i < k->n; i++)
        ref.columns[i].text = k->child_columns[i];
    AUTO(text_release) struct text out = {0};
    ref_print(&ref, &out);
    return arena_strdup(a, text_str(&out));
}

/* --- policies ----------------------------------------------------------------------------------------------
 */

static void add_refs(struct page *g, int depth, const struct draft_ref *refs, size_t n);

static void add_ref(struct page *g, int depth, const struct draft_ref *r)
{
    AUTO(text_release) struct text t = {0};
    text_add(&t, r->n_below ? "- ref: " : "- ");
    yaml_scalar(&t, ref_words(g->arena, r), false);
    add_line(g, depth, text_str(&t), r->why);
    add_refs(g, depth + 1, r->below, r->n_below);
}

static void add_refs(struct page *g, int depth, const struct draft_ref *refs, size_t n)
{
    static const char *const keys[] = {
        [DRAFT_WITH] = "with:", [DRAFT_DETACH] = "detach:", [DRAFT_AFTER] = "after:"};
    for (enum draft_role role = DRAFT_WITH; role <= DRAFT_AFTER; role++) {
        bool any = false;
        for (size_t i = 0; i < n; i++) {
            if (refs[i].role != role)
                continue;
            if (!any)
                add_line(g, depth, keys[role], NULL);
            any = true;
            add_ref(g, depth + 1, &refs[i]);
        }
    }
}

static void add_states(struct page *g, int depth, const struct draft_policy *p)
{
    AUTO(text_release) struct text t = {0};
    text_add(&t, "rows: { ");
    yaml_scalar(&t, column_word(g->arena, p->state->name), true);
    text_add(&t, ": [");
    for (size_t i = 0; i < p->n_states; i++) {
        text_add(&t, i ? ", " : "");
        yaml_scalar(&t, p->states[i], true);
    }
    text_add(&t, "] }");
    add_line(g, depth, text_str(&t), NULL);
}

/* What else must be so of a row, as one map: the policy's own time first. */
static void add_where(struct page *g, int depth, const struct draft_policy *p)
{
    static const char *const tests[] = {[DRAFT_IS_SET] = "{ not: null }",
                                        [DRAFT_ABOVE_ZERO] = "{ gt: 0 }",
                                        [DRAFT_IS_TRUE] = "true",
                                        [DRAFT_IS_ONE] = "1"};
    const struct draft_condition time = {p->time, DRAFT_ABOVE_ZERO};
    AUTO(text_release) struct text t = {0};
    bool zero = p->above_zero;
    for (size_t i = 0; i < p->n_conditions + p->above_zero; i++) {
        const struct draft_condition *c =
            i < p->above_zero ? &time : &p->conditions[i - (size_t)p->above_zero];
        text_add(&t, i ? ", " : "where: { ");
        yaml_scalar(&t, column_word(g->arena, c->column->name), true);
        text_addf(&t, ": %s", tests[c->test]);
        zero |= c->test == DRAFT_ABOVE_ZERO;
    }
    if (!t.len)
        return;
    text_add(&t, " }");
    add_line(g, depth, text_str(&t),
             !zero                       ? NULL
             : p->bound == DRAFT_EXPIRES ? "0 may stand for never"
                                         : "0 may stand for not yet");
}

static void add_policy(struct page *g, int depth, const struct draft_policy *p)
{
    struct arena *a = g->arena;
    AUTO(text_release) struct text name = {0};
    yaml_scalar(&name, p->name, false);
    text_add(&name, ":");
    add_line(g, depth++, text_str(&name), NULL);
    add_pair(g, depth, "table", table_words(a, p->table), NULL);
    if (p->bound == DRAFT_ENDED)
        add_states(g, depth, p);
    add_pair(g, depth, p->bound == DRAFT_EXPIRES ? "expires" : "age", column_word(a, p->time->name),
             p->time->sql_type[0] ? p->time->sql_type : NULL);
    if (p->unit)
        add_pair(g, depth, "unit", p->unit, NULL);
    if (p->zone)
        add_pair(g, depth, "zone", p->zone, NULL);
    add_where(g, depth, p);
    if (p->bound != DRAFT_EXPIRES)
        add_pair(g, depth, "keep", "never", "decide, for example 30d");
    add_refs(g, depth, p->refs, p->n_refs);
}

void draft_policy_text(const struct draft_policy *p, bool commented, struct text *out)
{
    AUTO(arena_free_p) struct arena *a = arena_new();
    struct page g = {.arena = a};
    add_policy(&g, 1, p);
    put_page(&g, commented, out);
}

static void put_policy(const struct draft_policy *p, struct text *out)
{
    text_add(out, "\n");
    put_comments(out, "", &p->why);
    put_comments(out, "decide: ", &p->decide);
    draft_policy_text(p, p->decide.n > 0, out);
}

/* --- the rest ----------------------------------------------------------------------------------------------
 */

static void put_rest_line(const struct draft_rest *r, struct text *out)
{
    AUTO(arena_free_p) struct arena *a = arena_new();
    text_addf(out, "%s%*s", r->bounded_by ? "" : "# ", INDENT, "");
    yaml_scalar(out, table_words(a, r->table), false);
    text_add(out, ": ");
    yaml_scalar(out, r->bounded_by ? r->bounded_by : "?", false);
    text_add(out, "\n");
}

static bool is_for_unbounded(const struct draft_rest *r)
{
    return !r->goes_with;
}

static void put_unbounded(const struct draft *d, struct text *out)
{
    text_add(out, "\nunbounded:\n");
    for (size_t i = 0; i < d->n_rest; i++)
        if (d->rest[i].bounded_by && is_for_unbounded(&d->rest[i]))
            put_rest_line(&d->rest[i], out);
    for (size_t i = 0; i < d->n_rest; i++) {
        if (d->rest[i].bounded_by || !is_for_unbounded(&d->rest[i]))
            continue;
        text_add(out, "\n");
        put_comments(out, "", &d->rest[i].why);
        put_rest_line(&d->rest[i], out);
    }
}

/* --- the file ----------------------------------------------------------------------------------------------
 */

/* An address is bare where YAML reads nothing into it; of a path nobody minds quotes. */
static void put_store(const char *dsn, struct text *out)
{
    text_add(out, "store: ");
    if (store_may_hold_secret(dsn) || !yaml_can_hold(dsn)) {
        text_add(out, "${LAPSE_STORE}  # from the environment: the address may hold a password\n");
        return;
    }
    if (dsn[strcspn(dsn, " #\"'\\$")])
        yaml_scalar(out, dsn, false);
    else
        text_add(out, dsn);
    text_add(out, "\n");
}

static const char header[] =
    "## A draft, from the schema and a few rows of each table. Nothing has been changed.\n"
    "## Lines that begin with \"# \" are to be decided: complete them, then take the \"# \" away.\n"
    "## Lines with ## say why. What has no # in front is in force: read it before anything runs.\n"
    "##\n"
    "##   lapse -f FILE check                what does not fit, and what is still undecided\n"
    "##   lapse -f FILE plan                 what a sweep would delete now; deletes nothing\n"
    "##   lapse -f FILE explain POLICY KEY   why a row would go, or not\n\n";

void draft_text(const struct draft *d, const char *dsn, struct text *out)
{
    text_add(out, header);
    put_store(dsn, out);
    text_add(out, "\npolicies:\n");
    for (size_t i = 0; i < d->n_policies; i++)
        put_policy(&d->policies[i], out);
    put_unbounded(d, out);
    if (d->odd.n)
        text_add(out, "\n");
    put_comments(out, "", &d->odd);
}
