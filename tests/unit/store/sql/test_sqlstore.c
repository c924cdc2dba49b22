/* sqlstore: slices, counts and looks, on real files: what a slice takes, what it counts, and when it refuses.
 */
#include "sqlite_plan.h"

#define NOW (INT64_C(1000) * US_PER_S)

#define JOBS "table: jobs, expires: at_s"

/* --- asking ----------------------------------------------------------------------------------- */

/* The ids of a table, as "1 2 3". */
static void assert_ids(struct file *f, const char *sql, const char *expected)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(text_release) struct text out = {0};
    text_add(&st.sql, sql);
    AUTO(rows_release) struct rows rows = ask_stmt(f->sql, &st);
    for (size_t i = 0; i < rows.n_rows; i++)
        text_addf(&out, "%s%lld", i ? " " : "", (long long)rows.cells[i * rows.n_columns].integer);
    assert_string_equal(text_str(&out), expected);
}

static void begin(struct file *f, const struct plan *p)
{
    struct err e = ERR_INIT;
    if (sqlstore_begin(f->store, p, &e))
        fail_msg("%s", e.text);
}

static void commit(struct file *f)
{
    struct err e = ERR_INIT;
    if (sqlstore_commit(f->store, &e))
        fail_msg("%s", e.text);
}

/* A slice from the cursor on, which moves. */
static struct slice slice(struct file *f, const struct plan *p, struct cursor *from, int64_t most)
{
    struct err e = ERR_INIT;
    struct slice s;
    slice_init(&s, p);
    const struct stretch in = {.after = from};
    if (sqlstore_slice(f->store, p, &in, most, &s, &e))
        fail_msg("%s", e.text);
    if (s.picked)
        cursor_copy(from, &s.end);
    return s;
}

static void assert_counts(const struct plan *p, const int64_t *gone, const int64_t *detached,
                          const char *expected)
{
    AUTO(text_release) struct text out = {0};
    for (size_t i = 0; i < p->n_slots; i++)
        text_addf(&out, "%s%s %lld", i ? ", " : "", p->slots[i]->name, (long long)gone[i]);
    for (size_t i = 0; i < p->n_detach_slots; i++)
        text_addf(&out, "; %s %lld", p->detach_slots[i]->name, (long long)detached[i]);
    assert_string_equal(text_str(&out), expected);
}

/* What plan says would go is what one slice of everything takes. */
static void assert_swept(struct file *f, const struct plan *p, const char *expected)
{
    struct err e = ERR_INIT;
    AUTO(due_release) struct due due;
    AUTO(cursor_release) struct cursor from = {0};
    due_init(&due, p);
    if (sqlstore_count(f->store, p, &due, &e))
        fail_msg("%s", e.text);
    assert_counts(p, due.gone, due.detached, expected);
    begin(f, p);
    AUTO(slice_release) struct slice s = slice(f, p, &from, 1000);
    commit(f);
    assert_counts(p, s.gone, s.detached, expected);
}

static void assert_refused(struct file *f, const struct plan *p, const char *text)
{
    struct err e = ERR_INIT;
    AUTO(slice_release) struct slice s;
    const struct stretch all = {0};
    slice_init(&s, p);
    begin(f, p);
    assert_int_equal(sqlstore_slice(f->store, p, &all, 1000, &s, &e), -1);
    sqlstore_rollback(f->store);
    assert_int_equal(e.kind, ERR_REFUSED);
    assert_string_equal(e.text, text);
}

static void make_jobs(struct file *f, const char *rows)
{
    AUTO(text_release) struct text sql = {0};
    do_sql(f->sql, "CREATE TABLE jobs(id INTEGER PRIMARY KEY, at_s INTEGER, up INTEGER, ok INTEGER)");
    text_addf(&sql, "INSERT INTO jobs(id, at_s, up, ok) VALUES %s", rows);
    do_sql(f->sql, text_str(&sql));
}

static void make_steps(struct file *f, const char *rows)
{
    AUTO(text_release) struct text sql = {0};
    do_sql(f->sql, "CREATE TABLE step(id INTEGER PRIMARY KEY, job INTEGER, state TEXT)");
    text_addf(&sql, "INSERT INTO step(id, job, state) VALUES %s", rows);
    do_sql(f->sql, text_str(&sql));
}

