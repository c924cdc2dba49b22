/* sqlown_purge: purges in an SQL database: rows of lapse_purge, and the data they are about. See purges.h. */
#include <stdlib.h>
#include <string.h>

#include "sqlown_parts.h"

enum { REASONS_MOST = 1000, SPACES_MOST = 100 };
static const int64_t LOCK_US = 2 * US_PER_S, STATEMENT_US = 30 * US_PER_S;
/* Who holds a row of an instance may be about to cancel its purge, which waits for us: we give way long
 * before the server would look for a deadlock (after a second), and end the application's transaction for it.
 */
static const int64_t ROW_LOCK_US = 100 * US_PER_MS;
/* Between these lies every time that can be used. */
static const instant FIRST = INT64_C(-62135596800) * US_PER_S, LAST = INT64_C(253402300799) * US_PER_S;

static struct sql_store *of(struct store *s)
{
    return (struct sql_store *)s;
}

static struct own_arg name(const char *text)
{
    return (struct own_arg){ARG_NAME, .name = text, .null = !text};
}

static struct own_arg count(int64_t number)
{
    return (struct own_arg){ARG_COUNT, .number = number};
}

/* --- rows ------------------------------------------------------------------------------------------------
 */

#define COLUMNS                                                                                              \
    "own.id, own.space, own.instance, own.reason, {us scheduled_at}, {us purge_at}, {us retry_at}, "         \
    "{us parked_at}, own.attempts, own.error, CASE WHEN own.purge_at IS NULL THEN 0 ELSE 1 END + "           \
    "CASE WHEN own.retry_at IS NULL THEN 0 ELSE 2 END + CASE WHEN own.parked_at IS NULL THEN 0 ELSE 4 END"

static const char *text_of(struct arena *a, const struct value *v)
{
    return v->kind == VALUE_NULL ? NULL : arena_strndup(a, v->text ? v->text : "", v->text ? v->len : 0);
}

static struct purge_time time_of(const struct value *v, bool there)
{
    return (struct purge_time){there, there && v->kind != VALUE_NULL, own_number(v)};
}

static void push_row(struct purge_rows *to, const struct value *v)
{
    struct arena *a = to->arena;
    int64_t there = own_number(&v[10]);
    struct value instance = v[2];
    instance.text = text_of(a, &v[2]);
    to->list = arena_push(a, to->list, to->n, sizeof(*to->list));
    to->list[to->n++] = (struct purge_row){.id = own_number(&v[0]),
                                           .space = text_of(a, &v[1]),
                                           .instance = instance,
                                           .reason = text_of(a, &v[3]),
                                           .scheduled = time_of(&v[4], true),
                                           .at = time_of(&v[5], there & 1),
                                           .retry = time_of(&v[6], there & 2),
                                           .parked = time_of(&v[7], there & 4),
                                           .attempts = own_number(&v[8]),
                                           .error = text_of(a, &v[9])};
}

static void copy_rows(const struct rows *found, bool locked, struct purge_rows *ret)
{
    *ret = (struct purge_rows){.arena = arena_new()};
    for (size_t i = 0; i < found->n_rows; i++) {
        push_row(ret, rows_at(found, i));
        ret->list[i].locked = locked;
    }
}

static int read_rows(struct store *store, const char *sql, const struct own_arg *args, struct purge_rows *ret,
                     struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (own_look_up(of(store), sql, args, &found, e) < 0)
        return err_wrap(e, "reading lapse_purge");
    copy_rows(&found, false, ret);
    return 0;
}

static int of_instance(struct store *store, const char *space, const char *instance, struct purge_rows *ret,
                       struct err *e)
{
    const struct own_arg args[] = {name(space), name(instance)};
    return read_rows(store,
                     "SELECT " COLUMNS " FROM {lapse_purge} AS own "
                     "WHERE own.space = {1} AND own.instance = {2} ORDER BY own.scheduled_at, own.id",
                     args, ret, e);
}

static int list(struct store *store, const char *space, int64_t most, struct purge_rows *ret, struct err *e)
{
    const struct own_arg args[] = {count(most), name(space)};
    return read_rows(store,
                     space ? "SELECT " COLUMNS " FROM {lapse_purge} AS own WHERE own.space = {2} "
                             "ORDER BY own.id LIMIT {1}"
                           : "SELECT " COLUMNS " FROM {lapse_purge} AS own ORDER BY own.id LIMIT {1}",
                     args, ret, e);
}

