/* sqlstore: what every SQL engine does the same way behind the store seam. See sqlstore.h.
 *
 * A slice, inside one transaction:
 *
 *   1. pick      lock up to N due rows beyond the cursor, with their whole condition; or, where a bound
 * examines many rows to find few, rows that a reading before the transaction found, by key
 *   2. judge     in a new statement, when the condition looks at other rows: keep only what is still due;
 *                source rows whose content decides are locked before it
 *   3. gather    top down: the subtree of rows that own rows of their own table, then rows that own others,
 *                each locked; what a `where` said of them must still hold
 *   4. erase     bottom up: owned rows, then detach what refers to these rows, then the rows themselves, by
 *                key
 *   5. settle    deferred constraints and triggers speak; where there are triggers, the rows are still gone
 *
 * Whoever asked for the slice commits it. Wherever fewer rows went than were found, and the rest is still
 * there, a trigger or rule kept it: the slice fails with ERR_REFUSED, so that no row loses what it owns and
 * stays. */
#include "store/sql/store_internal.h"

#include <stdlib.h>
#include <string.h>

/* --- sets ------------------------------------------------------------------------------------ */

static void release_sets(struct sql_store *s)
{
    for (size_t i = 0; i < s->n_sets; i++)
        rows_release(&s->sets[i].rows);
    free(s->sets);
    s->sets = NULL;
    s->n_sets = 0;
}

void sql_store_release(struct sql_store *s)
{
    release_sets(s);
    sqlstore_forget_ahead(s);
    sqlstore_forget_found(s);
}

/* The plan's sets, and one more for the rows found last while a subtree is gathered. */
void sqlstore_prepare_sets(struct sql_store *s, const struct plan *p)
{
    release_sets(s);
    s->n_sets = (size_t)p->n_sets + 1;
    s->sets = mem_alloc(s->n_sets * sizeof(*s->sets));
}

static uint64_t hash_value(uint64_t h, const struct value *v)
{
    const unsigned char *bytes = (const void *)(v->text ? (const void *)v->text : (const void *)&v->integer);
    size_t len = v->text ? v->len : sizeof(v->integer);
    if (v->kind == VALUE_REAL)
        bytes = (const void *)&v->real;
    for (size_t i = 0; i < len; i++)
        h = (h ^ bytes[i]) * UINT64_C(1099511628211);
    return (h ^ (uint64_t)v->kind) * UINT64_C(1099511628211);
}

/* The keys of a set, to ask whether a row is in it already. Open addressing; slots hold row number + 1. */
struct known {
    const struct rows *rows;
    size_t n_key;
    size_t *slots;
    size_t room;
};

static size_t known_slot(const struct known *k, const struct value *row)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < k->n_key; i++)
        h = hash_value(h, &row[i]);
    size_t at = (size_t)h & (k->room - 1);
    for (; k->slots[at]; at = (at + 1) & (k->room - 1)) {
        const struct value *other = rows_at(k->rows, k->slots[at] - 1);
        size_t same = 0;
        while (same < k->n_key && value_same(&row[same], &other[same]))
            same++;
        if (same == k->n_key)
            break;
    }
    return at;
}

static void known_rebuild(struct known *k)
{
    free(k->slots);
    k->room = 64;
    while (k->room < k->rows->n_rows * 4)
        k->room *= 2;
    k->slots = mem_alloc(k->room * sizeof(*k->slots));
    for (size_t i = 0; i < k->rows->n_rows; i++)
        k->slots[known_slot(k, rows_at(k->rows, i))] = i + 1;
}

/* Adds the row to the set unless its key is there; says whether it was added. */
static bool known_add(struct known *k, struct rows *set, const struct value *row)
{
    if (set->n_rows * 2 >= k->room)
        known_rebuild(k);
    size_t at = known_slot(k, row);
    if (k->slots[at])
        return false;
    rows_push(set, row);
    k->slots[at] = set->n_rows;
    return true;
}

static void known_release(struct known *k)
{
    free(k->slots);
}

/* --- small helpers -------------------------------------------------------------------------------------- */