/* --- rows ------------------------------------------------------------------------------------- */

static void rows_copy_what_they_are_given(void **state)
{
    (void)state;
    AUTO(rows_release) struct rows r = {.n_columns = 2};
    for (int i = 0; i < 1000; i++) {
        char word[] = {(char)('a' + i % 26), '\0', 'z', '\0'};
        struct value cells[] = {{.kind = VALUE_INTEGER, .integer = i},
                                {.kind = VALUE_BLOB, .text = word, .len = 3}};
        rows_push(&r, cells);
    }
    assert_int_equal(r.n_rows, 1000);
    for (int i = 0; i < 1000; i++) {
        char word[] = {(char)('a' + i % 26), '\0', 'z', '\0'};
        assert_int_equal(r.cells[i * 2].integer, i);
        assert_int_equal(r.cells[i * 2 + 1].len, 3);
        assert_memory_equal(r.cells[i * 2 + 1].text, word, 4);
    }
}

/* --- the slice -------------------------------------------------------------------------------- */

static void slices_follow_the_cursor(void **state)
{
    struct file *f = *state;
    make_jobs(f,
              "(1, 30, 0, 0), (2, 10, 0, 0), (3, 1001, 0, 0), (4, 20, 0, 0), (5, NULL, 0, 0), (6, 10, 0, 0)");
    do_sql(f->sql, "CREATE INDEX x ON jobs(at_s)");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS, NOW);
    AUTO(cursor_release) struct cursor from = {0};
    begin(f, p.plan);
    AUTO(slice_release) struct slice one = slice(f, p.plan, &from, 2);
    assert_int_equal(one.picked, 2);
    assert_int_equal(one.gone[0], 2);
    assert_null(one.key);
    assert_int_equal(from.n, 2); /* time, key */
    assert_true(from.values[0].integer == 10 && from.values[1].integer == 6);
    assert_ids(f, "SELECT id FROM jobs ORDER BY id", "1 3 4 5");
    AUTO(slice_release) struct slice two = slice(f, p.plan, &from, 1);
    assert_string_equal(two.key, "id=4");
    AUTO(slice_release) struct slice three = slice(f, p.plan, &from, 2);
    assert_int_equal(three.picked, 1);
    assert_string_equal(three.key, "id=1");
    AUTO(slice_release) struct slice four = slice(f, p.plan, &from, 2);
    assert_int_equal(four.picked, 0);
    assert_false(four.end.set);
    commit(f);
    assert_ids(f, "SELECT id FROM jobs ORDER BY id", "3 5");
}

static void what_is_rolled_back_is_still_there(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0), (2, 2, 0, 0)");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS, NOW);
    AUTO(cursor_release) struct cursor from = {0};
    begin(f, p.plan);
    AUTO(slice_release) struct slice s = slice(f, p.plan, &from, 10);
    assert_int_equal(s.gone[0], 2);
    sqlstore_rollback(f->store);
    sqlstore_rollback(f->store); /* with nothing open it does nothing */
    assert_ids(f, "SELECT id FROM jobs", "1 2");
}

static void a_slice_can_be_undone_alone(void **state)
{
    struct file *f = *state;
    struct err e = ERR_INIT;
    make_jobs(f, "(1, 1, 0, 0), (2, 2, 0, 0), (3, 3, 0, 0)");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS, NOW);
    AUTO(cursor_release) struct cursor from = {0};
    begin(f, p.plan);
    assert_int_equal(sqlstore_mark(f->store, &e), 0);
    AUTO(slice_release) struct slice one = slice(f, p.plan, &from, 1);
    assert_int_equal(sqlstore_mark(f->store, &e), 0);
    AUTO(slice_release) struct slice two = slice(f, p.plan, &from, 1);
    assert_int_equal(sqlstore_undo(f->store, &e), 0);
    commit(f);
    assert_ids(f, "SELECT id FROM jobs", "2 3");
}

