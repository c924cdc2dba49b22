/* purge_queue: purges in an SQL database: rows of lapse_purge, and the data they are about. See plan/purges.h. */
#include <stdlib.h>
#include <string.h>

#include "store/sql/own_internal.h"

enum {
    REASONS_MOST = 1000,
    SPACES_MOST = 100,
    PICK_LENGTH = 8 << 20,   /* of the ids of a batch together */
    OTHERS_MOST = 50000,     /* further rows of the instances of a batch */
    TELL_MOST = 100,         /* purges of which it is told how many rows each had */
    TEXT_MOST = 2000,        /* characters of a text that are read or written */
    INSTANCE_MOST = 1000000, /* … of an instance, whose every byte counts: a longer one is not read at all */
};
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

/* Applications write these, and may write a megabyte into each: TEXT_MOST characters are read, and one more of a name, by
 * which it is seen that it goes on. The space and the reason are then no name that a contract could have. Only what is too
 * long is cut by the engine: SQLite ends a text at a zero byte when it cuts it, and what is left could be another's name. */
#define SOME(text, characters)                                                                               \
    "CASE WHEN {.}length(" text ") {>} 2000 THEN {.}substr(" text ", 1, " characters ") ELSE " text " END"
#define COLUMNS_WITH(instance)                                                                               \
    "own.id, " SOME("own.space", "2001") ", " instance ", " SOME(                                            \
        "own.reason", "2001") ", {us scheduled_at}, "                                                        \
                              "{us purge_at}, {us retry_at}, {us parked_at}, own.attempts, " SOME(           \
                                  "own.error",                                                               \
                                  "2000") ", CASE WHEN "                                                     \
                                          "own.purge_at IS NULL THEN 0 ELSE 1 END {+} "                      \
                                          "CASE WHEN own.retry_at IS NULL THEN 0 ELSE 2 END {+} CASE WHEN "  \
                                          "own.parked_at IS NULL THEN 0 ELSE 4 END"
#define COLUMNS COLUMNS_WITH("own.instance")
/* For people: where it is long, its beginning. */
#define COLUMNS_SHORT COLUMNS_WITH(SOME("own.instance", "2000")) ", {.}length(own.instance)"
/* Any number of ids may be a megabyte long: those are read one by one, as many as a batch can hold. */
#define COLUMNS_BUT_LONG                                                                                     \
    COLUMNS_WITH("CASE WHEN {.}length(own.instance) {<=} 8000 THEN own.instance END")                        \
    ", {.}length(own.instance)"

/* How many bytes the first TEXT_MOST characters take; all of them where there are no more. */
static size_t bytes_of_most(const char *s, size_t len)
{
    size_t at = 0, n = 0;
    for (; at < len; at++) {
        n += ((unsigned char)s[at] & 0xC0) != 0x80; /* a character begins */
        if (n > TEXT_MOST)
            break;
    }
    return at;
}

/* The value's own text. NULL: it is. *odd: it is no text, holds a zero byte, or is too long to be a name. */
static const char *name_of(struct arena *a, const struct value *v, bool *odd)
{
    AUTO(text_release) struct text shown = {0};
    if (v->kind == VALUE_NULL)
        return NULL;
    size_t some = v->kind == VALUE_TEXT ? bytes_of_most(v->text ? v->text : "", v->len) : 0;
    bool text = v->kind == VALUE_TEXT && (!v->len || !memchr(v->text, 0, v->len));
    if (text && some == v->len)
        return v->len ? v->text : "";
    *odd = true;
    if (text) {
        text_add_n(&shown, v->text, some);
        text_add(&shown, "\xE2\x80\xA6");
        return arena_strdup(a, text_str(&shown));
    }
    purge_name_print(v, &shown);
    return arena_strdup(a, text_str(&shown));
}

static struct value copy_of(struct arena *a, const struct value *v)
{
    struct value copy = *v;
    copy.text = v->text ? arena_strndup(a, v->text, v->len) : NULL;
    return copy;
}

static struct purge_time time_of(const struct value *v, bool there)
{
    instant at = own_number(v);
    return (struct purge_time){there, there && v->kind != VALUE_NULL && at > FIRST && at < LAST, at};
}

/* An instance that was not read is like no other, whatever that is. */
static struct value instance_of(struct arena *a, const struct value *v)
{
    if (v[2].kind != VALUE_NULL)
        return v[2];
    const char *id = arena_printf(a, "%lld", (long long)own_number(&v[0]));
    return (struct value){.kind = VALUE_NULL, .text = id, .len = strlen(id)};
}

/* Its texts live in the arena of the rows already. */
static void push_row(struct purge_rows *to, const struct value *v)
{
    struct arena *a = to->arena;
    int64_t there = own_number(&v[10]);
    bool odd = v[2].kind == VALUE_NULL, error_odd;
    const char *space = name_of(a, &v[1], &odd), *reason = name_of(a, &v[3], &odd);
    to->list = arena_push(a, to->list, to->n, sizeof(*to->list));
    to->list[to->n++] = (struct purge_row){.id = own_number(&v[0]),
                                           .space = space,
                                           .instance = instance_of(a, v),
                                           .reason = reason,
                                           .odd = odd,
                                           .scheduled = time_of(&v[4], true),
                                           .at = time_of(&v[5], there & 1),
                                           .retry = time_of(&v[6], there & 2),
                                           .parked = time_of(&v[7], there & 4),
                                           .attempts = own_number(&v[8]),
                                           .error = name_of(a, &v[9], &error_odd)};
}

enum { LENGTH = 11 }; /* the column that COLUMNS_BUT_LONG and COLUMNS_SHORT have besides */

/* With their arena: a batch has tens of thousands of texts. */
static struct arena *take_arena(struct rows *found)
{
    struct arena *a = found->arena ? found->arena : arena_new();
    found->arena = NULL;
    return a;
}

static void take_rows(struct rows *found, bool locked, struct purge_rows *ret)
{
    *ret = (struct purge_rows){.arena = take_arena(found)};
    for (size_t i = 0; i < found->n_rows; i++) {
        push_row(ret, rows_at(found, i));
        ret->list[i].locked = locked;
        ret->list[i].cut =
            !locked && found->n_columns > LENGTH && own_number(&rows_at(found, i)[LENGTH]) > TEXT_MOST;
    }
}

