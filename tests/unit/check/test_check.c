/* check: what a plan and hand-made facts say: foreign keys, access, references, indexes, coverage, order. */
#include "world.h"

#include <stdio.h>

#include "check/check.h"
#include "check/internal.h"

/* The policy's own keys, in flow style. */
static void check(struct world *w, const char *keys, bool thorough)
{
    check_plan(make_plan(w, keys, 0), thorough, &w->findings);
}

static const struct finding *find(struct world *w, enum finding_level level, const char *what)
{
    for (size_t i = 0; i < w->findings.n; i++)
        if (w->findings.list[i].level == level && strstr(w->findings.list[i].what, what))
            return &w->findings.list[i];
    return NULL;
}

static void expect(struct world *w, enum finding_level level, const char *what, const char *fix)
{
    const struct finding *f = find(w, level, what);
    for (size_t i = 0; !f && i < w->findings.n; i++)
        print_message("%d %s\n   %s\n", (int)w->findings.list[i].level, w->findings.list[i].what,
                      w->findings.list[i].fix);
    assert_non_null(f);
    if (!strstr(f->fix, fix))
        fail_msg("the fix is: %s", f->fix);
}

static void expect_none(struct world *w, enum finding_level level)
{
    for (size_t i = 0; i < w->findings.n; i++)
        if (w->findings.list[i].level == level)
            fail_msg("%s", w->findings.list[i].what);
}

/* metadata <- log, queue; queue <- step; metadata <- metadata */
static struct table *add_trax(struct world *w, enum on_delete action)
{
    struct table *metadata = add_table(w, "trax", "metadata", "id, parent_id, start_at, state, kind", "id");
    struct table *log = add_table(w, "trax", "log", "id, metadata_id", "id");
    add_fkey(w, log, "metadata_id", metadata, "id", action);
    return metadata;
}

#define BASE "table: trax.metadata, age: start_at, keep: 1h"

/* --- foreign keys --------------------------------------------------------------------------------- */

static void a_foreign_key_named_nowhere_is_an_error(void **state)
{
    struct world *w = *state;
    add_trax(w, ON_DELETE_CASCADE);
    check(w, BASE, false);
    expect(w, FINDING_ERROR,
           "trax.log(metadata_id) refers to trax.metadata (ON DELETE CASCADE: its rows would be deleted "
           "silently) and is named nowhere",
           "with: [trax.log(metadata_id)]");
    assert_int_equal(w->findings.list[0].at.line, 3);
    assert_string_equal(w->findings.list[0].policy, "p");
}

static void each_action_has_its_words(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_SET_NULL);
    struct table *other = add_table(w, "trax", "other", "id, a, b", "id");
    add_fkey(w, other, "a", t, "id", ON_DELETE_NO_ACTION);
    add_fkey(w, other, "b", t, "id", ON_DELETE_SET_DEFAULT);
    check(w, BASE, false);
    expect(w, FINDING_ERROR, "ON DELETE SET NULL: its columns would be set to NULL silently",
           "detach: [trax.log(metadata_id)]");
    expect(w, FINDING_ERROR,
           "trax.other(a) refers to trax.metadata (ON DELETE NO ACTION: the delete would be",
           "with: [trax.other(a)]");
    expect(w, FINDING_ERROR, "ON DELETE SET DEFAULT: its columns would be set to their default", "");
}

static void with_detach_and_after_cover(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    struct table *other = add_table(w, "trax", "other", "id, a, b", "id");
    add_fkey(w, other, "a", t, "id", ON_DELETE_NO_ACTION);
    add_fkey(w, other, "b", t, "id", ON_DELETE_NO_ACTION);
    check(w, BASE ", with: [trax.log(metadata_id)], detach: [trax.other(a)], after: [trax.other(b)]", false);
    expect_none(w, FINDING_ERROR);
    expect_none(w, FINDING_NOTE);
}

static void a_narrowed_after_does_not_cover(void **state)
{
    struct world *w = *state;
    add_trax(w, ON_DELETE_NO_ACTION);
    check(w, BASE ", after: [{ ref: trax.log(metadata_id), where: { id: 1 } }]", false);
    expect(w, FINDING_ERROR, "trax.log(metadata_id) refers to trax.metadata", "after");
}

static void a_with_entry_with_where_covers(void **state)
{
    struct world *w = *state;
    add_trax(w, ON_DELETE_NO_ACTION);
    check(w, BASE ", with: [{ ref: trax.log(metadata_id), where: { id: 1 } }]", false);
    expect_none(w, FINDING_ERROR);
}

