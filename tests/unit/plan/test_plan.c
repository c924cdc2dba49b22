/* plan: what a policy becomes on hand-made facts: conditions, cutoffs, the tree of what goes, the cursor, and
 * every finding. Plans are compared as short texts. */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>

/* --- plans as texts --------------------------------------------------------------------------- */

static void show_columns(struct text *out, const struct column *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        text_addf(out, "%s%s", i ? ", " : "", list[i]->name);
}

static void show_join(struct text *out, const struct join *j)
{
    for (size_t i = 0; i < j->n; i++)
        text_addf(out, "%s%s = %s", i ? ", " : "", j->child[i]->name, j->parent[i]->name);
}

static void show_value(struct text *out, const struct value *v)
{
    if (v->kind == VALUE_INTEGER)
        text_addf(out, "%" PRId64, v->integer);
    else if (v->kind == VALUE_REAL)
        text_addf(out, "%.3f", v->real);
    else
        text_addf(out, "'%.*s'", (int)v->len, v->text);
}

static void show_values(struct text *out, const struct expr *x, const char *between)
{
    text_addf(out, "%s%s", x->column->name, between);
    for (size_t i = 0; i < x->n_values; i++) {
        text_add(out, i ? ", " : "");
        show_value(out, &x->values[i]);
    }
}

static const char *sign(enum compare cmp)
{
    static const char *const signs[] = {
        [CMP_EQ] = "=", [CMP_NE] = "<>", [CMP_LT] = "<", [CMP_LE] = "<=", [CMP_GT] = ">", [CMP_GE] = ">="};
    return signs[cmp];
}

static void show_expr(struct text *out, const struct expr *x);

static void show_kids(struct text *out, const struct expr *x, const char *between)
{
    text_add(out, "(");
    for (size_t i = 0; i < x->n_kids; i++) {
        text_add(out, i ? between : "");
        show_expr(out, x->kids[i]);
    }
    text_add(out, ")");
}

static void show_rows(struct text *out, const struct expr *x, const char *word)
{
    text_addf(out, "%s %s[", word, x->table->name);
    for (size_t i = 0; i < x->n_joins; i++) {
        text_add(out, i ? "; " : "");
        show_join(out, &x->joins[i]);
    }
    text_add(out, "]");
    if (x->n_kids)
        show_kids(out, x, "");
}

/* beyond 5 per a, b by c, d!, key(population); ! is by its instant. */
static void show_ranking(struct text *out, const struct expr *x)
{
    const struct ranking *r = x->ranking;
    text_addf(out, "beyond %" PRId64 " %s", r->rows, x->table->name);
    for (size_t i = 0; i < r->n_per; i++)
        text_addf(out, "%s%s", i ? ", " : " per ", r->per[i]->name);
    for (size_t i = 0; i < r->n_newest; i++)
        text_addf(out, "%s%s%s", i ? ", " : " by ", r->newest[i].column->name, r->newest[i].time ? "!" : "");
    show_kids(out, x, "");
}

static void show_expr(struct text *out, const struct expr *x)
{
    if (!x) {
        text_add(out, "-");
        return;
    }
    switch (x->kind) {
    case EXPR_TRUE:
    case EXPR_FALSE:
        text_add(out, x->kind == EXPR_TRUE ? "true" : "false");
        break;
    case EXPR_AND:
    case EXPR_OR:
        show_kids(out, x, x->kind == EXPR_AND ? " and " : " or ");
        break;
    case EXPR_NOT_TRUE:
        text_add(out, "not true");
        show_kids(out, x, "");
        break;
    case EXPR_IS_NULL:
    case EXPR_NOT_NULL:
        text_addf(out, "%s is %snull", x->column->name, x->kind == EXPR_IS_NULL ? "" : "not ");
        break;
    case EXPR_COMPARE:
        show_values(out, x, sign(x->cmp));
        break;
    case EXPR_IN:
        show_values(out, x, " in ");
        break;
    case EXPR_NOT_IN:
        show_values(out, x, " not in ");
        break;
    case EXPR_LIKE:
        show_values(out, x, " like ");
        break;
    case EXPR_PREFIX:
        show_values(out, x, " begins ");
        break;
    case EXPR_TIME:
        text_addf(out, "%s %s @%" PRId64, x->time.column->name, sign(x->cmp), x->at);
        break;
    case EXPR_TIME_KEEP:
        text_addf(out, "%s %s @%" PRId64 " - %s * %" PRId64, x->time.column->name, sign(x->cmp), x->at,
                  x->keep_column->name, x->keep_unit_us);
        break;
    case EXPR_TIME_READABLE:
        text_addf(out, "%s is readable", x->time.column->name);
        break;
    case EXPR_EXISTS:
        show_rows(out, x, "exists");
        break;
    case EXPR_SUBTREE_EXISTS:
        show_rows(out, x, "subtree");
        break;
    case EXPR_BEYOND_NEWEST:
        show_ranking(out, x);
        break;
    case EXPR_SQL:
        text_addf(out, "sql<%s>", x->sql);
        break;
    }
}

/* set:slot table[join](carry), then ways down, detachments and kids, indented by depth. */
static void show_node(struct text *out, const struct node *n, int depth)
{
    text_addf(out, "%*s%d:%zu %s[", depth * 2, "", n->set, n->slot, n->table->name);
    show_join(out, &n->join);
    text_add(out, "](");
    show_columns(out, n->carry, n->n_carry);
    text_add(out, ")");
    if (n->where) {
        text_add(out, " where ");
        show_expr(out, n->where);
    }
    for (size_t i = 0; i < n->n_grow; i++) {
        text_add(out, " down[");
        show_join(out, &n->grow[i]);
        text_add(out, "]");
    }
    for (size_t i = 0; i < n->n_detach; i++) {
        text_addf(out, " detach %zu %s[", n->detach[i].slot, n->detach[i].table->name);
        show_join(out, &n->detach[i].join);
        text_add(out, "](");
        show_columns(out, n->detach[i].emptied, n->detach[i].n_emptied);
        text_add(out, ")");
    }
    text_add(out, "\n");
    for (size_t i = 0; i < n->n_kids; i++)
        show_node(out, &n->kids[i], depth + 1);
}

static void assert_expr(const struct expr *x, const char *expected)
{
    AUTO(text_release) struct text out = {0};
    show_expr(&out, x);
    assert_string_equal(text_str(&out), expected);
}

static void assert_tree(const struct plan *p, const char *expected)
{
    AUTO(text_release) struct text out = {0};
    show_node(&out, &p->root, 0);
    assert_string_equal(text_str(&out), expected);
}

static void assert_order(const struct plan *p, const char *expected)
{
    AUTO(text_release) struct text out = {0};
    show_columns(&out, p->order, p->n_order);
    assert_string_equal(text_str(&out), expected);
}

static void assert_slots(const struct plan *p, const char *expected)
{
    AUTO(text_release) struct text out = {0};
    for (size_t i = 0; i < p->n_slots; i++)
        text_addf(&out, "%s%s", i ? ", " : "", p->slots[i]->name);
    text_add(&out, ";");
    for (size_t i = 0; i < p->n_detach_slots; i++)
        text_addf(&out, " %s", p->detach_slots[i]->name);
    assert_string_equal(text_str(&out), expected);
}

static void assert_cutoffs(const struct plan *p, const char *expected)
{
    AUTO(text_release) struct text out = {0};
    for (size_t i = 0; i < p->n_cutoffs; i++) {
        text_addf(&out, "%s%s: ", i ? ", " : "", p->cutoffs[i].value ? p->cutoffs[i].value : "*");
        if (p->cutoffs[i].never)
            text_add(&out, "never");
        else
            text_addf(&out, "%" PRId64, p->cutoffs[i].at);
    }
    assert_string_equal(text_str(&out), expected);
}

/* --- the world: jobs <- step <- part, jobs <- log (no key), jobs <- jobs, order lines -------------- */

static struct table *jobs_of(struct world *w)
{
    return w->facts->tables[0];
}