static int pending(struct store *store, const char *space, int64_t most, int64_t *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const struct own_arg args[] = {name(space), count(most)};
    if (own_look_up(of(store),
                    "SELECT count(*) FROM (SELECT 1 FROM {lapse_purge} AS own "
                    "WHERE own.space = {1} LIMIT {2}) AS counted",
                    args, &found, e) < 0)
        return err_wrap(e, "counting lapse_purge");
    *ret = own_number(rows_at(&found, 0));
    return 0;
}

/* --- what there is ---------------------------------------------------------------------------------------
 */

/* Rows that wait for the delay of their reason. An index goes through them in this order, and each LIMIT 1 is
 * one look into it; `IS NULL` alone would not tell every engine that the order is the index's. */
#define BY_DELAY       "own.space = {1} AND own.parked_at IS NULL AND own.retry_at IS NULL AND own.purge_at IS NULL"
#define IN_ORDER       "ORDER BY own.space, own.parked_at, own.retry_at, own.purge_at, own.reason"
#define USABLE(column) "own." column " > {until 2} AND own." column " < {until 3}"

/* The reasons, each found by looking behind the one before it, and the earliest row of each. */
#define REASONS(behind)                                                                                      \
    "WITH RECURSIVE lapse_reason(reason) AS (SELECT * FROM (SELECT own.reason FROM {lapse_purge} AS own "    \
    "WHERE " BY_DELAY " AND own.reason " behind " {4} " IN_ORDER " LIMIT 1) AS lapse_first UNION ALL "       \
    "SELECT (SELECT own.reason FROM {lapse_purge} AS own WHERE " BY_DELAY                                    \
    " AND own.reason > lapse_reason.reason " IN_ORDER                                                        \
    " LIMIT 1) FROM lapse_reason WHERE lapse_reason.reason IS NOT NULL) "                                    \
    "SELECT lapse_reason.reason, (SELECT {us scheduled_at} FROM {lapse_purge} AS own WHERE " BY_DELAY        \
    " AND own.reason = lapse_reason.reason AND " USABLE(                                                     \
        "scheduled_at") " " IN_ORDER ", own.scheduled_at LIMIT 1) FROM lapse_reason WHERE "                  \
                        "lapse_reason.reason IS NOT NULL LIMIT {5}"

static const char without_reason[] =
    "SELECT (SELECT {us scheduled_at} FROM {lapse_purge} AS own WHERE " BY_DELAY
    " AND own.reason IS NULL AND " USABLE(
        "scheduled_at") " " IN_ORDER ", own.scheduled_at LIMIT 1), "
                        "(SELECT {us purge_at} FROM {lapse_purge} AS own WHERE own.space = {1} "
                        "AND own.parked_at IS NULL AND own.retry_at IS NULL AND " USABLE(
                            "purge_at") " ORDER BY own.space, own.parked_at, own.retry_at, own.purge_at "
                                        "LIMIT 1), "
                                        "(SELECT {us retry_at} FROM {lapse_purge} AS own WHERE own.space = "
                                        "{1} "
                                        "AND own.parked_at IS NULL AND " USABLE(
                                            "retry_at") " ORDER BY own.space, own.parked_at, own.retry_at "
                                                        "LIMIT 1)";

static void push_group(struct purge_groups *g, enum purge_wait wait, const struct value *reason,
                       const struct value *first)
{
    if (first->kind == VALUE_NULL)
        return;
    g->list = arena_push(g->arena, g->list, g->n, sizeof(*g->list));
    g->list[g->n++] =
        (struct purge_group){wait, reason ? text_of(g->arena, reason) : NULL, own_number(first)};
}

static int read_groups(struct sql_store *s, const char *space, const char *after, struct purge_groups *ret,
                       struct err *e)
{
    AUTO(rows_release) struct rows reasons = {0}, others = {0};
    const struct own_arg args[] = {name(space), count(FIRST), count(LAST), name(after ? after : ""),
                                   count(REASONS_MOST)};
    if (own_ask(s, after ? REASONS(">") : REASONS(">="), args, &reasons, e) < 0 ||
        own_ask(s, without_reason, args, &others, e) < 0)
        return -1;
    struct purge_groups g = {.arena = arena_new()};
    for (size_t i = 0; i < reasons.n_rows; i++)
        push_group(&g, PURGE_BY_REASON, &rows_at(&reasons, i)[0], &rows_at(&reasons, i)[1]);
    if (reasons.n_rows == REASONS_MOST)
        g.next = arena_strdup(g.arena, rows_at(&reasons, reasons.n_rows - 1)[0].text);
    for (int i = 0; i < 3; i++)
        push_group(&g, (enum purge_wait)i, NULL, &rows_at(&others, 0)[i]);
    *ret = g;
    return 0;
}