static void a_row_goes_with_all_it_owns(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0), (2, 2000, 0, 0), (3, 3, 0, 0)");
    make_steps(f, "(10, 1, 'a'), (11, 1, 'b'), (20, 2, 'a'), (30, 3, 'a'), (90, NULL, 'a')");
    do_sql(f->sql, "CREATE TABLE part(step INTEGER, nr INTEGER, PRIMARY KEY (step, nr)) WITHOUT ROWID");
    do_sql(f->sql, "INSERT INTO part VALUES (10, 1), (10, 2), (11, 1), (20, 1)");
    do_sql(f->sql, "CREATE TABLE log(job INTEGER)");
    do_sql(f->sql, "INSERT INTO log VALUES (1), (1), (2), (NULL)");
    do_sql(f->sql, "CREATE TABLE mail(id INTEGER PRIMARY KEY, step INTEGER)");
    do_sql(f->sql, "INSERT INTO mail VALUES (1, 10), (2, 20), (3, 30)");
    AUTO(planned_release)
    struct planned p = plan_on(
        f, JOBS ", with: [{ ref: step(job), with: [part(step)], detach: [mail(step)] }, log(job)]", NOW);
    assert_swept(f, p.plan, "part 3, step 3, log 2, jobs 2; mail 2");
    assert_ids(f, "SELECT id FROM jobs", "2");
    assert_ids(f, "SELECT id FROM step ORDER BY id", "20 90");
    assert_ids(f, "SELECT step FROM part", "20");
    assert_ids(f, "SELECT count(*) FROM log", "2");
    assert_ids(f, "SELECT id FROM mail WHERE step IS NULL", "1 3");
}

/* Two ways lead to the same row: it goes once and counts once. */
static void a_row_reached_twice_goes_once(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0)");
    make_steps(f, "(10, 1, 'a')");
    do_sql(f->sql, "CREATE TABLE part(id INTEGER PRIMARY KEY, step INTEGER, job INTEGER)");
    do_sql(f->sql, "INSERT INTO part VALUES (1, 10, 1), (2, NULL, 1), (3, 10, NULL), (4, NULL, NULL)");
    do_sql(f->sql, "CREATE TABLE bit(part INTEGER)");
    AUTO(planned_release)
    struct planned p =
        plan_on(f,
                JOBS ", with: [{ ref: step(job), with: [{ ref: part(step), with: [bit(part)] }] }, "
                     "{ ref: part(job), with: [bit(part)] }]",
                NOW);
    assert_swept(f, p.plan, "bit 0, part 3, step 1, jobs 1");
    assert_ids(f, "SELECT id FROM part", "4");
}

/* A chain, a bush and a ring; the rows of a ring are old enough only in one place. */
static void a_subtree_goes_whole(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, NULL, 0)");
    do_sql(f->sql, "CREATE INDEX jobs_up ON jobs(up)");
    do_sql(f->sql, "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
                   "INSERT INTO jobs SELECT i, 2000, i - 1, 0 FROM n");
    do_sql(f->sql, "WITH RECURSIVE n(i) AS (SELECT 301 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "
                   "INSERT INTO jobs SELECT i, 2000, 7, 0 FROM n");
    do_sql(f->sql,
           "INSERT INTO jobs VALUES (2001, 1, 2003, 0), (2002, 2000, 2001, 0), (2003, 2000, 2002, 0)");
    do_sql(f->sql, "INSERT INTO jobs VALUES (3001, 2000, NULL, 0), (3002, 2000, 3001, 0)");
    make_steps(f, "(1, 300, 'a'), (2, 1000, 'a'), (3, 2003, 'a'), (4, 3002, 'a')");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS ", with: [jobs(up), step(job)]", NOW);
    assert_swept(f, p.plan, "step 3, jobs 1003");
    assert_ids(f, "SELECT id FROM jobs", "3001 3002");
    assert_ids(f, "SELECT id FROM step", "4");
}

/* Keys of equal length that differ only behind a NUL. */
static void keys_of_any_bytes_grow_a_subtree(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE t(a BLOB NOT NULL, b REAL NOT NULL, up_a BLOB, up_b REAL, at_s INTEGER, "
                   "PRIMARY KEY (a, b))");
    do_sql(f->sql, "INSERT INTO t VALUES (x'00ff', 1.5, NULL, NULL, 1), (x'00', 2.5, x'00', 9.5, 2000)");
    do_sql(f->sql,
           "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) INSERT INTO t "
           "SELECT CAST(x'00' || printf('%04d', i) AS BLOB), 0.1, x'00ff', 1.5, 2000 FROM n");
    AUTO(planned_release)
    struct planned p = plan_on(f, "table: t, expires: at_s, with: ['t(up_a, up_b)']", NOW);
    AUTO(cursor_release) struct cursor from = {0};
    begin(f, p.plan);
    AUTO(slice_release) struct slice s = slice(f, p.plan, &from, 10);
    commit(f);
    assert_string_equal(s.key, "a=x'00ff', b=1.5");
    assert_int_equal(s.gone[0], 501);
    assert_ids(f, "SELECT count(*) FROM t WHERE b = 2.5", "1");
}