static int setup(void **state)
{
    world_setup(state);
    struct world *w = *state;
    struct table *jobs =
        add_table(w, "public", "jobs",
                  "id:integer!, parent_id:integer, code:text, state:text, mood:mood, ok:boolean, n:integer, "
                  "ratio:real, price:numeric, data:bytea, free:any, ref:uuid, at:timestamptz, "
                  "local:timestamp, day:date, at_ms:integer, at_s:integer, at_us:integer, note:text, "
                  "keep_days:integer, keep:integer",
                  "id");
    struct table *step =
        add_table(w, "public", "step", "id:integer!, job_id:integer, state:text, done_ms:integer", "id");
    struct table *part = add_table(w, "public", "part",
                                   "step_id:integer!, nr:integer!, label:text, job:integer", "step_id, nr");
    add_table(w, "public", "log", "job_id:integer, note:text", "");
    add_table(w, "public", "mail",
              "id:integer!, job_id:integer!, job_code:text, peer:inet, part_step:integer, "
              "part_nr:integer",
              "id");
    add_table(w, "public", "shown", "id:integer!, at:timestamptz", "id")->kind = KIND_VIEW;
    add_table(w, "public", "afar", "id:integer!, at:timestamptz", "id")->kind = KIND_FOREIGN;
    add_table(w, "public", "words", "id:integer!, at:timestamptz", "id")->kind = KIND_VIRTUAL;
    struct table *odd = add_table(w, "public", "odd", "id:inet!, at:timestamptz", "");
    add_index(w, odd, "id", NULL);
    odd->indexes[0].primary = true;
    add_table(w, "public", "elder", "id:integer!, at:timestamptz", "id")->inheritors = true;
    add_fkey(w, step, "job_id", jobs, "id", ON_DELETE_NO_ACTION);
    add_fkey(w, part, "step_id", step, "id", ON_DELETE_NO_ACTION);
    add_fkey(w, w->facts->tables[4], "job_code", jobs, "code", ON_DELETE_NO_ACTION);
    return 0;
}

#define NOW (INT64_C(1000) * US_PER_DAY)
#define AT  "table: jobs, age: at, keep: 1d"

/* --- the bound -------------------------------------------------------------------------------- */

static const struct {
    const char *keys, *timely, *cutoffs;
} bounds[] = {
    /* clang-format off */
    {"table: jobs, expires: at", "at <= @86400000000000", "*: 86400000000000"},
    {"table: jobs, age: at, keep: 1d", "at < @86313600000000", "*: 86313600000000"},
    {"table: jobs, age: at, keep: 1d, inclusive: true", "at <= @86313600000000", "*: 86313600000000"},
    {"table: jobs, age: at, keep: now", "at < @86400000000000", "*: 86400000000000"},
    {"table: jobs, age: at, keep: never", "false", "*: never"},
    {"table: jobs, age: [at, local], keep: 1d",
     "((at is null or at < @86313600000000) and (local is null or local < @86313600000000)"
     " and (at is not null or local is not null))",
     "*: 86313600000000"},
    {"table: jobs, age: at, keep: { by: state, values: { a: 1d, b: 2d, c: never } }",
     "(at < @86313600000000 and ((state in 'a' and at < @86313600000000) or (state in 'b' and at < @86227200000000)"
     " or (state in 'c' and false) or (not true(state in 'a', 'b', 'c') and false)))",
     "a: 86313600000000, b: 86227200000000, c: never, *: never"},
    {"table: jobs, age: at, keep: { by: state, values: { null: 2d }, otherwise: 1d }",
     "(at < @86313600000000 and ((state is null and at < @86227200000000)"
     " or (not true(state is null) and at < @86313600000000)))",
     "null: 86227200000000, *: 86313600000000"},
    {"table: jobs, age: at, keep: { by: state, values: { a: never } }",
     "(((state in 'a' and false) or (not true(state in 'a') and false)))",
     "a: never, *: never"},
    {"table: jobs, age: at, keep: { by: ok, values: { true: 1d } }, inclusive: true",
     "(at <= @86313600000000 and ((ok in 1 and at <= @86313600000000) or (not true(ok in 1) and false)))",
     "true: 86313600000000, *: never"},
    /* 1 and 01 are one number: such a row must be old enough for each */
    {"table: jobs, age: at, keep: { by: n, values: { 1: 1d, '01': 2d } }",
     "(at < @86313600000000 and ((n in 1 and at < @86313600000000) or (n in 1 and at < @86227200000000)"
     " or (not true(n in 1, 1) and false)) and (not true(n in 1) or at < @86313600000000)"
     " and (not true(n in 1) or at < @86227200000000))",
     "1: 86313600000000, 01: 86227200000000, *: never"},
    {"table: jobs, age: at, keep: { column: keep_days }",
     "(at < @86400000000000 and at < @86400000000000 - keep_days * 86400000000)", ""},
    {"table: jobs, age: at, keep: { column: keep, unit: m }, inclusive: true",
     "(at < @86400000000000 and at <= @86400000000000 - keep * 60000000)", ""},
    {"table: jobs, age: at, keep: { column: keep_days, unit: s }",
     "(at < @86400000000000 and at < @86400000000000 - keep_days * 1000000)", ""},
    {"table: jobs, age: [at, day], keep: { column: keep, unit: s }",
     "(((at is null or at < @86400000000000) and (day is null or day < @86400000000000)"
     " and (at is not null or day is not null))"
     " and (at is null or at < @86400000000000 - keep * 1000000)"
     " and (day is null or day < @86400000000000 - keep * 1000000))", ""},
    /* clang-format on */
};

static void every_bound_has_its_cutoff(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        struct plan *p = make_plan(w, bounds[i].keys, NOW);
        assert_expr(p->timely, bounds[i].timely);
        assert_cutoffs(p, bounds[i].cutoffs);
        assert_ptr_equal(p->due, p->timely);
        assert_false(p->judge_again);
        assert_int_equal(p->now, NOW);
    }
}

static struct column *column_of(struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return &t->columns[i];
    return NULL;
}

static void assert_carry(const struct plan *p, const char *expected)
{
    AUTO(text_release) struct text out = {0};
    show_columns(&out, p->root.carry, p->root.n_carry);
    assert_string_equal(text_str(&out), expected);
}

static const struct {
    const char *keys, *timely, *aged, *order, *carry;
} rankings[] = {
    /* clang-format off */
    {"table: jobs, cap: { rows: 5, newest: at }", "beyond 5 jobs by at(true)", "true", "id", "id"},
    {"table: jobs, cap: { rows: 5, newest: [at, n], per: [state, mood] }, rows: { ok: true }",
     "beyond 5 jobs per state, mood by at, n(ok in 1)", "true", "id", "id, state, mood"},
    {"table: part, cap: { rows: 1, newest: nr }", "beyond 1 part by nr(true)", "true", "nr, step_id", "step_id, nr"},
    {"table: part, cap: { rows: 1, per: step_id, newest: nr }", "beyond 1 part per step_id by nr(true)", "true",
     "step_id, nr", "step_id, nr"},
    {"table: part, cap: { rows: 1, per: job, newest: nr }", "beyond 1 part per job by nr(true)", "true",
     "step_id, nr", "step_id, nr, job"},
    {"table: part, cap: { rows: 1, per: step_id, newest: job }", "beyond 1 part per step_id by job(true)", "true",
     "step_id, nr", "step_id, nr"},
    {"table: jobs, age: at, keep: 1d, keep_newest: { rows: 2, newest: [at, n], per: code }, where: { n: 1 }",
     "(at < @86313600000000 and beyond 2 jobs per code by at!, n(n in 1))", "at < @86313600000000", "id", "id, code"},
    {"table: jobs, age: [at, local], keep: never, keep_newest: { rows: 2, newest: [n, local] }",
     "(false and beyond 2 jobs by n, local!(true))", "false", "id", "id"},
    /* clang-format on */
};

static void what_ranks_is_part_of_the_bound(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < COUNT_OF(rankings); i++) {
        struct plan *p = make_plan(w, rankings[i].keys, NOW);
        assert_expr(p->timely, rankings[i].timely);
        assert_expr(p->aged, rankings[i].aged);
        assert_non_null(p->beyond);
        assert_true(p->examines && p->judge_again);
        assert_order(p, rankings[i].order);
        assert_carry(p, rankings[i].carry);
        assert_int_equal(p->n_cutoffs, p->policy->cap ? 0 : 1);
    }
}

