/* parts: a plan laid out flat as losers and references; names as SQL and contracts write them. */
#include "check/internal.h"

#include <string.h>

/* --- foreign keys and joins -------------------------------------------------------------------- */

static bool fkey_has_pair(const struct fkey *k, const char *child, const char *parent)
{
    for (size_t i = 0; i < k->n; i++)
        if (strcmp(k->child_columns[i], child) == 0 && strcmp(k->parent_columns[i], parent) == 0)
            return true;
    return false;
}

/* Fewer pairs of equal columns find more rows: the join covers the key when its pairs are among the key's. */
bool join_covers_fkey(const struct join *j, const struct fkey *k)
{
    for (size_t i = 0; i < j->n; i++)
        if (!fkey_has_pair(k, j->child[i]->name, j->parent[i]->name))
            return false;
    return j->n > 0;
}

/* --- which entry of the contract a join comes from ---------------------------------------------- */

static bool join_has_child(const struct join *j, const struct column *c)
{
    for (size_t i = 0; i < j->n; i++)
        if (j->child[i] == c)
            return true;
    return false;
}

static bool ref_says(const struct facts *f, const struct ref *r, const struct table *child,
                     const struct join *j)
{
    if (facts_table(f, &r->table) != child || r->n_columns != j->n)
        return false;
    for (size_t i = 0; i < r->n_columns; i++) {
        const struct column *c = table_column(f, child, &r->columns[i]);
        if (!c || !join_has_child(j, c))
            return false;
    }
    return true;
}

/* The entries that belong to the rows of one node. */
static struct below entries_of(const struct policy *p, const struct loser *l)
{
    if (!l->above)
        return below_policy(p);
    return l->with ? below_with(l->with) : (struct below){0};
}

static const struct with *with_of(const struct facts *f, const struct below *in, const struct table *child,
                                  const struct join *j)
{
    for (size_t i = 0; i < in->n_with; i++)
        if (ref_says(f, &in->with[i].ref, child, j))
            return &in->with[i];
    return NULL;
}

static struct place detach_place(const struct facts *f, const struct below *in, const struct detachment *d,
                                 struct place otherwise)
{
    for (size_t i = 0; i < in->n_detach; i++)
        if (ref_says(f, &in->detach[i], d->table, &d->join))
            return in->detach[i].at;
    return otherwise;
}

static struct place after_place(const struct facts *f, const struct below *in, const struct expr *x,
                                struct place otherwise)
{
    for (size_t i = 0; i < in->n_after; i++)
        if ((in->after[i].where != NULL) == (x->n_kids > 0) &&
            ref_says(f, &in->after[i].ref, x->table, &x->joins[0]))
            return in->after[i].ref.at;
    return otherwise;
}

/* --- the survey ----------------------------------------------------------------------------------- */

static void add_reference(struct survey *s, struct reference r)
{
    s->references = arena_push(s->findings->arena, s->references, s->n_references, sizeof(r));
    s->references[s->n_references++] = r;
}

static void survey_after(struct survey *s, const struct loser *l, const struct below *in)
{
    for (size_t i = 0; i < l->node->n_after; i++) {
        const struct expr *x = l->node->after[i];
        add_reference(s, (struct reference){ROLE_AFTER, l, x->table, x->joins[0], x->n_kids > 0,
                                            after_place(s->plan->facts, in, x, l->at)});
    }
}

static void survey_stays(struct survey *s, const struct loser *l, const struct below *in)
{
    const struct node *n = l->node;
    const struct facts *f = s->plan->facts;
    for (size_t i = 0; i < n->n_grow; i++) {
        const struct with *w = with_of(f, in, n->table, &n->grow[i]);
        add_reference(
            s, (struct reference){ROLE_SUBTREE, l, n->table, n->grow[i], false, w ? w->ref.at : l->at});
    }
    for (size_t i = 0; i < n->n_detach; i++)
        add_reference(s, (struct reference){ROLE_DETACH, l, n->detach[i].table, n->detach[i].join, false,
                                            detach_place(f, in, &n->detach[i], l->at)});
    survey_after(s, l, in);
}

static void survey_node(struct survey *s, struct loser found)
{
    struct arena *a = s->findings->arena;
    struct loser *l = arena_alloc(a, sizeof(*l));
    *l = found;
    s->losers = arena_push(a, s->losers, s->n_losers, sizeof(struct loser *));
    s->losers[s->n_losers++] = l;

    struct below in = entries_of(s->plan->policy, l);
    survey_stays(s, l, &in);
    for (size_t i = 0; i < l->node->n_kids; i++) {
        const struct node *kid = &l->node->kids[i];
        const struct with *w = with_of(s->plan->facts, &in, kid->table, &kid->join);
        struct place at = w ? w->ref.at : l->at;
        add_reference(s, (struct reference){ROLE_WITH, l, kid->table, kid->join, false, at});
        survey_node(s, (struct loser){kid, w, l, at});
    }
}

struct survey survey_of(const struct plan *p, struct findings *findings)
{
    struct survey s = {.plan = p, .findings = findings};
    survey_node(&s, (struct loser){&p->root, NULL, NULL, p->policy->table.at});
    return s;
}

/* --- words ---------------------------------------------------------------------------------------- */