static int read_rows(struct store *store, const char *sql, const struct own_arg *args, struct purge_rows *ret,
                     struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (own_look_up(of(store), sql, args, &found, e) < 0)
        return err_wrap(e, "reading lapse_purge");
    take_rows(&found, false, ret);
    return 0;
}

static int of_instance(struct store *store, const char *space, const char *instance, struct purge_rows *ret,
                       struct err *e)
{
    const struct own_arg args[] = {name(space), name(instance)};
    return read_rows(store,
                     "SELECT " COLUMNS " FROM {lapse_purge} AS own "
                     "WHERE own.space {=} {1} AND own.instance {=} {2} ORDER BY own.scheduled_at, own.id",
                     args, ret, e);
}

static int list(struct store *store, const char *space, int64_t most, struct purge_rows *ret, struct err *e)
{
    const struct own_arg args[] = {count(most), name(space)};
    return read_rows(store,
                     space ? "SELECT " COLUMNS_SHORT " FROM {lapse_purge} AS own WHERE own.space {=} {2} "
                             "ORDER BY own.id LIMIT {1}"
                           : "SELECT " COLUMNS_SHORT " FROM {lapse_purge} AS own ORDER BY own.id LIMIT {1}",
                     args, ret, e);
}

static int pending(struct store *store, const char *space, int64_t most, int64_t *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const struct own_arg args[] = {name(space), count(most)};
    if (own_look_up(of(store),
                    "SELECT {.}count(*) FROM (SELECT 1 FROM {lapse_purge} AS own "
                    "WHERE own.space {=} {1} LIMIT {2}) AS counted",
                    args, &found, e) < 0)
        return err_wrap(e, "counting lapse_purge");
    *ret = own_number(rows_at(&found, 0));
    return 0;
}

/* --- what there is ---------------------------------------------------------------------------------------
 */

/* Rows that wait for the delay of their reason. An index goes through them in this order, and each LIMIT 1 is
 * one look into it; `IS NULL` alone would not tell every engine that the order is the index's, but to some a
 * column that is NULL throughout is one to sort by. */
#define BY_DELAY                                                                                             \
    "own.space {=} {1} AND own.parked_at IS NULL AND own.retry_at IS NULL AND own.purge_at IS NULL"
#define IN_ORDER       "ORDER BY {same own.space, own.parked_at, own.retry_at, own.purge_at, }"
#define USABLE(column) "own." column " {>} {until 2} AND own." column " {<} {until 3}"

/* The reasons, each found by looking behind the one before it, and the earliest row of each. */
#define REASONS(behind)                                                                                      \
    "WITH RECURSIVE lapse_reason(reason) AS (SELECT * FROM (SELECT own.reason FROM {lapse_purge} AS own "    \
    "WHERE " BY_DELAY " AND own.reason " behind " {4} " IN_ORDER                                             \
    "own.reason LIMIT 1) AS lapse_first UNION ALL "                                                          \
    "SELECT (SELECT own.reason FROM {lapse_purge} AS own WHERE " BY_DELAY                                    \
    " AND own.reason {>} lapse_reason.reason " IN_ORDER                                                      \
    "own.reason LIMIT 1) FROM lapse_reason WHERE lapse_reason.reason IS NOT NULL) "                          \
    "SELECT " SOME("lapse_reason.reason",                                                                    \
                   "2001") ", (SELECT {us scheduled_at} FROM {lapse_purge} AS own "                          \
                           "WHERE " BY_DELAY " AND own.reason {=} lapse_reason.reason AND " USABLE(          \
                               "scheduled_at") " " IN_ORDER                                                  \
                                               "{same own.reason, }own.scheduled_at LIMIT 1), CASE WHEN "    \
                                               "{.}length(lapse_reason.reason) {<=} 2000 THEN 0 ELSE "       \
                                               "(SELECT own.id FROM "                                        \
                                               "{lapse_purge} AS own WHERE " BY_DELAY                        \
                                               " AND own.reason {=} lapse_reason.reason "                    \
                                               "LIMIT 1) END FROM lapse_reason WHERE lapse_reason.reason "   \
                                               "IS NOT NULL LIMIT {5}"

/* The same one by one, where an index cannot look for what another row says. */
#define NEXT_REASON "SELECT {.}min(own.reason) FROM {lapse_purge} AS own WHERE " BY_DELAY " AND own.reason "
#define NEXT_SPACE  "SELECT {.}min(own.space) FROM {lapse_purge} AS own"
/* The earliest, as an engine finds it in the index whatever it thinks of the rows before it. */
#define EARLIEST(column, condition)                                                                          \
    "(SELECT {us " column "} FROM (SELECT {.}min(own." column ") AS " column                                 \
    " FROM {lapse_purge} AS own WHERE " condition " AND " USABLE(column) ") AS own)"
static const char first_of_reason[] =
    "SELECT {4}, " EARLIEST("scheduled_at", BY_DELAY " AND own.reason {=} {4}");
static const char without_reason_apart[] =
    "SELECT " EARLIEST("scheduled_at", BY_DELAY " AND own.reason IS NULL") ", " EARLIEST(
        "purge_at", "own.space {=} {1} AND own.parked_at IS NULL AND own.retry_at IS "
                    "NULL") ", " EARLIEST("retry_at", "own.space {=} {1} AND "
                                                      "own.parked_at IS NULL");

static const char without_reason[] =
    "SELECT (SELECT {us scheduled_at} FROM {lapse_purge} AS own WHERE " BY_DELAY
    " AND own.reason IS NULL AND " USABLE(
        "scheduled_at") " " IN_ORDER "{same own.reason, }own.scheduled_at LIMIT 1), "
                        "(SELECT {us purge_at} FROM {lapse_purge} AS own WHERE own.space {=} {1} AND "
                        "own.parked_at IS NULL "
                        "AND own.retry_at IS NULL AND " USABLE(
                            "purge_at") " ORDER BY {same own.space, own.parked_at, own.retry_at, "
                                        "}own.purge_at LIMIT 1), "
                                        "(SELECT {us retry_at} FROM {lapse_purge} AS own WHERE own.space {=} "
                                        "{1} AND own.parked_at IS NULL "
                                        "AND " USABLE("retry_at") " ORDER BY {same own.space, own.parked_at, "
                                                                  "}own.retry_at LIMIT 1)";