/* Held and waiting rows count: the ranking knows nothing of them. */
static void guards_do_not_change_the_ranking(void **state)
{
    struct world *w = *state;
    struct plan *p = make_plan(
        w, "table: jobs, cap: { rows: 5, newest: at }, hold: { ok: true }, after: [mail(job_id)]", NOW);
    assert_expr(p->due, "(beyond 5 jobs by at(true) and not true(ok in 1) and "
                        "not true(exists mail[job_id = id]))");
}

/* A row below a row that goes is not taken from the newest. */
static void the_newest_do_not_go_along(void **state)
{
    struct world *w = *state;
    struct plan *p = make_plan(w, "table: jobs, cap: { rows: 5, newest: at }, with: [jobs(parent_id)]", NOW);
    assert_expr(p->root.grow_where[0], "beyond 5 jobs by at(true)");
    assert_expr(p->due, "(beyond 5 jobs by at(true) and not true(subtree jobs[parent_id = id](exists "
                        "jobs[parent_id = id](not true(beyond 5 jobs by at(true))))))");
}

/* An array cannot stand in a key set. */
static void groups_of_arrays_do_not_narrow(void **state)
{
    struct world *w = *state;
    column_of(jobs_of(w), "code")->sql_type = "integer[]";
    struct plan *p = make_plan(w, "table: jobs, cap: { rows: 5, per: [code, n], newest: at }", NOW);
    assert_carry(p, "id, n");
}

/* A keep that reaches before the first instant there is must not wrap around into the future. */
static void a_keep_beyond_all_time_is_never(void **state)
{
    struct world *w = *state;
    instant early = INT64_MIN + 5 * US_PER_S;
    struct plan *p = make_plan(w, "table: jobs, age: at, keep: 5s", early);
    assert_cutoffs(p, "*: -9223372036854775808");
    assert_expr(p->timely, "at < @-9223372036854775808");
    p = make_plan(w, "table: jobs, age: at, keep: 6s", early);
    assert_cutoffs(p, "*: never");
    assert_expr(p->timely, "false");
    p = make_plan(w, "table: jobs, age: at, keep: { by: state, values: { a: 6s }, otherwise: 1s }", early);
    assert_cutoffs(p, "a: never, *: -9223372036850775808");
    p = make_plan(w, AT ", where: { local: { older_than: 6s } }", early);
    assert_expr(p->matches, "false");
    p = make_plan(w, AT ", where: { local: { newer_than: 6s } }", early);
    assert_expr(p->matches, "local is not null");
}

static void a_time_column_is_read_as_its_type_says(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *keys;
        enum encoding encoding;
        int64_t unit_us;
    } cases[] = {
        {"expires: at", TIME_INSTANT, 0},
        {"expires: local", TIME_LOCAL, 0},
        {"expires: day", TIME_DATE, 0},
        {"expires: note", TIME_TEXT, 0},
        {"expires: free", TIME_TEXT, 0},
        {"expires: free, unit: s", TIME_INTEGER, US_PER_S},
        {"expires: n, unit: us", TIME_INTEGER, 1},
        {"expires: at_s", TIME_INTEGER, US_PER_S},
        {"expires: at_ms", TIME_INTEGER, US_PER_MS},
        {"expires: at_us", TIME_INTEGER, 1},
        {"expires: at_us, unit: s", TIME_INTEGER, US_PER_S},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(text_release) struct text keys = {0};
        text_addf(&keys, "table: jobs, %s", cases[i].keys);
        struct plan *p = make_plan(w, text_str(&keys), NOW);
        assert_int_equal(p->n_times, 1);
        assert_int_equal(p->times[0].encoding, cases[i].encoding);
        assert_int_equal(p->times[0].unit_us, cases[i].unit_us);
        assert_int_equal(p->times[0].at.column, 30);
        assert_null(p->times[0].zone);
    }
    struct plan *p = make_plan(w, "table: jobs, expires: local, zone: Europe/Prague", NOW);
    assert_string_equal(zone_name(p->times[0].zone), "Europe/Prague");
    assert_null(make_plan(w, "table: jobs, expires: local, zone: Etc/UTC", NOW)->times[0].zone);
    /* In a condition the column's own name goes before the policy's unit, which is said of the bound. */
    p = make_plan(
        w, "table: jobs, expires: n, unit: s, where: { at_us: { older_than: 1s }, keep: { older_than: 1s } }",
        NOW);
    assert_int_equal(p->matches->kids[0]->time.unit_us, 1);
    assert_int_equal(p->matches->kids[1]->time.unit_us, US_PER_S);
}

/* --- conditions ------------------------------------------------------------------------------- */

static const struct {
    const char *keys, *matches;
} conditions[] = {
    /* clang-format off */
    {"rows: { state: a }", "state in 'a'"},
    {"rows: { state: [a, b], n: 3 }", "(state in 'a', 'b' and n in 3)"},
    {"rows: { state: [a, null] }", "(state is null or state in 'a')"},
    {"rows: { state: null }", "state is null"},
    {"rows: { state: ['x*', a, b] }", "(state begins 'x' or state in 'a', 'b')"},
    {"rows: { state: 'x\\*' }", "state in 'x*'"},
    {"rows: { mood: ['h*', null] }", "(mood in 'happy' or mood is null)"},
    {"rows: { mood: [happy, sad], ok: [true, 0] }", "(mood in 'happy', 'sad' and ok in 1, 0)"},
    {"where: { n: { gte: 3, lt: -9 } }", "(n>=3 and n<-9)"},
    {"where: { n: { gt: +3, lte: 9223372036854775807 } }", "(n>3 and n<=9223372036854775807)"},
    {"where: { ratio: 1.5, price: '1.50' }", "(ratio in 1.500 and price in '1.50')"},
    {"where: { ratio: { gt: -1e3 } }", "ratio>-1000.000"},
    {"where: { free: [1, '1', 1.5, true, x] }", "free in 1, '1', 1.500, 1, 'x'"},
    {"where: { ref: abc, day: 2024-01-01 }", "(ref in 'abc' and day in '2024-01-01')"},
    {"where: { state: { not: null } }", "state is not null"},
    {"where: { state: { not: [a, null] } }", "(state is not null and state not in 'a')"},
    {"where: { state: { like: 'a_%' } }", "state like 'a_%'"},
    {"where: { at: { older_than: 1d } }", "at < @86313600000000"},
    {"where: { at_ms: { newer_than: 1d } }", "at_ms > @86313600000000"},
    {"where: { any: [{ state: a }, { n: 1, ok: false }, 'this.x > 1'] }",
     "(state in 'a' or (n in 1 and ok in 0) or sql<this.x > 1>)"},
    {"rows: { state: a }, where: { any: [{ n: 1 }] }", "(state in 'a' and n in 1)"},
    {"where: 'this.n > 1'", "sql<this.n > 1>"},
    {"rows: { STATE: A }", "state in 'A'"},
    /* clang-format on */
};

static void values_get_the_type_of_their_column(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < COUNT_OF(conditions); i++) {
        AUTO(text_release) struct text keys = {0};
        text_addf(&keys, AT ", %s", conditions[i].keys);
        struct plan *p = make_plan(w, text_str(&keys), NOW);
        assert_expr(p->matches, conditions[i].matches);
        assert_int_equal(p->judge_again, strstr(conditions[i].matches, "sql<") != NULL);
    }
    w->facts->booleans_are_integers = true;
    assert_expr(make_plan(w, AT ", rows: { n: [true, false] }", NOW)->matches, "n in 1, 0");
}

static void what_is_due_is_all_of_it_the_index_first(void **state)
{
    struct world *w = *state;
    struct plan *p = make_plan(
        w, AT ", rows: { state: a }, where: { n: 1 }, hold: { ok: true }, after: [step(job_id)]", NOW);
    assert_expr(p->hold, "not true(ok in 1)");
    assert_expr(p->free_, "not true(exists step[job_id = id])");
    assert_expr(p->due, "(at < @86313600000000 and (state in 'a' and n in 1) and not true(ok in 1)"
                        " and not true(exists step[job_id = id]))");
    assert_true(p->judge_again);
    p = make_plan(w, AT ", hold: { ok: true }", NOW);
    assert_expr(p->matches, "true");
    assert_expr(p->due, "(at < @86313600000000 and not true(ok in 1))");
    assert_false(p->judge_again); /* it looks at the row alone, which is locked */
    assert_true(make_plan(w, AT ", hold: 'this.ok'", NOW)->judge_again);
}