static int groups(struct store *store, const char *space, const char *after, struct purge_groups *ret,
                  struct err *e)
{
    struct sql_store *s = of(store);
    int r = s->engine->begin_read(s, STATEMENT_US, e);
    if (r == 0)
        r = read_groups(s, space, after, ret, e);
    s->engine->rollback(s);
    return r < 0 ? err_wrap(e, "reading lapse_purge") : 0;
}

static int spaces(struct store *store, struct purge_rows *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const struct own_arg args[] = {count(SPACES_MOST)};
    if (own_look_up(
            of(store),
            "WITH RECURSIVE lapse_space(space) AS (SELECT * FROM (SELECT own.space FROM {lapse_purge} "
            "AS own ORDER BY own.space LIMIT 1) AS lapse_first UNION ALL "
            "SELECT (SELECT own.space FROM {lapse_purge} AS own WHERE own.space > lapse_space.space "
            "ORDER BY own.space LIMIT 1) FROM lapse_space WHERE lapse_space.space IS NOT NULL) "
            "SELECT space FROM lapse_space WHERE space IS NOT NULL LIMIT {1}",
            args, &found, e) < 0)
        return err_wrap(e, "reading lapse_purge");
    *ret = (struct purge_rows){.arena = arena_new(), .n = found.n_rows};
    ret->list = arena_alloc(ret->arena, (ret->n + 1) * sizeof(*ret->list));
    for (size_t i = 0; i < ret->n; i++)
        ret->list[i].space = text_of(ret->arena, rows_at(&found, i));
    return 0;
}

/* --- by hand ---------------------------------------------------------------------------------------------
 */

static int schedule(struct store *store, const char *space, const char *instance, const char *reason,
                    int64_t delay_us, struct err *e)
{
    const struct own_arg args[] = {name(space), name(instance), name(reason), count(delay_us)};
    struct own_change c = {delay_us < 0 ? "INSERT INTO {lapse_purge} (space, instance, reason) "
                                          "VALUES ({1}, {2}, {3})"
                                        : "INSERT INTO {lapse_purge} (space, instance, reason, purge_at) "
                                          "VALUES ({1}, {2}, {3}, {later 4})",
                           args};
    return own_change(of(store), &c, 1, e) < 0 ? err_wrap(e, "scheduling the purge") : 0;
}

static int cancel(struct store *store, const char *space, const char *instance, int64_t *ret_rows,
                  struct err *e)
{
    const struct own_arg args[] = {name(space), name(instance)};
    struct own_change c = {"DELETE FROM {lapse_purge} WHERE space = {1} AND instance = {2}", args};
    if (own_change(of(store), &c, 1, e) < 0)
        return err_wrap(e, "cancelling the purge");
    *ret_rows = c.affected;
    return 0;
}

/* --- sets of rows and instances --------------------------------------------------------------------------
 */

/* What the sets of purges hold, as columns: their types decide how an engine reads them. */
static const struct column instance_column = {.name = "instance", .sql_type = "text", .type = TYPE_TEXT};
static const struct column id_column = {.name = "id", .sql_type = "bigint", .type = TYPE_INTEGER};

struct sets {
    struct sql_store *store;
    struct node *nodes; /* one per set: what it carries */
    const struct column **columns;
};

static void sets_release(struct sets *s)
{
    if (s->store)
        sql_store_release(s->store);
    free(s->nodes);
    free(s->columns);
}

static void sets_open(struct sets *s, struct sql_store *store, size_t n)
{
    sql_store_release(store);
    store->n_sets = n;
    store->sets = mem_alloc(n * sizeof(*store->sets));
    *s = (struct sets){store, mem_alloc(n * sizeof(*s->nodes)), mem_alloc(n * sizeof(*s->columns))};
}

static struct rows *sets_begin(struct sets *s, size_t set, const struct column *c)
{
    struct keyset *k = &s->store->sets[set];
    s->columns[set] = c;
    s->nodes[set] = (struct node){.carry = &s->columns[set], .n_carry = 1, .set = (int)set};
    k->node = &s->nodes[set];
    k->rows.n_columns = 1;
    return &k->rows;
}