static void another_column_or_target_does_not_cover(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    (void)t;
    check(w, BASE ", with: [trax.log(id)], after: [trax.log(metadata_id) -> (parent_id)]", false);
    expect(w, FINDING_ERROR, "trax.log(metadata_id) refers to trax.metadata", "");
}

static void a_subtree_covers_a_self_reference(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    add_fkey(w, t, "parent_id", t, "id", ON_DELETE_NO_ACTION);
    check(w, BASE ", with: [trax.metadata(parent_id), trax.log(metadata_id)]", false);
    expect_none(w, FINDING_ERROR);
}

static void a_self_reference_named_nowhere_is_an_error(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    add_fkey(w, t, "parent_id", t, "id", ON_DELETE_SET_NULL);
    check(w, BASE ", with: [trax.log(metadata_id)]", false);
    expect(w, FINDING_ERROR, "trax.metadata(parent_id) refers to trax.metadata",
           "detach: [trax.metadata(parent_id)]");
}

/* log is named for the root, but log's own dependents are not; and one entry does not speak for another. */
static void every_node_is_judged_on_its_own(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    struct table *log = w->facts->tables[1];
    struct table *line = add_table(w, "trax", "line", "id, log_id, metadata_id", "id");
    struct table *word = add_table(w, "trax", "word", "id, line_id", "id");
    add_fkey(w, line, "log_id", log, "id", ON_DELETE_CASCADE);
    add_fkey(w, line, "metadata_id", t, "id", ON_DELETE_CASCADE);
    add_fkey(w, word, "line_id", line, "id", ON_DELETE_CASCADE);
    check(w,
          BASE ", with: [{ ref: trax.log(metadata_id), with: [trax.line(log_id)] }, "
               "{ ref: trax.line(metadata_id), with: [trax.word(line_id)] }]",
          false);
    expect(w, FINDING_ERROR, "trax.word(line_id) refers to trax.line",
           "of the with entry trax.line(log_id): trax.word(line_id); for example with: [{ ref: "
           "trax.log(metadata_id), with: [{ ref: trax.line(log_id), with: [trax.word(line_id)] }] }]");
    assert_int_equal(w->findings.errors, 1);
}

static void composite_keys_match_by_pairs(void **state)
{
    struct world *w = *state;
    struct table *inbox = add_table(w, "public", "inbox", "tenant, id, end_at", "tenant, id");
    struct table *outbox = add_table(w, "public", "outbox", "id, inbox_id, tenant", "id");
    add_fkey(w, outbox, "inbox_id, tenant", inbox, "id, tenant", ON_DELETE_RESTRICT);
    check(w, "table: inbox, expires: end_at, after: [\"outbox(tenant, inbox_id)\"]", false);
    expect_none(w, FINDING_ERROR);
}

static void a_composite_suggestion_survives_yaml(void **state)
{
    struct world *w = *state;
    struct table *inbox = add_table(w, "public", "inbox", "tenant, id, end_at", "tenant, id");
    struct table *outbox = add_table(w, "public", "out.box", "id, inbox_id, tenant", "id");
    add_fkey(w, outbox, "inbox_id, tenant", inbox, "id, tenant", ON_DELETE_RESTRICT);
    check(w, "table: inbox, expires: end_at", false);
    expect(w, FINDING_ERROR, "public.\"out.box\"(inbox_id, tenant) refers to public.inbox",
           "with: ['public.\"out.box\"(inbox_id, tenant)']");
}

/* --- orphans ------------------------------------------------------------------------------------------ */

static struct table *add_tasks(struct world *w)
{
    add_table(w, "public", "task", "id, doc_id, up_at", "id");
    add_table(w, "public", "part", "id, task_id", "id");
    return add_table(w, "public", "doc", "id, state", "id");
}

#define TASK(more) "table: task, orphan: { of: doc(id), by: doc_id" more " }, age: up_at"
#define UNMATCHED  ", matching: { state: open }, delete_when: deleted_or_unmatched"

static void a_source_is_read_by_an_index(void **state)
{
    struct world *w = *state;
    struct table *doc = add_tasks(w);
    check(w, TASK(""), true);
    expect(w, FINDING_WARNING,
           "no index of public.doc leads with (id): to find the source of a row the whole table is read",
           "CREATE INDEX CONCURRENTLY ON public.doc (id)");
    add_index(w, doc, "id", NULL);
    check(w, TASK(""), true);
    expect_none(w, FINDING_WARNING); /* none on up_at is missed either */
}

