/* own_runs: the history in an SQL database: a row per tick of a scheduler. See store/own.h. */
#include <stdio.h>
#include <string.h>

#include "store/sql/own_internal.h"

#define COLUMNS                                                                                              \
    "own.id, own.scheduler, own.source, own.owner, {us started_at}, {us ended_at}, own.outcome, "            \
    "own.rows_gone, own.skipped, own.unknown, own.batches, own.errors, own.error, own.counts, "
#define SINCE_WHO  "{us cutoff}, own.contract, own.policies"
#define BEFORE_WHO "NULL, NULL, NULL"
/* A query of both kinds of tables: those of before, and since. */
#define BOTH(before, after)                                                                                  \
    {                                                                                                        \
        before COLUMNS BEFORE_WHO after, before COLUMNS SINCE_WHO after                                      \
    }

static bool keeps_who(const struct store *s)
{
    return s->own.version >= OWN_SINCE_WHO;
}

static struct own_arg name(const char *text)
{
    return (struct own_arg){ARG_NAME, .name = text, .null = !text};
}

static struct own_arg count(int64_t number)
{
    return (struct own_arg){ARG_COUNT, .number = number};
}

/* Whoever wrote it and heard no answer writes it again, whether it is there or not. Who runs it, for whom and
 * since when does not change. */
int sqlown_run_put(struct store *store, const struct run_row *row, struct err *e)
{
    const struct own_arg args[] = {
        name(row->id),
        name(row->scheduler),
        name(row->source),
        name(row->owner),
        {ARG_TIME, .number = row->started},
        {ARG_TIME, .number = row->ended_at, .null = !row->ended},
        name(row->outcome),
        count(row->rows),
        count(row->skipped),
        count(row->unknown),
        count(row->batches),
        count(row->errors),
        name(row->error),
        name(row->counts),
        {ARG_TIME, .number = row->cutoff, .null = !row->has_cutoff},
        name(row->contract),
        name(row->policies),
    };
    struct own_change changes[] = {
        {"UPDATE {lapse_run} SET ended_at = {6}, outcome = {7}, rows_gone = {8}, skipped = {9}, "
         "unknown = {10}, batches = {11}, errors = {12}, error = {13}, counts = {14} WHERE id {=} {1}",
         args},
        {"INSERT INTO {lapse_run} (id, scheduler, source, owner, started_at, ended_at, outcome, rows_gone, "
         "skipped, unknown, batches, errors, error, counts) "
         "SELECT {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}{none} "
         "WHERE NOT EXISTS (SELECT 1 FROM {lapse_run} WHERE id {=} {1})",
         args},
    };
    struct own_change since_who[] = {
        {"UPDATE {lapse_run} SET ended_at = {6}, outcome = {7}, rows_gone = {8}, skipped = {9}, "
         "unknown = {10}, batches = {11}, errors = {12}, error = {13}, counts = {14}, cutoff = {15}, "
         "contract = {16}, policies = {17} WHERE id {=} {1}",
         args},
        {"INSERT INTO {lapse_run} (id, scheduler, source, owner, started_at, ended_at, outcome, rows_gone, "
         "skipped, unknown, batches, errors, error, counts, cutoff, contract, policies) "
         "SELECT {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}, {16}, "
         "{17}{none} WHERE NOT EXISTS (SELECT 1 FROM {lapse_run} WHERE id {=} {1})",
         args},
    };
    struct own_change *list = keeps_who(store) ? since_who : changes;
    return own_change((struct sql_store *)store, list, COUNT_OF(changes), e) < 0
               ? err_wrap(e, "writing lapse_run")
               : 0;
}

static const char *text_of(struct arena *a, const struct value *v)
{
    return v->kind == VALUE_TEXT ? arena_strdup(a, v->text) : "";
}

static void copy_row(struct arena *a, const struct value *v, struct run_row *ret)
{
    *ret = (struct run_row){.scheduler = text_of(a, &v[1]),
                            .source = text_of(a, &v[2]),
                            .owner = text_of(a, &v[3]),
                            .started = own_number(&v[4]),
                            .ended = v[5].kind != VALUE_NULL,
                            .ended_at = own_number(&v[5]),
                            .outcome = text_of(a, &v[6]),
                            .rows = own_number(&v[7]),
                            .skipped = own_number(&v[8]),
                            .unknown = own_number(&v[9]),
                            .batches = own_number(&v[10]),
                            .errors = own_number(&v[11]),
                            .error = v[12].kind == VALUE_NULL ? NULL : text_of(a, &v[12]),
                            .counts = text_of(a, &v[13]),
                            .has_cutoff = v[14].kind != VALUE_NULL,
                            .cutoff = own_number(&v[14]),
                            .contract = v[15].kind == VALUE_NULL ? NULL : text_of(a, &v[15]),
                            .policies = v[16].kind == VALUE_NULL ? NULL : text_of(a, &v[16])};
    snprintf(ret->id, sizeof(ret->id), "%s", text_of(a, &v[0]));
}