struct sql_store *sqlstore_of(struct store *s)
{
    return (struct sql_store *)s;
}

int64_t sqlstore_number(const struct value *v)
{
    if (v->kind == VALUE_INTEGER)
        return v->integer;
    if (v->kind == VALUE_REAL)
        return (int64_t)v->real;
    return v->kind == VALUE_TEXT ? strtoll(v->text, NULL, 10) : 0;
}

int sqlstore_query_number(struct sql_store *s, const struct stmt *st, int64_t *ret, struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    if (s->engine->query(s, st, &r, e) < 0)
        return -1;
    *ret = r.n_rows ? sqlstore_number(rows_at(&r, 0)) : 0;
    return 0;
}

/* How many rows it gives. */
static int query_rows(struct sql_store *s, const struct stmt *st, int64_t *ret, struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    if (s->engine->query(s, st, &r, e) < 0)
        return -1;
    *ret = (int64_t)r.n_rows;
    return 0;
}

int sqlstore_query_any(struct sql_store *s, const struct stmt *st, bool *ret, struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    if (s->engine->query(s, st, &r, e) < 0)
        return -1;
    *ret = r.n_rows > 0;
    return 0;
}

int sqlstore_kept_by_hooks(struct err *e, int64_t left, const struct table *t, const char *what)
{
    return err_set(e, ERR_REFUSED, "%lld row%s of %s %s: a trigger or a rule kept %s", (long long)left,
                   left == 1 ? "" : "s", t->print, what, left == 1 ? "it" : "them");
}

/* What rows own changed between the judgement and its lock: the whole transaction again, it will find out. */
int sqlstore_changed_meanwhile(struct err *e, const struct table *t)
{
    return err_set(e, ERR_CONFLICT, "rows owned through %s changed while they were being locked", t->print);
}

/* --- the slice --------------------------------------------------------------------------------------------
 */

/* Set 0 holds these rows, or as much of them as the root carries. */
static void set_roots(struct sql_store *s, const struct plan *p, const struct rows *these)
{
    struct keyset *roots = &s->sets[0];
    rows_release(&roots->rows);
    roots->node = &p->root;
    roots->rows.n_columns = p->root.n_carry;
    for (size_t i = 0; i < these->n_rows; i++)
        rows_push(&roots->rows, rows_at(these, i));
}

int sqlstore_pick(struct sql_store *s, const struct plan *p, const struct stmt *st, struct slice *ret,
                  struct rows *ret_found, struct err *e)
{
    if (s->engine->query(s, st, ret_found, e) < 0)
        return -1;
    set_roots(s, p, ret_found);
    ret->picked = (int64_t)ret_found->n_rows;
    if (ret->picked)
        cursor_set(&ret->end, rows_at(ret_found, ret_found->n_rows - 1) + p->root.n_carry, p->n_order);
    return 0;
}

static char *key_text(const struct node *root, const struct value *row)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < root->table->n_key; i++) {
        text_addf(&t, "%s%s=", i ? ", " : "", root->table->key[i]->name);
        value_print(&row[i], &t);
    }
    return mem_strdup(text_str(&t));
}

/* What the judgement sees of them holds until COMMIT: a later update waits. One that is under way is not
 * waited for with rows locked, which would stop others from writing to them: the whole transaction is tried
 * again. */
static int lock_source(struct sql_store *s, const struct plan *p, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t locked, there;
    if (!p->source_locked || !s->engine->dialect->locks_rows)
        return 0;
    sql_lock_source(&st, s->engine->dialect, p);
    if (query_rows(s, &st, &locked, e) < 0)
        return -1;
    sql_source_there(&st, s->engine->dialect, p);
    if (sqlstore_query_number(s, &st, &there, e) < 0)
        return -1;
    return there > locked
               ? err_set(e, ERR_BUSY, "another transaction holds %lld row%s of the source %s",
                         (long long)(there - locked), there - locked == 1 ? "" : "s", p->source->print)
               : 0;
}