/* Rows that go in a later slice are detached, so that a foreign key lets their parent go, but are not
 * counted. */
static void detaching_inside_the_swept_table(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE jobs(id INTEGER PRIMARY KEY, at_s INTEGER, up INTEGER REFERENCES jobs(id))");
    do_sql(f->sql, "INSERT INTO jobs VALUES (1, 1, NULL), (2, 2, 1), (3, 3, 1), (4, 2000, 1), (5, 2000, 2)");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS ", detach: [jobs(up)]", NOW);
    AUTO(cursor_release) struct cursor from = {0};
    begin(f, p.plan);
    AUTO(slice_release) struct slice one = slice(f, p.plan, &from, 2);
    commit(f);
    assert_counts(p.plan, one.gone, one.detached, "jobs 2; jobs 2");
    begin(f, p.plan);
    AUTO(slice_release) struct slice two = slice(f, p.plan, &from, 2);
    commit(f);
    assert_counts(p.plan, two.gone, two.detached, "jobs 1; jobs 0");
    assert_ids(f, "SELECT id FROM jobs WHERE up IS NULL", "4 5");
}

static void a_row_that_waits_stays_with_all_it_owns(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0), (2, 1, 0, 0), (3, 1, 0, 1), (4, 1, 0, 0)");
    make_steps(f, "(10, 1, 'done'), (20, 2, 'open'), (21, 2, 'done'), (30, 3, 'done'), (40, 4, NULL)");
    AUTO(planned_release)
    struct planned p =
        plan_on(f, JOBS ", hold: { ok: 1 }, with: [{ ref: step(job), where: { state: done } }]", NOW);
    struct err e = ERR_INIT;
    AUTO(due_release) struct due due;
    due_init(&due, p.plan);
    assert_int_equal(sqlstore_count(f->store, p.plan, &due, &e), 0);
    assert_int_equal(due.held, 1);
    assert_int_equal(due.waiting, 2);
    assert_swept(f, p.plan, "step 1, jobs 1");
    assert_ids(f, "SELECT id FROM jobs", "2 3 4");
    assert_ids(f, "SELECT id FROM step", "20 21 30 40");
}

/* --- rows that triggers keep ------------------------------------------------------------------- */

static void a_kept_row_is_seen(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0), (2, 1, 0, 0)");
    do_sql(f->sql, "CREATE TRIGGER k BEFORE DELETE ON jobs WHEN old.id = 2 BEGIN SELECT RAISE(IGNORE); END");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS, NOW);
    assert_refused(f, p.plan, "1 row of jobs stayed: a trigger or a rule kept it");
    assert_ids(f, "SELECT id FROM jobs", "1 2");
}

static void a_kept_owned_row_is_seen(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0)");
    make_steps(f, "(10, 1, 'a'), (11, 1, 'b'), (12, 1, 'b')");
    do_sql(f->sql,
           "CREATE TRIGGER k BEFORE DELETE ON step WHEN old.state = 'b' BEGIN SELECT RAISE(IGNORE); END");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS ", with: [step(job)]", NOW);
    assert_refused(f, p.plan, "2 rows of step stayed: a trigger or a rule kept them");
    assert_ids(f, "SELECT id FROM step", "10 11 12");
}

static void a_row_kept_attached_is_seen(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0)");
    make_steps(f, "(10, 1, 'a'), (11, 1, 'b')");
    do_sql(f->sql,
           "CREATE TRIGGER k BEFORE UPDATE ON step WHEN old.state = 'b' BEGIN SELECT RAISE(IGNORE); END");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS ", detach: [step(job)]", NOW);
    assert_refused(f, p.plan, "1 row of step stayed attached: a trigger or a rule kept it");
    assert_ids(f, "SELECT id FROM step WHERE job = 1", "10 11");
}

