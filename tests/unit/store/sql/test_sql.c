/* sql: the statements of plans, word by word in both dialects. No database:
 * the suites on real ones say whether they are right. */
#include "shown.h"
#include "world.h"

#include "store/postgres/store.h"
#include "store/sqlite/store.h"

#define NOW (INT64_C(1718452800) * US_PER_S) /* 2024-06-15T12:00:00Z */

/* --- statements ------------------------------------------------------------------------------- */

static void begin(struct text *out, const char *what)
{
    text_addf(out, "%s%s: ", out->len ? "\n" : "", what);
}

struct writing {
    const struct dialect *d;
    const struct plan *plan;
    struct stmt s;
    struct text *out;
};

static void written(struct writing *w, const char *what)
{
    begin(w->out, what);
    show_plain(&w->s, w->d, w->d == &dialect_sqlite ? '?' : '$', w->out);
}

static void write_below(struct writing *w, const struct node *n)
{
    for (size_t i = 0; i < n->n_grow; i++) {
        sql_grow(&w->s, w->d, n, i, w->plan->n_sets);
        written(w, "grow");
    }
    for (size_t i = 0; i < n->n_kids; i++) {
        const struct node *kid = &n->kids[i];
        if (kid->set >= 0) {
            sql_pick_kids(&w->s, w->d, n, kid);
            written(w, "pick kids");
            write_below(w, kid);
        } else {
            sql_delete_kids(&w->s, w->d, w->plan, n, kid);
            written(w, "delete kids");
            sql_kids_left(&w->s, w->d, w->plan, n, kid, false);
            written(w, "kids left");
            if (kid->where) {
                sql_kids_left(&w->s, w->d, w->plan, n, kid, true);
                written(w, "kids left inside");
            }
        }
    }
    for (size_t i = 0; i < n->n_detach; i++) {
        sql_detach(&w->s, w->d, w->plan, n, &n->detach[i], false);
        written(w, "detach");
        if (plan_loses(w->plan, n->detach[i].table)) {
            sql_detach(&w->s, w->d, w->plan, n, &n->detach[i], true);
            written(w, "detach inside");
        }
        sql_detach_left(&w->s, w->d, n, &n->detach[i]);
        written(w, "detach left");
    }
    if (n->n_grow) {
        sql_leaves(&w->s, w->d, n);
        written(w, "leaves");
        sql_delete_leaves(&w->s, w->d, n, w->plan->n_sets);
        written(w, "delete leaves");
    }
    sql_delete_set(&w->s, w->d, n);
    written(w, "delete");
    sql_set_left(&w->s, w->d, n);
    written(w, "left");
}

static struct cursor some_place(const struct plan *p)
{
    struct cursor from = {.set = true, .n = p->n_order};
    from.values = mem_alloc(p->n_order * sizeof(*from.values));
    for (size_t i = 0; i < p->n_order; i++)
        from.values[i] = p->order[i]->type == TYPE_TEXT
                             ? (struct value){.kind = VALUE_TEXT, .text = "x", .len = 1}
                             : (struct value){.kind = VALUE_INTEGER, .integer = 7};
    return from;
}

static void write_later_pick(struct writing *w)
{
    struct cursor from = some_place(w->plan);
    const struct stretch beyond = {.after = &from};
    sql_pick(&w->s, w->d, w->plan, &beyond, 100);
    written(w, "pick after");
    mem_free_p(&from.values);
}

static void write_part(struct writing *w)
{
    struct cursor from = some_place(w->plan);
    const struct stretch part = {.after = &from, .upto = &from};
    sql_pick(&w->s, w->d, w->plan, &part, 100);
    written(w, "part");
    sql_cut(&w->s, w->d, w->plan, &from, 5000);
    written(w, "cut");
    mem_free_p(&from.values);
}

static void write_slice(struct writing *w)
{
    sql_pick(&w->s, w->d, w->plan, NULL, 100);
    written(w, "pick");
    if (w->plan->source_locked) {
        sql_lock_source(&w->s, w->d, w->plan);
        written(w, "lock source");
    }
    if (w->plan->judge_again) {
        sql_judge(&w->s, w->d, w->plan);
        written(w, "judge");
    }
    if (w->plan->free_) {
        sql_set_waiting(&w->s, w->d, w->plan);
        written(w, "waiting");
    }
    write_below(w, &w->plan->root);
}

static void write_counts(struct writing *w)
{
    sql_count_due(&w->s, w->d, w->plan);
    written(w, "count");
    sql_kept(&w->s, w->d, w->plan);
    written(w, "kept");
}

static void write_count_below(struct writing *w)
{
    sql_count(&w->s, w->d, w->plan);
    written(w, "count");
}

static void write_looks(struct writing *w)
{
    sql_probe(&w->s, w->d, w->plan);
    written(w, "probe");
    sql_remaining(&w->s, w->d, w->plan, 10);
    written(w, "remaining");
    sql_sample(&w->s, w->d, w->plan, w->plan->times[0].column, 50);
    written(w, "sample");
    sql_has(&w->s, w->d, w->plan->root.table, w->plan->matches);
    written(w, "has");
}

static void write_ranks(struct writing *w)
{
    sql_probe(&w->s, w->d, w->plan);
    written(w, "probe");
    sql_scout(&w->s, w->d, w->plan, NULL, 100);
    written(w, "scout");
    sql_pick_set(&w->s, w->d, w->plan);
    written(w, "pick set");
    sql_judge(&w->s, w->d, w->plan);
    written(w, "judge");
}

static void add_tables(struct world *w, const char *schema)
{
    w->facts->folds_lower = schema != NULL;
    w->facts->ignores_case = schema == NULL;
    struct table *jobs = add_table(
        w, schema, "jobs",
        "id:integer!, parent_id:integer, code:text, state:text, at_ms:integer, seen_ms:integer, ok:integer",
        "id");
    struct table *step = add_table(w, schema, "step", "id:integer!, job_id:integer, state:text", "id");
    add_table(w, schema, "part", "step_id:integer!, nr:integer!, label:text", "step_id, nr");
    add_table(w, schema, "log", "job_code:text, note:text", "");
    add_table(w, schema, "Odd \"t", "a \"1:integer!, b:text!, up_a:integer, up_b:text, at_s:integer",
              "a \"1, b");
    add_fkey(w, step, "job_id", jobs, "id", ON_DELETE_NO_ACTION);
    add_index(w, jobs, "state, at_ms", NULL);
}

static void check_statements(const char *schema, const struct dialect *d, void (*write)(struct writing *),
                             const char *keys, const char *expected)
{
    void *state = NULL;
    world_setup(&state);
    struct world *w = state;
    AUTO(text_release) struct text out = {0};
    add_tables(w, schema);
    struct writing writing = {.d = d, .plan = make_plan(w, keys, NOW), .out = &out};
    write(&writing);
    stmt_release(&writing.s);
    world_teardown(&state);
    if (strcmp(text_str(&out), expected) != 0)
        fail_msg("%s became:\n%s\nwanted:\n%s", keys, text_str(&out), expected);
}