static int sets_load(struct sets *s, size_t set, struct err *e)
{
    return s->store->engine->load_set(s->store, (int)set, e);
}

static void add_in_set(struct stmt *st, const struct sql_store *s, const struct column *c, int set)
{
    const size_t first = 0;
    s->engine->dialect->in_set(st, "own", &c, 1, set, &first, &c);
}

/* --- a batch ---------------------------------------------------------------------------------------------
 */

static int begin(struct store *store, struct err *e)
{
    struct sql_store *s = of(store);
    s->writing = true;
    int64_t lock_us = s->engine->dialect->locks_rows ? ROW_LOCK_US : LOCK_US;
    return s->engine->begin_write(s, lock_us, STATEMENT_US, e);
}

#define PICK(condition, order)                                                                               \
    "SELECT " COLUMNS                                                                                        \
    " FROM {lapse_purge} AS own WHERE own.space = {1} AND own.parked_at IS NULL AND " condition              \
    " ORDER BY own.space, own.parked_at, own.retry_at" order " LIMIT {3}{lock}"
#define UP_TO(column) "own." column " > {until 5} AND own." column " <= {until 2} AND {us " column "} <= {2}"

static const char *picking(const struct purge_group *g)
{
    switch (g->wait) {
    case PURGE_BY_TIME:
        return PICK("own.retry_at IS NULL AND " UP_TO("purge_at"), ", own.purge_at");
    case PURGE_BY_RETRY:
        return PICK(UP_TO("retry_at"), "");
    case PURGE_BY_REASON:
        break;
    }
    return g->reason ? PICK("own.retry_at IS NULL AND own.purge_at IS NULL AND own.reason = {4} AND " UP_TO(
                                "scheduled_at"),
                            ", own.purge_at, own.reason, own.scheduled_at")
                     : PICK("own.retry_at IS NULL AND own.purge_at IS NULL AND own.reason IS NULL AND " UP_TO(
                                "scheduled_at"),
                            ", own.purge_at, own.reason, own.scheduled_at");
}