static void push_group(struct purge_groups *g, enum purge_wait wait, const struct value *reason,
                       const struct value *first, int64_t row)
{
    if (first->kind == VALUE_NULL)
        return;
    g->list = arena_push(g->arena, g->list, g->n, sizeof(*g->list));
    struct purge_group *to = &g->list[g->n++];
    *to = (struct purge_group){.wait = wait, .first = own_number(first), .row = row, .odd = row != 0};
    if (!reason)
        return;
    to->exact = copy_of(g->arena, reason);
    to->reason = name_of(g->arena, &to->exact, &to->odd);
}

/* The statements of a walk: the first name, the one behind {4}, what is told of it. */
static int walk(struct sql_store *s, const char *const sql[3], const struct own_arg *args, size_t most,
                struct rows *ret, struct err *e)
{
    struct own_arg next[5];
    memcpy(next, args, sizeof(next));
    for (size_t n = 0; n < most; n++) {
        AUTO(rows_release) struct rows found = {0}, told = {0};
        if (own_ask(s, sql[n > 0], next, &found, e) < 0)
            return -1;
        if (rows_at(&found, 0)->kind == VALUE_NULL)
            return 0;
        next[3] = name(rows_at(&found, 0)->text);
        if (own_ask(s, sql[2], next, &told, e) < 0)
            return -1;
        ret->n_columns = told.n_columns;
        rows_push(ret, rows_at(&told, 0));
        next[3] = name(rows_at(ret, n)[0].text);
    }
    return 0;
}

static int read_reasons(struct sql_store *s, const struct own_arg *args, bool behind, struct rows *ret,
                        struct err *e)
{
    const char *const steps[] = {behind ? NEXT_REASON "{>} {4}" : NEXT_REASON "{>=} {4}",
                                 NEXT_REASON "{>} {4}", first_of_reason};
    if (s->engine->dialect->own.looks_apart)
        return walk(s, steps, args, REASONS_MOST, ret, e);
    return own_ask(s, behind ? REASONS("{>}") : REASONS("{>=}"), args, ret, e);
}