static const struct {
    const char *keys;
    void (*write)(struct writing *);
    const char *postgres, *sqlite;
} statements[] = {
    /* clang-format off */
    {"table: jobs, cap: { rows: 5, per: [state, ok], newest: [at_ms, seen_ms] }, rows: { code: x }",
     write_ranks,
     /* PostgreSQL */
     "probe: SELECT 1 FROM \"public\".\"jobs\" AS this\n"
     "WHERE this.\"code\" = $1{x}::text\n"
     "GROUP BY this.\"state\", this.\"ok\" HAVING count(*) > $2{5}::bigint\n"
     "LIMIT 1\n"
     "scout: SELECT this.\"id\", this.\"state\", this.\"ok\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE (this.\"id\" = ANY(WITH lapse_1 AS MATERIALIZED (SELECT lapse_4.\"id\" FROM (SELECT"
     " lapse_3.\"id\", row_number() OVER (PARTITION BY lapse_3.\"state\", lapse_3.\"ok\" ORDER BY"
     " lapse_3.\"at_ms\" DESC NULLS LAST, lapse_3.\"seen_ms\" DESC NULLS LAST, lapse_3.\"id\" DESC) AS"
     " lapse_n FROM \"public\".\"jobs\" AS lapse_3 WHERE lapse_3.\"code\" = $1{x}::text) AS lapse_4"
     " WHERE lapse_4.lapse_n > $2{5}::bigint) SELECT lapse_1.\"id\" FROM lapse_1) AND this.\"code\" ="
     " $3{x}::text)\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT $4{100}::bigint\n"
     "pick set: SELECT this.\"id\", this.\"state\", this.\"ok\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "AND (this.\"code\" = $2{x}::text) IS TRUE FOR UPDATE OF this SKIP LOCKED\n"
     "judge: SELECT this.\"id\", this.\"state\", this.\"ok\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "AND (this.\"id\" = ANY(WITH lapse_1 AS MATERIALIZED (SELECT lapse_4.\"id\" FROM (SELECT"
     " lapse_3.\"id\", row_number() OVER (PARTITION BY lapse_3.\"state\", lapse_3.\"ok\" ORDER BY"
     " lapse_3.\"at_ms\" DESC NULLS LAST, lapse_3.\"seen_ms\" DESC NULLS LAST, lapse_3.\"id\" DESC) AS"
     " lapse_n FROM \"public\".\"jobs\" AS lapse_3 WHERE lapse_3.\"code\" = $2{x}::text AND"
     " (lapse_3.\"state\" = ANY($3{set 0.1}::text[]) OR lapse_3.\"state\" IS NULL) AND (lapse_3.\"ok\" ="
     " ANY($4{set 0.2}::integer[]) OR lapse_3.\"ok\" IS NULL)) AS lapse_4 WHERE lapse_4.lapse_n >"
     " $5{5}::bigint) SELECT lapse_1.\"id\" FROM lapse_1) AND this.\"code\" = $6{x}::text)",
     /* SQLite */
     "probe: SELECT 1 FROM main.\"jobs\" AS this\n"
     "WHERE this.\"code\" = ?1{x}\n"
     "GROUP BY this.\"state\", this.\"ok\" HAVING count(*) > ?2{5}\n"
     "LIMIT 1\n"
     "scout: SELECT this.\"id\", this.\"state\", this.\"ok\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE (this.\"id\" IN (WITH lapse_1 AS (SELECT lapse_4.\"id\" FROM (SELECT lapse_3.\"id\","
     " row_number() OVER (PARTITION BY lapse_3.\"state\", lapse_3.\"ok\" ORDER BY lapse_3.\"at_ms\""
     " DESC, lapse_3.\"seen_ms\" DESC, lapse_3.\"id\" DESC) AS lapse_n FROM main.\"jobs\" AS lapse_3"
     " WHERE lapse_3.\"code\" = ?1{x}) AS lapse_4 WHERE lapse_4.lapse_n > ?2{5}) SELECT lapse_1.\"id\""
     " FROM lapse_1) AND this.\"code\" = ?3{x})\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT ?4{100}\n"
     "pick set: SELECT this.\"id\", this.\"state\", this.\"ok\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "AND (this.\"code\" = ?1{x}) IS TRUE\n"
     "judge: SELECT this.\"id\", this.\"state\", this.\"ok\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "AND (this.\"id\" IN (WITH lapse_1 AS (SELECT lapse_4.\"id\" FROM (SELECT lapse_3.\"id\","
     " row_number() OVER (PARTITION BY lapse_3.\"state\", lapse_3.\"ok\" ORDER BY lapse_3.\"at_ms\""
     " DESC, lapse_3.\"seen_ms\" DESC, lapse_3.\"id\" DESC) AS lapse_n FROM main.\"jobs\" AS lapse_3"
     " WHERE lapse_3.\"code\" = ?1{x} AND (lapse_3.\"state\" IN (SELECT c1 FROM temp.lapse_set_0) OR"
     " lapse_3.\"state\" IS NULL) AND (lapse_3.\"ok\" IN (SELECT c2 FROM temp.lapse_set_0) OR"
     " lapse_3.\"ok\" IS NULL)) AS lapse_4 WHERE lapse_4.lapse_n > ?2{5}) SELECT lapse_1.\"id\" FROM"
     " lapse_1) AND this.\"code\" = ?3{x})"},
    {"table: part, cap: { rows: 2, newest: label }",
     write_ranks,
     /* PostgreSQL */
     "probe: SELECT 1 FROM \"public\".\"part\" AS this\n"
     "WHERE TRUE\n"
     "LIMIT 1 OFFSET $1{2}::bigint\n"
     "scout: SELECT this.\"step_id\", this.\"nr\", this.\"step_id\", this.\"nr\"\n"
     " FROM \"public\".\"part\" AS this\n"
     "WHERE NOT EXISTS (SELECT 1 FROM (WITH lapse_1 AS MATERIALIZED (SELECT lapse_3.\"step_id\","
     " lapse_3.\"nr\" FROM \"public\".\"part\" AS lapse_3 WHERE TRUE ORDER BY lapse_3.\"label\" DESC NULLS"
     " LAST, lapse_3.\"step_id\" DESC, lapse_3.\"nr\" DESC LIMIT $1{2}::bigint) SELECT"
     " lapse_1.\"step_id\", lapse_1.\"nr\" FROM lapse_1) AS lapse_2 WHERE lapse_2.\"step_id\" ="
     " this.\"step_id\" AND lapse_2.\"nr\" = this.\"nr\")\n"
     "ORDER BY this.\"step_id\", this.\"nr\"\n"
     "LIMIT $2{100}::bigint\n"
     "pick set: SELECT this.\"step_id\", this.\"nr\", this.\"step_id\", this.\"nr\"\n"
     " FROM \"public\".\"part\" AS this\n"
     "WHERE (this.\"step_id\", this.\"nr\") = ANY(SELECT * FROM ROWS FROM (unnest($1{set 0.0}::integer[]), unnest($2{set"
     " 0.1}::integer[]))) FOR UPDATE OF this SKIP LOCKED\n"
     "judge: SELECT this.\"step_id\", this.\"nr\"\n"
     " FROM \"public\".\"part\" AS this\n"
     "WHERE (this.\"step_id\", this.\"nr\") = ANY(SELECT * FROM ROWS FROM (unnest($1{set 0.0}::integer[]), unnest($2{set"
     " 0.1}::integer[])))\n"
     "AND NOT EXISTS (SELECT 1 FROM (WITH lapse_1 AS MATERIALIZED (SELECT lapse_3.\"step_id\","
     " lapse_3.\"nr\" FROM \"public\".\"part\" AS lapse_3 WHERE TRUE ORDER BY lapse_3.\"label\" DESC NULLS"
     " LAST, lapse_3.\"step_id\" DESC, lapse_3.\"nr\" DESC LIMIT $3{2}::bigint) SELECT"
     " lapse_1.\"step_id\", lapse_1.\"nr\" FROM lapse_1) AS lapse_2 WHERE lapse_2.\"step_id\" ="
     " this.\"step_id\" AND lapse_2.\"nr\" = this.\"nr\")",
     /* SQLite */
     "probe: SELECT 1 FROM main.\"part\" AS this\n"
     "WHERE TRUE\n"
     "LIMIT 1 OFFSET ?1{2}\n"
     "scout: SELECT this.\"step_id\", this.\"nr\", this.\"step_id\", this.\"nr\"\n"
     " FROM main.\"part\" AS this\n"
     "WHERE NOT EXISTS (SELECT 1 FROM (WITH lapse_1 AS (SELECT lapse_3.\"step_id\", lapse_3.\"nr\""
     " FROM main.\"part\" AS lapse_3 WHERE TRUE ORDER BY lapse_3.\"label\" DESC, lapse_3.\"step_id\""
     " DESC, lapse_3.\"nr\" DESC LIMIT ?1{2}) SELECT lapse_1.\"step_id\", lapse_1.\"nr\" FROM lapse_1)"
     " AS lapse_2 WHERE lapse_2.\"step_id\" = this.\"step_id\" AND lapse_2.\"nr\" = this.\"nr\")\n"
     "ORDER BY this.\"step_id\", this.\"nr\"\n"
     "LIMIT ?2{100}\n"
     "pick set: SELECT this.\"step_id\", this.\"nr\", this.\"step_id\", this.\"nr\"\n"
     " FROM main.\"part\" AS this\n"
     "WHERE (this.\"step_id\", this.\"nr\") IN (SELECT c0, c1 FROM temp.lapse_set_0)\n"
     "judge: SELECT this.\"step_id\", this.\"nr\"\n"
     " FROM main.\"part\" AS this\n"
     "WHERE (this.\"step_id\", this.\"nr\") IN (SELECT c0, c1 FROM temp.lapse_set_0)\n"
     "AND NOT EXISTS (SELECT 1 FROM (WITH lapse_1 AS (SELECT lapse_3.\"step_id\", lapse_3.\"nr\" FROM"
     " main.\"part\" AS lapse_3 WHERE TRUE ORDER BY lapse_3.\"label\" DESC, lapse_3.\"step_id\" DESC,"
     " lapse_3.\"nr\" DESC LIMIT ?1{2}) SELECT lapse_1.\"step_id\", lapse_1.\"nr\" FROM lapse_1) AS"
     " lapse_2 WHERE lapse_2.\"step_id\" = this.\"step_id\" AND lapse_2.\"nr\" = this.\"nr\")"},
    {"table: jobs, age: at_ms, keep: 1h, keep_newest: { rows: 1, per: parent_id, newest: at_ms }",
     write_ranks,
     /* PostgreSQL */
     "probe: SELECT 1 FROM \"public\".\"jobs\" AS this\n"
     "WHERE (this.\"at_ms\" < $1{1718449200000}::bigint) AND TRUE\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT 1\n"
     "scout: SELECT this.\"id\", this.\"parent_id\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" < $1{1718449200000}::bigint) AND this.\"id\" = ANY(WITH lapse_1 AS"
     " MATERIALIZED (SELECT lapse_4.\"id\" FROM (SELECT lapse_3.\"id\", row_number() OVER (PARTITION"
     " BY lapse_3.\"parent_id\" ORDER BY (lapse_3.\"at_ms\"::numeric * 1000::numeric) DESC NULLS LAST,"
     " lapse_3.\"id\" DESC) AS lapse_n FROM \"public\".\"jobs\" AS lapse_3 WHERE TRUE) AS lapse_4 WHERE"
     " lapse_4.lapse_n > $2{1}::bigint) SELECT lapse_1.\"id\" FROM lapse_1))\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT $3{100}::bigint\n"
     "pick set: SELECT this.\"id\", this.\"parent_id\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "AND ((this.\"at_ms\" < $2{1718449200000}::bigint)) IS TRUE FOR UPDATE OF this SKIP LOCKED\n"
     "judge: SELECT this.\"id\", this.\"parent_id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "AND ((this.\"at_ms\" < $2{1718449200000}::bigint) AND this.\"id\" = ANY(WITH lapse_1 AS"
     " MATERIALIZED (SELECT lapse_4.\"id\" FROM (SELECT lapse_3.\"id\", row_number() OVER (PARTITION"
     " BY lapse_3.\"parent_id\" ORDER BY (lapse_3.\"at_ms\"::numeric * 1000::numeric) DESC NULLS LAST,"
     " lapse_3.\"id\" DESC) AS lapse_n FROM \"public\".\"jobs\" AS lapse_3 WHERE TRUE AND"
     " (lapse_3.\"parent_id\" = ANY($3{set 0.1}::integer[]) OR lapse_3.\"parent_id\" IS NULL)) AS"
     " lapse_4 WHERE lapse_4.lapse_n > $4{1}::bigint) SELECT lapse_1.\"id\" FROM lapse_1))",
     /* SQLite */
     "probe: SELECT 1 FROM main.\"jobs\" AS this\n"
     "WHERE (this.\"at_ms\" < ?1{1718449200000} AND typeof(this.\"at_ms\") = 'integer') AND TRUE\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT 1\n"
     "scout: SELECT this.\"id\", this.\"parent_id\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" < ?1{1718449200000} AND typeof(this.\"at_ms\") = 'integer') AND this.\"id\""
     " IN (WITH lapse_1 AS (SELECT lapse_4.\"id\" FROM (SELECT lapse_3.\"id\", row_number() OVER"
     " (PARTITION BY lapse_3.\"parent_id\" ORDER BY CASE typeof(lapse_3.\"at_ms\") WHEN 'integer' THEN"
     " max(-9223372036854775, min(9223372036854775, lapse_3.\"at_ms\")) * 1000 END DESC,"
     " lapse_3.\"id\" DESC) AS lapse_n FROM main.\"jobs\" AS lapse_3 WHERE TRUE) AS lapse_4 WHERE"
     " lapse_4.lapse_n > ?2{1}) SELECT lapse_1.\"id\" FROM lapse_1))\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT ?3{100}\n"
     "pick set: SELECT this.\"id\", this.\"parent_id\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "AND ((this.\"at_ms\" < ?1{1718449200000} AND typeof(this.\"at_ms\") = 'integer')) IS TRUE\n"
     "judge: SELECT this.\"id\", this.\"parent_id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "AND ((this.\"at_ms\" < ?1{1718449200000} AND typeof(this.\"at_ms\") = 'integer') AND this.\"id\""
     " IN (WITH lapse_1 AS (SELECT lapse_4.\"id\" FROM (SELECT lapse_3.\"id\", row_number() OVER"
     " (PARTITION BY lapse_3.\"parent_id\" ORDER BY CASE typeof(lapse_3.\"at_ms\") WHEN 'integer' THEN"
     " max(-9223372036854775, min(9223372036854775, lapse_3.\"at_ms\")) * 1000 END DESC,"
     " lapse_3.\"id\" DESC) AS lapse_n FROM main.\"jobs\" AS lapse_3 WHERE TRUE AND"
     " (lapse_3.\"parent_id\" IN (SELECT c1 FROM temp.lapse_set_0) OR lapse_3.\"parent_id\" IS NULL))"
     " AS lapse_4 WHERE lapse_4.lapse_n > ?2{1}) SELECT lapse_1.\"id\" FROM lapse_1))"},
    {"table: jobs, expires: at_ms, rows: { state: [a, 'x*', null] }",
     write_slice,
     /* PostgreSQL */
     "pick: SELECT this.\"id\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= $1{1718452800000}::bigint) AND (this.\"state\" ~~ $2{x%}::text OR"
     " this.\"state\" IS NULL OR this.\"state\" = $3{a}::text))\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT $4{100}::bigint FOR UPDATE OF this SKIP LOCKED\n"
     "delete: DELETE FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "left: SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])",
     /* SQLite */
     "pick: SELECT this.\"id\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND (this.\"state\""
     " GLOB ?2{x*} OR this.\"state\" IS NULL OR this.\"state\" = ?3{a}))\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT ?4{100}\n"
     "delete: DELETE FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "left: SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)"},
    {"table: jobs, expires: at_ms, rows: { state: [a, b] }",
     write_later_pick,
     /* PostgreSQL */
     "pick after: SELECT this.\"id\", this.\"state\", this.\"at_ms\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= $1{1718452800000}::bigint) AND this.\"state\" = ANY(ARRAY[$2{a}::text, $3{b}::text]))"
     " AND (this.\"state\", this.\"at_ms\", this.\"id\") > ($4{x}::text, $5{7}::integer, $6{7}::integer)\n"
     "ORDER BY this.\"state\", this.\"at_ms\", this.\"id\"\n"
     "LIMIT $7{100}::bigint FOR UPDATE OF this SKIP LOCKED",
     /* SQLite */
     "pick after: SELECT this.\"id\", this.\"state\", this.\"at_ms\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND this.\"state\" IN"
     " (?2{a}, ?3{b})) AND (this.\"state\", this.\"at_ms\", this.\"id\") > (?4{x}, ?5{7}, ?6{7})\n"
     "ORDER BY this.\"state\", this.\"at_ms\", this.\"id\"\n"
     "LIMIT ?7{100}"},
    {"table: jobs, expires: at_ms, rows: { state: [a, b] }",
     write_part,
     /* PostgreSQL */
     "part: SELECT this.\"id\", this.\"state\", this.\"at_ms\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= $1{1718452800000}::bigint) AND this.\"state\" = ANY(ARRAY[$2{a}::text, $3{b}::text]))"
     " AND (this.\"state\", this.\"at_ms\", this.\"id\") > ($4{x}::text, $5{7}::integer, $6{7}::integer)"
     " AND (this.\"state\", this.\"at_ms\", this.\"id\") <= ($7{x}::text, $8{7}::integer, $9{7}::integer)\n"
     "ORDER BY this.\"state\", this.\"at_ms\", this.\"id\"\n"
     "LIMIT $10{100}::bigint FOR UPDATE OF this SKIP LOCKED\n"
     "cut: SELECT this.\"state\", this.\"at_ms\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE (this.\"at_ms\" <= $1{1718452800000}::bigint) AND this.\"state\" = ANY(ARRAY[$2{a}::text, $3{b}::text])"
     " AND (this.\"state\", this.\"at_ms\", this.\"id\") > ($4{x}::text, $5{7}::integer, $6{7}::integer)\n"
     "ORDER BY this.\"state\", this.\"at_ms\", this.\"id\"\n"
     "LIMIT 1 OFFSET $7{4999}::bigint",
     /* SQLite */
     "part: SELECT this.\"id\", this.\"state\", this.\"at_ms\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND this.\"state\" IN"
     " (?2{a}, ?3{b})) AND (this.\"state\", this.\"at_ms\", this.\"id\") > (?4{x}, ?5{7}, ?6{7})"
     " AND (this.\"state\", this.\"at_ms\", this.\"id\") <= (?7{x}, ?8{7}, ?9{7})\n"
     "ORDER BY this.\"state\", this.\"at_ms\", this.\"id\"\n"
     "LIMIT ?10{100}\n"
     "cut: SELECT this.\"state\", this.\"at_ms\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE (this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND this.\"state\" IN"
     " (?2{a}, ?3{b}) AND (this.\"state\", this.\"at_ms\", this.\"id\") > (?4{x}, ?5{7}, ?6{7})\n"
     "ORDER BY this.\"state\", this.\"at_ms\", this.\"id\"\n"
     "LIMIT 1 OFFSET ?7{4999}"},
    {"table: jobs, expires: at_ms, rows: { state: [a, b] }",
     write_looks,
     /* PostgreSQL */
     "probe: SELECT 1 FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= $1{1718452800000}::bigint) AND this.\"state\" = ANY(ARRAY[$2{a}::text, $3{b}::text]))\n"
     "ORDER BY this.\"state\", this.\"at_ms\", this.\"id\"\n"
     "LIMIT 1\n"
     "remaining: SELECT count(*) FROM (SELECT 1 FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= $1{1718452800000}::bigint) AND this.\"state\" = ANY(ARRAY[$2{a}::text, $3{b}::text]))\n"
     "ORDER BY this.\"state\", this.\"at_ms\", this.\"id\"\n"
     "LIMIT $4{10}::bigint) AS lapse_rows\n"
     "sample: SELECT this.\"at_ms\" FROM \"public\".\"jobs\" AS this WHERE this.\"at_ms\" IS NOT NULL AND"
     " this.\"state\" = ANY(ARRAY[$1{a}::text, $2{b}::text]) LIMIT $3{50}::bigint\n"
     "has: SELECT 1 FROM \"public\".\"jobs\" AS this WHERE this.\"state\" = ANY(ARRAY[$1{a}::text, $2{b}::text]) LIMIT 1",
     /* SQLite */
     "probe: SELECT 1 FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND this.\"state\" IN"
     " (?2{a}, ?3{b}))\n"
     "ORDER BY this.\"state\", this.\"at_ms\", this.\"id\"\n"
     "LIMIT 1\n"
     "remaining: SELECT count(*) FROM (SELECT 1 FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND this.\"state\" IN"
     " (?2{a}, ?3{b}))\n"
     "ORDER BY this.\"state\", this.\"at_ms\", this.\"id\"\n"
     "LIMIT ?4{10}) AS lapse_rows\n"
     "sample: SELECT this.\"at_ms\" FROM main.\"jobs\" AS this WHERE this.\"at_ms\" IS NOT NULL AND"
     " this.\"state\" IN (?1{a}, ?2{b}) LIMIT ?3{50}\n"
     "has: SELECT 1 FROM main.\"jobs\" AS this WHERE this.\"state\" IN (?1{a}, ?2{b}) LIMIT 1"},
    {"table: jobs, expires: at_ms, rows: { state: [a, b] }",
     write_counts,
     /* PostgreSQL */
     "count: SELECT lapse_ends.lapse_rows, (lapse_ends.\"lapse_oldest\"::numeric * 1000::numeric),"
     " (lapse_ends.\"lapse_newest\"::numeric * 1000::numeric)\n"
     "FROM (SELECT count(*) AS lapse_rows, min(this.\"at_ms\") AS lapse_oldest,"
     " max(this.\"at_ms\") AS lapse_newest FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= $1{1718452800000}::bigint) AND"
     " this.\"state\" = ANY(ARRAY[$2{a}::text, $3{b}::text]))) AS lapse_ends\n"
     "kept: SELECT (SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE"
     " this.\"state\" = ANY(ARRAY[$1{a}::text, $2{b}::text]) AND this.\"at_ms\" IS NULL),\n"
     "0,\n"
     "0,\n"
     "0",
     /* SQLite */
     "count: SELECT lapse_ends.lapse_rows, CASE typeof(lapse_ends.\"lapse_oldest\") WHEN 'integer' THEN"
     " max(-9223372036854775, min(9223372036854775, lapse_ends.\"lapse_oldest\")) * 1000 END,"
     " CASE typeof(lapse_ends.\"lapse_newest\") WHEN 'integer' THEN"
     " max(-9223372036854775, min(9223372036854775, lapse_ends.\"lapse_newest\")) * 1000 END\n"
     "FROM (SELECT count(*) AS lapse_rows, min(this.\"at_ms\") AS lapse_oldest,"
     " max(this.\"at_ms\") AS lapse_newest FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND"
     " this.\"state\" IN (?2{a}, ?3{b}))) AS lapse_ends\n"
     "kept: SELECT (SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"state\" IN (?1{a}, ?2{b}) AND"
     " this.\"at_ms\" IS NULL),\n"
     "(SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"state\" IN (?3{a}, ?4{b}) AND"
     " (this.\"at_ms\" | 0 <> this.\"at_ms\")),\n"
     "0,\n"
     "0"},
    {"table: jobs, expires: at_ms, with: [{ ref: step(job_id), with: [part(step_id)] }]",
     write_count_below,
     /* PostgreSQL */
     "count: WITH RECURSIVE lapse_set_0(c0) AS (SELECT this.\"id\" FROM \"public\".\"jobs\" AS this WHERE"
     " (this.\"at_ms\" <= $1{1718452800000}::bigint)),\n"
     "lapse_set_1(c0) AS (SELECT this.\"id\" FROM \"public\".\"step\" AS this WHERE"
     " this.\"job_id\" = ANY(SELECT c0 FROM lapse_set_0))\n"
     "SELECT (SELECT count(*) FROM \"public\".\"part\" AS this WHERE this.\"step_id\" = ANY(SELECT c0 FROM"
     " lapse_set_1)),\n"
     "(SELECT count(*) FROM lapse_set_1),\n"
     "NULL",
     /* SQLite */
     "count: WITH RECURSIVE lapse_set_0(c0) AS (SELECT this.\"id\" FROM main.\"jobs\" AS this WHERE"
     " (this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer')),\n"
     "lapse_set_1(c0) AS (SELECT this.\"id\" FROM main.\"step\" AS this WHERE this.\"job_id\" IN (SELECT c0"
     " FROM lapse_set_0))\n"
     "SELECT (SELECT count(*) FROM main.\"part\" AS this WHERE this.\"step_id\" IN (SELECT c0 FROM"
     " lapse_set_1)),\n"
     "(SELECT count(*) FROM lapse_set_1),\n"
     "NULL"},
    {"table: jobs, age: [at_ms, seen_ms], keep: 1h, with: [{ ref: step(job_id), where: { state: done }, with: [part(step_id)] }, 'log(job_code) -> (code)'], hold: { ok: 0 }",
     write_slice,
     /* PostgreSQL */
     "pick: SELECT this.\"id\", this.\"code\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE (((this.\"at_ms\" IS NULL OR (this.\"at_ms\" < $1{1718449200000}::bigint)) AND (this.\"seen_ms\" IS"
     " NULL OR (this.\"seen_ms\" < $2{1718449200000}::bigint)) AND (this.\"at_ms\" IS NOT NULL OR"
     " this.\"seen_ms\" IS NOT NULL)) AND (this.\"ok\" = $3{0}::integer) IS NOT TRUE AND NOT EXISTS (SELECT 1"
     " FROM \"public\".\"step\" AS lapse_1 WHERE lapse_1.\"job_id\" = this.\"id\" AND (lapse_1.\"state\" ="
     " $4{done}::text) IS NOT TRUE))\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT $5{100}::bigint FOR UPDATE OF this SKIP LOCKED\n"
     "judge: SELECT this.\"id\", this.\"code\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "AND (((this.\"at_ms\" IS NULL OR (this.\"at_ms\" < $2{1718449200000}::bigint)) AND (this.\"seen_ms\" IS"
     " NULL OR (this.\"seen_ms\" < $3{1718449200000}::bigint)) AND (this.\"at_ms\" IS NOT NULL OR"
     " this.\"seen_ms\" IS NOT NULL)) AND (this.\"ok\" = $4{0}::integer) IS NOT TRUE AND NOT EXISTS (SELECT 1"
     " FROM \"public\".\"step\" AS lapse_1 WHERE lapse_1.\"job_id\" = this.\"id\" AND (lapse_1.\"state\" ="
     " $5{done}::text) IS NOT TRUE))\n"
     "waiting: SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])"
     " AND NOT (NOT EXISTS (SELECT 1 FROM \"public\".\"step\" AS lapse_1 WHERE lapse_1.\"job_id\" = this.\"id\""
     " AND (lapse_1.\"state\" = $2{done}::text) IS NOT TRUE))\n"
     "pick kids: SELECT this.\"id\" FROM \"public\".\"step\" AS this WHERE this.\"job_id\" = ANY($1{set"
     " 0.0}::integer[]) FOR UPDATE OF this\n"
     "delete kids: DELETE FROM \"public\".\"part\" AS this WHERE this.\"step_id\" = ANY($1{set"
     " 1.0}::integer[])\n"
     "kids left: SELECT count(*) FROM \"public\".\"part\" AS this WHERE this.\"step_id\" = ANY($1{set"
     " 1.0}::integer[])\n"
     "delete: DELETE FROM \"public\".\"step\" AS this WHERE this.\"id\" = ANY($1{set 1.0}::integer[])\n"
     "left: SELECT count(*) FROM \"public\".\"step\" AS this WHERE this.\"id\" = ANY($1{set 1.0}::integer[])\n"
     "delete kids: DELETE FROM \"public\".\"log\" AS this WHERE this.\"job_code\" = ANY($1{set 0.1}::text[])\n"
     "kids left: SELECT count(*) FROM \"public\".\"log\" AS this WHERE this.\"job_code\" = ANY($1{set"
     " 0.1}::text[])\n"
     "delete: DELETE FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "left: SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])",
     /* SQLite */
     "pick: SELECT this.\"id\", this.\"code\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE (((this.\"at_ms\" IS NULL OR (this.\"at_ms\" < ?1{1718449200000} AND typeof(this.\"at_ms\") ="
     " 'integer')) AND (this.\"seen_ms\" IS NULL OR (this.\"seen_ms\" < ?2{1718449200000} AND"
     " typeof(this.\"seen_ms\") = 'integer')) AND (this.\"at_ms\" IS NOT NULL OR this.\"seen_ms\" IS NOT NULL))"
     " AND (this.\"ok\" = ?3{0}) IS NOT TRUE AND NOT EXISTS (SELECT 1 FROM main.\"step\" AS lapse_1 WHERE"
     " lapse_1.\"job_id\" = this.\"id\" AND (lapse_1.\"state\" = ?4{done}) IS NOT TRUE))\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT ?5{100}\n"
     "judge: SELECT this.\"id\", this.\"code\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "AND (((this.\"at_ms\" IS NULL OR (this.\"at_ms\" < ?1{1718449200000} AND typeof(this.\"at_ms\") ="
     " 'integer')) AND (this.\"seen_ms\" IS NULL OR (this.\"seen_ms\" < ?2{1718449200000} AND"
     " typeof(this.\"seen_ms\") = 'integer')) AND (this.\"at_ms\" IS NOT NULL OR this.\"seen_ms\" IS NOT NULL))"
     " AND (this.\"ok\" = ?3{0}) IS NOT TRUE AND NOT EXISTS (SELECT 1 FROM main.\"step\" AS lapse_1 WHERE"
     " lapse_1.\"job_id\" = this.\"id\" AND (lapse_1.\"state\" = ?4{done}) IS NOT TRUE))\n"
     "waiting: SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0) AND NOT (NOT EXISTS (SELECT 1 FROM main.\"step\" AS lapse_1 WHERE lapse_1.\"job_id\" ="
     " this.\"id\" AND (lapse_1.\"state\" = ?1{done}) IS NOT TRUE))\n"
     "pick kids: SELECT this.\"id\" FROM main.\"step\" AS this WHERE this.\"job_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0)\n"
     "delete kids: DELETE FROM main.\"part\" AS this WHERE this.\"step_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_1)\n"
     "kids left: SELECT count(*) FROM main.\"part\" AS this WHERE this.\"step_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_1)\n"
     "delete: DELETE FROM main.\"step\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_1)\n"
     "left: SELECT count(*) FROM main.\"step\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_1)\n"
     "delete kids: DELETE FROM main.\"log\" AS this WHERE this.\"job_code\" IN (SELECT c1 FROM"
     " temp.lapse_set_0)\n"
     "kids left: SELECT count(*) FROM main.\"log\" AS this WHERE this.\"job_code\" IN (SELECT c1 FROM"
     " temp.lapse_set_0)\n"
     "delete: DELETE FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "left: SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)"},
    {"table: jobs, age: [at_ms, seen_ms], keep: 1h, with: [{ ref: step(job_id), where: { state: done }, with: [part(step_id)] }, 'log(job_code) -> (code)'], hold: { ok: 0 }",
     write_counts,
     /* PostgreSQL */
     "count: SELECT lapse_ends.lapse_rows, lapse_ends.lapse_oldest, lapse_ends.lapse_newest\n"
     "FROM (SELECT count(*) AS lapse_rows, min(GREATEST((this.\"at_ms\"::numeric * 1000::numeric),"
     " (this.\"seen_ms\"::numeric * 1000::numeric))) AS lapse_oldest, max(GREATEST((this.\"at_ms\"::numeric *"
     " 1000::numeric), (this.\"seen_ms\"::numeric * 1000::numeric))) AS lapse_newest FROM \"public\".\"jobs\""
     " AS this\n"
     "WHERE (((this.\"at_ms\" IS NULL OR (this.\"at_ms\" < $1{1718449200000}::bigint)) AND (this.\"seen_ms\""
     " IS NULL OR (this.\"seen_ms\" < $2{1718449200000}::bigint)) AND (this.\"at_ms\" IS NOT NULL OR"
     " this.\"seen_ms\" IS NOT NULL)) AND (this.\"ok\" = $3{0}::integer) IS NOT TRUE AND NOT EXISTS (SELECT 1"
     " FROM \"public\".\"step\" AS lapse_1 WHERE lapse_1.\"job_id\" = this.\"id\" AND (lapse_1.\"state\" ="
     " $4{done}::text) IS NOT TRUE))) AS lapse_ends\n"
     "kept: SELECT (SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE TRUE AND this.\"at_ms\" IS NULL"
     " AND this.\"seen_ms\" IS NULL),\n"
     "0,\n"
     "(SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE TRUE AND ((this.\"at_ms\" IS NULL OR"
     " (this.\"at_ms\" < $1{1718449200000}::bigint)) AND (this.\"seen_ms\" IS NULL OR (this.\"seen_ms\" <"
     " $2{1718449200000}::bigint)) AND (this.\"at_ms\" IS NOT NULL OR this.\"seen_ms\" IS NOT NULL)) AND NOT"
     " ((this.\"ok\" = $3{0}::integer) IS NOT TRUE)),\n"
     "(SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE TRUE AND ((this.\"at_ms\" IS NULL OR"
     " (this.\"at_ms\" < $4{1718449200000}::bigint)) AND (this.\"seen_ms\" IS NULL OR (this.\"seen_ms\" <"
     " $5{1718449200000}::bigint)) AND (this.\"at_ms\" IS NOT NULL OR this.\"seen_ms\" IS NOT NULL)) AND"
     " (this.\"ok\" = $6{0}::integer) IS NOT TRUE AND NOT (NOT EXISTS (SELECT 1 FROM \"public\".\"step\" AS"
     " lapse_1 WHERE lapse_1.\"job_id\" = this.\"id\" AND (lapse_1.\"state\" = $7{done}::text) IS NOT TRUE)))",
     /* SQLite */
     "count: SELECT lapse_ends.lapse_rows, lapse_ends.lapse_oldest, lapse_ends.lapse_newest\n"
     "FROM (SELECT count(*) AS lapse_rows, min(lapse_latest(CASE typeof(this.\"at_ms\") WHEN 'integer' THEN"
     " max(-9223372036854775, min(9223372036854775, this.\"at_ms\")) * 1000 END, CASE"
     " typeof(this.\"seen_ms\") WHEN 'integer' THEN max(-9223372036854775, min(9223372036854775,"
     " this.\"seen_ms\")) * 1000 END)) AS lapse_oldest, max(lapse_latest(CASE typeof(this.\"at_ms\") WHEN"
     " 'integer' THEN max(-9223372036854775, min(9223372036854775, this.\"at_ms\")) * 1000 END, CASE"
     " typeof(this.\"seen_ms\") WHEN 'integer' THEN max(-9223372036854775, min(9223372036854775,"
     " this.\"seen_ms\")) * 1000 END)) AS lapse_newest FROM main.\"jobs\" AS this\n"
     "WHERE (((this.\"at_ms\" IS NULL OR (this.\"at_ms\" < ?1{1718449200000} AND typeof(this.\"at_ms\") ="
     " 'integer')) AND (this.\"seen_ms\" IS NULL OR (this.\"seen_ms\" < ?2{1718449200000} AND"
     " typeof(this.\"seen_ms\") = 'integer')) AND (this.\"at_ms\" IS NOT NULL OR this.\"seen_ms\" IS NOT"
     " NULL)) AND (this.\"ok\" = ?3{0}) IS NOT TRUE AND NOT EXISTS (SELECT 1 FROM main.\"step\" AS lapse_1"
     " WHERE lapse_1.\"job_id\" = this.\"id\" AND (lapse_1.\"state\" = ?4{done}) IS NOT TRUE))) AS lapse_ends\n"
     "kept: SELECT (SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND this.\"at_ms\" IS NULL AND"
     " this.\"seen_ms\" IS NULL),\n"
     "(SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND (this.\"at_ms\" | 0 <> this.\"at_ms\" OR"
     " this.\"seen_ms\" | 0 <> this.\"seen_ms\")),\n"
     "(SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND ((this.\"at_ms\" IS NULL OR (this.\"at_ms\""
     " < ?1{1718449200000} AND typeof(this.\"at_ms\") = 'integer')) AND (this.\"seen_ms\" IS NULL OR"
     " (this.\"seen_ms\" < ?2{1718449200000} AND typeof(this.\"seen_ms\") = 'integer')) AND (this.\"at_ms\""
     " IS NOT NULL OR this.\"seen_ms\" IS NOT NULL)) AND NOT ((this.\"ok\" = ?3{0}) IS NOT TRUE)),\n"
     "(SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND ((this.\"at_ms\" IS NULL OR (this.\"at_ms\""
     " < ?4{1718449200000} AND typeof(this.\"at_ms\") = 'integer')) AND (this.\"seen_ms\" IS NULL OR"
     " (this.\"seen_ms\" < ?5{1718449200000} AND typeof(this.\"seen_ms\") = 'integer')) AND (this.\"at_ms\""
     " IS NOT NULL OR this.\"seen_ms\" IS NOT NULL)) AND (this.\"ok\" = ?6{0}) IS NOT TRUE AND NOT (NOT"
     " EXISTS (SELECT 1 FROM main.\"step\" AS lapse_1 WHERE lapse_1.\"job_id\" = this.\"id\" AND"
     " (lapse_1.\"state\" = ?7{done}) IS NOT TRUE)))"},
    {"table: jobs, expires: at_ms, with: [{ ref: jobs(parent_id), where: { ok: 1 } }, { ref: step(job_id), where: { state: done } }]",
     write_slice,
     /* PostgreSQL */
     "pick: SELECT this.\"id\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= $1{1718452800000}::bigint) AND (EXISTS (WITH RECURSIVE lapse_1(\"id\") AS"
     " (SELECT this.\"id\" UNION SELECT lapse_2.\"id\" FROM \"public\".\"jobs\" AS lapse_2 JOIN lapse_1 ON"
     " (lapse_2.\"parent_id\" = lapse_1.\"id\")) SELECT 1 FROM lapse_1 JOIN \"public\".\"jobs\" AS lapse_3 ON"
     " lapse_3.\"id\" = lapse_1.\"id\" WHERE (EXISTS (SELECT 1 FROM \"public\".\"step\" AS lapse_4 WHERE"
     " lapse_4.\"job_id\" = lapse_3.\"id\" AND (lapse_4.\"state\" = $2{done}::text) IS NOT TRUE) OR EXISTS"
     " (SELECT 1 FROM \"public\".\"jobs\" AS lapse_5 WHERE lapse_5.\"parent_id\" = lapse_3.\"id\" AND"
     " ((lapse_5.\"ok\" = $3{1}::integer AND (true AND lapse_5.\"at_ms\" IS NOT NULL))) IS NOT TRUE)))) IS"
     " NOT TRUE)\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT $4{100}::bigint FOR UPDATE OF this SKIP LOCKED\n"
     "judge: SELECT this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "AND ((this.\"at_ms\" <= $2{1718452800000}::bigint) AND (EXISTS (WITH RECURSIVE lapse_1(\"id\") AS"
     " (SELECT this.\"id\" UNION SELECT lapse_2.\"id\" FROM \"public\".\"jobs\" AS lapse_2 JOIN lapse_1 ON"
     " (lapse_2.\"parent_id\" = lapse_1.\"id\")) SELECT 1 FROM lapse_1 JOIN \"public\".\"jobs\" AS lapse_3 ON"
     " lapse_3.\"id\" = lapse_1.\"id\" WHERE (EXISTS (SELECT 1 FROM \"public\".\"step\" AS lapse_4 WHERE"
     " lapse_4.\"job_id\" = lapse_3.\"id\" AND (lapse_4.\"state\" = $3{done}::text) IS NOT TRUE) OR EXISTS"
     " (SELECT 1 FROM \"public\".\"jobs\" AS lapse_5 WHERE lapse_5.\"parent_id\" = lapse_3.\"id\" AND"
     " ((lapse_5.\"ok\" = $4{1}::integer AND (true AND lapse_5.\"at_ms\" IS NOT NULL))) IS NOT TRUE)))) IS"
     " NOT TRUE)\n"
     "waiting: SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])"
     " AND NOT ((EXISTS (WITH RECURSIVE lapse_1(\"id\") AS (SELECT this.\"id\" UNION SELECT lapse_2.\"id\" FROM"
     " \"public\".\"jobs\" AS lapse_2 JOIN lapse_1 ON (lapse_2.\"parent_id\" = lapse_1.\"id\")) SELECT 1 FROM"
     " lapse_1 JOIN \"public\".\"jobs\" AS lapse_3 ON lapse_3.\"id\" = lapse_1.\"id\" WHERE (EXISTS (SELECT 1"
     " FROM \"public\".\"step\" AS lapse_4 WHERE lapse_4.\"job_id\" = lapse_3.\"id\" AND (lapse_4.\"state\" ="
     " $2{done}::text) IS NOT TRUE) OR EXISTS (SELECT 1 FROM \"public\".\"jobs\" AS lapse_5 WHERE"
     " lapse_5.\"parent_id\" = lapse_3.\"id\" AND ((lapse_5.\"ok\" = $3{1}::integer AND (true AND"
     " lapse_5.\"at_ms\" IS NOT NULL))) IS NOT TRUE)))) IS NOT TRUE)\n"
     "grow: SELECT this.\"id\" FROM \"public\".\"jobs\" AS this WHERE this.\"parent_id\" = ANY($1{set"
     " 1.0}::integer[]) FOR UPDATE OF this\n"
     "delete kids: DELETE FROM \"public\".\"step\" AS this WHERE this.\"job_id\" = ANY($1{set 0.0}::integer[])"
     " AND this.\"state\" = $2{done}::text\n"
     "kids left: SELECT count(*) FROM \"public\".\"step\" AS this WHERE this.\"job_id\" = ANY($1{set"
     " 0.0}::integer[])\n"
     "kids left inside: SELECT count(*) FROM \"public\".\"step\" AS this WHERE this.\"job_id\" = ANY($1{set"
     " 0.0}::integer[]) AND this.\"state\" = $2{done}::text\n"
     "leaves: SELECT this.\"id\" FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])"
     " AND NOT EXISTS (SELECT 1 FROM \"public\".\"jobs\" AS lapse_1 WHERE lapse_1.\"parent_id\" = this.\"id\")\n"
     "delete leaves: DELETE FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 1.0}::integer[])\n"
     "delete: DELETE FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "left: SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])",
     /* SQLite */
     "pick: SELECT this.\"id\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND (EXISTS (WITH"
     " RECURSIVE lapse_1(\"id\") AS (SELECT this.\"id\" UNION SELECT lapse_2.\"id\" FROM main.\"jobs\" AS lapse_2"
     " JOIN lapse_1 ON (lapse_2.\"parent_id\" = lapse_1.\"id\")) SELECT 1 FROM lapse_1 JOIN main.\"jobs\" AS"
     " lapse_3 ON lapse_3.\"id\" = lapse_1.\"id\" WHERE (EXISTS (SELECT 1 FROM main.\"step\" AS lapse_4 WHERE"
     " lapse_4.\"job_id\" = lapse_3.\"id\" AND (lapse_4.\"state\" = ?2{done}) IS NOT TRUE) OR EXISTS (SELECT 1"
     " FROM main.\"jobs\" AS lapse_5 WHERE lapse_5.\"parent_id\" = lapse_3.\"id\" AND ((lapse_5.\"ok\" = ?3{1}"
     " AND (typeof(lapse_5.\"at_ms\") IN ('integer', 'null') AND lapse_5.\"at_ms\" IS NOT NULL))) IS NOT"
     " TRUE)))) IS NOT TRUE)\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT ?4{100}\n"
     "judge: SELECT this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "AND ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND (EXISTS (WITH"
     " RECURSIVE lapse_1(\"id\") AS (SELECT this.\"id\" UNION SELECT lapse_2.\"id\" FROM main.\"jobs\" AS lapse_2"
     " JOIN lapse_1 ON (lapse_2.\"parent_id\" = lapse_1.\"id\")) SELECT 1 FROM lapse_1 JOIN main.\"jobs\" AS"
     " lapse_3 ON lapse_3.\"id\" = lapse_1.\"id\" WHERE (EXISTS (SELECT 1 FROM main.\"step\" AS lapse_4 WHERE"
     " lapse_4.\"job_id\" = lapse_3.\"id\" AND (lapse_4.\"state\" = ?2{done}) IS NOT TRUE) OR EXISTS (SELECT 1"
     " FROM main.\"jobs\" AS lapse_5 WHERE lapse_5.\"parent_id\" = lapse_3.\"id\" AND ((lapse_5.\"ok\" = ?3{1}"
     " AND (typeof(lapse_5.\"at_ms\") IN ('integer', 'null') AND lapse_5.\"at_ms\" IS NOT NULL))) IS NOT"
     " TRUE)))) IS NOT TRUE)\n"
     "waiting: SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0) AND NOT ((EXISTS (WITH RECURSIVE lapse_1(\"id\") AS (SELECT this.\"id\" UNION SELECT"
     " lapse_2.\"id\" FROM main.\"jobs\" AS lapse_2 JOIN lapse_1 ON (lapse_2.\"parent_id\" = lapse_1.\"id\"))"
     " SELECT 1 FROM lapse_1 JOIN main.\"jobs\" AS lapse_3 ON lapse_3.\"id\" = lapse_1.\"id\" WHERE (EXISTS"
     " (SELECT 1 FROM main.\"step\" AS lapse_4 WHERE lapse_4.\"job_id\" = lapse_3.\"id\" AND (lapse_4.\"state\" ="
     " ?1{done}) IS NOT TRUE) OR EXISTS (SELECT 1 FROM main.\"jobs\" AS lapse_5 WHERE lapse_5.\"parent_id\" ="
     " lapse_3.\"id\" AND ((lapse_5.\"ok\" = ?2{1} AND (typeof(lapse_5.\"at_ms\") IN ('integer', 'null') AND"
     " lapse_5.\"at_ms\" IS NOT NULL))) IS NOT TRUE)))) IS NOT TRUE)\n"
     "grow: SELECT this.\"id\" FROM main.\"jobs\" AS this WHERE this.\"parent_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_1)\n"
     "delete kids: DELETE FROM main.\"step\" AS this WHERE this.\"job_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0) AND this.\"state\" = ?1{done}\n"
     "kids left: SELECT count(*) FROM main.\"step\" AS this WHERE this.\"job_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0)\n"
     "kids left inside: SELECT count(*) FROM main.\"step\" AS this WHERE this.\"job_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0) AND this.\"state\" = ?1{done}\n"
     "leaves: SELECT this.\"id\" FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)"
     " AND NOT EXISTS (SELECT 1 FROM main.\"jobs\" AS lapse_1 WHERE lapse_1.\"parent_id\" = this.\"id\")\n"
     "delete leaves: DELETE FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_1)\n"
     "delete: DELETE FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "left: SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)"},
    {"table: jobs, expires: at_ms, with: [{ ref: jobs(parent_id), where: { ok: 1 } }, { ref: step(job_id), where: { state: done } }]",
     write_counts,
     /* PostgreSQL */
     "count: SELECT lapse_ends.lapse_rows, (lapse_ends.\"lapse_oldest\"::numeric * 1000::numeric),"
     " (lapse_ends.\"lapse_newest\"::numeric * 1000::numeric)\n"
     "FROM (SELECT count(*) AS lapse_rows, min(this.\"at_ms\") AS lapse_oldest, max(this.\"at_ms\") AS"
     " lapse_newest FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= $1{1718452800000}::bigint) AND (EXISTS (WITH RECURSIVE lapse_1(\"id\") AS"
     " (SELECT this.\"id\" UNION SELECT lapse_2.\"id\" FROM \"public\".\"jobs\" AS lapse_2 JOIN lapse_1 ON"
     " (lapse_2.\"parent_id\" = lapse_1.\"id\")) SELECT 1 FROM lapse_1 JOIN \"public\".\"jobs\" AS lapse_3 ON"
     " lapse_3.\"id\" = lapse_1.\"id\" WHERE (EXISTS (SELECT 1 FROM \"public\".\"step\" AS lapse_4 WHERE"
     " lapse_4.\"job_id\" = lapse_3.\"id\" AND (lapse_4.\"state\" = $2{done}::text) IS NOT TRUE) OR EXISTS"
     " (SELECT 1 FROM \"public\".\"jobs\" AS lapse_5 WHERE lapse_5.\"parent_id\" = lapse_3.\"id\" AND"
     " ((lapse_5.\"ok\" = $3{1}::integer AND (true AND lapse_5.\"at_ms\" IS NOT NULL))) IS NOT TRUE)))) IS"
     " NOT TRUE)) AS lapse_ends\n"
     "kept: SELECT (SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE TRUE AND this.\"at_ms\" IS NULL),\n"
     "0,\n"
     "0,\n"
     "(SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE TRUE AND (this.\"at_ms\" <="
     " $1{1718452800000}::bigint) AND NOT ((EXISTS (WITH RECURSIVE lapse_1(\"id\") AS (SELECT this.\"id\""
     " UNION SELECT lapse_2.\"id\" FROM \"public\".\"jobs\" AS lapse_2 JOIN lapse_1 ON (lapse_2.\"parent_id\""
     " = lapse_1.\"id\")) SELECT 1 FROM lapse_1 JOIN \"public\".\"jobs\" AS lapse_3 ON lapse_3.\"id\" ="
     " lapse_1.\"id\" WHERE (EXISTS (SELECT 1 FROM \"public\".\"step\" AS lapse_4 WHERE lapse_4.\"job_id\" ="
     " lapse_3.\"id\" AND (lapse_4.\"state\" = $2{done}::text) IS NOT TRUE) OR EXISTS (SELECT 1 FROM"
     " \"public\".\"jobs\" AS lapse_5 WHERE lapse_5.\"parent_id\" = lapse_3.\"id\" AND ((lapse_5.\"ok\" ="
     " $3{1}::integer AND (true AND lapse_5.\"at_ms\" IS NOT NULL))) IS NOT TRUE)))) IS NOT TRUE))",
     /* SQLite */
     "count: SELECT lapse_ends.lapse_rows, CASE typeof(lapse_ends.\"lapse_oldest\") WHEN 'integer' THEN"
     " max(-9223372036854775, min(9223372036854775, lapse_ends.\"lapse_oldest\")) * 1000 END, CASE"
     " typeof(lapse_ends.\"lapse_newest\") WHEN 'integer' THEN max(-9223372036854775, min(9223372036854775,"
     " lapse_ends.\"lapse_newest\")) * 1000 END\n"
     "FROM (SELECT count(*) AS lapse_rows, min(this.\"at_ms\") AS lapse_oldest, max(this.\"at_ms\") AS"
     " lapse_newest FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND (EXISTS (WITH"
     " RECURSIVE lapse_1(\"id\") AS (SELECT this.\"id\" UNION SELECT lapse_2.\"id\" FROM main.\"jobs\" AS"
     " lapse_2 JOIN lapse_1 ON (lapse_2.\"parent_id\" = lapse_1.\"id\")) SELECT 1 FROM lapse_1 JOIN"
     " main.\"jobs\" AS lapse_3 ON lapse_3.\"id\" = lapse_1.\"id\" WHERE (EXISTS (SELECT 1 FROM main.\"step\""
     " AS lapse_4 WHERE lapse_4.\"job_id\" = lapse_3.\"id\" AND (lapse_4.\"state\" = ?2{done}) IS NOT TRUE)"
     " OR EXISTS (SELECT 1 FROM main.\"jobs\" AS lapse_5 WHERE lapse_5.\"parent_id\" = lapse_3.\"id\" AND"
     " ((lapse_5.\"ok\" = ?3{1} AND (typeof(lapse_5.\"at_ms\") IN ('integer', 'null') AND lapse_5.\"at_ms\""
     " IS NOT NULL))) IS NOT TRUE)))) IS NOT TRUE)) AS lapse_ends\n"
     "kept: SELECT (SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND this.\"at_ms\" IS NULL),\n"
     "(SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND (this.\"at_ms\" | 0 <> this.\"at_ms\")),\n"
     "0,\n"
     "(SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND (this.\"at_ms\" <= ?1{1718452800000} AND"
     " typeof(this.\"at_ms\") = 'integer') AND NOT ((EXISTS (WITH RECURSIVE lapse_1(\"id\") AS (SELECT"
     " this.\"id\" UNION SELECT lapse_2.\"id\" FROM main.\"jobs\" AS lapse_2 JOIN lapse_1 ON"
     " (lapse_2.\"parent_id\" = lapse_1.\"id\")) SELECT 1 FROM lapse_1 JOIN main.\"jobs\" AS lapse_3 ON"
     " lapse_3.\"id\" = lapse_1.\"id\" WHERE (EXISTS (SELECT 1 FROM main.\"step\" AS lapse_4 WHERE"
     " lapse_4.\"job_id\" = lapse_3.\"id\" AND (lapse_4.\"state\" = ?2{done}) IS NOT TRUE) OR EXISTS (SELECT"
     " 1 FROM main.\"jobs\" AS lapse_5 WHERE lapse_5.\"parent_id\" = lapse_3.\"id\" AND ((lapse_5.\"ok\" ="
     " ?3{1} AND (typeof(lapse_5.\"at_ms\") IN ('integer', 'null') AND lapse_5.\"at_ms\" IS NOT NULL))) IS"
     " NOT TRUE)))) IS NOT TRUE))"},
    {"table: jobs, expires: at_ms, detach: [step(job_id), jobs(parent_id)], after: [{ ref: 'log(job_code) -> (code)', where: \"this.note < :now\" }]",
     write_slice,
     /* PostgreSQL */
     "pick: SELECT this.\"id\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= $1{1718452800000}::bigint) AND NOT EXISTS (SELECT 1 FROM \"public\".\"log\" AS"
     " lapse_1 WHERE lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note < $2{2024-06-15"
     " 12:00:00.000000+00}::timestamp with time zone)))\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT $3{100}::bigint FOR UPDATE OF this SKIP LOCKED\n"
     "judge: SELECT this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "AND ((this.\"at_ms\" <= $2{1718452800000}::bigint) AND NOT EXISTS (SELECT 1 FROM \"public\".\"log\" AS"
     " lapse_1 WHERE lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note < $3{2024-06-15"
     " 12:00:00.000000+00}::timestamp with time zone)))\n"
     "waiting: SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])"
     " AND NOT (NOT EXISTS (SELECT 1 FROM \"public\".\"log\" AS lapse_1 WHERE lapse_1.\"job_code\" ="
     " this.\"code\" AND (lapse_1.note < $2{2024-06-15 12:00:00.000000+00}::timestamp with time zone)))\n"
     "detach: UPDATE \"public\".\"step\" AS this SET \"job_id\" = NULL WHERE this.\"job_id\" = ANY($1{set"
     " 0.0}::integer[])\n"
     "detach left: SELECT count(*) FROM \"public\".\"step\" AS this WHERE this.\"job_id\" = ANY($1{set"
     " 0.0}::integer[])\n"
     "detach: UPDATE \"public\".\"jobs\" AS this SET \"parent_id\" = NULL WHERE this.\"parent_id\" = ANY($1{set"
     " 0.0}::integer[]) AND (this.\"id\" = ANY($2{set 0.0}::integer[]) OR ((this.\"at_ms\" <="
     " $3{1718452800000}::bigint) AND NOT EXISTS (SELECT 1 FROM \"public\".\"log\" AS lapse_1 WHERE"
     " lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note < $4{2024-06-15 12:00:00.000000+00}::timestamp"
     " with time zone)))) IS NOT TRUE\n"
     "detach inside: UPDATE \"public\".\"jobs\" AS this SET \"parent_id\" = NULL WHERE this.\"parent_id\" ="
     " ANY($1{set 0.0}::integer[]) AND (this.\"id\" = ANY($2{set 0.0}::integer[]) OR ((this.\"at_ms\" <="
     " $3{1718452800000}::bigint) AND NOT EXISTS (SELECT 1 FROM \"public\".\"log\" AS lapse_1 WHERE"
     " lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note < $4{2024-06-15 12:00:00.000000+00}::timestamp"
     " with time zone)))) IS TRUE\n"
     "detach left: SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE this.\"parent_id\" = ANY($1{set"
     " 0.0}::integer[])\n"
     "delete: DELETE FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "left: SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])",
     /* SQLite */
     "pick: SELECT this.\"id\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND NOT EXISTS"
     " (SELECT 1 FROM main.\"log\" AS lapse_1 WHERE lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note <"
     " ?2{2024-06-15 12:00:00.000})))\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT ?3{100}\n"
     "judge: SELECT this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "AND ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND NOT EXISTS (SELECT"
     " 1 FROM main.\"log\" AS lapse_1 WHERE lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note <"
     " ?2{2024-06-15 12:00:00.000})))\n"
     "waiting: SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0) AND NOT (NOT EXISTS (SELECT 1 FROM main.\"log\" AS lapse_1 WHERE lapse_1.\"job_code\""
     " = this.\"code\" AND (lapse_1.note < ?1{2024-06-15 12:00:00.000})))\n"
     "detach: UPDATE main.\"step\" AS this SET \"job_id\" = NULL WHERE this.\"job_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0)\n"
     "detach left: SELECT count(*) FROM main.\"step\" AS this WHERE this.\"job_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0)\n"
     "detach: UPDATE main.\"jobs\" AS this SET \"parent_id\" = NULL WHERE this.\"parent_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0) AND (this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0) OR ((this.\"at_ms\" <="
     " ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND NOT EXISTS (SELECT 1 FROM main.\"log\" AS"
     " lapse_1 WHERE lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note < ?2{2024-06-15 12:00:00.000}))))"
     " IS NOT TRUE\n"
     "detach inside: UPDATE main.\"jobs\" AS this SET \"parent_id\" = NULL WHERE this.\"parent_id\" IN (SELECT"
     " c0 FROM temp.lapse_set_0) AND (this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0) OR ((this.\"at_ms\" <="
     " ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND NOT EXISTS (SELECT 1 FROM main.\"log\" AS"
     " lapse_1 WHERE lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note < ?2{2024-06-15 12:00:00.000}))))"
     " IS TRUE\n"
     "detach left: SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"parent_id\" IN (SELECT c0 FROM"
     " temp.lapse_set_0)\n"
     "delete: DELETE FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "left: SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)"},
    {"table: jobs, expires: at_ms, detach: [step(job_id), jobs(parent_id)], after: [{ ref: 'log(job_code) -> (code)', where: \"this.note < :now\" }]",
     write_counts,
     /* PostgreSQL */
     "count: SELECT lapse_ends.lapse_rows, (lapse_ends.\"lapse_oldest\"::numeric * 1000::numeric),"
     " (lapse_ends.\"lapse_newest\"::numeric * 1000::numeric)\n"
     "FROM (SELECT count(*) AS lapse_rows, min(this.\"at_ms\") AS lapse_oldest, max(this.\"at_ms\") AS"
     " lapse_newest FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= $1{1718452800000}::bigint) AND NOT EXISTS (SELECT 1 FROM \"public\".\"log\""
     " AS lapse_1 WHERE lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note < $2{2024-06-15"
     " 12:00:00.000000+00}::timestamp with time zone)))) AS lapse_ends\n"
     "kept: SELECT (SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE TRUE AND this.\"at_ms\" IS NULL),\n"
     "0,\n"
     "0,\n"
     "(SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE TRUE AND (this.\"at_ms\" <="
     " $1{1718452800000}::bigint) AND NOT (NOT EXISTS (SELECT 1 FROM \"public\".\"log\" AS lapse_1 WHERE"
     " lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note < $2{2024-06-15 12:00:00.000000+00}::timestamp"
     " with time zone))))",
     /* SQLite */
     "count: SELECT lapse_ends.lapse_rows, CASE typeof(lapse_ends.\"lapse_oldest\") WHEN 'integer' THEN"
     " max(-9223372036854775, min(9223372036854775, lapse_ends.\"lapse_oldest\")) * 1000 END, CASE"
     " typeof(lapse_ends.\"lapse_newest\") WHEN 'integer' THEN max(-9223372036854775, min(9223372036854775,"
     " lapse_ends.\"lapse_newest\")) * 1000 END\n"
     "FROM (SELECT count(*) AS lapse_rows, min(this.\"at_ms\") AS lapse_oldest, max(this.\"at_ms\") AS"
     " lapse_newest FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" <= ?1{1718452800000} AND typeof(this.\"at_ms\") = 'integer') AND NOT EXISTS"
     " (SELECT 1 FROM main.\"log\" AS lapse_1 WHERE lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note <"
     " ?2{2024-06-15 12:00:00.000})))) AS lapse_ends\n"
     "kept: SELECT (SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND this.\"at_ms\" IS NULL),\n"
     "(SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND (this.\"at_ms\" | 0 <> this.\"at_ms\")),\n"
     "0,\n"
     "(SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND (this.\"at_ms\" <= ?1{1718452800000} AND"
     " typeof(this.\"at_ms\") = 'integer') AND NOT (NOT EXISTS (SELECT 1 FROM main.\"log\" AS lapse_1 WHERE"
     " lapse_1.\"job_code\" = this.\"code\" AND (lapse_1.note < ?2{2024-06-15 12:00:00.000}))))"},
    {"table: '\"Odd \"\"t\"', expires: at_s, with: ['part(nr, label)'], detach: ['\"Odd \"\"t\"(up_a, up_b)']",
     write_slice,
     /* PostgreSQL */
     "pick: SELECT this.\"a \"\"1\", this.\"b\", this.\"a \"\"1\", this.\"b\"\n"
     " FROM \"public\".\"Odd \"\"t\" AS this\n"
     "WHERE (this.\"at_s\" <= $1{1718452800}::bigint)\n"
     "ORDER BY this.\"a \"\"1\", this.\"b\"\n"
     "LIMIT $2{100}::bigint FOR UPDATE OF this SKIP LOCKED\n"
     "delete kids: DELETE FROM \"public\".\"part\" AS this WHERE (this.\"nr\", this.\"label\") = ANY(SELECT *"
     " FROM ROWS FROM (unnest($1{set 0.0}::integer[]), unnest($2{set 0.1}::text[])))\n"
     "kids left: SELECT count(*) FROM \"public\".\"part\" AS this WHERE (this.\"nr\", this.\"label\") ="
     " ANY(SELECT * FROM ROWS FROM (unnest($1{set 0.0}::integer[]), unnest($2{set 0.1}::text[])))\n"
     "detach: UPDATE \"public\".\"Odd \"\"t\" AS this SET \"up_a\" = NULL, \"up_b\" = NULL WHERE"
     " (this.\"up_a\", this.\"up_b\") = ANY(SELECT * FROM ROWS FROM (unnest($1{set 0.0}::integer[]),"
     " unnest($2{set 0.1}::text[]))) AND ((this.\"a \"\"1\", this.\"b\") = ANY(SELECT * FROM ROWS FROM"
     " (unnest($3{set 0.0}::integer[]), unnest($4{set 0.1}::text[]))) OR (this.\"at_s\" <="
     " $5{1718452800}::bigint)) IS NOT TRUE\n"
     "detach inside: UPDATE \"public\".\"Odd \"\"t\" AS this SET \"up_a\" = NULL, \"up_b\" = NULL WHERE"
     " (this.\"up_a\", this.\"up_b\") = ANY(SELECT * FROM ROWS FROM (unnest($1{set 0.0}::integer[]),"
     " unnest($2{set 0.1}::text[]))) AND ((this.\"a \"\"1\", this.\"b\") = ANY(SELECT * FROM ROWS FROM"
     " (unnest($3{set 0.0}::integer[]), unnest($4{set 0.1}::text[]))) OR (this.\"at_s\" <="
     " $5{1718452800}::bigint)) IS TRUE\n"
     "detach left: SELECT count(*) FROM \"public\".\"Odd \"\"t\" AS this WHERE (this.\"up_a\", this.\"up_b\")"
     " = ANY(SELECT * FROM ROWS FROM (unnest($1{set 0.0}::integer[]), unnest($2{set 0.1}::text[])))\n"
     "delete: DELETE FROM \"public\".\"Odd \"\"t\" AS this WHERE (this.\"a \"\"1\", this.\"b\") = ANY(SELECT *"
     " FROM ROWS FROM (unnest($1{set 0.0}::integer[]), unnest($2{set 0.1}::text[])))\n"
     "left: SELECT count(*) FROM \"public\".\"Odd \"\"t\" AS this WHERE (this.\"a \"\"1\", this.\"b\") ="
     " ANY(SELECT * FROM ROWS FROM (unnest($1{set 0.0}::integer[]), unnest($2{set 0.1}::text[])))",
     /* SQLite */
     "pick: SELECT this.\"a \"\"1\", this.\"b\", this.\"a \"\"1\", this.\"b\"\n"
     " FROM main.\"Odd \"\"t\" AS this\n"
     "WHERE (this.\"at_s\" <= ?1{1718452800} AND typeof(this.\"at_s\") = 'integer')\n"
     "ORDER BY this.\"a \"\"1\", this.\"b\"\n"
     "LIMIT ?2{100}\n"
     "delete kids: DELETE FROM main.\"part\" AS this WHERE (this.\"nr\", this.\"label\") IN (SELECT c0, c1 FROM"
     " temp.lapse_set_0)\n"
     "kids left: SELECT count(*) FROM main.\"part\" AS this WHERE (this.\"nr\", this.\"label\") IN (SELECT c0,"
     " c1 FROM temp.lapse_set_0)\n"
     "detach: UPDATE main.\"Odd \"\"t\" AS this SET \"up_a\" = NULL, \"up_b\" = NULL WHERE (this.\"up_a\","
     " this.\"up_b\") IN (SELECT c0, c1 FROM temp.lapse_set_0) AND ((this.\"a \"\"1\", this.\"b\") IN (SELECT c0,"
     " c1 FROM temp.lapse_set_0) OR (this.\"at_s\" <= ?1{1718452800} AND typeof(this.\"at_s\") = 'integer'))"
     " IS NOT TRUE\n"
     "detach inside: UPDATE main.\"Odd \"\"t\" AS this SET \"up_a\" = NULL, \"up_b\" = NULL WHERE (this.\"up_a\","
     " this.\"up_b\") IN (SELECT c0, c1 FROM temp.lapse_set_0) AND ((this.\"a \"\"1\", this.\"b\") IN (SELECT c0,"
     " c1 FROM temp.lapse_set_0) OR (this.\"at_s\" <= ?1{1718452800} AND typeof(this.\"at_s\") = 'integer'))"
     " IS TRUE\n"
     "detach left: SELECT count(*) FROM main.\"Odd \"\"t\" AS this WHERE (this.\"up_a\", this.\"up_b\") IN"
     " (SELECT c0, c1 FROM temp.lapse_set_0)\n"
     "delete: DELETE FROM main.\"Odd \"\"t\" AS this WHERE (this.\"a \"\"1\", this.\"b\") IN (SELECT c0, c1 FROM"
     " temp.lapse_set_0)\n"
     "left: SELECT count(*) FROM main.\"Odd \"\"t\" AS this WHERE (this.\"a \"\"1\", this.\"b\") IN (SELECT c0, c1"
     " FROM temp.lapse_set_0)"},
    {"table: '\"Odd \"\"t\"', expires: at_s, with: ['part(nr, label)'], detach: ['\"Odd \"\"t\"(up_a, up_b)']",
     write_later_pick,
     /* PostgreSQL */
     "pick after: SELECT this.\"a \"\"1\", this.\"b\", this.\"a \"\"1\", this.\"b\"\n"
     " FROM \"public\".\"Odd \"\"t\" AS this\n"
     "WHERE (this.\"at_s\" <= $1{1718452800}::bigint) AND (this.\"a \"\"1\", this.\"b\") > ($2{7}::integer,"
     " $3{x}::text)\n"
     "ORDER BY this.\"a \"\"1\", this.\"b\"\n"
     "LIMIT $4{100}::bigint FOR UPDATE OF this SKIP LOCKED",
     /* SQLite */
     "pick after: SELECT this.\"a \"\"1\", this.\"b\", this.\"a \"\"1\", this.\"b\"\n"
     " FROM main.\"Odd \"\"t\" AS this\n"
     "WHERE (this.\"at_s\" <= ?1{1718452800} AND typeof(this.\"at_s\") = 'integer') AND (this.\"a \"\"1\","
     " this.\"b\") > (?2{7}, ?3{x})\n"
     "ORDER BY this.\"a \"\"1\", this.\"b\"\n"
     "LIMIT ?4{100}"},
    {"table: jobs, orphan: { of: 'part(step_id, label)', by: [ok, code], matching: { nr: 1 }, delete_when: deleted_or_unmatched }, age: at_ms, keep: 1h",
     write_slice,
     /* PostgreSQL */
     "pick: SELECT this.\"id\", this.\"ok\", this.\"code\", this.\"id\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" < $1{1718449200000}::bigint) AND (this.\"ok\" IS NOT NULL AND this.\"code\" IS NOT"
     " NULL AND NOT EXISTS (SELECT 1 FROM \"public\".\"part\" AS lapse_1 WHERE lapse_1.\"step_id\" ="
     " this.\"ok\" AND lapse_1.\"label\" = this.\"code\" AND lapse_1.\"nr\" = $2{1}::integer) AND EXISTS"
     " (SELECT 1 FROM \"public\".\"part\" AS lapse_2)))\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT $3{100}::bigint FOR UPDATE OF this SKIP LOCKED\n"
     "lock source: SELECT 1 FROM \"public\".\"part\" AS lapse_1 WHERE"
     " (lapse_1.\"step_id\", lapse_1.\"label\") = ANY(SELECT * FROM ROWS FROM (unnest($1{set 0.1}::integer[]), unnest($2{set"
     " 0.2}::text[]))) FOR SHARE OF lapse_1 SKIP LOCKED\n"
     "judge: SELECT this.\"id\", this.\"ok\", this.\"code\"\n"
     " FROM \"public\".\"jobs\" AS this\n"
     "WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "AND ((this.\"at_ms\" < $2{1718449200000}::bigint) AND (this.\"ok\" IS NOT NULL AND this.\"code\" IS NOT"
     " NULL AND NOT EXISTS (SELECT 1 FROM \"public\".\"part\" AS lapse_1 WHERE lapse_1.\"step_id\" ="
     " this.\"ok\" AND lapse_1.\"label\" = this.\"code\" AND lapse_1.\"nr\" = $3{1}::integer) AND EXISTS"
     " (SELECT 1 FROM \"public\".\"part\" AS lapse_2)))\n"
     "delete: DELETE FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])\n"
     "left: SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE this.\"id\" = ANY($1{set 0.0}::integer[])",
     /* SQLite */
     "pick: SELECT this.\"id\", this.\"ok\", this.\"code\", this.\"id\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"at_ms\" < ?1{1718449200000} AND typeof(this.\"at_ms\") = 'integer') AND (this.\"ok\" IS"
     " NOT NULL AND this.\"code\" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM main.\"part\" AS lapse_1 WHERE"
     " lapse_1.\"step_id\" = this.\"ok\" AND lapse_1.\"label\" = this.\"code\" AND lapse_1.\"nr\" = ?2{1}) AND"
     " EXISTS (SELECT 1 FROM main.\"part\" AS lapse_2)))\n"
     "ORDER BY this.\"id\"\n"
     "LIMIT ?3{100}\n"
     "lock source: SELECT 1 FROM main.\"part\" AS lapse_1 WHERE (lapse_1.\"step_id\","
     " lapse_1.\"label\") IN (SELECT c1, c2 FROM temp.lapse_set_0)\n"
     "judge: SELECT this.\"id\", this.\"ok\", this.\"code\"\n"
     " FROM main.\"jobs\" AS this\n"
     "WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "AND ((this.\"at_ms\" < ?1{1718449200000} AND typeof(this.\"at_ms\") = 'integer') AND (this.\"ok\" IS NOT"
     " NULL AND this.\"code\" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM main.\"part\" AS lapse_1 WHERE"
     " lapse_1.\"step_id\" = this.\"ok\" AND lapse_1.\"label\" = this.\"code\" AND lapse_1.\"nr\" = ?2{1}) AND"
     " EXISTS (SELECT 1 FROM main.\"part\" AS lapse_2)))\n"
     "delete: DELETE FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)\n"
     "left: SELECT count(*) FROM main.\"jobs\" AS this WHERE this.\"id\" IN (SELECT c0 FROM temp.lapse_set_0)"},
    {"table: jobs, orphan: { of: step(id), by: ok, allow_empty: true }, keep: now, hold: { ok: 0 }",
     write_counts,
     /* PostgreSQL */
     "count: SELECT lapse_ends.lapse_rows, lapse_ends.lapse_oldest, lapse_ends.lapse_newest\n"
     "FROM (SELECT count(*) AS lapse_rows, NULL AS lapse_oldest, NULL AS lapse_newest FROM"
     " \"public\".\"jobs\" AS this\n"
     "WHERE ((this.\"ok\" = $1{0}::integer) IS NOT TRUE AND (this.\"ok\" IS NOT NULL AND NOT EXISTS (SELECT 1"
     " FROM \"public\".\"step\" AS lapse_1 WHERE lapse_1.\"id\" = this.\"ok\")))) AS lapse_ends\n"
     "kept: SELECT 0,\n"
     "0,\n"
     "(SELECT count(*) FROM \"public\".\"jobs\" AS this WHERE TRUE AND TRUE AND (this.\"ok\" IS NOT NULL AND"
     " NOT EXISTS (SELECT 1 FROM \"public\".\"step\" AS lapse_1 WHERE lapse_1.\"id\" = this.\"ok\")) AND NOT"
     " ((this.\"ok\" = $1{0}::integer) IS NOT TRUE)),\n"
     "0",
     /* SQLite */
     "count: SELECT lapse_ends.lapse_rows, lapse_ends.lapse_oldest, lapse_ends.lapse_newest\n"
     "FROM (SELECT count(*) AS lapse_rows, NULL AS lapse_oldest, NULL AS lapse_newest FROM main.\"jobs\" AS this\n"
     "WHERE ((this.\"ok\" = ?1{0}) IS NOT TRUE AND (this.\"ok\" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM"
     " main.\"step\" AS lapse_1 WHERE lapse_1.\"id\" = this.\"ok\")))) AS lapse_ends\n"
     "kept: SELECT 0,\n"
     "0,\n"
     "(SELECT count(*) FROM main.\"jobs\" AS this WHERE TRUE AND TRUE AND (this.\"ok\" IS NOT NULL AND NOT"
     " EXISTS (SELECT 1 FROM main.\"step\" AS lapse_1 WHERE lapse_1.\"id\" = this.\"ok\")) AND NOT"
     " ((this.\"ok\" = ?1{0}) IS NOT TRUE)),\n"
     "0"},
    /* clang-format on */
};

static void statements_are_written_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        check_statements("public", &dialect_postgres, statements[i].write, statements[i].keys,
                         statements[i].postgres);
        check_statements(NULL, &dialect_sqlite, statements[i].write, statements[i].keys,
                         statements[i].sqlite);
    }
}

/* --- the small parts -------------------------------------------------------------------------- */

static void a_statement_can_be_used_again(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    char word[] = "word";
    sql_bind_text(&s, &dialect_postgres, word, "text");
    word[0] = 'X';
    assert_string_equal(s.params[0].value.text, "word");
    sql_bind_integer(&s, &dialect_postgres, -5);
    assert_int_equal(sql_bind_set(&s, 2, 1, "integer"), 3);
    assert_string_equal(text_str(&s.sql), "$1::pg_catalog.text$2::bigint");
    assert_int_equal(s.params[0].set, -1);
    assert_int_equal(s.params[2].set, 2);
    assert_int_equal(s.params[2].set_column, 1);
    stmt_clear(&s);
    assert_int_equal(s.n_params, 0);
    assert_null(s.arena);
    sql_bind_integer(&s, &dialect_sqlite, 1);
    assert_string_equal(text_str(&s.sql), "?1");
}

static void names_are_quoted(void **state)
{
    (void)state;
    AUTO(stmt_release) struct stmt s = {0};
    struct dialect d = dialect_postgres;
    struct table t = {.name = "a\"b"};
    struct column c = {.name = "`x`"};
    sql_table(&s, &d, &t);
    t.schema = "s.";
    text_add(&s.sql, " ");
    sql_table(&s, &d, &t);
    t.schema = NULL;
    d.table_prefix = "main.";
    d.quote = '`';
    text_add(&s.sql, " ");
    sql_table(&s, &d, &t);
    text_add(&s.sql, " ");
    sql_column(&s, &d, "this", &c);
    assert_string_equal(text_str(&s.sql), "\"a\"\"b\" \"s.\".\"a\"\"b\" main.`a\"b` this.```x```");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_are_written_whole),
        cmocka_unit_test(a_statement_can_be_used_again),
        cmocka_unit_test(names_are_quoted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