static void a_later_source_saves_nothing(void **state)
{
    struct world *w = *state;
    struct table *doc = add_tasks(w);
    check(w, TASK(""), false);
    expect(w, FINDING_NOTE, "(doc_id) of public.task has no foreign key to public.doc: a source that", "");
    add_fkey(w, w->facts->tables[0], "doc_id", doc, "id", ON_DELETE_NO_ACTION);
    check(w, TASK(""), false);
    expect(w, FINDING_NOTE, "none can be an orphan", "deleted_or_unmatched");
    check(w, TASK(UNMATCHED), false);
    expect_none(w, FINDING_NOTE);
    check(w, TASK(", delete_when: never"), false);
    expect(w, FINDING_NOTE, "nothing is ever due", "");
    expect_none(w, FINDING_ERROR);
}

static void a_source_must_be_readable(void **state)
{
    struct world *w = *state;
    struct table *doc = add_tasks(w);
    doc->may_update = doc->may_delete = false;
    check(w, TASK(""), false);
    expect_none(w, FINDING_ERROR);
    check(w, TASK(UNMATCHED), false);
    expect(w, FINDING_ERROR, "no right to UPDATE on public.doc (locking rows takes UPDATE)",
           "GRANT UPDATE ON public.doc TO");
    doc->part_of = "public.docs";
    check(w, TASK(""), false);
    expect(w, FINDING_ERROR, "the source public.doc is a part of public.docs", "whole table: public.docs");
    doc->part_of = NULL;
    doc->may_select = false;
    check(w, TASK(""), false);
    expect(w, FINDING_ERROR, "no right to SELECT on public.doc", "GRANT SELECT ON public.doc TO");
    doc->may_select = doc->rows_hidden = true;
    check(w, TASK(""), false);
    expect(w, FINDING_ERROR, "row security hides rows of public.doc", "BYPASSRLS");
}

static void a_policy_does_not_empty_its_source(void **state)
{
    struct world *w = *state;
    add_tasks(w);
    check(w, "table: task, orphan: { of: task(id), by: doc_id }, keep: now", false);
    expect(w, FINDING_ERROR, "the policy deletes rows of public.task, which is its source", "name a source");
    check(w, "table: task, orphan: { of: part(id), by: doc_id }, keep: now, with: [part(task_id)]", false);
    expect(w, FINDING_ERROR, "the policy deletes rows of public.part, which is its source", "name a source");
}

/* --- what rules a sweep out ---------------------------------------------------------------------------- */

static void a_server_may_rule_it_out(void **state)
{
    struct world *w = *state;
    add_trax(w, ON_DELETE_NO_ACTION);
    w->facts->refused = "the server logs statements";
    w->facts->refused_fix = "SET GLOBAL";
    check(w, BASE ", after: [trax.log(metadata_id)]", false);
    expect(w, FINDING_ERROR, "the server logs statements", "SET GLOBAL");
    assert_int_equal(w->findings.errors, 1);
}

static void an_engine_without_transactions_is_refused(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    struct table *other = add_table(w, "trax", "unrelated", "id", "id");
    w->facts->engine_fix = "ENGINE=InnoDB";
    other->unsafe_engine = "MyISAM"; /* nothing is done to it */
    check(w, BASE ", after: [trax.log(metadata_id)]", false);
    expect_none(w, FINDING_ERROR);
    w->facts->tables[1]->unsafe_engine = "Aria";
    check(w, BASE ", after: [trax.log(metadata_id)]", false);
    expect(w, FINDING_ERROR, "trax.log is kept by the storage engine Aria",
           "ALTER TABLE trax.log ENGINE=InnoDB");
    t->unsafe_engine = "MyISAM";
    check(w, BASE ", after: [trax.log(metadata_id)]", false);
    expect(w, FINDING_ERROR, "trax.metadata is kept by the storage engine MyISAM", "ENGINE=InnoDB");
}