static int judge(struct sql_store *s, const struct plan *p, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    struct rows still = {0};
    if (s->engine->load_set(s, 0, e) < 0 || lock_source(s, p, e) < 0)
        return -1;
    sql_judge(&st, s->engine->dialect, p);
    if (s->engine->query(s, &st, &still, e) < 0) {
        rows_release(&still);
        return -1;
    }
    rows_release(&s->sets[0].rows);
    s->sets[0].rows = still;
    s->sets[0].rows.n_columns = p->root.n_carry;
    return 0;
}

/* A row without a key could be locked, but not found again: what owns it stays. */
static int need_keys(const struct rows *rows, const struct table *t, struct err *e)
{
    for (size_t i = 0; t->key_may_be_null && i < rows->n_rows; i++)
        for (size_t k = 0; k < t->n_key; k++)
            if (rows_at(rows, i)[k].kind == VALUE_NULL)
                return err_set(e, ERR_REFUSED, "a row of %s that goes with it has no key (it is NULL)",
                               t->print);
    return 0;
}

/* One level further down: rows that refer to the frontier and are not in the set yet. */
static int grow_once(struct sql_store *s, const struct node *n, int frontier, struct known *known,
                     struct err *e)
{
    struct rows *set = &s->sets[n->set].rows;
    struct rows next = {.n_columns = n->n_carry};
    int r = 0;
    for (size_t way = 0; way < n->n_grow && r == 0; way++) {
        AUTO(stmt_release) struct stmt st = {0};
        AUTO(rows_release) struct rows found = {0};
        sql_grow(&st, s->engine->dialect, n, way, frontier);
        r = s->engine->query(s, &st, &found, e);
        if (r == 0)
            r = need_keys(&found, n->table, e);
        for (size_t i = 0; r == 0 && i < found.n_rows; i++)
            if (known_add(known, set, rows_at(&found, i)))
                rows_push(&next, rows_at(&found, i));
    }
    rows_release(&s->sets[frontier].rows);
    s->sets[frontier].rows = next;
    return r;
}

/* Ends because the set only grows and holds each key once: a level with nothing new is the last, also in a
 * cycle. */
int sqlstore_grow(struct sql_store *s, const struct node *n, struct err *e)
{
    if (!n->n_grow)
        return 0;
    int frontier = (int)s->n_sets - 1;
    AUTO(known_release) struct known known = {.rows = &s->sets[n->set].rows, .n_key = n->table->n_key};
    known_rebuild(&known);
    rows_release(&s->sets[frontier].rows);
    s->sets[frontier].node = n;
    s->sets[frontier].rows.n_columns = n->n_carry;
    for (size_t i = 0; i < s->sets[n->set].rows.n_rows; i++)
        rows_push(&s->sets[frontier].rows, rows_at(&s->sets[n->set].rows, i));
    while (s->sets[frontier].rows.n_rows)
        if (s->engine->load_set(s, frontier, e) < 0 || grow_once(s, n, frontier, &known, e) < 0)
            return -1;
    return 0;
}

int sqlstore_gather(struct sql_store *s, const struct node *n, struct err *e)
{
    if (sqlstore_grow(s, n, e) < 0 || s->engine->load_set(s, n->set, e) < 0)
        return -1;
    for (size_t i = 0; i < n->n_kids; i++) {
        const struct node *kid = &n->kids[i];
        if (kid->set < 0)
            continue;
        AUTO(stmt_release) struct stmt st = {0};
        struct keyset *set = &s->sets[kid->set];
        rows_release(&set->rows);
        set->node = kid;
        sql_pick_kids(&st, s->engine->dialect, n, kid);
        if (s->engine->query(s, &st, &set->rows, e) < 0 || need_keys(&set->rows, kid->table, e) < 0)
            return -1;
        set->rows.n_columns = kid->n_carry;
        if (sqlstore_gather(s, kid, e) < 0)
            return -1;
    }
    return 0;
}

/* Whether rows are locked, after they were judged, that must satisfy something: a `where`, or, below a row of
 * the swept table, what the policy asks of its rows. Rows that own nothing are deleted with their `where`
 * instead. */