static void a_deferred_constraint_speaks_in_the_slice(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0), (2, 1, 0, 0)");
    do_sql(f->sql, "CREATE TABLE late(job INTEGER REFERENCES jobs(id) DEFERRABLE INITIALLY DEFERRED)");
    do_sql(f->sql, "INSERT INTO late VALUES (2)");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS, NOW);
    struct err e = ERR_INIT;
    AUTO(slice_release) struct slice s;
    const struct stretch all = {0};
    slice_init(&s, p.plan);
    begin(f, p.plan);
    assert_int_equal(sqlstore_slice(f->store, p.plan, &all, 10, &s, &e), -1);
    sqlstore_rollback(f->store);
    assert_int_equal(e.kind, ERR_REFUSED);
    assert_non_null(strstr(e.text, "FOREIGN KEY"));
    assert_int_equal(s.picked, 2); /* what is needed to split it */
}

/* --- looks ------------------------------------------------------------------------------------ */

static void counting_says_what_stays_and_why(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 100, 0, 0), (2, 300, 0, 0), (3, NULL, 0, 0), (4, 'soon', 0, 0), (5, 200, 0, 1), (6, "
                 "2000, 0, 0), "
                 "(7, 50, 5, 0), (8, NULL, 5, 0)");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS ", rows: { up: 0 }, hold: { ok: 1 }", NOW);
    struct err e = ERR_INIT;
    AUTO(due_release) struct due due;
    due_init(&due, p.plan);
    assert_int_equal(sqlstore_count(f->store, p.plan, &due, &e), 0);
    assert_counts(p.plan, due.gone, due.detached, "jobs 2");
    assert_true(due.has_range);
    assert_int_equal(due.oldest, 100 * US_PER_S);
    assert_int_equal(due.newest, 300 * US_PER_S);
    assert_int_equal(due.null_time, 1);
    assert_int_equal(due.unreadable_time, 1);
    assert_int_equal(due.held, 1);
    assert_int_equal(due.waiting, 0);
    do_sql(f->sql, "DELETE FROM jobs");
    assert_int_equal(sqlstore_count(f->store, p.plan, &due, &e), 0);
    assert_false(due.has_range);
}

static void remaining_counts_no_further_than_asked(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0), (2, 1, 0, 0), (3, 1, 0, 0), (4, 2000, 0, 0)");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS, NOW);
    struct err e = ERR_INIT;
    int64_t n = -1;
    bool due = false;
    assert_int_equal(sqlstore_remaining(f->store, p.plan, 2, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_int_equal(sqlstore_remaining(f->store, p.plan, 10, &n, &e), 0);
    assert_int_equal(n, 3);
    assert_int_equal(sqlstore_probe(f->store, p.plan, &due, &e), 0);
    assert_true(due);
    do_sql(f->sql, "DELETE FROM jobs WHERE id < 4");
    assert_int_equal(sqlstore_probe(f->store, p.plan, &due, &e), 0);
    assert_false(due);
}

/* A look must leave nothing open: another connection can write at once. */
static void a_look_leaves_nothing_open(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0)");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS, NOW);
    struct err e = ERR_INIT;
    bool found;
    int64_t n;
    struct time_sample sample;
    AUTO(due_release) struct due due;
    due_init(&due, p.plan);
    assert_int_equal(sqlstore_probe(f->store, p.plan, &found, &e), 0);
    assert_int_equal(sqlstore_remaining(f->store, p.plan, 1, &n, &e), 0);
    assert_int_equal(sqlstore_count(f->store, p.plan, &due, &e), 0);
    assert_int_equal(sqlstore_sample(f->store, p.plan, 0, &sample, &e), 0);
    assert_int_equal(sqlstore_has_value(f->store, p.plan->root.table, p.plan->timely, &found, &e), 0);
    assert_true(found);
    assert_int_equal(sqlstore_accepts(f->store, p.plan, &e), 0);
    begin(f, p.plan);
    sqlstore_rollback(f->store);
}