static void foreign_keys_that_cannot_be_seen(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_HIDDEN);
    w->facts->sight_fix = "GRANT REFERENCES";
    w->facts->tables[1]->fkeys_seen = SIGHT_SOME; /* it loses no rows */
    check(w, BASE, false);
    expect(w, FINDING_ERROR, "an ON DELETE that is hidden: its rows may be deleted or changed silently",
           "with");
    assert_int_equal(w->findings.errors, 1);
    t->fkeys_seen = SIGHT_SCHEMA;
    check(w, BASE ", with: [trax.log(metadata_id)]", false);
    expect(w, FINDING_WARNING, "tables in other databases", "GRANT REFERENCES");
    expect(w, FINDING_ERROR, "this user sees only some tables of trax: another may refer to trax.log",
           "GRANT REFERENCES");
}

static void history_and_triggers_are_named(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    t->keeps_history = t->delete_hooks = true;
    t->hooks = "one, two";
    check(w, BASE ", after: [trax.log(metadata_id)]", false);
    expect(w, FINDING_WARNING, "trax.metadata is system-versioned", "DELETE HISTORY");
    expect(w, FINDING_NOTE, "triggers (one, two) of trax.metadata may keep a row", "");
    t->hooks_hidden = true;
    check(w, BASE ", after: [trax.log(metadata_id)]", false);
    expect(w, FINDING_NOTE, "cannot see whether there are any", "");
}

static void locking_may_need_no_right_to_update(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    w->facts->locking_takes_update = false;
    t->may_update = false;
    check(w, BASE ", after: [trax.log(metadata_id)]", false);
    expect_none(w, FINDING_ERROR);
}

/* --- access ------------------------------------------------------------------------------------------ */

static void privileges_follow_the_role(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    struct table *log = w->facts->tables[1];
    struct table *other = add_table(w, "trax", "Other", "id, a, b", "id");
    t->may_delete = t->may_update = false;
    log->may_delete = log->may_update = false;
    other->may_delete = other->may_update = false;
    check(w, BASE ", after: [trax.log(metadata_id)], detach: [trax.Other(a)]", false);
    expect(w, FINDING_ERROR, "this user has no right to DELETE, UPDATE on trax.metadata",
           "GRANT DELETE, UPDATE ON trax.metadata TO ");
    expect(w, FINDING_ERROR, "this user has no right to UPDATE on trax.Other",
           "GRANT UPDATE ON trax.\"Other\" TO ");
    assert_int_equal(w->findings.errors, 2);
}

static void hidden_rows_are_an_error(void **state)
{
    struct world *w = *state;
    add_trax(w, ON_DELETE_NO_ACTION);
    w->facts->tables[1]->rows_hidden = true;
    check(w, BASE ", after: [trax.log(metadata_id)]", false);
    expect(w, FINDING_ERROR, "row security hides rows of trax.log from this user", "BYPASSRLS");
}

static void triggers_and_nullable_keys_are_notes(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    struct table *log = w->facts->tables[1];
    t->key_may_be_null = true;
    t->update_hooks = true; /* the table is not detached */
    log->update_hooks = true;
    check(w, BASE ", detach: [trax.log(metadata_id)]", false);
    expect(w, FINDING_NOTE, "the key of trax.metadata may be NULL", "NOT NULL");
    expect(w, FINDING_NOTE, "triggers or rules of trax.log may keep a row from being detached", "");
    assert_int_equal(w->findings.n, 2);
}

static void delete_triggers_are_a_note(void **state)
{
    struct world *w = *state;
    add_trax(w, ON_DELETE_NO_ACTION);
    w->facts->tables[1]->delete_hooks = true;
    check(w, BASE ", with: [trax.log(metadata_id)]", false);
    expect(w, FINDING_NOTE, "triggers or rules of trax.log may keep a row from being deleted", "");
    assert_int_equal(w->findings.n, 1);
}

/* --- references ----------------------------------------------------------------------------------------- */

static void a_reference_without_a_foreign_key_is_a_note(void **state)
{
    struct world *w = *state;
    add_table(w, "trax", "metadata", "id, parent_id, start_at, state, kind", "id");
    add_table(w, "trax", "log", "id, metadata_id", "id");
    check(w, BASE ", with: [trax.log(metadata_id)]", false);
    expect(w, FINDING_NOTE, "trax.log(metadata_id) has no foreign key to trax.metadata", "foreign key");
    assert_int_equal(w->findings.list[0].at.line, 3);
    assert_true(w->findings.list[0].at.column > 10);
    expect_none(w, FINDING_ERROR);
}

static void collations_must_agree(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    struct table *log = w->facts->tables[1];
    log->columns[1].collation = "NOCASE";
    check(w, BASE ", with: [trax.log(metadata_id)]", false);
    expect(w, FINDING_ERROR,
           "metadata_id has the collation NOCASE, but id of trax.metadata has the default collation",
           "same collation");
    assert_ptr_equal(w->plan->root.table, t);
}