static bool locks_with_where(const struct node *n, bool root)
{
    if (root && n->n_grow)
        return true;
    for (size_t i = 0; i < n->n_grow; i++)
        if (n->grow_where[i])
            return true;
    for (size_t i = 0; i < n->n_kids; i++)
        if ((n->kids[i].where && n->kids[i].set >= 0) || locks_with_where(&n->kids[i], false))
            return true;
    return false;
}

int sqlstore_still_free(struct sql_store *s, const struct plan *p, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t waiting;
    if (!p->free_ || !locks_with_where(&p->root, true))
        return 0;
    sql_set_waiting(&st, s->engine->dialect, p);
    if (sqlstore_query_number(s, &st, &waiting, e) < 0)
        return -1;
    return waiting ? sqlstore_changed_meanwhile(e, p->root.table) : 0;
}

/* References in rows that stay, which are counted, and in rows that go themselves. */
static int detach_apart(struct sql_store *s, const struct plan *p, const struct node *n,
                        const struct detachment *t, int64_t *ret_outside, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t inside;
    sql_detach(&st, s->engine->dialect, p, n, t, false);
    if (s->engine->execute(s, &st, ret_outside, e) < 0)
        return -1;
    sql_detach(&st, s->engine->dialect, p, n, t, true);
    return plan_loses(p, t->table) ? s->engine->execute(s, &st, &inside, e) : 0;
}

/* The same where rows are changed without a look at others: those that go are locked and counted before. */
static int detach_at_once(struct sql_store *s, const struct plan *p, const struct node *n,
                          const struct detachment *t, int64_t *ret_outside, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t inside = 0, all;
    sql_detach_inside(&st, s->engine->dialect, p, n, t);
    if (plan_loses(p, t->table) && query_rows(s, &st, &inside, e) < 0)
        return -1;
    sql_detach_all(&st, s->engine->dialect, n, t);
    if (s->engine->execute(s, &st, &all, e) < 0)
        return -1;
    *ret_outside = all - inside;
    return 0;
}

static int run_detachment(struct sql_store *s, const struct plan *p, const struct node *n,
                          const struct detachment *t, struct slice *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t outside, left;
    if ((s->engine->dialect->writes_alone ? detach_at_once : detach_apart)(s, p, n, t, &outside, e) < 0)
        return -1;
    ret->detached[t->slot] += outside;
    if (!t->table->update_hooks)
        return 0;
    sql_detach_left(&st, s->engine->dialect, n, t);
    if (sqlstore_query_number(s, &st, &left, e) < 0)
        return -1;
    return left ? sqlstore_kept_by_hooks(e, left, t->table, "stayed attached") : 0;
}

/* Rows that were to go and are still there: not as `where` says any more, or kept. */
static int kids_stayed(struct sql_store *s, const struct plan *p, const struct node *parent,
                       const struct node *n, int64_t left, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t inside = left;
    sql_kids_left(&st, s->engine->dialect, p, parent, n, true);
    if (n->where && sqlstore_query_number(s, &st, &inside, e) < 0)
        return -1;
    return inside ? sqlstore_kept_by_hooks(e, inside, n->table, "stayed")
                  : sqlstore_changed_meanwhile(e, n->table);
}

/* Rows owned by the parent's set that own nothing themselves. */
static int delete_leaf(struct sql_store *s, const struct plan *p, const struct node *parent,
                       const struct node *n, struct slice *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t gone, left;
    sql_delete_kids(&st, s->engine->dialect, p, parent, n);
    if (s->engine->execute(s, &st, &gone, e) < 0)
        return -1;
    ret->gone[n->slot] += gone;
    if (!n->table->delete_hooks && !n->where)
        return 0;
    sql_kids_left(&st, s->engine->dialect, p, parent, n, false);
    if (sqlstore_query_number(s, &st, &left, e) < 0)
        return -1;
    return left ? kids_stayed(s, p, parent, n, left, e) : 0;
}

static int count_set(struct sql_store *s, const struct node *n, int64_t *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    sql_set_left(&st, s->engine->dialect, n);
    return sqlstore_query_number(s, &st, ret, e);
}