static void copy_rows(const struct rows *found, struct run_rows *ret)
{
    *ret = (struct run_rows){.arena = arena_new()};
    ret->list = arena_alloc(ret->arena, (found->n_rows + 1) * sizeof(*ret->list));
    for (; ret->n < found->n_rows; ret->n++)
        copy_row(ret->arena, rows_at(found, ret->n), &ret->list[ret->n]);
}

int sqlown_runs(struct store *store, const char *scheduler, int64_t most, struct run_rows *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const struct own_arg args[] = {count(most), name(scheduler)};
    static const char *const of_one[] =
        BOTH("SELECT ", " FROM {lapse_run} AS own WHERE own.scheduler {=} {2} "
                        "ORDER BY own.scheduler DESC, own.started_at DESC, own.id DESC LIMIT {1}"),
                             *const of_all[] =
                                 BOTH("SELECT ", " FROM {lapse_run} AS own "
                                                 "ORDER BY own.started_at DESC, own.id DESC LIMIT {1}");
    const char *sql = (scheduler ? of_one : of_all)[keeps_who(store)];
    if (own_look_up((struct sql_store *)store, sql, args, &found, e) < 0)
        return err_wrap(e, "reading lapse_run");
    copy_rows(&found, ret);
    return 0;
}

/* Two that began in the same microsecond are both found: the last by id is the newest, as everywhere. */
static void drop_ties(struct run_rows *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (n && strcmp(r->list[n - 1].scheduler, r->list[i].scheduler) == 0)
            r->list[n - 1] = r->list[i];
        else
            r->list[n++] = r->list[i];
    r->n = n;
}

int sqlown_last_runs(struct store *store, bool daemon, struct run_rows *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    static const char *const
        by_daemon[] =
            BOTH("SELECT ", " FROM {lapse_run} AS own JOIN (SELECT scheduler AS whose, "
                            "{.}max(started_at) AS last FROM {lapse_run} WHERE source {=} 'daemon' GROUP BY "
                            "scheduler) AS newest ON own.scheduler {=} newest.whose AND own.started_at {=} "
                            "newest.last WHERE own.source {=} 'daemon' ORDER BY own.scheduler, own.id"),
        *const by_any[] =
            BOTH("SELECT ", " FROM {lapse_run} AS own JOIN (SELECT scheduler AS whose, "
                            "{.}max(started_at) AS last FROM {lapse_run} GROUP BY scheduler) "
                            "AS newest ON own.scheduler {=} newest.whose AND own.started_at {=} newest.last "
                            "ORDER BY own.scheduler, own.id");
    const char *sql = (daemon ? by_daemon : by_any)[keeps_who(store)];
    if (own_look_up((struct sql_store *)store, sql, NULL, &found, e) < 0)
        return err_wrap(e, "reading lapse_run");
    copy_rows(&found, ret);
    drop_ties(ret);
    return 0;
}

static struct run_total *total_of(struct run_totals *all, const char *scheduler)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->list[i].scheduler, scheduler) == 0)
            return &all->list[i];
    return NULL;
}

static int read_errors(struct store *store, struct run_totals *all, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (own_look_up((struct sql_store *)store,
                    "SELECT own.scheduler, own.error, {us started_at} FROM {lapse_run} AS own JOIN "
                    "(SELECT scheduler AS whose, {.}max(started_at) AS last FROM {lapse_run} "
                    "WHERE error IS NOT NULL GROUP BY scheduler) AS newest "
                    "ON own.scheduler {=} newest.whose AND own.started_at {=} newest.last "
                    "WHERE own.error IS NOT NULL ORDER BY own.scheduler, own.id",
                    NULL, &found, e) < 0)
        return -1;
    for (size_t i = 0; i < found.n_rows; i++) {
        const struct value *v = rows_at(&found, i);
        struct run_total *t = total_of(all, text_of(all->arena, &v[0]));
        if (!t) /* it came after the sums were made */
            continue;
        t->error = text_of(all->arena, &v[1]);
        t->error_at = own_number(&v[2]);
    }
    return 0;
}

int sqlown_run_totals(struct store *store, struct run_totals *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (own_look_up((struct sql_store *)store,
                    "SELECT scheduler, {.}count(*), {.}sum(rows_gone), {.}sum(skipped), {.}sum(unknown), "
                    "{.}sum(errors), "
                    "{.}min({us started_at}) FROM {lapse_run} AS own GROUP BY scheduler ORDER BY scheduler",
                    NULL, &found, e) < 0)
        return err_wrap(e, "reading lapse_run");
    AUTO(run_totals_release) struct run_totals all = {.arena = arena_new(), .n = found.n_rows};
    all.list = arena_alloc(all.arena, (all.n + 1) * sizeof(*all.list));
    for (size_t i = 0; i < all.n; i++) {
        const struct value *v = rows_at(&found, i);
        all.list[i] = (struct run_total){.scheduler = text_of(all.arena, &v[0]),
                                         .runs = own_number(&v[1]),
                                         .rows = own_number(&v[2]),
                                         .skipped = own_number(&v[3]),
                                         .unknown = own_number(&v[4]),
                                         .errors = own_number(&v[5]),
                                         .since = own_number(&v[6])};
    }
    if (read_errors(store, &all, e) < 0)
        return err_wrap(e, "reading lapse_run");
    *ret = all;
    all = (struct run_totals){0};
    return 0;
}