static void equal_collations_agree(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    w->facts->tables[1]->columns[1].collation = "C";
    t->columns[0].collation = "C";
    check(w, BASE ", with: [trax.log(metadata_id)]", false);
    expect_none(w, FINDING_ERROR);
}

static void a_target_should_be_unique(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    check(
        w,
        BASE
        ", with: [trax.log(metadata_id), trax.log(id) -> (parent_id)], after: [trax.log(id) -> (parent_id)]",
        false);
    expect(w, FINDING_WARNING, "trax.log(id) points at (parent_id) of trax.metadata, which is not unique",
           "unique key");
    size_t warnings = 0;
    for (size_t i = 0; i < w->findings.n; i++)
        warnings += w->findings.list[i].level == FINDING_WARNING;
    assert_int_equal(warnings, 1); /* waiting for it is safe */
    add_index(w, t, "parent_id", NULL);
    t->indexes[0].unique = true;
    w->findings.n = 0;
    check_plan(w->plan, false, &w->findings);
    expect_none(w, FINDING_WARNING);
}

/* --- indexes -------------------------------------------------------------------------------------------- */

#define DUE "serves the search by start_at"

static void the_due_query_wants_an_index(void **state)
{
    struct world *w = *state;
    add_table(w, "trax", "metadata", "id, start_at, state, kind", "id");
    check(w, BASE ", rows: { state: [a, b] }", true);
    expect(w, FINDING_WARNING, "no index of trax.metadata " DUE,
           "CREATE INDEX CONCURRENTLY ON trax.metadata (start_at, id)");
    expect_none(w, FINDING_ERROR);
}

static void single_values_lead_the_suggested_index(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "trax", "metadata", "id, start_at, state, kind", "id");
    t->kind = KIND_PARTITIONED;
    check(w, BASE ", rows: { state: done, kind: 'x*' }", true);
    expect(w, FINDING_WARNING, DUE, "CREATE INDEX ON trax.metadata (state, start_at, id)");
}

static void odd_names_are_quoted_and_sqlite_names_its_index(void **state)
{
    struct world *w = *state;
    w->facts->create_index = "CREATE INDEX";
    w->facts->names_indexes = true;
    add_table(w, NULL, "order", "Id, odd \" name_at", "Id");
    check(w, "table: order, expires: 'odd \" name_at'", true);
    expect(w, FINDING_WARNING, "serves the search by odd \" name_at",
           "CREATE INDEX \"order_odd \"\" name_at_Id\" ON \"order\" (\"odd \"\" name_at\", \"Id\")");
}

static void mariadb_has_quotes_and_limits_of_its_own(void **state)
{
    struct world *w = *state;
    w->facts->create_index = "CREATE INDEX";
    w->facts->names_indexes = w->facts->backticks = true;
    w->facts->end_of_index = " LOCK=NONE";
    struct table *t = add_table(w, "app", "rank", "id, at_at, state, note", "id");
    check(w, "table: app.rank, expires: at_at, rows: { state: done }", true);
    expect(w, FINDING_WARNING, "serves the search by at_at",
           "CREATE INDEX rank_state_at_at_id ON app.`rank` (state, at_at, id) LOCK=NONE");
    t->columns[2].cut_in_indexes = true; /* left out */
    check(w, "table: app.rank, expires: at_at, rows: { state: done }", true);
    expect(w, FINDING_WARNING, "serves the search by at_at", "(at_at, id)");
    t->columns[1].cut_in_indexes = true;
    check(w, "table: app.rank, expires: at_at", true);
    expect(w, FINDING_WARNING, "serves the search by at_at", "make at_at shorter");
    t->columns[1].cut_in_indexes = false;
    t->name = "a_name_that_is_fifty_letters_long_or_a_little_more_x";
    check(w,
          "table: app.a_name_that_is_fifty_letters_long_or_a_little_more_x, expires: at_at, rows: { state: "
          "done }",
          true);
    expect(w, FINDING_WARNING, "serves the search by at_at",
           "CREATE INDEX a_name_that_is_fifty_letters_long_or_a_little_more_x_at_at_id ON");
}