static void a_sample_says_which_unit_is_plausible(void **state)
{
    struct file *f = *state;
    make_jobs(
        f, "(1, 1700000000, 0, 0), (2, 1700000000000, 0, 0), (3, 1700000000000000, 0, 0), (4, NULL, 0, 0), "
           "(5, 'soon', 0, 0), (6, 631152000, 0, 0), (7, 631151999, 0, 0), (8, 4102444799, 0, 0), "
           "(9, 4102444800, 0, 0)");
    AUTO(planned_release) struct planned p = plan_on(f, JOBS, NOW);
    struct err e = ERR_INIT;
    struct time_sample s;
    assert_int_equal(sqlstore_sample(f->store, p.plan, 0, &s, &e), 0);
    assert_int_equal(s.n, 8);
    assert_int_equal(s.unreadable, 1);
    assert_int_equal(s.plausible_s, 3);
    assert_int_equal(s.plausible_ms, 1);
    assert_int_equal(s.plausible_us, 1);
    assert_string_equal(s.example, "1700000000000");
}

static void a_sample_reads_texts_in_the_zone(void **state)
{
    struct file *f = *state;
    do_sql(f->sql, "CREATE TABLE t(id INTEGER PRIMARY KEY, at TEXT)");
    do_sql(f->sql, "INSERT INTO t(at) VALUES ('2024-01-01 00:00:00'), ('2024-01-01T00:00:00.5+02:00'), "
                   "('yesterday, when all my troubles seemed so far away, and it looks'), (NULL), (x'00')");
    AUTO(planned_release) struct planned p = plan_on(f, "table: t, expires: at", NOW);
    struct err e = ERR_INIT;
    struct time_sample s;
    assert_int_equal(sqlstore_sample(f->store, p.plan, 0, &s, &e), 0);
    assert_int_equal(s.n, 4);
    assert_int_equal(s.unreadable, 2);
    assert_string_equal(s.example, "yesterday, when all my troubles seemed so far away, and it look");
}

static void has_value_asks_for_one_row(void **state)
{
    struct file *f = *state;
    make_steps(f, "(1, 1, 'done')");
    AUTO(planned_release)
    struct planned yes = plan_on(f, "table: step, expires: job, unit: s, rows: { state: done }", NOW);
    AUTO(planned_release)
    struct planned no = plan_on(f, "table: step, expires: job, unit: s, rows: { state: dine }", NOW);
    struct err e = ERR_INIT;
    bool found = false;
    assert_int_equal(sqlstore_has_value(f->store, yes.plan->root.table, yes.plan->matches, &found, &e), 0);
    assert_true(found);
    assert_int_equal(sqlstore_has_value(f->store, no.plan->root.table, no.plan->matches, &found, &e), 0);
    assert_false(found);
}

static const struct {
    const char *keys, *error; /* "": accepted */
} accepted[] = {
    {"where: 'this.ok = 1'", ""},
    {"where: 'this.nope = 1'", "no such column: this.nope"},
    {"where: 'this.ok ='", "syntax error"},
    {"where: '1) or (1'", "closes a parenthesis"},
    {"where: '1; delete from jobs'", "has a ';'"},
    {"hold: 'this.ok; 1'", "has a ';'"},
    {"with: [{ ref: step(job), where: 'this.state; 1' }]", "has a ';'"},
    {"with: [{ ref: step(job), where: 'this.nope' }]", "no such column: lapse_1.nope"},
    {"with: [{ ref: step(job), where: { state: a }, with: [{ ref: jobs(up), where: ':x' }] }]",
     "has a parameter that is not :now"},
    {"after: [{ ref: step(job), where: 'this.state = :other' }]", "has a parameter that is not :now"},
    {"where: { any: [{ ok: 1 }, 'this.ok -- fine'] }", ""},
};

static void conditions_are_shown_to_the_engine(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0)");
    make_steps(f, "(1, 1, 'a')");
    for (size_t i = 0; i < COUNT_OF(accepted); i++) {
        AUTO(text_release) struct text keys = {0};
        text_addf(&keys, JOBS ", %s", accepted[i].keys);
        AUTO(planned_release) struct planned p = plan_on(f, text_str(&keys), NOW);
        struct err e = ERR_INIT;
        int r = sqlstore_accepts(f->store, p.plan, &e);
        if (r != (accepted[i].error[0] ? -1 : 0) || !strstr(e.text, accepted[i].error))
            fail_msg("%s: %d %s", accepted[i].keys, r, e.text);
    }
}