static void rows_with_a_null_key_are_not_spoken_of(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "public", "pair", "a:text, b:text!, at:timestamptz", "a, b");
    t->key_may_be_null = true;
    struct plan *p = make_plan(w, "table: pair, expires: at, rows: { b: x }", NOW);
    assert_expr(p->matches, "(b in 'x' and a is not null)");
    assert_expr(p->due, "(at <= @86400000000000 and (b in 'x' and a is not null))");
}

/* --- what goes with a row --------------------------------------------------------------------- */

static void a_policy_without_dependents_is_one_node(void **state)
{
    struct world *w = *state;
    struct plan *p = make_plan(w, AT, NOW);
    assert_tree(p, "0:0 jobs[](id)\n");
    assert_slots(p, "jobs;");
    assert_int_equal(p->n_sets, 1);
    assert_null(p->free_);
    assert_null(p->hold);
}

static void dependents_become_a_tree(void **state)
{
    struct world *w = *state;
    struct plan *p =
        make_plan(w, AT ", with: [{ ref: step(job_id), with: [part(step_id)] }, log(job_id)]", NOW);
    assert_tree(p, "0:3 jobs[](id)\n"
                   "  1:1 step[job_id = id](id)\n"
                   "    -1:0 part[step_id = id]()\n"
                   "  -1:2 log[job_id = id]()\n");
    assert_slots(p, "part, step, log, jobs;");
    assert_int_equal(p->n_sets, 2);
    assert_false(p->judge_again);
    for (size_t i = 0; i < p->n_slots; i++)
        assert_true(plan_loses(p, p->slots[i]));
    assert_false(plan_loses(p, w->facts->tables[4]));
}

/* The key set of a row holds its key first, then whatever below refers to. */
static void a_row_carries_what_others_refer_to(void **state)
{
    struct world *w = *state;
    struct plan *p = make_plan(w,
                               AT ", with: ['mail(job_code)', 'log(job_id) -> (n)'], detach: "
                                  "['step(job_id)', 'mail(part_nr) -> (at_s)']",
                               NOW);
    assert_tree(p, "0:2 jobs[](id, code, n, at_s)"
                   " detach 0 step[job_id = id](job_id) detach 1 mail[part_nr = at_s](part_nr)\n"
                   "  -1:0 mail[job_code = code]()\n"
                   "  -1:1 log[job_id = n]()\n");
    assert_slots(p, "mail, log, jobs; step mail");
}

static void a_reference_follows_its_foreign_key_or_the_primary_key(void **state)
{
    struct world *w = *state;
    struct table *part = w->facts->tables[2], *mail = w->facts->tables[4];
    /* no foreign key: by place */
    struct plan *p =
        make_plan(w, "table: part, age: job, unit: s, keep: 1d, with: ['mail(part_nr, part_step)']", NOW);
    assert_tree(p, "0:1 part[](step_id, nr)\n"
                   "  -1:0 mail[part_nr = step_id, part_step = nr]()\n");
    /* a foreign key: by name, however the columns are ordered */
    add_fkey(w, mail, "part_step, part_nr", part, "step_id, nr", ON_DELETE_CASCADE);
    p = make_plan(w, "table: part, age: job, unit: s, keep: 1d, with: ['mail(part_nr, part_step)']", NOW);
    assert_tree(p, "0:1 part[](step_id, nr)\n"
                   "  -1:0 mail[part_nr = nr, part_step = step_id]()\n");
    /* said */
    p = make_plan(w, "table: part, age: job, unit: s, keep: 1d, with: ['mail(part_nr) -> (job)']", NOW);
    assert_tree(p, "0:1 part[](step_id, nr, job)\n"
                   "  -1:0 mail[part_nr = job]()\n");
}

/* A table that goes by two ways has two nodes and one count; so has the policy's own table. */
static void rows_are_counted_by_table(void **state)
{
    struct world *w = *state;
    struct plan *p = make_plan(
        w, AT ", with: [{ ref: step(job_id), with: [part(step_id), 'jobs(parent_id)'] }, 'part(job)']", NOW);
    assert_tree(p, "0:2 jobs[](id)\n"
                   "  1:1 step[job_id = id](id)\n"
                   "    -1:0 part[step_id = id]()\n"
                   "    -1:2 jobs[parent_id = id]() where (at is readable and at is not null)\n"
                   "  -1:0 part[job = id]()\n");
    assert_slots(p, "part, step, jobs;");
    p = make_plan(
        w,
        AT ", detach: ['step(job_id)', 'part(job)'], with: [{ ref: 'mail(job_id)', detach: ['part(job)'] }]",
        NOW);
    assert_tree(p, "0:1 jobs[](id) detach 0 step[job_id = id](job_id) detach 1 part[job = id](job)\n"
                   "  1:0 mail[job_id = id](id) detach 1 part[job = id](job)\n");
    assert_slots(p, "mail, jobs; step part");
}

static void a_reference_to_the_table_itself_is_its_subtree(void **state)
{
    struct world *w = *state;
    struct plan *p = make_plan(w, AT ", with: [jobs(parent_id), 'jobs(n) -> (at_s)', log(job_id)]", NOW);
    assert_tree(p, "0:1 jobs[](id, at_s) down[parent_id = id] down[n = at_s]\n"
                   "  -1:0 log[job_id = id]()\n");
    assert_slots(p, "log, jobs;");
    /* a row below goes however young it is, but not without a time that can be read */
    assert_expr(p->free_, "not true(subtree jobs[parent_id = id; n = at_s]("
                          "(exists jobs[parent_id = id](not true((at is readable and at is not null)))"
                          " or exists jobs[n = at_s](not true((at is readable and at is not null))))))");
    p = make_plan(w, AT ", with: [jobs(parent_id)], rows: { state: a }, hold: { ok: true }", NOW);
    assert_expr(p->root.grow_where[0],
                "(state in 'a' and not true(ok in 1) and at is readable and at is not null)");
    /* below another table too */
    p = make_plan(w,
                  "table: mail, age: part_nr, unit: s, keep: 1d, "
                  "with: [{ ref: jobs(id), with: [jobs(parent_id)] }]",
                  NOW);
    assert_tree(p, "0:1 mail[](id)\n"
                   "  1:0 jobs[id = id](id) down[parent_id = id]\n");
}

static void detaching_empties_what_may_be_empty(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "public", "seat", "a:integer!, b:integer, c:integer, d:integer", "c");
    t->columns[3].generated = true;
    struct plan *p = make_plan(w, AT ", detach: ['seat(a, b, c, d) -> (n, id, at_s, at_ms)']", NOW);
    assert_tree(p, "0:0 jobs[](id, n, at_s, at_ms) detach 0 seat[a = n, b = id, c = at_s, d = at_ms](b)\n");
}

/* --- waiting ---------------------------------------------------------------------------------- */

#define BELOW(join) "exists jobs[" join "](not true((at is readable and at is not null)))"

static const struct {
    const char *keys, *waits;
} waiting[] = {
    /* clang-format off */
    {"after: [step(job_id), { ref: mail(job_id), where: { peer: x } }]",
     "(exists step[job_id = id] or exists mail[job_id = id](peer in 'x'))"},
    {"with: [{ ref: step(job_id), where: { state: done } }]",
     "exists step[job_id = id](not true(state in 'done'))"},
    {"with: [{ ref: step(job_id), with: [{ ref: part(step_id), where: { label: x } }] }]",
     "exists step[job_id = id](exists part[step_id = id](not true(label in 'x')))"},
    {"with: [{ ref: step(job_id), where: { state: a }, after: [part(step_id)] }]",
     "exists step[job_id = id]((not true(state in 'a') or exists part[step_id = id]))"},
    {"with: [{ ref: step(job_id), after: [{ ref: part(step_id), where: { label: x } }] }]",
     "exists step[job_id = id](exists part[step_id = id](label in 'x'))"},
    {"with: [jobs(parent_id)], after: [step(job_id)]",
     "subtree jobs[parent_id = id]((exists step[job_id = id] or " BELOW("parent_id = id") "))"},
    {"with: [{ ref: jobs(parent_id), where: { ok: true } }]",
     "subtree jobs[parent_id = id](exists jobs[parent_id = id](not true((ok in 1 and (at is readable and at is not null)))))"},
    {"with: [jobs(parent_id), 'jobs(n) -> (at_s)', { ref: step(job_id), where: { state: a } }]",
     "subtree jobs[parent_id = id; n = at_s]((exists step[job_id = id](not true(state in 'a')) or " BELOW("parent_id = id")
     " or " BELOW("n = at_s") "))"},
    {"with: [{ ref: step(job_id), where: 'this.state = 1' }]",
     "exists step[job_id = id](not true(sql<this.state = 1>))"},
    /* clang-format on */
};