static void check_served(void **state, const char *index, const char *predicate, bool served)
{
    struct world *w = *state;
    struct table *t = add_table(w, "trax", "metadata", "id, start_at, state, kind", "id");
    add_index(w, t, index, predicate);
    check(w, BASE ", rows: { state: [a, b], kind: 'x*' }", true);
    assert_int_equal(find(w, FINDING_WARNING, DUE) == NULL, served);
}

static void an_index_on_the_time_serves(void **state)
{
    check_served(state, "start_at", NULL, true);
}

static void an_index_on_the_states_and_the_time_serves(void **state)
{
    check_served(state, "state, start_at, id", NULL, true);
}

static void an_index_on_the_time_without_nulls_serves(void **state)
{
    check_served(state, "start_at", "(start_at IS NOT NULL)", true);
}

static const char *better(struct world *w, const char *keys)
{
    struct survey s = survey_of(make_plan(w, keys, 0), &w->findings);
    return better_index_words(&s);
}

/* What to do where the database does not use the index that is there. */
static void a_better_index_is_named_unless_it_is_there(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "trax", "metadata", "id, start_at, state, kind", "id");
    w->facts->create_index = "CREATE INDEX";
    add_index(w, t, "start_at, kind", NULL);
    add_index(w, t, "id, start_at", NULL);
    assert_string_equal(better(w, BASE), "CREATE INDEX ON trax.metadata (start_at, id)");
    assert_string_equal(better(w, BASE ", rows: { state: a }"),
                        "CREATE INDEX ON trax.metadata (state, start_at, id)");
    add_index(w, t, "start_at, id, kind", NULL);
    assert_null(better(w, BASE));
    assert_non_null(better(w, BASE ", rows: { state: a }"));
}

static void another_partial_index_does_not_serve(void **state)
{
    check_served(state, "start_at", "(state = 'a'::text)", false);
}

static void an_index_behind_a_free_column_does_not_serve(void **state)
{
    check_served(state, "id, start_at", NULL, false);
}

static void an_index_behind_a_prefix_does_not_serve(void **state)
{
    check_served(state, "kind, start_at", NULL, false);
}

static void dependents_want_an_index(void **state)
{
    struct world *w = *state;
    struct table *t = add_trax(w, ON_DELETE_NO_ACTION);
    add_index(w, t, "start_at", NULL);
    check(w, BASE ", with: [trax.log(metadata_id)]", true);
    expect(w, FINDING_WARNING,
           "no index of trax.log leads with (metadata_id): for each row of trax.metadata that is deleted",
           "CREATE INDEX CONCURRENTLY ON trax.log (metadata_id)");
    assert_int_equal(w->findings.n, 1);
}

static void indexes_are_looked_at_only_when_thorough(void **state)
{
    struct world *w = *state;
    add_trax(w, ON_DELETE_NO_ACTION);
    check(w, BASE ", with: [trax.log(metadata_id)]", false);
    assert_int_equal(w->findings.n, 0);
}

#define RANKED "table: trax.metadata, cap: { rows: 5, per: [state, kind], newest: [start_at, id] }"

static void groups_want_an_index(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "trax", "metadata", "id, start_at, state, kind, x", "id");
    add_index(w, t, "state, start_at, id", NULL);
    add_index(w, t, "start_at, state, kind, id", NULL);
    add_index(w, t, "kind, state, id, start_at", NULL);
    check(w, RANKED ", rows: { x: 1 }", true);
    expect(w, FINDING_WARNING, "no index of trax.metadata serves the order (x, state, kind, start_at, id)",
           "CREATE INDEX CONCURRENTLY ON trax.metadata (x, state, kind, start_at, id)");
}

static void check_ranked(void **state, const char *index, const char *more)
{
    struct world *w = *state;
    struct table *t = add_table(w, "trax", "metadata", "id, start_at, state, kind, x", "id");
    add_index(w, t, index, NULL);
    AUTO(text_release) struct text keys = {0};
    text_addf(&keys, RANKED "%s", more);
    check(w, text_str(&keys), true);
    expect_none(w, FINDING_WARNING);
}

static void groups_in_any_order_are_served(void **state)
{
    check_ranked(state, "kind, state, start_at, id, x", "");
}

static void single_values_may_stand_among_the_groups(void **state)
{
    check_ranked(state, "state, x, kind, start_at, id", ", rows: { x: 1 }");
}