static int set_is_gone(struct sql_store *s, const struct node *n, struct err *e)
{
    int64_t left;
    if (count_set(s, n, &left, e) < 0)
        return -1;
    return left ? sqlstore_kept_by_hooks(e, left, n->table, "stayed") : 0;
}

/* The rows of the set to which none refers any more; ret: how many went. */
static int delete_leaves(struct sql_store *s, const struct node *n, int64_t *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int frontier = (int)s->n_sets - 1;
    struct keyset *leaves = &s->sets[frontier];
    *ret = 0;
    sql_leaves(&st, s->engine->dialect, n);
    rows_release(&leaves->rows);
    leaves->node = n;
    if (s->engine->query(s, &st, &leaves->rows, e) < 0)
        return -1;
    leaves->rows.n_columns = n->n_carry;
    if (!leaves->rows.n_rows)
        return 0;
    sql_delete_leaves(&st, s->engine->dialect, n, frontier);
    return s->engine->load_set(s, frontier, e) < 0 ? -1 : s->engine->execute(s, &st, ret, e);
}

/* The subtree from its leaves up, where a foreign key would otherwise act on rows of the same statement:
 * refuse them, or delete them uncounted. Ends with the first pass that finds no leaf: what is left then are
 * cycles, which go at once. */
static int delete_tree(struct sql_store *s, const struct plan *p, const struct node *n, int64_t *gone,
                       struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t leaves, cycles, counted;
    do {
        if (delete_leaves(s, n, &leaves, e) < 0)
            return -1;
        *gone += leaves;
    } while (leaves);
    if (count_set(s, n, &cycles, e) < 0)
        return -1;
    *gone += cycles;
    bool hold = s->engine->dialect->cycles_hold || plan_restricts_circles(p, n);
    if (cycles && hold && sql_break_cycles(&st, s->engine->dialect, n) &&
        s->engine->execute(s, &st, &counted, e) < 0)
        return -1;
    sql_delete_set(&st, s->engine->dialect, n);
    return cycles ? s->engine->execute(s, &st, &counted, e) : 0;
}

/* Where they lie, and by key what is not there any more. */
static int delete_rows(struct sql_store *s, const struct node *n, int64_t *gone, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t there = 0;
    if (sql_delete_set_by_place(&st, s->engine->dialect, n)) {
        if (s->engine->execute(s, &st, &there, e) < 0)
            return -1;
        *gone = there;
        if (there >= (int64_t)s->sets[n->set].rows.n_rows)
            return 0;
    }
    sql_delete_set(&st, s->engine->dialect, n);
    if (s->engine->execute(s, &st, gone, e) < 0)
        return -1;
    *gone += there;
    return 0;
}

/* Rows of the set that are not seen any more may be in a partition that somebody is detaching, which waits
 * for us: they stay, so that what they own must, too. The next try does not see them at all. */
static int none_is_parting(struct sql_store *s, const struct node *n, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    bool any;
    if (n->table->kind != KIND_PARTITIONED || !s->engine->dialect->parting)
        return 0;
    s->engine->dialect->parting(&st, n->table);
    if (sqlstore_query_any(s, &st, &any, e) < 0)
        return -1;
    return any ? err_set(e, ERR_CONFLICT, "a partition of %s is being detached", n->table->print) : 0;
}

/* Fewer than the set holds may be right (a row that two ways lead to went the first time), so ask whether any
 * is still there. */
int sqlstore_count_gone(struct sql_store *s, const struct node *n, bool tree, int64_t gone, struct slice *ret,
                        struct err *e)
{
    int64_t found = (int64_t)s->sets[n->set].rows.n_rows;
    ret->gone[n->slot] += gone;
    if (gone > found)
        return err_set(e, ERR_DATABASE, "%lld keys of %s found %lld rows: the key does not tell rows apart",
                       (long long)found, n->table->print, (long long)gone);
    if (gone == found && !tree)
        return 0;
    return set_is_gone(s, n, e) < 0 || (gone < found && none_is_parting(s, n, e) < 0) ? -1 : 0;
}