static void a_row_waits_for_what_it_must_not_lose(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < COUNT_OF(waiting); i++) {
        AUTO(text_release) struct text keys = {0}, expected = {0};
        text_addf(&keys, AT ", %s", waiting[i].keys);
        text_addf(&expected, "not true(%s)", waiting[i].waits);
        struct plan *p = make_plan(w, text_str(&keys), NOW);
        assert_expr(p->free_, text_str(&expected));
        assert_true(p->judge_again);
    }
}

/* --- the cursor ------------------------------------------------------------------------------- */

static const struct {
    const char *index, *predicate, *keys, *order;
} cursors[] = {
    {"at", NULL, "", "at, id"},
    {"at, id", NULL, "", "at, id"},
    {"at, n", NULL, "", "at, id"},
    {"at", "(at IS NOT NULL)", "", "at, id"},
    {"at", "(state = 'a')", "", "id"},
    {"at", "(n IS NOT NULL)", "", "id"},
    {"n", NULL, "", "id"},
    {"n, at", NULL, "", "id"},
    {"n, at", NULL, ", rows: { n: 1 }", "at, id"},
    {"n, at", NULL, ", rows: { n: [1, 2] }", "n, at, id"},
    {"state, n, at", NULL, ", rows: { n: [1, 2], state: a }", "n, at, id"},
    {"state, n, at", NULL, ", rows: { n: [1, 2] }", "id"},
    {"state, at", NULL, ", rows: { state: 'a*' }", "id"},
    {"state, at", NULL, ", rows: { state: [a, null] }", "id"},
    {"state, at", NULL, ", where: { state: a }", "id"},
    {"state, at", "(state IS NOT NULL)", ", rows: { state: [a, b] }", "state, at, id"},
    {"id, at", NULL, ", rows: { id: [1, 2] }", "id, at"},
};

static void the_cursor_follows_an_index_to_the_time(void **state)
{
    struct world *w = *state;
    struct table *t = jobs_of(w);
    for (size_t i = 0; i < COUNT_OF(cursors); i++) {
        AUTO(text_release) struct text keys = {0};
        t->n_indexes = 0;
        t->indexes = NULL;
        add_index(w, t, cursors[i].index, cursors[i].predicate);
        text_addf(&keys, AT "%s", cursors[i].keys);
        struct plan *p = make_plan(w, text_str(&keys), NOW);
        assert_order(p, cursors[i].order);
        assert_int_equal(p->index != NULL, strstr(cursors[i].order, "at") != NULL);
    }
    t->n_indexes = 0;
    struct plan *p = make_plan(w, AT, NOW);
    assert_order(p, "id");
    assert_null(p->index);
}

static void the_shortest_way_to_the_time_is_taken(void **state)
{
    struct world *w = *state;
    struct table *t = jobs_of(w);
    add_index(w, t, "state, at", NULL);
    add_index(w, t, "n, at", NULL);
    add_index(w, t, "n, state, at", NULL);
    struct plan *p = make_plan(w, AT ", rows: { state: [a, b], n: 1 }", NOW);
    assert_order(p, "at, id");
    assert_ptr_equal(p->index, &t->indexes[1]);
    p = make_plan(w, "table: jobs, age: [at, local], keep: 1d, rows: { n: 1 }", NOW);
    assert_order(p, "id"); /* no index has the latest of two */
    assert_null(p->index);
    p = make_plan(w, "table: part, expires: job, unit: s", NOW);
    assert_order(p, "step_id, nr");
}

/* Else rows of one time would have to be sorted, and on some engines all that is due. */
static void the_index_that_goes_on_with_the_key_is_taken(void **state)
{
    static const char *const better[][2] = {
        {"at, n", "at, id"}, {"at, n", "at"}, {"at", "at, id"}, {"n, at, state", "n, at, id"}};
    struct world *w = *state;
    struct table *t = jobs_of(w);
    for (size_t i = 0; i < COUNT_OF(better) * 2; i++) {
        t->n_indexes = 0;
        t->indexes = NULL;
        for (size_t k = 0; k < 2; k++)
            add_index(w, t, better[i / 2][(i + k) % 2], NULL);
        assert_ptr_equal(make_plan(w, AT ", rows: { n: 1 }", NOW)->index, &t->indexes[i % 2 ? 0 : 1]);
    }
}

/* What stands before the time need not come again behind it. */
static void a_part_of_the_key_may_stand_before_the_time(void **state)
{
    struct world *w = *state;
    struct table *t = w->facts->tables[2];
    add_index(w, t, "step_id, job, label", NULL);
    add_index(w, t, "step_id, job, nr", NULL);
    struct plan *p = make_plan(w, "table: part, expires: job, unit: s, rows: { step_id: 1 }", NOW);
    assert_ptr_equal(p->index, &t->indexes[1]);
}

static void an_index_that_sorts_otherwise_is_not_followed(void **state)
{
    struct world *w = *state;
    struct table *t = jobs_of(w);
    add_index(w, t, "state, at", NULL);
    column_of(t, "state")->sorts_apart = true;
    assert_order(make_plan(w, AT ", rows: { state: [a, b] }", NOW), "id");
    assert_order(make_plan(w, AT ", rows: { state: a }", NOW), "at, id"); /* it is not sorted by */
    t->indexes[0].descends = true;
    assert_order(make_plan(w, AT ", rows: { state: a }", NOW), "id");
}

static void an_expression_in_an_index_ends_the_way(void **state)
{
    struct world *w = *state;
    struct table *t = jobs_of(w);
    add_index(w, t, "n, at", NULL);
    t->indexes[0].columns[0] = NULL;
    assert_null(make_plan(w, AT ", rows: { n: 1 }", NOW)->index);
}

/* --- findings --------------------------------------------------------------------------------- */