static void several_ages_walk_the_key(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "trax", "metadata", "id, start_at, end_at", "id");
    check(w, "table: trax.metadata, age: [start_at, end_at], keep: 1h", true);
    expect(w, FINDING_NOTE, "no index can serve the latest of several age columns",
           "CREATE INDEX CONCURRENTLY ON trax.metadata (id)");
    add_index(w, t, "id", NULL);
    w->findings.n = 0;
    check_plan(w->plan, true, &w->findings);
    assert_int_equal(w->findings.n, 0);
}

/* --- coverage ---------------------------------------------------------------------------------------------
 */

static void judge(struct world *w, const char *yaml, const char *tables, bool strict)
{
    size_t n;
    const char **names = words(w->arena, tables, &n);
    struct table_name *list = arena_alloc(w->arena, (n + 1) * sizeof(*list));
    struct err e = ERR_INIT;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(table_name_parse(w->arena, names[i], &list[i], &e), 0);
    parse(w, yaml);
    coverage_judge(w->contract, w->facts, list, n, strict, &w->findings);
}

#define COVERED                                                                                              \
    "store: sqlite:x\n"                                                                                      \
    "policies:\n"                                                                                            \
    "  p:\n"                                                                                                 \
    "    table: jobs\n"                                                                                      \
    "    expires: end_at\n"                                                                                  \
    "    with: [{ ref: step(job_id), with: [trax.word(step_id)] }]\n"                                        \
    "    detach: [loose(job_id)]\n"                                                                          \
    "purges:\n"                                                                                              \
    "  s: { erases: [kv(id)] }\n"                                                                            \
    "unbounded:\n"                                                                                           \
    "  cache: one row\n"                                                                                     \
    "  outbox.sent: deleted inline\n"                                                                        \
    "  trax.fixed: fixed\n"                                                                                  \
    "  trax.parts.old: dropped\n"

static void what_the_contract_names_is_covered(void **state)
{
    struct world *w = *state;
    judge(w, COVERED,
          "public.jobs, public.step, trax.word, public.kv, public.cache, public.outbox, trax.fixed, "
          "trax.parts, public.lapse_run",
          true);
    assert_int_equal(w->findings.n, 0);
}

static void other_tables_are_not_covered(void **state)
{
    struct world *w = *state;
    judge(w, COVERED,
          "public.jobs, public.loose, public.word, public.cache, public.outbox, trax.fixed, trax.parts, "
          "trax.jobs",
          false);
    expect(w, FINDING_NOTE, "table 'public.loose' has no policy and no unbounded line",
           "add a policy, or unbounded: { public.loose: why it cannot grow }");
    expect(w, FINDING_NOTE, "table 'public.word' has", "");
    expect(w, FINDING_NOTE, "table 'trax.jobs' has", "");
    assert_int_equal(w->findings.n, 3);
}

static void a_bare_name_covers_another_schema_if_nothing_nearer_has_it(void **state)
{
    struct world *w = *state;
    judge(w, COVERED, "trax.jobs, public.cache, public.outbox, trax.fixed, trax.parts", false);
    assert_int_equal(w->findings.n, 0);
}

#define ONE "store: sqlite:x\npolicies: { p: { table: jobs, expires: end_at } }\n"

static void strict_makes_errors(void **state)
{
    struct world *w = *state;
    judge(w, ONE, "jobs, x", true);
    expect(w, FINDING_ERROR, "table 'x' has no policy", "unbounded: { x: why");
}

static void unbounded_lines_must_name_a_table(void **state)
{
    struct world *w = *state;
    judge(w, ONE "unbounded: { chanel_outbox.sent: inline }\n", "jobs, channel_outbox", false);
    expect(w, FINDING_WARNING, "unbounded 'chanel_outbox.sent' names no table",
           "did you mean 'channel_outbox'?");
}

/* --- order
 * -------------------------------------------------------------------------------------------------- */

static void findings_are_ordered(void **state)
{
    struct world *w = *state;
    struct findings *f = &w->findings;
    findings_add(f, FINDING_NOTE, NULL, (struct place){0}, "", "g");
    findings_add(f, FINDING_NOTE, NULL, (struct place){9, 1}, "", "f");
    findings_add(f, FINDING_WARNING, NULL, (struct place){1, 1}, "", "e");
    findings_add(f, FINDING_ERROR, NULL, (struct place){5, 7}, "", "c");
    findings_add(f, FINDING_ERROR, NULL, (struct place){5, 7}, "", "d");
    findings_add(f, FINDING_ERROR, NULL, (struct place){5, 2}, "", "b");
    findings_add(f, FINDING_ERROR, NULL, (struct place){4, 9}, "", "a");
    findings_sort(f);
    for (size_t i = 0; i < f->n; i++)
        assert_int_equal(f->list[i].what[0], 'a' + (int)i);
}