static int pick(struct store *store, const char *space, const struct purge_group *g, instant until,
                int64_t most, struct purge_rows *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const struct own_arg args[] = {name(space), count(until), count(most), name(g->reason), count(FIRST)};
    if (own_ask(of(store), picking(g), args, &found, e) < 0)
        return err_wrap(e, "picking due purges");
    copy_rows(&found, true, ret);
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct ids {
    int64_t *list;
    size_t n;
};

static void ids_release(struct ids *i)
{
    free(i->list);
}

static bool ids_has(const struct ids *i, int64_t id)
{
    return i->n && bsearch(&id, i->list, i->n, sizeof(id), compare_ids);
}

static int compare_row_ids(const void *a, const void *b)
{
    return compare_ids(&((const struct purge_row *)a)->id, &((const struct purge_row *)b)->id);
}

/* Locks the rows of the family that are not yet, and notes which could be. What they say now counts: they may
 * have been changed since they were read. */
static int lock_rest(struct sets *sets, struct purge_rows *family, struct err *e)
{
    struct sql_store *s = sets->store;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    struct purge_rows now = {.arena = family->arena};
    const char *sql = "SELECT " COLUMNS " FROM {lapse_purge} AS own WHERE ";
    struct rows *set = sets_begin(sets, 1, &id_column);
    for (size_t i = 0; i < family->n; i++)
        if (!family->list[i].locked)
            rows_push(set, &(struct value){.kind = VALUE_INTEGER, .integer = family->list[i].id});
    if (!set->n_rows)
        return 0;
    own_write(&st, s, sql, strlen(sql), NULL);
    add_in_set(&st, s, &id_column, 1);
    s->engine->dialect->lock(&st, "own", LOCK_SKIP);
    if (sets_load(sets, 1, e) < 0 || s->engine->query(s, &st, &found, e) < 0)
        return -1;
    qsort(family->list, family->n, sizeof(*family->list), compare_row_ids);
    for (size_t i = 0; i < found.n_rows; i++) {
        push_row(&now, rows_at(&found, i));
        now.list[i].locked = true;
        struct purge_row *r = bsearch(&now.list[i], family->list, family->n, sizeof(*r), compare_row_ids);
        if (r && purge_compare(&r->instance, &now.list[i].instance) == 0 &&
            strcmp(r->space, now.list[i].space) == 0)
            *r = now.list[i];
    }
    return 0;
}

static int family(struct store *store, const char *space, const struct purge_rows *picked,
                  struct purge_rows *ret, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(sets_release) struct sets sets = {0};
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    AUTO(ids_release) struct ids ids = {.list = mem_alloc((picked->n + 1) * sizeof(*ids.list))};
    const struct own_arg args[] = {name(space)};
    const char *sql = "SELECT " COLUMNS " FROM {lapse_purge} AS own WHERE own.space = {1} AND ";
    sets_open(&sets, s, 2);
    struct rows *set = sets_begin(&sets, 0, &instance_column);
    for (; ids.n < picked->n; ids.n++) {
        rows_push(set, &picked->list[ids.n].instance);
        ids.list[ids.n] = picked->list[ids.n].id;
    }
    qsort(ids.list, ids.n, sizeof(*ids.list), compare_ids);
    own_write(&st, s, sql, strlen(sql), args);
    add_in_set(&st, s, &instance_column, 0);
    if (sets_load(&sets, 0, e) < 0 || s->engine->query(s, &st, &found, e) < 0)
        return err_wrap(e, "reading the purges of the same instances");
    copy_rows(&found, !s->engine->dialect->locks_rows, ret);
    for (size_t i = 0; i < ret->n; i++)
        ret->list[i].locked = ret->list[i].locked || ids_has(&ids, ret->list[i].id);
    return lock_rest(&sets, ret, e);
}

/* --- carrying out ----------------------------------------------------------------------------------------
 */

static int kept_by_hooks(const struct table *t, int64_t left, struct err *e)
{
    return left ? err_set(e, ERR_REFUSED, "%lld row%s of %s stayed: a trigger or a rule kept %s",
                          (long long)left, left == 1 ? "" : "s", t->print, left == 1 ? "it" : "them")
                : 0;
}

static int look_what_is_left(struct sql_store *s, const struct purge_plan *p, const struct erasing *x,
                             int set, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    if (!x->table->delete_hooks)
        return 0;
    sql_erase_left(&st, s->engine->dialect, p->now, x, set);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    return kept_by_hooks(x->table, own_number(rows_at(&found, 0)), e);
}

/* Rows that are given one by one mostly come together: the case of the one before is looked at first. */
static void count_gone(struct purge_cases *cases, const struct value *instance, int64_t n, size_t *last)
{
    if (*last >= cases->n || purge_compare(&cases->list[*last].rows[0].instance, instance) != 0) {
        const struct purge_case *c = purge_case_of(cases, instance);
        if (!c)
            return;
        *last = (size_t)(c - cases->list);
    }
    cases->list[*last].gone += n;
}

static int count_before(struct sql_store *s, const struct purge_plan *p, const struct erasing *x, int set,
                        struct purge_cases *cases, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    size_t last = cases->n;
    if (s->engine->dialect->locks_rows)
        return 0;
    sql_erase_count(&st, s->engine->dialect, p->now, x, set);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    for (size_t i = 0; i < found.n_rows; i++)
        count_gone(cases, &rows_at(&found, i)[0], own_number(&rows_at(&found, i)[1]), &last);
    return 0;
}

/* Every row that goes says whose it was, unless that is known from before. */
static int erase(struct sets *sets, const struct purge_plan *p, size_t at, struct purge_cases *cases,
                 int64_t *gone, struct err *e)
{
    struct sql_store *s = sets->store;
    const struct erasing *x = &p->erases[at];
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    int64_t affected = 0;
    size_t last = cases->n;
    if (count_before(s, p, x, (int)at, cases, e) < 0)
        return -1;
    sql_erase(&st, s->engine->dialect, p->now, x, (int)at);
    if (s->engine->dialect->locks_rows ? s->engine->query(s, &st, &found, e) < 0
                                       : s->engine->execute(s, &st, &affected, e) < 0)
        return -1;
    gone[at] += affected + (int64_t)found.n_rows;
    for (size_t i = 0; i < found.n_rows; i++)
        count_gone(cases, rows_at(&found, i), 1, &last);
    return look_what_is_left(s, p, x, (int)at, e);
}

static int erase_all(struct sets *sets, const struct purge_plan *p, struct purge_cases *cases, int64_t *gone,
                     struct err *e)
{
    for (size_t i = 0; i < p->n; i++) {
        struct rows *set = sets_begin(sets, i, p->erases[i].column);
        for (size_t k = 0; k < cases->n; k++)
            if (cases->list[k].verdict == PURGE_EXECUTE)
                rows_push(set, &cases->list[k].decides->instance);
        if (!set->n_rows)
            return 0;
        if (sets_load(sets, i, e) < 0 || erase(sets, p, i, cases, gone, e) < 0)
            return err_wrap(e, "erasing rows of %s", p->erases[i].table->print);
    }
    return 0;
}

/* A row that decides stays where it waits, or is to be seen. */
static bool goes(const struct purge_case *c, const struct purge_row *r)
{
    switch (c->verdict) {
    case PURGE_EXECUTE:
    case PURGE_REMOVE:
        return true;
    case PURGE_WAIT:
    case PURGE_MISFIT:
        return r != c->decides;
    case PURGE_BUSY:
        break;
    }
    return false;
}

static int remove_rows(struct sets *sets, size_t at, const struct purge_cases *cases, struct err *e)
{
    struct sql_store *s = sets->store;
    AUTO(stmt_release) struct stmt st = {0};
    int64_t removed;
    const char *sql = "DELETE FROM {lapse_purge} AS own WHERE ";
    struct rows *set = sets_begin(sets, at, &id_column);
    for (size_t i = 0; i < cases->n; i++)
        for (size_t k = 0; k < cases->list[i].n; k++)
            if (goes(&cases->list[i], &cases->list[i].rows[k]))
                rows_push(set, &(struct value){.kind = VALUE_INTEGER, .integer = cases->list[i].rows[k].id});
    if (!set->n_rows)
        return 0;
    own_write(&st, s, sql, strlen(sql), NULL);
    add_in_set(&st, s, &id_column, (int)at);
    if (sets_load(sets, at, e) < 0 || s->engine->execute(s, &st, &removed, e) < 0)
        return err_wrap(e, "removing purges");
    return removed == (int64_t)set->n_rows
               ? 0
               : err_set(e, ERR_DATABASE,
                         "rows of lapse_purge could not be deleted: a trigger or a rule kept them");
}

static int park(struct sql_store *s, const struct purge_case *c, struct err *e)
{
    const struct own_arg args[] = {count(c->decides->id), name(c->why)};
    return own_run(s,
                   "UPDATE {lapse_purge} SET attempts = attempts + 1, parked_at = {clock}, error = {2} "
                   "WHERE id = {1}",
                   args, NULL, e);
}

static int carry_out(struct store *store, const struct purge_plan *p, struct purge_cases *cases,
                     int64_t *gone, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(sets_release) struct sets sets = {0};
    sets_open(&sets, s, p->n + 1);
    if (erase_all(&sets, p, cases, gone, e) < 0 || remove_rows(&sets, p->n, cases, e) < 0)
        return -1;
    for (size_t i = 0; i < cases->n; i++)
        if (cases->list[i].verdict == PURGE_MISFIT && park(s, &cases->list[i], e) < 0)
            return err_wrap(e, "parking a purge");
    return s->engine->settle(s, e);
}

static int failed(struct store *store, const struct purge_row *r, int64_t attempts, int64_t retry_us,
                  const char *why, struct err *e)
{
    const struct own_arg args[] = {count(r->id),
                                   name(r->space),
                                   count(attempts),
                                   name(why),
                                   count(r->scheduled.usable ? r->scheduled.at : 0),
                                   count(retry_us)};
    struct own_change c = {
        retry_us < 0 ? "UPDATE {lapse_purge} AS own SET attempts = {3}, error = {4}, retry_at = NULL, "
                       "parked_at = {clock} WHERE own.id = {1} AND own.space = {2} "
                       "AND COALESCE({us scheduled_at}, 0) = {5}"
                     : "UPDATE {lapse_purge} AS own SET attempts = {3}, error = {4}, "
                       "retry_at = {later 6} WHERE own.id = {1} AND own.space = {2} "
                       "AND COALESCE({us scheduled_at}, 0) = {5}",
        args};
    return own_change(of(store), &c, 1, e) < 0 ? err_wrap(e, "noting a failed purge") : 0;
}

const struct purge_ops sqlpurges = {
    .groups = groups,
    .spaces = spaces,
    .pending = pending,
    .of_instance = of_instance,
    .list = list,
    .schedule = schedule,
    .cancel = cancel,
    .begin = begin,
    .pick = pick,
    .family = family,
    .carry_out = carry_out,
    .failed = failed,
};