#define ORPHAN_OF "table: jobs, orphan: { of: "
static const struct {
    const char *keys, *finding; /* column of line 3, what, fix */
} findings[] = {
    /* clang-format off */
    {"table: nope, expires: at",
     "15 table 'nope' does not exist (name a table of this database, with its schema if it is not on the search path)"},
    {"table: '\"Jobs\"', expires: at",
     "15 table '\"Jobs\"' does not exist (name a table of this database, with its schema if it is not on the search path)"},
    {"table: other.jobs, expires: at",
     "15 table 'other.jobs' does not exist (name a table of this database, with its schema if it is not on the search path)"},
    {"table: shown, expires: at",
     "15 'public.shown' is a view, not a table (name the base table that holds the rows)"},
    {"table: afar, expires: at",
     "15 'public.afar' is a foreign table, not a table (name the base table that holds the rows)"},
    {"table: words, expires: at",
     "15 'public.words' is a virtual table, not a table (name the base table that holds the rows)"},
    {"table: elder, expires: at",
     "15 other tables inherit from 'public.elder', so its key does not tell their rows apart (name the tables that inherit from it one by one)"},
    {"table: log, expires: note",
     "15 table 'public.log' has no key that tells its rows apart (add a primary key, or a unique index over NOT NULL columns)"},
    {"table: odd, expires: at",
     "15 the primary key of 'public.odd' (id inet, …) is of a type that cannot tell rows apart here (add a unique index over NOT NULL columns of other types)"},
    {"table: jobs, expires: att",
     "30 table 'public.jobs' has no column 'att' (did you mean 'at'?)"},
    {"table: log2, expires: xyzzy, with: [nope(a)]",
     "15 table 'log2' does not exist (name a table of this database, with its schema if it is not on the search path)"},
    {"table: step, expires: xyzzy",
     "30 table 'public.step' has no column 'xyzzy' (its columns are: id, job_id, state, done_ms)"},
    {"table: jobs, age: [at, locl], keep: 1d",
     "31 table 'public.jobs' has no column 'locl' (did you mean 'local'?)"},
    {"table: jobs, expires: n",
     "30 column 'n' is a whole number (integer) without a unit (say what it counts since 1970: unit: s, unit: ms or unit: us)"},
    {"table: jobs, expires: ok",
     "30 column 'ok' is boolean, which holds no time (name a column that is a timestamp, a date, a whole number with a unit, or text in ISO form)"},
    {"table: jobs, expires: ratio",
     "30 column 'ratio' is real, which holds no time (name a column that is a timestamp, a date, a whole number with a unit, or text in ISO form)"},
    {"table: jobs, expires: mood",
     "30 column 'mood' is mood, which holds no time (name a column that is a timestamp, a date, a whole number with a unit, or text in ISO form)"},
    {"table: jobs, expires: data",
     "30 column 'data' is bytea, which holds no time (name a column that is a timestamp, a date, a whole number with a unit, or text in ISO form)"},
    {"table: jobs, expires: ref",
     "30 column 'ref' is uuid, which holds no time (name a column that is a timestamp, a date, a whole number with a unit, or text in ISO form)"},
    {"table: jobs, expires: at, unit: s",
     "30 unit: is said of a whole-number column, but 'at' is timestamptz (take unit: out)"},
    {"table: jobs, age: at, keep: { by: nope, values: { a: 1d } }",
     "36 table 'public.jobs' has no column 'nope' (did you mean 'note'?)"},
    {"table: jobs, age: at, keep: { by: n, values: { a: 1d } }",
     "55 'a' is not a whole number, as column 'n' (integer) holds (write a whole number)"},
    {"table: jobs, age: at, keep: { column: nope }",
     "36 table 'public.jobs' has no column 'nope' (did you mean 'note'?)"},
    {"table: jobs, age: at, keep: { column: note, unit: s }",
     "36 column 'note' is text, not a count of time (name a whole-number column)"},
    {"table: jobs, age: at, keep: { column: keep }",
     "36 column 'keep' has no unit (add a unit: keep: { column: …, unit: s })"},
    {"table: jobs, expires: at, rows: { nope: 1 }",
     "42 table 'public.jobs' has no column 'nope' (did you mean 'note'?)"},
    {"table: jobs, expires: at, rows: { ok: maybe }",
     "46 'maybe' is not a boolean, as column 'ok' is (write true or false)"},
    {"table: jobs, expires: at, rows: { ok: 'true' }",
     "46 'true' is not a boolean, as column 'ok' is (write true or false)"},
    {"table: jobs, expires: at, rows: { n: [1, x, 1.5, 9223372036854775808] }",
     "49 'x' is not a whole number, as column 'n' (integer) holds (write a whole number)\n"
     "52 '1.5' is not a whole number, as column 'n' (integer) holds (write a whole number)\n"
     "57 '9223372036854775808' is not a whole number, as column 'n' (integer) holds (write a whole number)"},
    {"table: jobs, expires: at, rows: { n: true }",
     "45 'true' is not a whole number, as column 'n' (integer) holds (write a whole number)"},
    {"table: jobs, expires: at, rows: { n: '1*' }",
     "45 a prefix needs a text column, but 'n' is integer (write whole values)"},
    {"table: jobs, expires: at, where: { ratio: x }",
     "50 'x' is not a number, as column 'ratio' (real) holds (write a number)"},
    {"table: jobs, expires: at, where: { price: { gt: '1,5' } }",
     "56 '1,5' is not a number, as column 'price' (numeric) holds (write a number)"},
    {"table: jobs, expires: at, rows: { mood: hapy }",
     "48 'hapy' is not a value of mood, the type of column 'mood' (did you mean 'happy'? it has: happy, sad)"},
    {"table: jobs, expires: at, rows: { mood: xyzzy }",
     "48 'xyzzy' is not a value of mood, the type of column 'mood' (it has: happy, sad)"},
    {"table: jobs, expires: at, rows: { mood: 'x*' }",
     "48 'x' is not a value of mood, the type of column 'mood' (it has: happy, sad)"},
    {"table: jobs, expires: at, rows: { data: x }",
     "48 column 'data' holds bytes (bytea), which a plain value cannot be (compare it in SQL: where: \"this.… = …\")"},
    {"table: jobs, expires: at, where: { n: { like: x } }",
     "43 like needs a text column, but 'n' is integer (write whole values)"},
    {"table: jobs, expires: at, where: { state: { older_than: 1d }, n: { older_than: 1d } }",
     "70 column 'n' is a whole number (integer) without a unit (say what it counts since 1970: unit: s, unit: ms or unit: us)"},
    {"table: jobs, expires: at, where: { ok: { newer_than: 1d } }",
     "43 column 'ok' is boolean, which holds no time (name a column that is a timestamp, a date, a whole number with a unit, or text in ISO form)"},
    {"table: jobs, expires: at, where: { any: [{ nope: 1 }, { n: x }] }",
     "51 table 'public.jobs' has no column 'nope' (did you mean 'note'?)\n"
     "67 'x' is not a whole number, as column 'n' (integer) holds (write a whole number)"},
    {"table: jobs, expires: at, where: { n: { not: [1, x] } }",
     "57 'x' is not a whole number, as column 'n' (integer) holds (write a whole number)"},
    {"table: jobs, expires: at, hold: { nope: 1 }",
     "42 table 'public.jobs' has no column 'nope' (did you mean 'note'?)"},
    {"table: jobs, expires: at, with: [nope(id)]",
     "41 table 'nope' does not exist (name a table of this database, with its schema if it is not on the search path)"},
    {"table: jobs, expires: at, with: [step(nope)]",
     "41 table 'public.step' has no column 'nope' (its columns are: id, job_id, state, done_ms)"},
    {"table: jobs, expires: at, with: ['step(job_id) -> (nope)']",
     "41 table 'public.jobs' has no column 'nope' (did you mean 'note'?)"},
    {"table: jobs, expires: at, with: ['mail(part_step, part_nr)']",
     "41 'mail(part_step, part_nr)' has 2 columns, but the key of 'public.jobs' has 1 and no foreign key says otherwise (say which columns it points at: mail(part_step, part_nr) -> (column, …))"},
    {"table: part, expires: job, unit: s, with: [mail(part_step)]",
     "51 'mail(part_step)' has 1 column, but the key of 'public.part' has 2 and no foreign key says otherwise (say which columns it points at: mail(part_step) -> (column, …))"},
    {"table: jobs, expires: at, with: [mail(peer)]",
     "41 'public.mail.peer' is inet and 'public.jobs.id' is integer: they cannot be compared safely (point it at a column of the same type: -> (column))"},
    {"table: jobs, expires: at, with: ['mail(peer) -> (ref)']",
     "41 'public.mail.peer' is inet and 'public.jobs.ref' is uuid: they cannot be compared safely (point it at a column of the same type: -> (column))"},
    {"table: jobs, expires: at, with: ['step(job_id) -> (ratio)']",
     "41 'public.step.job_id' is integer and 'public.jobs.ratio' is real: they cannot be compared safely (point it at a column of the same type: -> (column))"},
    {"table: jobs, expires: at, with: [{ ref: step(job_id), where: { nope: 1 } }]",
     "71 table 'public.step' has no column 'nope' (its columns are: id, job_id, state, done_ms)"},
    {"table: jobs, expires: at, with: [{ ref: log(job_id), after: ['mail(part_nr) -> (job_id)'] }]",
     "48 table 'public.log' has no key that tells its rows apart (add a primary key, or a unique index over NOT NULL columns)"},
    {"table: jobs, expires: at, detach: [mail(job_id)]",
     "43 'mail(job_id)' cannot be detached: its columns are NOT NULL, generated or part of its key (use with (its rows go too) or after (wait until they are gone))"},
    {"table: jobs, expires: at, detach: ['mail(id)']",
     "43 'mail(id)' cannot be detached: its columns are NOT NULL, generated or part of its key (use with (its rows go too) or after (wait until they are gone))"},
    {"table: jobs, expires: at, detach: [nope(id)]",
     "43 table 'nope' does not exist (name a table of this database, with its schema if it is not on the search path)"},
    {"table: jobs, expires: at, after: [nope(id)]",
     "42 table 'nope' does not exist (name a table of this database, with its schema if it is not on the search path)"},
    {"table: jobs, expires: at, after: [{ ref: step(job_id), where: { nope: 1 } }]",
     "72 table 'public.step' has no column 'nope' (its columns are: id, job_id, state, done_ms)"},
    {"table: jobs, expires: at, with: [{ ref: jobs(parent_id), with: [step(job_id)] }]",
     "72 'public.step' is below an entry on the table itself (list it beside the entry: it then holds for every row of the subtree)"},
    {"table: jobs, expires: at, with: [{ ref: jobs(parent_id), after: [step(job_id)] }]",
     "48 detach and after stand below an entry on the table itself (list them beside the entry: they then hold for every row of the subtree)"},
    {"table: jobs, expires: at, with: [{ ref: jobs(parent_id), detach: [step(job_id)] }]",
     "48 detach and after stand below an entry on the table itself (list them beside the entry: they then hold for every row of the subtree)"},
    {ORPHAN_OF "nope(id), by: n }, keep: now",
     "35 table 'nope' does not exist (name a table of this database, with its schema if it is not on the search path)"},
    {ORPHAN_OF "shown(id), by: n }, keep: now",
     "35 'public.shown' is a view, not a table (name the base table that holds the rows)"},
    {ORPHAN_OF "'step(nope, id)', by: [n, xyz] }, keep: now",
     "35 table 'public.step' has no column 'nope' (its columns are: id, job_id, state, done_ms)\n"
     "61 table 'public.jobs' has no column 'xyz' (its columns are: id, parent_id, code, state, mood, ok, n, ratio, price, data, free, ref, at, local, day, at_ms, at_s, at_us, note, keep_days, keep)"},
    {ORPHAN_OF "step(id), by: code }, keep: now",
     "29 'public.step.id' is integer and 'public.jobs.code' is text: they cannot be compared safely, and every row would pass for an orphan (give both columns the same type)"},
    {ORPHAN_OF "step(id), by: n, matching: { nope: 1 } }, keep: now",
     "64 table 'public.step' has no column 'nope' (its columns are: id, job_id, state, done_ms)"},
    {"table: jobs, cap: { rows: 5, newest: [at, nope], per: [stat] }",
     "63 table 'public.jobs' has no column 'stat' (did you mean 'state'?)\n"
     "50 table 'public.jobs' has no column 'nope' (did you mean 'note'?)"},
    {"table: jobs, cap: { rows: 5, newest: [at, AT] }",
     "50 'newest' names the column 'at' again (name each column once: those of per make the groups, those of newest the order)"},
    {"table: jobs, cap: { rows: 5, per: state, newest: STATE }",
     "57 'newest' names the column 'state' again (name each column once: those of per make the groups, those of newest the order)"},
    {"table: jobs, age: at, keep: 1d, keep_newest: { rows: 5, newest: ref }",
     "72 column 'ref' is uuid, which has no order: 'newest' cannot use it (name a column whose values have an order)"},
    {"table: jobs, cap: { rows: 5, newest: n, per: [state, ref] }",
     "61 column 'ref' is uuid, which has no order: 'per' cannot use it (name a column whose values have an order)"},
    /* clang-format on */
};