/* Rows of a set, by key. */
static int delete_set(struct sql_store *s, const struct plan *p, const struct node *n, struct slice *ret,
                      struct err *e)
{
    bool tree = n->n_grow && p->facts->fkeys_act_at_once;
    int64_t gone = 0;
    if ((tree ? delete_tree(s, p, n, &gone, e) : delete_rows(s, n, &gone, e)) < 0)
        return -1;
    return sqlstore_count_gone(s, n, tree, gone, ret, e);
}

/* Once every trigger has run, the deferred ones too: none of them has put a row back. */
int sqlstore_stays_gone(struct sql_store *s, const struct node *n, struct err *e)
{
    if (n->set < 0 || !s->sets[n->set].rows.n_rows)
        return 0;
    for (size_t i = 0; i < n->n_kids; i++)
        if (sqlstore_stays_gone(s, &n->kids[i], e) < 0)
            return -1;
    return n->table->delete_hooks ? set_is_gone(s, n, e) : 0;
}

int sqlstore_erase(struct sql_store *s, const struct plan *p, const struct node *n, struct slice *ret,
                   struct err *e)
{
    if (!s->sets[n->set].rows.n_rows)
        return 0;
    bool done;
    int result = sqlstore_erase_by_runs(s, p, n, ret, &done, e);
    if (result < 0 || done)
        return result;
    for (size_t i = 0; i < n->n_kids; i++) {
        const struct node *kid = &n->kids[i];
        int r = kid->set < 0 ? delete_leaf(s, p, n, kid, ret, e) : sqlstore_erase(s, p, kid, ret, e);
        if (r < 0)
            return -1;
    }
    for (size_t i = 0; i < n->n_detach; i++)
        if (run_detachment(s, p, n, &n->detach[i], ret, e) < 0)
            return -1;
    return delete_set(s, p, n, ret, e);
}

/* Before anything but the rows of set 0, and what is locked of them, is looked at. */
static int catch_up(struct sql_store *s, const struct plan *p, struct err *e)
{
    bool looks_around = p->judge_again || p->root.n_kids;
    return looks_around && s->engine->catch_up ? s->engine->catch_up(s, e) : 0;
}

/* The one row that was picked. */
static void tell_root(struct sql_store *s, const struct plan *p, struct slice *ret)
{
    ret->key = key_text(&p->root, rows_at(&s->sets[0].rows, 0));
    sqlstore_put_off(p, rows_at(&s->sets[0].rows, 0), &ret->root);
}

static void keep_some(struct sql_store *s, const struct plan *p, struct slice *ret)
{
    const struct rows *roots = &s->sets[0].rows;
    for (size_t i = 0; i < roots->n_rows && i < SLICE_SOME; i++)
        sqlstore_put_off(p, rows_at(roots, i), &ret->some);
    memcpy(ret->transaction, s->transaction, sizeof(ret->transaction));
}

/* What follows once the rows of set 0 are locked. */
static int take_roots(struct sql_store *s, const struct plan *p, struct slice *ret, struct err *e)
{
    if (!ret->picked)
        return 0;
    if (ret->picked == 1)
        tell_root(s, p, ret);
    if (catch_up(s, p, e) < 0 || (p->judge_again && judge(s, p, e) < 0))
        return -1;
    if (p->splits && s->sets[0].rows.n_rows && sqlstore_split(s, p, ret, e) < 0)
        return -1;
    if (!s->sets[0].rows.n_rows)
        return 0;
    s->settled = false;
    keep_some(s, p, ret);
    if (sqlstore_gather(s, &p->root, e) < 0 || sqlstore_still_free(s, p, e) < 0 ||
        sqlstore_erase(s, p, &p->root, ret, e) < 0 || (!s->settled && s->engine->settle(s, e) < 0))
        return -1;
    return sqlstore_stays_gone(s, &p->root, e);
}

/* The rows from..to of these that nobody else holds, where one that somebody holds ends the statement: by
 * halves, down to that row. What a statement locked before it was ended stays locked. */