static int read_groups(struct sql_store *s, const char *space, const char *after, struct purge_groups *ret,
                       struct err *e)
{
    AUTO(rows_release) struct rows reasons = {0}, others = {0};
    const struct own_arg args[] = {name(space), count(FIRST), count(LAST), name(after ? after : ""),
                                   count(REASONS_MOST)};
    bool apart = s->engine->dialect->own.looks_apart;
    if (read_reasons(s, args, after, &reasons, e) < 0 ||
        own_ask(s, apart ? without_reason_apart : without_reason, args, &others, e) < 0)
        return -1;
    struct purge_groups g = {.arena = arena_new()};
    for (size_t i = 0; i < reasons.n_rows; i++) {
        const struct value *v = rows_at(&reasons, i);
        int64_t row = reasons.n_columns > 2 ? own_number(&v[2]) : 0;
        push_group(&g, PURGE_BY_REASON, v, &v[1], row);
        if (reasons.n_rows == REASONS_MOST && !row) /* what was not read in full is nothing to go on from */
            g.next = arena_strdup(g.arena, v->text);
    }
    for (int i = 0; i < 3; i++)
        push_group(&g, (enum purge_wait)i, NULL, &rows_at(&others, 0)[i], 0);
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

static int read_spaces(struct sql_store *s, struct rows *ret, struct err *e)
{
    const char *const steps[] = {NEXT_SPACE, NEXT_SPACE " WHERE own.space {>} {4}", "SELECT {4}"};
    const struct own_arg args[5] = {count(SPACES_MOST)};
    if (s->engine->dialect->own.looks_apart)
        return walk(s, steps, args, SPACES_MOST, ret, e);
    return own_ask(s,
                   "WITH RECURSIVE lapse_space(space) AS (SELECT * FROM (SELECT own.space FROM {lapse_purge} "
                   "AS own ORDER BY own.space LIMIT 1) AS lapse_first UNION ALL "
                   "SELECT (SELECT own.space FROM {lapse_purge} AS own WHERE own.space {>} lapse_space.space "
                   "ORDER BY own.space LIMIT 1) FROM lapse_space WHERE lapse_space.space IS NOT NULL) "
                   "SELECT " SOME("space", "2001") " FROM lapse_space WHERE space IS NOT NULL LIMIT {1}",
                   args, ret, e);
}

static int spaces(struct store *store, struct purge_rows *ret, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(rows_release) struct rows found = {0};
    int r = s->engine->begin_read(s, STATEMENT_US, e);
    if (r == 0)
        r = read_spaces(s, &found, e);
    s->engine->rollback(s);
    if (r < 0)
        return err_wrap(e, "reading lapse_purge");
    *ret = (struct purge_rows){.arena = take_arena(&found), .n = found.n_rows};
    ret->list = arena_alloc(ret->arena, (ret->n + 1) * sizeof(*ret->list));
    for (size_t i = 0; i < ret->n; i++)
        ret->list[i].space = name_of(ret->arena, rows_at(&found, i), &ret->list[i].odd);
    return 0;
}

/* What waits for no time that comes: infinite ones, and retries that lapse did not write. */
static int stuck(struct store *store, const char *space, instant far, int64_t *ret_id, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const struct own_arg args[] = {name(space), count(far), count(FIRST), count(LAST)};
#define ONE(condition)                                                                                       \
    "(SELECT own.id FROM {lapse_purge} AS own WHERE own.space {=} {1} AND own.parked_at IS NULL "            \
    "AND " condition " LIMIT 1)"
    if (own_look_up(of(store),
                    "SELECT COALESCE(" ONE("own.retry_at {>} {until 2}") ", " ONE(
                        "own.retry_at {<=} {until 3}") ", " ONE("own.retry_at IS NULL AND own.purge_at {>} "
                                                                "{until 4}") ", " ONE("own.retry_at IS NULL "
                                                                                      "AND own.purge_at "
                                                                                      "{<=} {until 3}") ", "
                                                                                                        "0)",
                    args, &found, e) < 0)
        return err_wrap(e, "reading lapse_purge");
#undef ONE
    *ret_id = own_number(rows_at(&found, 0));
    return 0;
}

/* --- by hand ---------------------------------------------------------------------------------------------
 */

/* Whether the time after the delay is one that the column holds. Where it is not, the space's delay decides:
 * it comes to the same. */
static int can_be_dated(struct store *store, int64_t delay_us, bool *ret, struct err *e)
{
    instant now, at, last = of(store)->engine->dialect->own.last;
    *ret = delay_us >= 0;
    if (!*ret)
        return 0;
    if (store->ops->now(store, &now, e) < 0)
        return -1;
    *ret = add_i64(now, delay_us, &at) && at < (last ? last : LAST);
    return 0;
}

static int schedule(struct store *store, const char *space, const char *instance, const char *reason,
                    int64_t delay_us, struct err *e)
{
    bool dated;
    if (can_be_dated(store, delay_us, &dated, e) < 0)
        return -1;
    const struct own_arg args[] = {name(space), name(instance), name(reason), count(delay_us)};
    struct own_change c = {dated ? "INSERT INTO {lapse_purge} (space, instance, reason, purge_at) "
                                   "VALUES ({1}, {2}, {3}, {later 4})"
                                 : "INSERT INTO {lapse_purge} (space, instance, reason) "
                                   "VALUES ({1}, {2}, {3})",
                           args};
    return own_change(of(store), &c, 1, e) < 0 ? err_wrap(e, "scheduling the purge") : 0;
}

static int cancel(struct store *store, const char *space, const char *instance, int64_t *ret_rows,
                  struct err *e)
{
    const struct own_arg args[] = {name(space), name(instance)};
    struct own_change c = {"DELETE FROM {lapse_purge} WHERE space {=} {1} AND instance {=} {2}", args};
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

enum { SET_COLUMNS = 2 }; /* at most */

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
    *s = (struct sets){store, mem_alloc(n * sizeof(*s->nodes)),
                       mem_alloc(n * SET_COLUMNS * sizeof(*s->columns))};
}

/* A set of one column, or of two, with room for so many rows: texts are not copied, and must last. */
static struct rows *sets_begin(struct sets *s, size_t set, const struct column *c, const struct column *other,
                               size_t n)
{
    struct keyset *k = &s->store->sets[set];
    const struct column **columns = &s->columns[set * SET_COLUMNS];
    columns[0] = c;
    columns[1] = other;
    s->nodes[set] = (struct node){.carry = columns, .n_carry = other ? 2 : 1, .set = (int)set};
    k->node = &s->nodes[set];
    rows_release(&k->rows);
    rows_make(&k->rows, k->node->n_carry, n, 0);
    k->rows.n_rows = 0;
    return &k->rows;
}

static struct value id_value(int64_t id)
{
    return (struct value){.kind = VALUE_INTEGER, .integer = id};
}

static void sets_add(struct rows *set, struct value v)
{
    set->cells[set->n_rows++ * set->n_columns] = v;
}

static void sets_add_two(struct rows *set, struct value v, int64_t id)
{
    struct value *row = &set->cells[set->n_rows++ * set->n_columns];
    row[0] = v;
    row[1] = id_value(id);
}

/* A statement about a set: row by row where the engine can, until there are so many answers; else about all
 * of it. */
static int sets_ask(struct sets *s, size_t set, const struct stmt *st, size_t most, struct rows *ret,
                    struct err *e)
{
    const struct engine *engine = s->store->engine;
    if (engine->each)
        return engine->each(s->store, st, (int)set, most, ret, NULL, e);
    return engine->load_set(s->store, (int)set, e) < 0 ? -1 : engine->query(s->store, st, ret, e);
}

static int change_each(struct sets *s, size_t set, const struct stmt *st, int64_t *changed, int64_t *ret_all,
                       struct err *e)
{
    if (s->store->engine->each(s->store, st, (int)set, SIZE_MAX, NULL, changed, e) < 0)
        return -1;
    *ret_all = 0;
    for (size_t i = 0; i < s->store->sets[set].rows.n_rows; i++)
        *ret_all += changed[i];
    return 0;
}

static int sets_change(struct sets *s, size_t set, const struct stmt *st, int64_t *ret_all, struct err *e)
{
    const struct engine *engine = s->store->engine;
    AUTO(mem_free_p) int64_t *changed = NULL;
    if (!engine->each)
        return engine->load_set(s->store, (int)set, e) < 0 ? -1 : engine->execute(s->store, st, ret_all, e);
    changed = mem_alloc((s->store->sets[set].rows.n_rows + 1) * sizeof(*changed));
    return change_each(s, set, st, changed, ret_all, e);
}

static void add_in_set(struct stmt *st, const struct sql_store *s, const struct column *c, int set, size_t at)
{
    s->engine->dialect->in_set(st, "own", &c, 1, set, &at, &c);
}

static void add_id_of(struct stmt *st, const struct sql_store *s, int set)
{
    const struct dialect *d = s->engine->dialect;
    if (s->engine->each) {
        text_add(&st->sql, "own.id");
        sql_sign(st, d, "=");
        d->of_row(st, set, 0);
    } else if (d->in_set_by_index) {
        d->in_set_by_index(st, "own", &id_column, set, 0, &id_column);
    } else {
        add_in_set(st, s, &id_column, set, 0);
    }
}

/* --- a batch ---------------------------------------------------------------------------------------------
 */

static int begin(struct store *store, const struct purge_space *space, struct err *e)
{
    struct sql_store *s = of(store);
    s->writing = true;
    int64_t lock_us = s->engine->dialect->locks_rows ? ROW_LOCK_US : LOCK_US;
    return s->engine->begin_write(s, lock_us, space->statement_timeout_us, e);
}

#define PICK(condition, order)                                                                               \
    "SELECT " COLUMNS_BUT_LONG                                                                               \
    " FROM {lapse_purge} AS own WHERE own.space {=} {1} AND own.parked_at IS NULL AND " condition            \
    " ORDER BY " order " LIMIT {3}{lock}"
#define UP_TO(column) "own." column " {>} {until 5} AND own." column " {<=} {until 2}{exactly 2 " column "}"

#define IN_ORDER_OF_TIME                                                                                     \
    "{same own.space, own.parked_at, own.retry_at, own.purge_at, own.reason, }own.scheduled_at"

static const char *picking(const struct purge_group *g)
{
    switch (g->wait) {
    case PURGE_BY_TIME:
        return PICK("own.retry_at IS NULL AND " UP_TO("purge_at"),
                    "{same own.space, own.parked_at, own.retry_at, }own.purge_at");
    case PURGE_BY_RETRY:
        return PICK(UP_TO("retry_at"), "{same own.space, own.parked_at, }own.retry_at");
    case PURGE_BY_REASON:
        break;
    }
    if (g->row)
        return PICK(
            "own.retry_at IS NULL AND own.purge_at IS NULL AND own.reason {=} (SELECT like_it.reason FROM "
            "{lapse_purge} AS like_it WHERE like_it.id {=} {6})",
            "own.id");
    return g->reason ? PICK("own.retry_at IS NULL AND own.purge_at IS NULL AND own.reason {=} {4} AND " UP_TO(
                                "scheduled_at"),
                            IN_ORDER_OF_TIME)
                     : PICK("own.retry_at IS NULL AND own.purge_at IS NULL AND own.reason IS NULL AND " UP_TO(
                                "scheduled_at"),
                            IN_ORDER_OF_TIME);
}

static int read_long(struct sql_store *s, struct rows *found, size_t row, struct err *e)
{
    AUTO(rows_release) struct rows one = {0};
    struct value *cells = &found->cells[row * found->n_columns];
    const struct own_arg args[] = {count(own_number(&cells[0]))};
    if (cells[2].kind != VALUE_NULL)
        return 0;
    if (own_ask(s, "SELECT own.instance FROM {lapse_purge} AS own WHERE own.id {=} {1}", args, &one, e) < 0)
        return -1;
    if (one.n_rows)
        cells[2] = copy_of(found->arena, rows_at(&one, 0));
    return 0;
}

/* The rest stays for the next batch. */
static int take_what_fits(struct sql_store *s, struct rows *found, struct err *e)
{
    int64_t length = 0;
    for (size_t i = 0; i < found->n_rows; i++) {
        int64_t its = own_number(&rows_at(found, i)[LENGTH]);
        length += its;
        if (i && length > PICK_LENGTH)
            found->n_rows = i;
        else if (its <= INSTANCE_MOST && read_long(s, found, i, e) < 0)
            return -1;
    }
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

static void ids_push(struct ids *i, int64_t id)
{
    if ((i->n & (i->n - 1)) == 0) /* room is the next power of two */
        i->list = mem_grow(i->list, i->n ? i->n * 2 : 1, sizeof(*i->list));
    i->list[i->n++] = id;
}

static void ids_sort(struct ids *i)
{
    if (i->n)
        qsort(i->list, i->n, sizeof(*i->list), compare_ids);
}

static bool ids_has(const struct ids *i, int64_t id)
{
    return i->n && bsearch(&id, i->list, i->n, sizeof(id), compare_ids);
}

/* Where entries of an index are locked apart: whoever cancels comes by the index of instances and waits for
 * the row with its entry in hand, for which the removal of the row would wait in turn. So the entries are
 * taken, too; rows whose entry another holds are left to him. */
static int hold_entries(struct sql_store *s, struct rows *found, struct err *e)
{
    static const struct index by_instance = {.name = "lapse_purge_instance"};
    static const char sql[] = "SELECT own.id FROM {lapse_purge} AS own";
    const struct dialect *d = s->engine->dialect;
    AUTO(sets_release) struct sets sets = {0};
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows held = {0};
    AUTO(ids_release) struct ids ids = {0};
    size_t n = 0;
    if (!d->use_index || !found->n_rows)
        return 0;
    sets_open(&sets, s, 1);
    struct rows *set = sets_begin(&sets, 0, &instance_column, &id_column, found->n_rows);
    for (size_t i = 0; i < found->n_rows; i++)
        sets_add_two(set, rows_at(found, i)[2], own_number(&rows_at(found, i)[0]));
    own_write(&st, s, sql, strlen(sql), NULL);
    d->use_index(&st, &by_instance);
    text_add(&st.sql, " WHERE ");
    add_in_set(&st, s, &instance_column, 0, 0);
    text_add(&st.sql, " AND ");
    add_in_set(&st, s, &id_column, 0, 1);
    d->lock(&st, "own", LOCK_SKIP);
    if (sets_ask(&sets, 0, &st, SIZE_MAX, &held, e) < 0)
        return -1;
    for (size_t i = 0; i < held.n_rows; i++)
        ids_push(&ids, own_number(rows_at(&held, i)));
    ids_sort(&ids);
    for (size_t i = 0; i < found->n_rows; i++)
        if (rows_at(found, i)[2].kind == VALUE_NULL || ids_has(&ids, own_number(rows_at(found, i))))
            memmove(found->cells + n++ * found->n_columns, rows_at(found, i),
                    found->n_columns * sizeof(*found->cells));
    found->n_rows = n;
    return 0;
}

static int pick(struct store *store, const char *space, const struct purge_group *g, instant until,
                int64_t most, struct purge_rows *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const struct own_arg args[] = {name(space),  count(until),
                                   count(most),  (struct own_arg){ARG_VALUE, .value = &g->exact},
                                   count(FIRST), count(g->row)};
    if (own_ask(of(store), picking(g), args, &found, e) < 0 || take_what_fits(of(store), &found, e) < 0 ||
        hold_entries(of(store), &found, e) < 0)
        return err_wrap(e, "picking due purges");
    take_rows(&found, true, ret);
    return 0;
}

static int compare_row_ids(const void *a, const void *b)
{
    return compare_ids(&((const struct purge_row *)a)->id, &((const struct purge_row *)b)->id);
}

/* Locks rows that are not yet, and notes which could be. What they say now counts: they may have been changed
 * since they were read. */
static int lock_rest(struct sets *sets, struct purge_row *rest, size_t n, struct arena *a, struct err *e)
{
    struct sql_store *s = sets->store;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    struct purge_rows now = {.arena = a};
    const char *sql = "SELECT " COLUMNS " FROM {lapse_purge} AS own WHERE ";
    struct rows *set = sets_begin(sets, 1, &id_column, NULL, n);
    for (size_t i = 0; i < n; i++)
        if (!rest[i].locked)
            sets_add(set, id_value(rest[i].id));
    if (!set->n_rows)
        return 0;
    own_write(&st, s, sql, strlen(sql), NULL);
    add_id_of(&st, s, 1);
    s->engine->dialect->lock(&st, "own", LOCK_SKIP);
    if (sets_ask(sets, 1, &st, SIZE_MAX, &found, e) < 0)
        return -1;
    arena_join(a, take_arena(&found));
    qsort(rest, n, sizeof(*rest), compare_row_ids);
    for (size_t i = 0; i < found.n_rows; i++) {
        push_row(&now, rows_at(&found, i));
        now.list[i].locked = true;
        struct purge_row *r = bsearch(&now.list[i], rest, n, sizeof(*r), compare_row_ids);
        if (r && purge_compare(&r->instance, &now.list[i].instance) == 0 &&
            strcmp(r->space, now.list[i].space) == 0)
            *r = now.list[i];
    }
    return 0;
}

/* Every instance once, with a row of it that is known already. */
static void add_instances(struct sets *sets, struct purge_rows *rows)
{
    struct rows *set = sets_begin(sets, 0, &instance_column, &id_column, rows->n);
    purge_rows_sort(rows);
    for (size_t i = 0; i < rows->n; i++) {
        const struct purge_row *r = &rows->list[i];
        if (i && purge_compare(&r[-1].instance, &r->instance) == 0)
            continue;
        sets_add_two(set, r->instance, r->id);
    }
}

/* Other rows than that one. That they are of the space is asked so that no index is tempted to answer it: few
 * instances have two rows, and a space has any number of them. */
static void write_others(struct stmt *st, const struct sql_store *s, const char *space, size_t most)
{
    static const char sql[] =
        "SELECT " COLUMNS " FROM {lapse_purge} AS own WHERE COALESCE(own.space, '') {=} {1} AND ";
    const struct dialect *d = s->engine->dialect;
    const struct own_arg args[] = {name(space)};
    const struct column *const columns[] = {&instance_column, &id_column};
    if (d->each_row)
        d->each_row(st, 0, columns, COUNT_OF(columns));
    own_add(st, s, sql, strlen(sql), args);
    if (d->of_row) {
        text_add(&st->sql, "own.instance");
        sql_sign(st, d, "=");
        d->of_row(st, 0, 0);
        text_add(&st->sql, " AND own.id");
        sql_sign(st, d, "<>");
        d->of_row(st, 0, 1);
    } else {
        add_in_set(st, s, &instance_column, 0, 0);
        text_add(&st->sql, " AND (");
        add_in_set(st, s, &id_column, 0, 1);
        text_add(&st->sql, ") IS NOT TRUE");
    }
    text_add(&st->sql, d->each_row ? d->each_row_end : "");
    text_addf(&st->sql, " LIMIT %zu", most);
}

/* As many as there is room for, since each comes with the id of its instance. */
static size_t others_most(const struct purge_rows *rows)
{
    size_t longest = 1, most = PICK_LENGTH;
    for (size_t i = 0; i < rows->n; i++)
        if (rows->list[i].instance.len > longest)
            longest = rows->list[i].instance.len;
    most /= longest;
    return most < 2 ? 2 : most > OTHERS_MOST ? OTHERS_MOST : most;
}

static int others(struct store *store, const char *space, struct purge_rows *rows, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(sets_release) struct sets sets = {0};
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    AUTO(ids_release) struct ids ids = {0};
    size_t most = others_most(rows);
    sets_open(&sets, s, 2);
    add_instances(&sets, rows);
    write_others(&st, s, space, most);
    if (sets_ask(&sets, 0, &st, most, &found, e) < 0)
        return err_wrap(e, "reading the purges of the same instances");
    if (!found.n_rows)
        return 0;
    for (size_t i = 0; i < rows->n; i++)
        ids_push(&ids, rows->list[i].id);
    ids_sort(&ids);
    rows->crowded = found.n_rows >= most;
    arena_join(rows->arena, take_arena(&found));
    for (size_t i = 0; i < found.n_rows; i++) {
        if (ids_has(&ids, own_number(rows_at(&found, i))))
            continue;
        push_row(rows, rows_at(&found, i));
        rows->list[rows->n - 1].locked = !s->engine->dialect->locks_rows;
    }
    return lock_rest(&sets, rows->list + ids.n, rows->n - ids.n, rows->arena, e);
}

/* --- carrying out ----------------------------------------------------------------------------------------
 */

/* The cases to be executed, as they were scheduled: then their data mostly lies together. */
struct going {
    struct purge_case **list;
    size_t n;
};

static void going_release(struct going *g)
{
    free(g->list);
}

static int compare_going(const void *a, const void *b)
{
    return compare_row_ids((*(struct purge_case *const *)a)->decides,
                           (*(struct purge_case *const *)b)->decides);
}

static struct going going_of(const struct purge_cases *cases)
{
    struct going g = {.list = mem_alloc((cases->n + 1) * sizeof(*g.list))};
    for (size_t i = 0; i < cases->n; i++)
        if (cases->list[i].verdict == PURGE_EXECUTE)
            g.list[g.n++] = &cases->list[i];
    qsort(g.list, g.n, sizeof(*g.list), compare_going);
    return g;
}

static int kept_by_hooks(const struct table *t, int64_t left, struct err *e)
{
    return left ? err_set(e, ERR_REFUSED, "%lld row%s of %s stayed: a trigger or a rule kept %s",
                          (long long)left, left == 1 ? "" : "s", t->print, left == 1 ? "it" : "them")
                : 0;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The first set whose column takes the same values: that of most tables is one and the same. */
static int set_of(const struct purge_plan *p, size_t at)
{
    const struct column *c = p->erases[at].column;
    size_t i = 0;
    for (; i < at; i++) {
        const struct column *x = p->erases[i].column;
        if (x->type == c->type && same_text(x->sql_type, c->sql_type) &&
            same_text(x->collation, c->collation) && x->is_unsigned == c->is_unsigned)
            break;
    }
    return (int)i;
}

static int look_what_is_left(struct sets *sets, const struct purge_plan *p, size_t at, enum whose whose,
                             struct err *e)
{
    struct sql_store *s = sets->store;
    const struct erasing *x = &p->erases[at];
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    int64_t left = 0;
    if (!x->table->delete_hooks)
        return 0;
    sql_erase_left(&st, s->engine->dialect, p->now, x, set_of(p, at), whose);
    if (whose == EACH_ROW ? s->engine->each(s, &st, set_of(p, at), SIZE_MAX, &found, NULL, e) < 0
                          : s->engine->query(s, &st, &found, e) < 0)
        return -1;
    for (size_t i = 0; i < found.n_rows; i++)
        left += own_number(rows_at(&found, i));
    return kept_by_hooks(x->table, left, e);
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

static int tell_before(struct sets *sets, const struct purge_plan *p, size_t at, struct purge_cases *cases,
                       struct err *e)
{
    struct sql_store *s = sets->store;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    size_t last = cases->n;
    sql_erase_count(&st, s->engine->dialect, p->now, &p->erases[at], set_of(p, at));
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    for (size_t i = 0; i < found.n_rows; i++)
        count_gone(cases, &rows_at(&found, i)[0], own_number(&rows_at(&found, i)[1]), &last);
    return 0;
}

static int erase_told(struct sets *sets, const struct purge_plan *p, size_t at, struct purge_cases *cases,
                      int64_t *gone, struct err *e)
{
    struct sql_store *s = sets->store;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    size_t last = cases->n;
    sql_erase_told(&st, s->engine->dialect, p->now, &p->erases[at], set_of(p, at));
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    gone[at] += (int64_t)found.n_rows;
    for (size_t i = 0; i < found.n_rows; i++)
        count_gone(cases, rows_at(&found, i), 1, &last);
    return 0;
}

/* Rows of one instance may refer to rows of another: only together can both go. */
static bool refers_to_itself(const struct table *t)
{
    for (size_t i = 0; i < t->n_fkeys_in; i++)
        if (fkey_is_own(t, &t->fkeys_in[i]))
            return true;
    return false;
}

/* Where a foreign key is looked at row by row, together they go only in that order: those first to which none
 * refers. What is left then is left to the statement that erases all. */
static int erase_leaves(struct sets *sets, const struct purge_plan *p, size_t at, int64_t *gone,
                        struct err *e)
{
    struct sql_store *s = sets->store;
    AUTO(stmt_release) struct stmt st = {0};
    int64_t affected = 1;
    sql_erase_leaves(&st, s->engine->dialect, p->now, &p->erases[at], set_of(p, at));
    while (affected) {
        if (s->engine->execute(s, &st, &affected, e) < 0)
            return -1;
        gone[at] += affected;
    }
    return 0;
}

static int erase_untold(struct sets *sets, const struct purge_plan *p, size_t at, int64_t *gone,
                        struct err *e)
{
    struct sql_store *s = sets->store;
    AUTO(stmt_release) struct stmt st = {0};
    int64_t affected;
    bool leaves = s->engine->dialect->keys_by_row && refers_to_itself(p->erases[at].table);
    if (leaves && erase_leaves(sets, p, at, gone, e) < 0)
        return -1;
    sql_erase(&st, s->engine->dialect, p->now, &p->erases[at], set_of(p, at), WHOLE_SET);
    if (s->engine->execute(s, &st, &affected, e) < 0)
        return -1;
    gone[at] += affected;
    return 0;
}

/* Of few it is told how many rows each had. Of many only how many all had: a database that gives every row
 * that it deletes takes half as long again. */
static int erase_set(struct sets *sets, const struct purge_plan *p, size_t at, struct purge_cases *cases,
                     int64_t *gone, struct err *e)
{
    const struct engine *engine = sets->store->engine;
    int set = set_of(p, at);
    bool tells = sets->store->sets[set].rows.n_rows <= TELL_MOST,
         before = tells && !engine->dialect->returning;
    if (engine->load_set(sets->store, set, e) < 0 || (before && tell_before(sets, p, at, cases, e) < 0) ||
        (tells && !before ? erase_told(sets, p, at, cases, gone, e) : erase_untold(sets, p, at, gone, e)) < 0)
        return -1;
    for (size_t i = 0; i < cases->n && !tells; i++)
        cases->list[i].untold = true;
    return look_what_is_left(sets, p, at, WHOLE_SET, e);
}

static int erase_each(struct sets *sets, const struct purge_plan *p, size_t at, const struct going *going,
                      int64_t *gone, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(mem_free_p) int64_t *changed = mem_alloc(going->n * sizeof(*changed));
    int64_t all;
    sql_erase(&st, sets->store->engine->dialect, p->now, &p->erases[at], set_of(p, at), EACH_ROW);
    if (change_each(sets, (size_t)set_of(p, at), &st, changed, &all, e) < 0)
        return -1;
    gone[at] += all;
    for (size_t i = 0; i < going->n; i++)
        going->list[i]->gone += changed[i];
    return look_what_is_left(sets, p, at, EACH_ROW, e);
}

static void fill_set(struct sets *sets, size_t at, const struct column *c, const struct going *going)
{
    struct rows *set = sets_begin(sets, at, c, NULL, going->n);
    for (size_t i = 0; i < going->n; i++)
        sets_add(set, going->list[i]->decides->instance);
}

static int erase_all(struct sets *sets, const struct purge_plan *p, struct purge_cases *cases, int64_t *gone,
                     struct err *e)
{
    AUTO(going_release) struct going going = going_of(cases);
    for (size_t i = 0; i < p->n && going.n; i++) {
        bool each = sets->store->engine->each && !refers_to_itself(p->erases[i].table);
        if (set_of(p, i) == (int)i)
            fill_set(sets, i, p->erases[i].column, &going);
        if ((each ? erase_each(sets, p, i, &going, gone, e) : erase_set(sets, p, i, cases, gone, e)) < 0)
            return err_wrap(e, "erasing rows of %s", p->erases[i].table->print);
    }
    return 0;
}

/* "DELETE …" of the rows in a set, looked up one by one: a short table read from end to end would be waited
 * for as a whole. */
static void write_removal(struct stmt *st, const struct sql_store *s, int set)
{
    static const struct index primary = {.name = "PRIMARY", .primary = true};
    static const char table[] = "{lapse_purge} AS own", whole[] = "{delete lapse_purge} WHERE ";
    const struct dialect *d = s->engine->dialect;
    const struct column *id = &id_column;
    if (!d->key_list) {
        own_write(st, s, whole, strlen(whole), NULL);
        add_id_of(st, s, set);
        return;
    }
    AUTO(stmt_release) struct stmt named = {0};
    own_write(&named, s, table, strlen(table), NULL);
    text_add(&st->sql, "DELETE own FROM ");
    bool listed = d->key_list(st, &id, 1, set, &(size_t){0}, &id);
    text_add(&st->sql, text_str(&named.sql));
    if (listed) {
        d->use_index(st, &primary);
        text_add(&st->sql, " ON own.id = lapse_keys.k0");
    }
    text_add(&st->sql, " WHERE ");
    add_id_of(st, s, set);
}

static int remove_rows(struct sets *sets, size_t at, const struct purge_cases *cases, struct err *e)
{
    struct sql_store *s = sets->store;
    AUTO(stmt_release) struct stmt st = {0};
    int64_t removed;
    AUTO(ids_release) struct ids ids = {0};
    for (size_t i = 0; i < cases->n; i++)
        for (size_t k = 0; k < cases->list[i].n; k++)
            if (purge_goes(&cases->list[i], &cases->list[i].rows[k]))
                ids_push(&ids, cases->list[i].rows[k].id);
    if (!ids.n)
        return 0;
    ids_sort(&ids);
    struct rows *set = sets_begin(sets, at, &id_column, NULL, ids.n);
    for (size_t i = 0; i < ids.n; i++)
        sets_add(set, id_value(ids.list[i]));
    write_removal(&st, s, (int)at);
    if (sets_change(sets, at, &st, &removed, e) < 0)
        return err_wrap(e, "removing purges");
    return removed == (int64_t)set->n_rows
               ? 0
               : err_set(e, ERR_DATABASE,
                         "rows of lapse_purge could not be deleted: a trigger or a rule kept them");
}

static int park(struct sql_store *s, const struct purge_case *c, struct err *e)
{
    AUTO(text_release) struct text why = {0};
    text_add_n(&why, c->why, bytes_of_most(c->why, strlen(c->why)));
    const struct own_arg args[] = {count(c->decides->id), name(text_str(&why))};
    return own_run(s,
                   "UPDATE {lapse_purge} SET attempts = attempts {+} 1, parked_at = {clock}, error = {2} "
                   "WHERE id {=} {1}",
                   args, NULL, e);
}

/* It waits for what it was asked for again, or it would be picked again and again. */
static int forget_retry(struct sql_store *s, const struct purge_case *c, struct err *e)
{
    const struct own_arg args[] = {count(c->decides->id)};
    return own_run(s, "UPDATE {lapse_purge} SET retry_at = NULL WHERE id {=} {1}", args, NULL, e);
}

static bool retry_is_over(const struct purge_case *c, instant now)
{
    const struct purge_row *r = c->decides;
    return c->verdict == PURGE_WAIT && !r->parked.there && r->retry.there && r->retry.usable &&
           r->retry.at <= now;
}

static int note_those_that_stay(struct sql_store *s, const struct purge_cases *cases, instant now,
                                struct err *e)
{
    for (size_t i = 0; i < cases->n; i++) {
        const struct purge_case *c = &cases->list[i];
        if (c->verdict == PURGE_MISFIT && park(s, c, e) < 0)
            return err_wrap(e, "parking a purge");
        if (retry_is_over(c, now) && forget_retry(s, c, e) < 0)
            return err_wrap(e, "putting off a purge");
    }
    return 0;
}

static int carry_out(struct store *store, const struct purge_plan *p, struct purge_cases *cases,
                     int64_t *gone, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(sets_release) struct sets sets = {0};
    sets_open(&sets, s, p->n + 1);
    if (erase_all(&sets, p, cases, gone, e) < 0 || remove_rows(&sets, p->n, cases, e) < 0 ||
        note_those_that_stay(s, cases, p->now, e) < 0)
        return -1;
    return s->engine->settle(s, e);
}

static int failed(struct store *store, const struct purge_row *r, int64_t attempts, int64_t retry_us,
                  const char *why, struct err *e)
{
    const struct own_arg args[] = {count(r->id), name(r->space),         count(attempts),
                                   name(why),    count(r->scheduled.at), count(retry_us)};
    struct own_change c = {
        retry_us < 0 ? "UPDATE {lapse_purge} AS own SET attempts = {3}, error = {4}, retry_at = NULL, "
                       "parked_at = {clock} WHERE own.id {=} {1} AND own.space {=} {2} "
                       "AND COALESCE({us scheduled_at}, 0) {=} {5}"
                     : "UPDATE {lapse_purge} AS own SET attempts = {3}, error = {4}, "
                       "retry_at = {later 6} WHERE own.id {=} {1} AND own.space {=} {2} "
                       "AND COALESCE({us scheduled_at}, 0) {=} {5}",
        args};
    return own_change(of(store), &c, 1, e) < 0 ? err_wrap(e, "noting a failed purge") : 0;
}

static int accepts(struct store *store, const struct purge_plan *p, const struct erasing *x, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(stmt_release) struct stmt st = {0};
    if (!x->keep)
        return 0;
    sql_erase_unkept(&st, s->engine->dialect, p->now, x);
    return s->engine->accepts(s, &st, e);
}

const struct purge_ops sqlpurges = {
    .accepts = accepts,
    .groups = groups,
    .spaces = spaces,
    .stuck = stuck,
    .pending = pending,
    .of_instance = of_instance,
    .list = list,
    .schedule = schedule,
    .cancel = cancel,
    .begin = begin,
    .pick = pick,
    .others = others,
    .carry_out = carry_out,
    .failed = failed,
};