static void a_filter_is_shown_to_the_engine_even_if_it_does_not_count(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0)");
    make_steps(f, "(1, 1, 'a')");
    static const struct {
        const char *matching, *error;
    } cases[] = {
        {"this.state = ''a''", ""},
        {"this.ok", "no such column: lapse_1.ok"},
        {"ok = 1", "no such column: ok"},
        {"this.state; 1", "has a ';'"},
        {"abs(this.job - 9223372036854775807 - 2) > 0", "overflow"}, /* it is carried out, once */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(text_release) struct text keys = {0};
        text_addf(&keys, "table: jobs, orphan: { of: step(id), by: up, matching: '%s' }, keep: now",
                  cases[i].matching);
        AUTO(planned_release) struct planned p = plan_on(f, text_str(&keys), NOW);
        struct err e = ERR_INIT;
        int r = sqlstore_accepts(f->store, p.plan, &e);
        if (r != (cases[i].error[0] ? -1 : 0) || !strstr(e.text, cases[i].error))
            fail_msg("%s: %d %s", cases[i].matching, r, e.text);
    }
}

/* --- for people ------------------------------------------------------------------------------- */

static void the_statements_are_explained_in_order(void **state)
{
    struct file *f = *state;
    make_jobs(f, "(1, 1, 0, 0)");
    make_steps(f, "(1, 1, 'a')");
    do_sql(f->sql, "CREATE TABLE part(step INTEGER)");
    do_sql(f->sql, "CREATE TABLE mail(id INTEGER PRIMARY KEY, job INTEGER)");
    AUTO(planned_release)
    struct planned p = plan_on(
        f,
        JOBS ", batch: 7, with: [jobs(up), { ref: step(job), with: [part(step)] }], detach: [mail(job)], "
             "after: [{ ref: mail(id), where: { job: 5 } }]",
        NOW);
    AUTO(text_release) struct text out = {0}, heads = {0};
    sqlstore_explain(f->store, p.plan, &out);
    for (const char *line = text_str(&out); *line;) {
        size_t len = strcspn(line, "\n");
        if (!strncmp(line, "-- ", 3) && line[3] != ' ')
            text_addf(&heads, "%.*s\n", (int)len - 3, line + 3);
        line += len + (line[len] == '\n');
    }
    assert_string_equal(text_str(&heads),
                        "pick and lock due rows into set 0 (later batches begin after the last row)\n"
                        "judge again what looks at other rows\n"
                        "lock the subtree, level by level, into set 0\n"
                        "lock owned rows of step into set 1\n"
                        "delete owned rows of part\n"
                        "delete the rows of step\n"
                        "detach rows of mail\n"
                        "delete the rows of jobs\n");
    assert_non_null(strstr(text_str(&out), "\n--   3 = 7\n")); /* the batch */
    assert_non_null(strstr(text_str(&out), "DELETE FROM main.\"jobs\" AS this"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, file_setup, file_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_copy_what_they_are_given),
        TEST(slices_follow_the_cursor),
        TEST(what_is_rolled_back_is_still_there),
        TEST(a_slice_can_be_undone_alone),
        TEST(a_row_goes_with_all_it_owns),
        TEST(a_row_reached_twice_goes_once),
        TEST(a_subtree_goes_whole),
        TEST(keys_of_any_bytes_grow_a_subtree),
        TEST(detaching_inside_the_swept_table),
        TEST(a_row_that_waits_stays_with_all_it_owns),
        TEST(a_kept_row_is_seen),
        TEST(a_kept_owned_row_is_seen),
        TEST(a_row_kept_attached_is_seen),
        TEST(a_deferred_constraint_speaks_in_the_slice),
        TEST(counting_says_what_stays_and_why),
        TEST(remaining_counts_no_further_than_asked),
        TEST(a_look_leaves_nothing_open),
        TEST(a_sample_says_which_unit_is_plausible),
        TEST(a_sample_reads_texts_in_the_zone),
        TEST(has_value_asks_for_one_row),
        TEST(conditions_are_shown_to_the_engine),
        TEST(a_filter_is_shown_to_the_engine_even_if_it_does_not_count),
        TEST(the_statements_are_explained_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