static void everything_wrong_is_found(void **state)
{
    struct world *w = *state;
    column_of(jobs_of(w), "ref")->unordered = true;
    for (size_t i = 0; i < COUNT_OF(findings); i++) {
        AUTO(text_release) struct text out = {0};
        if (try_plan(w, findings[i].keys, NOW))
            fail_msg("%s: found nothing", findings[i].keys);
        for (size_t k = 0; k < w->findings.n; k++) {
            const struct finding *f = &w->findings.list[k];
            assert_string_equal(f->policy, "p");
            assert_int_equal(f->level, FINDING_ERROR);
            assert_int_equal(f->at.line, 3);
            text_addf(&out, "%s%d %s (%s)", k ? "\n" : "", f->at.column, f->what, f->fix);
        }
        assert_string_equal(text_str(&out), findings[i].finding);
    }
}

/* --- orphans ---------------------------------------------------------------------------------- */

#define ORPHAN "table: jobs, orphan: { of: step(id), by: n"

static void an_orphan_has_no_source(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *keys, *orphaned;
        bool needed, locked;
    } cases[] = {
        {ORPHAN " }, keep: now", "(n is not null and not true(exists step[id = n]) and exists step[])", true,
         false},
        {ORPHAN ", allow_empty: true }, keep: now", "(n is not null and not true(exists step[id = n]))",
         false, false},
        {ORPHAN ", matching: { state: a } }, keep: now",
         "(n is not null and not true(exists step[id = n]) and exists step[])", true, false},
        {ORPHAN ", matching: { state: a }, delete_when: deleted_or_unmatched }, keep: now",
         "(n is not null and not true(exists step[id = n](state in 'a')) and exists step[])", true, true},
        {ORPHAN
         ", matching: 'this.state > 1', delete_when: deleted_or_unmatched, allow_empty: true }, keep: now",
         "(n is not null and not true(exists step[id = n](sql<this.state > 1>)))", false, true},
        {ORPHAN ", delete_when: never }, keep: now", "false", false, false},
        {"table: jobs, orphan: { of: 'part(step_id, label)', by: [n, code], allow_empty: true }, keep: now",
         "(n is not null and code is not null and not true(exists part[step_id = n, label = code]))", false,
         false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct plan *p = make_plan(w, cases[i].keys, NOW);
        assert_expr(p->orphaned, cases[i].orphaned);
        assert_expr(p->due, cases[i].orphaned);
        assert_true(p->judge_again && p->examines);
        assert_int_equal(p->source_needed, cases[i].needed);
        assert_int_equal(p->source_locked, cases[i].locked);
        assert_int_equal(p->n_times, 0);
        assert_cutoffs(p, "");
    }
}

static void an_orphan_has_its_grace(void **state)
{
    struct world *w = *state;
    struct plan *p =
        make_plan(w, ORPHAN ", allow_empty: true }, age: [at_ms, at_s], hold: { ok: true }", NOW);
    AUTO(text_release) struct text due = {0}, day = {0};
    text_addf(&day, "%" PRId64, NOW - US_PER_DAY);
    text_addf(
        &due,
        "(((at_ms is null or at_ms < @%s) and (at_s is null or at_s < @%s) and (at_ms is not null or at_s "
        "is not null)) and not true(ok in 1) and (n is not null and not true(exists step[id = n])))",
        text_str(&day), text_str(&day));
    assert_expr(p->due, text_str(&due));
    text_clear(&due);
    text_addf(&due, "*: %s", text_str(&day));
    assert_cutoffs(p, text_str(&due));
}

/* The set carries what the source rows are locked by, and only where they are. */
static void a_source_that_is_locked_is_carried(void **state)
{
    struct world *w = *state;
    assert_tree(make_plan(w, ORPHAN " }, keep: now", NOW), "0:0 jobs[](id)\n");
    assert_tree(
        make_plan(w, ORPHAN ", matching: { state: a }, delete_when: deleted_or_unmatched }, keep: now", NOW),
        "0:0 jobs[](id, n)\n");
}

static void a_row_below_must_be_an_orphan_too(void **state)
{
    struct world *w = *state;
    struct plan *p = make_plan(w, ORPHAN ", allow_empty: true }, keep: now, with: [jobs(parent_id)]", NOW);
    assert_expr(p->free_,
                "not true(subtree jobs[parent_id = id](exists jobs[parent_id = id](not true((n is not "
                "null and not true(exists step[id = n]))))))");
}

/* Of the source's own columns, whatever the bound's are. */
static void a_filter_may_have_the_unit_alone(void **state)
{
    struct world *w = *state;
    struct plan *p =
        make_plan(w,
                  "table: step, orphan: { of: jobs(id), by: job_id, matching: { n: { older_than: 1s } "
                  "}, delete_when: deleted_or_unmatched }, keep: now, unit: ms",
                  NOW);
    assert_int_equal(p->matching->time.unit_us, US_PER_MS);
    make_plan(w, ORPHAN " }, keep: now, unit: ms", NOW);
}

static void compare_columns(struct world *w, struct column key, struct column by, bool ok)
{
    struct table *source = w->facts->tables[1], *swept = jobs_of(w);
    struct column old_key = source->columns[0], old_by = swept->columns[6];
    key.name = "id";
    by.name = "n";
    source->columns[0] = key;
    swept->columns[6] = by;
    bool made = try_plan(w, ORPHAN " }, keep: now", NOW) != NULL;
    source->columns[0] = old_key;
    swept->columns[6] = old_by;
    if (made != ok)
        fail_msg("%s and %s: %s", key.sql_type, by.sql_type, made ? "compared" : w->findings.list[0].what);
    if (!ok)
        assert_non_null(strstr(w->findings.list[0].what, "cannot be compared safely"));
}