static int pick_unheld(struct sql_store *s, const struct plan *p, const struct stmt *st,
                       const struct rows *these, size_t from, size_t to, struct rows *all, struct err *e)
{
    AUTO(rows_release) struct rows part = {.n_columns = these->n_columns}, found = {0};
    size_t half = from + (to - from) / 2;
    struct err why = ERR_INIT;
    for (size_t i = from; i < to; i++)
        rows_push(&part, rows_at(these, i));
    set_roots(s, p, &part);
    if (s->engine->load_set(s, 0, e) < 0)
        return -1;
    if (s->engine->query(s, st, &found, &why) == 0) {
        all->n_columns = found.n_columns;
        for (size_t i = 0; i < found.n_rows; i++)
            rows_push(all, rows_at(&found, i));
        return 0;
    }
    if (why.kind != ERR_BUSY) {
        *e = why;
        return -1;
    }
    if (half == from)
        return 0;
    return pick_unheld(s, p, st, these, from, half, all, e) < 0
               ? -1
               : pick_unheld(s, p, st, these, half, to, all, e);
}

/* The statement that locks set 0, for these rows. */
static int pick_set(struct sql_store *s, const struct plan *p, const struct stmt *st,
                    const struct rows *these, struct slice *ret, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (!s->engine->dialect->held_fails)
        return s->engine->load_set(s, 0, e) < 0 ? -1 : sqlstore_pick(s, p, st, ret, &found, e);
    if (pick_unheld(s, p, st, these, 0, these->n_rows, &found, e) < 0)
        return -1;
    set_roots(s, p, &found);
    ret->picked = (int64_t)found.n_rows;
    return 0;
}

int sqlstore_pick_these(struct sql_store *s, const struct plan *p, const struct rows *these,
                        struct slice *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    sqlstore_prepare_sets(s, p);
    set_roots(s, p, these);
    sql_pick_set(&st, s->engine->dialect, p);
    if (pick_set(s, p, &st, these, ret, e) < 0) {
        ret->picked = these->n_rows > 1 ? (int64_t)these->n_rows : 0; /* fewer may do */
        return -1;
    }
    /* Whatever was locked: the next slice begins behind all that were asked for. */
    cursor_set(&ret->end, rows_at(these, these->n_rows - 1) + p->root.n_carry, p->n_order);
    return 0;
}

/* Rows are read, then locked by key. Where others hold all of them, the next are tried: ends where none are
 * found any more, since each reading begins behind the last. */
static int read_and_pick(struct sql_store *s, const struct plan *p, struct stretch in, int64_t most,
                         struct slice *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    do {
        AUTO(rows_release) struct rows found = {0};
        sql_scout(&st, s->engine->dialect, p, &in, most);
        if (s->engine->query(s, &st, &found, e) < 0)
            return -1;
        if (!found.n_rows)
            return 0;
        s->found.wanted |= sqlstore_is_of_one_time(p, &found, most);
        if (sqlstore_pick_these(s, p, &found, ret, e) < 0)
            return -1;
        in.after = &ret->end;
    } while (!ret->picked);
    return 0;
}

static int pick_in(struct sql_store *s, const struct plan *p, const struct stretch *in, int64_t most,
                   struct slice *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    struct stretch rest = *in;
    if (p->sorts && sqlstore_pick_found(s, p, &rest, most, ret, e) < 0)
        return -1;
    if (ret->picked)
        return 0;
    if (s->engine->dialect->picks_by_read)
        return read_and_pick(s, p, rest, most, ret, e);
    sql_pick(&st, s->engine->dialect, p, &rest, most);
    if (sqlstore_pick(s, p, &st, ret, &found, e) < 0)
        return -1;
    s->found.wanted |= sqlstore_is_of_one_time(p, &found, most);
    return 0;
}

/* One state after the other, from the cursor's on. A cursor that stands at none of them (the column took a
 * value for another) is left to the engine. */