/* Words that neither PostgreSQL nor SQLite takes as a bare name everywhere. */
static const char reserved[] =
    " add all alter always analyse analyze and any array as asc asymmetric authorization autoincrement "
    "between binary both by case cast check collate collation column commit concurrently constraint create "
    "cross current_catalog current_date current_role current_schema current_time current_timestamp "
    "current_user default deferrable delete desc distinct do drop else end escape except exists false fetch "
    "for foreign freeze from full glob grant group having if ilike in index indexed initially inner insert "
    "intersect into is isnull join lateral leading left like limit localtime localtimestamp match natural "
    "not nothing notnull null offset on only or order outer overlaps over placing primary raise references "
    "regexp returning right rollback select session_user set similar some symmetric table tablesample then "
    "to trailing transaction trigger true union unique update user using values variadic verbose when where "
    "window with ";

/* … and those that MariaDB or MySQL do not. */
static const char reserved_too[] =
    " accessible asensitive before bigint blob call cascade change char character condition continue convert "
    "cube cume_dist current_timestamp cursor database databases day_hour day_microsecond day_minute "
    "day_second dec decimal declare delayed dense_rank describe deterministic distinctrow div double dual "
    "each elseif empty enclosed escaped exit explain first_value float force fulltext function generated get "
    "grouping groups high_priority hour_microsecond hour_minute hour_second ignore infile inout insensitive "
    "int integer interval iterate json_table key keys kill lag last_value lead leave linear lines load lock "
    "long longblob longtext loop low_priority match maxvalue mediumblob mediumint mediumtext "
    "minute_microsecond minute_second mod modifies nth_value ntile numeric of optimize optimizer_costs "
    "option "
    "optionally out outfile partition percent_rank precision procedure purge range rank read reads real "
    "recursive release rename repeat replace require resignal restrict return revoke rlike row row_number "
    "rows schema schemas second_microsecond sensitive separator show signal smallint spatial specific sql "
    "sqlexception sqlstate sqlwarning ssl starting stored straight_join system terminated tinyblob tinyint "
    "tinytext trailing undo unlock unsigned usage use utc_date utc_time utc_timestamp varbinary varchar "
    "varcharacter varying virtual while write xor year_month zerofill ";

static bool is_reserved(const struct facts *f, const char *name)
{
    AUTO(text_release) struct text word = {0};
    text_addf(&word, " %s ", name);
    return strstr(reserved, text_str(&word)) || (f->backticks && strstr(reserved_too, text_str(&word)));
}

static bool is_plain(const struct facts *f, const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_",
                      more[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    return *name && strchr(letters, *name) && name[strspn(name, more)] == '\0' && !is_reserved(f, name);
}

void sql_word(struct text *out, const struct facts *f, const char *name)
{
    const char quote = f->backticks ? '`' : '"';
    if (is_plain(f, name)) {
        text_add(out, name);
        return;
    }
    text_add_n(out, &quote, 1);
    for (; *name; name++) {
        if (*name == quote)
            text_add_n(out, &quote, 1);
        text_add_n(out, name, 1);
    }
    text_add_n(out, &quote, 1);
}

void sql_table_words(struct text *out, const struct facts *f, const struct table *t)
{
    if (t->schema) {
        sql_word(out, f, t->schema);
        text_add(out, ".");
    }
    sql_word(out, f, t->name);
}

const char *grant_words(struct arena *a, const struct facts *f, const struct table *t, const char *rights)
{
    AUTO(text_release) struct text out = {0};
    text_addf(&out, "GRANT %s ON ", rights);
    sql_table_words(&out, f, t);
    text_add(&out, " TO the user that lapse connects as");
    if (f->grants)
        text_addf(&out, "; %s", f->grants);
    return arena_strdup(a, text_str(&out));
}

static const char *ref_words(struct arena *a, const char *schema, const char *table,
                             const char *const *columns, size_t n)
{
    struct ref r = {.table = {.schema = {.text = schema}, .table = {.text = table}}, .n_columns = n};
    r.columns = arena_alloc(a, n * sizeof(*r.columns));
    for (size_t i = 0; i < n; i++)
        r.columns[i].text = columns[i];
    AUTO(text_release) struct text out = {0};
    ref_print(&r, &out);
    return arena_strdup(a, text_str(&out));
}

const char *reference_words(struct arena *a, const struct reference *r)
{
    const char **names = arena_alloc(a, r->join.n * sizeof(*names));
    for (size_t i = 0; i < r->join.n; i++)
        names[i] = r->join.child[i]->name;
    return ref_words(a, r->child->schema, r->child->name, names, r->join.n);
}

const char *fkey_words(struct arena *a, const struct fkey *k)
{
    return ref_words(a, k->child_schema, k->child_table, k->child_columns, k->n);
}

const char *column_words(struct arena *a, const struct column *const *columns, size_t n)
{
    AUTO(text_release) struct text out = {0};
    for (size_t i = 0; i < n; i++)
        text_addf(&out, "%s%s", i ? ", " : "", columns[i]->name);
    return arena_strdup(a, text_str(&out));
}

const char *table_words(struct arena *a, const struct table_name *t)
{
    AUTO(text_release) struct text out = {0};
    /* In quotes only where the name needs them. */
    struct table_name bare = {.schema.text = t->schema.text, .table.text = t->table.text};
    table_name_print(&bare, &out);
    return arena_strdup(a, text_str(&out));
}