#define COLUMN(t, s, ...) ((struct column){.type = t, .sql_type = s, __VA_ARGS__})

static void what_differs_is_never_compared(void **state)
{
    struct world *w = *state;
    const struct column integer = COLUMN(TYPE_INTEGER, "integer"), text = COLUMN(TYPE_TEXT, "text");
    const struct column numeric = COLUMN(TYPE_NUMERIC, "numeric"), real = COLUMN(TYPE_REAL, "real");
    const struct column any = COLUMN(TYPE_DYNAMIC, "", .any_class = true);
    const struct column folded = COLUMN(TYPE_TEXT, "text", .collation = "nocase");
    const struct column uuid = COLUMN(TYPE_DYNAMIC, "UUID");
    compare_columns(w, integer, COLUMN(TYPE_INTEGER, "bigint"), true);
    compare_columns(w, integer, numeric, true);
    compare_columns(w, integer, uuid, true);
    compare_columns(w, uuid, uuid, true);
    compare_columns(w, uuid, text, false);
    compare_columns(w, integer, text, false);
    compare_columns(w, text, integer, false);
    compare_columns(w, integer, real, false);
    compare_columns(w, numeric, real, false);
    compare_columns(w, real, real, true);
    compare_columns(w, real, COLUMN(TYPE_REAL, "double precision"), false);
    compare_columns(w, any, any, false);
    compare_columns(w, any, integer, false);
    compare_columns(w, integer, any, false);
    compare_columns(w, text, COLUMN(TYPE_TEXT, "character varying"), true);
    compare_columns(w, text, COLUMN(TYPE_TEXT, "bpchar"), false);
    compare_columns(w, COLUMN(TYPE_TEXT, "bpchar"), COLUMN(TYPE_TEXT, "bpchar"), true);
    compare_columns(w, text, COLUMN(TYPE_TEXT, "public.citext"), false);
    compare_columns(w, text, folded, false);
    compare_columns(w, folded, text, false);
    compare_columns(w, folded, COLUMN(TYPE_TEXT, "text", .collation = "C"), false);
    compare_columns(w, folded, folded, true);
    compare_columns(w, COLUMN(TYPE_BLOB, "bytea"), COLUMN(TYPE_BLOB, "bytea"), true);
    compare_columns(w, COLUMN(TYPE_BLOB, "BLOB", .any_class = true), COLUMN(TYPE_BLOB, "BLOB"), false);
    compare_columns(w, COLUMN(TYPE_OTHER, "uuid"), COLUMN(TYPE_OTHER, "uuid"), true);
    compare_columns(w, COLUMN(TYPE_OTHER, "uuid"), COLUMN(TYPE_OTHER, "inet"), false);
    compare_columns(w, COLUMN(TYPE_OTHER, "integer[]"), COLUMN(TYPE_OTHER, "integer[]"), false);
    compare_columns(w, COLUMN(TYPE_ENUM, "s.a"), COLUMN(TYPE_ENUM, "s.b"), false);
    compare_columns(w, COLUMN(TYPE_TIMESTAMP, "t"), COLUMN(TYPE_TIMESTAMPTZ, "t"), false);
    w->facts->ignores_case = true;
    compare_columns(w, folded, COLUMN(TYPE_TEXT, "text", .collation = "NOCASE"), true);
}

/* Said beside the entry on the table itself, it may be said below it too. */
static void saying_it_twice_is_harmless(void **state)
{
    struct world *w = *state;
    struct plan *p =
        make_plan(w, AT ", with: [{ ref: jobs(parent_id), with: [step(job_id)] }, step(job_id)]", NOW);
    assert_tree(p, "0:1 jobs[](id) down[parent_id = id]\n"
                   "  -1:0 step[job_id = id]()\n");
}

static void an_unknown_zone_is_a_finding(void **state)
{
    struct world *w = *state;
    make_plan(w, AT, NOW);
    plan_free_p(&w->plan);
    w->contract->policies[0].zone =
        "Mars/Olympus"; /* zoneinfo may have changed since the contract was read */
    assert_null(plan_make(&w->contract->policies[0], w->facts, NOW, &w->findings));
    assert_int_equal(w->findings.errors, 1);
    assert_string_equal(w->findings.list[0].fix, "name a zone of the system's zoneinfo");
    assert_int_equal(w->findings.list[0].at.line, 3);
}

/* The policy's own rows by its label, also those that go along; others by their table, as it was first
 * written. */
static void labels_are_the_contract_s_words(void **state)
{
    struct world *w = *state;
    struct plan *p =
        make_plan(w,
                  AT ", label: work, with: [{ ref: STEP(job_id), with: [part(step_id), jobs(parent_id)] "
                     "}, jobs(parent_id), log(job_id)]",
                  NOW);
    AUTO(text_release) struct text labels = {0}, dependents = {0};
    for (size_t i = 0; i < p->n_slots; i++)
        text_addf(&labels, "%s%s", i ? " " : "", plan_label(p, i, w->arena));
    size_t n;
    const char **list = policy_dependents(w->arena, p->policy, &n);
    for (size_t i = 0; i < n; i++)
        text_addf(&dependents, "%s%s", i ? " " : "", list[i]);
    assert_string_equal(text_str(&dependents), "STEP part log");
    assert_string_equal(text_str(&labels), "part STEP log work");
}

static void the_tables_to_inspect_are_all_that_are_named(void **state)
{
    struct world *w = *state;
    AUTO(text_release) struct text out = {0};
    struct table_names names = {0};
    try_plan(w,
             AT ", orphan: { of: src(x), by: y }, with: [{ ref: a(x), with: [s.b(x)], detach: [c(x)], after: "
                "[d(x)] }, e(x)], detach: [f(x)], "
                "after: [g(x)]",
             NOW);
    plan_tables(&w->contract->policies[0], w->arena, &names);
    for (size_t i = 0; i < names.n; i++) {
        text_add(&out, i ? " " : "");
        table_name_print(names.list[i], &out);
    }
    assert_string_equal(text_str(&out), "jobs src a s.b c d e f g");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_bound_has_its_cutoff),
        TEST(what_ranks_is_part_of_the_bound),
        TEST(guards_do_not_change_the_ranking),
        TEST(the_newest_do_not_go_along),
        TEST(groups_of_arrays_do_not_narrow),
        TEST(a_keep_beyond_all_time_is_never),
        TEST(a_time_column_is_read_as_its_type_says),
        TEST(values_get_the_type_of_their_column),
        TEST(what_is_due_is_all_of_it_the_index_first),
        TEST(rows_with_a_null_key_are_not_spoken_of),
        TEST(a_policy_without_dependents_is_one_node),
        TEST(dependents_become_a_tree),
        TEST(a_row_carries_what_others_refer_to),
        TEST(a_reference_follows_its_foreign_key_or_the_primary_key),
        TEST(rows_are_counted_by_table),
        TEST(a_reference_to_the_table_itself_is_its_subtree),
        TEST(detaching_empties_what_may_be_empty),
        TEST(a_row_waits_for_what_it_must_not_lose),
        TEST(the_cursor_follows_an_index_to_the_time),
        TEST(the_shortest_way_to_the_time_is_taken),
        TEST(the_index_that_goes_on_with_the_key_is_taken),
        TEST(a_part_of_the_key_may_stand_before_the_time),
        TEST(an_index_that_sorts_otherwise_is_not_followed),
        TEST(an_expression_in_an_index_ends_the_way),
        TEST(everything_wrong_is_found),
        TEST(an_orphan_has_no_source),
        TEST(an_orphan_has_its_grace),
        TEST(a_source_that_is_locked_is_carried),
        TEST(a_row_below_must_be_an_orphan_too),
        TEST(a_filter_may_have_the_unit_alone),
        TEST(what_differs_is_never_compared),
        TEST(saying_it_twice_is_harmless),
        TEST(an_unknown_zone_is_a_finding),
        TEST(labels_are_the_contract_s_words),
        TEST(the_tables_to_inspect_are_all_that_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