static int pick_by_state(struct sql_store *s, const struct plan *p, struct stretch in, int64_t most,
                         struct slice *ret, struct err *e)
{
    size_t at = 0;
    if (in.after && in.after->set)
        while (at < p->n_states && !value_same(&p->states[at], &in.after->values[0]))
            at++;
    if (at == p->n_states)
        return pick_in(s, p, &in, most, ret, e);
    for (; at < p->n_states && !ret->picked; at++) {
        in.first = &p->states[at];
        if (pick_in(s, p, &in, most, ret, e) < 0)
            return -1;
    }
    return 0;
}

static int pick_roots(struct sql_store *s, const struct plan *p, const struct stretch *in, int64_t most,
                      struct slice *ret, struct err *e)
{
    if (p->walk == WALK_PLACE)
        return sqlstore_pick_by_place(s, p, in, most, ret, e);
    if (p->n_states && s->engine->dialect->one_state_each)
        return pick_by_state(s, p, *in, most, ret, e);
    return pick_in(s, p, in, most, ret, e);
}

int sqlstore_slice(struct store *store, const struct plan *p, const struct stretch *in, int64_t most,
                   struct slice *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    int64_t begun = when_monotonic_us();
    sqlstore_prepare_sets(s, p);
    if (pick_roots(s, p, in, most, ret, e) < 0)
        return -1;
    int64_t picked = when_monotonic_us();
    if (take_roots(s, p, ret, e) < 0)
        return -1;
    sqlstore_note_pick(s, p, ret->picked, picked - begun, when_monotonic_us() - picked);
    return 0;
}

int sqlstore_slice_of(struct store *store, const struct plan *p, const struct rows *these, struct slice *ret,
                      struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    return sqlstore_pick_these(s, p, these, ret, e) < 0 ? -1 : take_roots(s, p, ret, e);
}

/* The name alone would not do: after a failover another transaction may have it. */
int sqlstore_look_up(struct store *store, const struct plan *p, const struct slice *of, enum fate *ret,
                     struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    struct sql_store *s = sqlstore_of(store);
    AUTO(rows_release) struct rows there = {0};
    bool committed = false;
    if (sqlstore_begin(store, p, e) < 0)
        return -1;
    sqlstore_prepare_sets(s, p);
    set_roots(s, p, &of->some);
    sql_lock_set(&st, s->engine->dialect, &p->root);
    int result = s->engine->load_set(s, 0, e) < 0 ? -1 : s->engine->query(s, &st, &there, e);
    sqlstore_rollback(store);
    if (result < 0)
        return -1;
    bool all = there.n_rows == of->some.n_rows, asks = !all && of->transaction[0] && s->engine->committed;
    if (asks && s->engine->committed(s, of->transaction, &committed, e) < 0)
        return -1;
    *ret = all ? FATE_NOTHING : committed ? FATE_COMMITTED : there.n_rows ? FATE_MIXED : FATE_GONE;
    return 0;
}

int sqlstore_begin(struct store *store, const struct plan *p, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    s->writing = s->repeatable = true;
    s->ranks = p->beyond ? p->root.table : NULL;
    int r = s->engine->begin_write(s, p->policy->lock_timeout_us, p->policy->statement_timeout_us, e);
    s->ranks = NULL;
    if (r == 0 && p->beyond && s->engine->dialect->ranks_by_row &&
        sqlown_claim_ranks(s, p->root.table, e) < 0) {
        sqlstore_rollback(store);
        r = -1;
    }
    if (r < 0)
        s->writing = s->repeatable = false;
    return r;
}

int sqlstore_mark(struct store *s, struct err *e)
{
    return sqlstore_of(s)->engine->mark(sqlstore_of(s), e);
}

int sqlstore_undo(struct store *s, struct err *e)
{
    return sqlstore_of(s)->engine->undo(sqlstore_of(s), e);
}

int sqlstore_commit(struct store *s, struct err *e)
{
    sqlstore_of(s)->writing = sqlstore_of(s)->repeatable = false;
    return sqlstore_of(s)->engine->commit(sqlstore_of(s), e);
}

void sqlstore_rollback(struct store *s)
{
    sqlstore_of(s)->writing = sqlstore_of(s)->repeatable = false;
    sqlstore_of(s)->engine->rollback(sqlstore_of(s));
}