/* --- partitions ----------------------------------------------------------------------------------- */

static void partitions_that_can_be_dropped(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "trax", "metadata", "id, start_at", "id");
    t->ranges = t->owned = true;
    t->owner = "boss";
    check(w, BASE ", partitions: drop", false);
    expect_none(w, FINDING_ERROR);
    expect_none(w, FINDING_WARNING);
    t->owned = false;
    check(w, BASE ", partitions: drop", false);
    expect(w, FINDING_ERROR, "trax.metadata belongs to boss: only its owner", "GRANT boss TO this user");
    assert_true(find(w, FINDING_ERROR, "belongs to boss")->at.column > 50); /* of the key */
    t->ranges = false;
    check(w, BASE ", partitions: drop", false);
    expect(w, FINDING_ERROR, "trax.metadata has no partitions by range", "take the key out");
    w->facts->drops_not = "there are none";
    check(w, BASE ", partitions: drop", false);
    expect(w, FINDING_ERROR, "partitions: drop cannot be done here: there are none", "take the key out");
    check(w, BASE, false);
    expect_none(w, FINDING_ERROR);
}

static void partitions_that_never_are(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "trax", "metadata", "id, start_at", "id");
    t->ranges = t->owned = t->delete_hooks = true;
    check(w, BASE ", partitions: drop", false);
    expect(w, FINDING_WARNING, "no partition of trax.metadata is ever dropped: trax.metadata has triggers",
           "take the key out");
    expect_none(w, FINDING_ERROR);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(partitions_that_can_be_dropped),
        TEST(partitions_that_never_are),
        TEST(a_source_is_read_by_an_index),
        TEST(a_later_source_saves_nothing),
        TEST(a_source_must_be_readable),
        TEST(a_policy_does_not_empty_its_source),
        TEST(a_foreign_key_named_nowhere_is_an_error),
        TEST(each_action_has_its_words),
        TEST(with_detach_and_after_cover),
        TEST(a_narrowed_after_does_not_cover),
        TEST(a_with_entry_with_where_covers),
        TEST(another_column_or_target_does_not_cover),
        TEST(a_subtree_covers_a_self_reference),
        TEST(a_self_reference_named_nowhere_is_an_error),
        TEST(every_node_is_judged_on_its_own),
        TEST(composite_keys_match_by_pairs),
        TEST(a_composite_suggestion_survives_yaml),
        TEST(a_server_may_rule_it_out),
        TEST(an_engine_without_transactions_is_refused),
        TEST(foreign_keys_that_cannot_be_seen),
        TEST(history_and_triggers_are_named),
        TEST(locking_may_need_no_right_to_update),
        TEST(mariadb_has_quotes_and_limits_of_its_own),
        TEST(privileges_follow_the_role),
        TEST(hidden_rows_are_an_error),
        TEST(triggers_and_nullable_keys_are_notes),
        TEST(delete_triggers_are_a_note),
        TEST(a_reference_without_a_foreign_key_is_a_note),
        TEST(collations_must_agree),
        TEST(equal_collations_agree),
        TEST(a_target_should_be_unique),
        TEST(the_due_query_wants_an_index),
        TEST(single_values_lead_the_suggested_index),
        TEST(odd_names_are_quoted_and_sqlite_names_its_index),
        TEST(an_index_on_the_time_serves),
        TEST(an_index_on_the_states_and_the_time_serves),
        TEST(an_index_on_the_time_without_nulls_serves),
        TEST(a_better_index_is_named_unless_it_is_there),
        TEST(another_partial_index_does_not_serve),
        TEST(an_index_behind_a_free_column_does_not_serve),
        TEST(an_index_behind_a_prefix_does_not_serve),
        TEST(dependents_want_an_index),
        TEST(indexes_are_looked_at_only_when_thorough),
        TEST(groups_want_an_index),
        TEST(groups_in_any_order_are_served),
        TEST(single_values_may_stand_among_the_groups),
        TEST(several_ages_walk_the_key),
        TEST(what_the_contract_names_is_covered),
        TEST(other_tables_are_not_covered),
        TEST(a_bare_name_covers_another_schema_if_nothing_nearer_has_it),
        TEST(strict_makes_errors),
        TEST(unbounded_lines_must_name_a_table),
        TEST(findings_are_ordered),
    };
    return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
