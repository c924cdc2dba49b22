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
#include "sqlstore.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE_ROWS = 1000 };

/* --- sets ------------------------------------------------------------------------------------ */

void sql_store_release(struct sql_store *s)
{
    for (size_t i = 0; i < s->n_sets; i++)
        rows_release(&s->sets[i].rows);
    free(s->sets);
    s->sets = NULL;
    s->n_sets = 0;
}

/* The plan's sets, and one more for the rows found last while a subtree is gathered. */
static void prepare_sets(struct sql_store *s, const struct plan *p)
{
    sql_store_release(s);
    s->n_sets = (size_t)p->n_sets + 1;
    s->sets = mem_alloc(s->n_sets * sizeof(*s->sets));
}

static bool same_value(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case VALUE_NULL:
        return true;
    case VALUE_INTEGER:
        return a->integer == b->integer;
    case VALUE_REAL:
        return memcmp(&a->real, &b->real, sizeof(a->real)) == 0;
    case VALUE_TEXT:
    case VALUE_BLOB:
        break;
    }
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
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
        while (same < k->n_key && same_value(&row[same], &other[same]))
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

static struct sql_store *of(struct store *s)
{
    return (struct sql_store *)s;
}

static int64_t number(const struct value *v)
{
    if (v->kind == VALUE_INTEGER)
        return v->integer;
    if (v->kind == VALUE_REAL)
        return (int64_t)v->real;
    return v->kind == VALUE_TEXT ? strtoll(v->text, NULL, 10) : 0;
}

static int query_number(struct sql_store *s, const struct stmt *st, int64_t *ret, struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    if (s->engine->query(s, st, &r, e) < 0)
        return -1;
    *ret = r.n_rows ? number(rows_at(&r, 0)) : 0;
    return 0;
}

static int query_any(struct sql_store *s, const struct stmt *st, bool *ret, struct err *e)
{
    AUTO(rows_release) struct rows r = {0};
    if (s->engine->query(s, st, &r, e) < 0)
        return -1;
    *ret = r.n_rows > 0;
    return 0;
}

static int kept_by_hooks(struct err *e, int64_t left, const struct table *t, const char *what)
{
    return err_set(e, ERR_REFUSED, "%lld row%s of %s %s: a trigger or a rule kept %s", (long long)left,
                   left == 1 ? "" : "s", t->print, what, left == 1 ? "it" : "them");
}

/* What rows own changed between the judgement and its lock: the whole transaction again, it will find out. */
static int changed_meanwhile(struct err *e, const struct table *t)
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

/* The rows that a picking statement locks become set 0. */
static int pick(struct sql_store *s, const struct plan *p, const struct stmt *st, struct slice *ret,
                struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    if (s->engine->query(s, st, &found, e) < 0)
        return -1;
    set_roots(s, p, &found);
    ret->picked = (int64_t)found.n_rows;
    if (found.n_rows)
        cursor_set(&ret->end, rows_at(&found, found.n_rows - 1) + p->root.n_carry, p->n_order);
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
    if (query_number(s, &st, &locked, e) < 0)
        return -1;
    sql_source_there(&st, s->engine->dialect, p);
    if (query_number(s, &st, &there, e) < 0)
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
static int grow(struct sql_store *s, const struct node *n, struct err *e)
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

static int gather(struct sql_store *s, const struct node *n, struct err *e)
{
    if (grow(s, n, e) < 0 || s->engine->load_set(s, n->set, e) < 0)
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
        if (gather(s, kid, e) < 0)
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

static int still_free(struct sql_store *s, const struct plan *p, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t waiting;
    if (!p->free_ || !locks_with_where(&p->root, true))
        return 0;
    sql_set_waiting(&st, s->engine->dialect, p);
    if (query_number(s, &st, &waiting, e) < 0)
        return -1;
    return waiting ? changed_meanwhile(e, p->root.table) : 0;
}

static int run_detachment(struct sql_store *s, const struct plan *p, const struct node *n,
                          const struct detachment *t, struct slice *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t outside, inside, left;
    sql_detach(&st, s->engine->dialect, p, n, t, false);
    if (s->engine->execute(s, &st, &outside, e) < 0)
        return -1;
    ret->detached[t->slot] += outside;
    if (plan_loses(p, t->table)) {
        sql_detach(&st, s->engine->dialect, p, n, t, true);
        if (s->engine->execute(s, &st, &inside, e) < 0)
            return -1;
    }
    if (!t->table->update_hooks)
        return 0;
    sql_detach_left(&st, s->engine->dialect, n, t);
    if (query_number(s, &st, &left, e) < 0)
        return -1;
    return left ? kept_by_hooks(e, left, t->table, "stayed attached") : 0;
}

/* Rows that were to go and are still there: not as `where` says any more, or kept. */
static int kids_stayed(struct sql_store *s, const struct plan *p, const struct node *parent,
                       const struct node *n, int64_t left, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t inside = left;
    sql_kids_left(&st, s->engine->dialect, p, parent, n, true);
    if (n->where && query_number(s, &st, &inside, e) < 0)
        return -1;
    return inside ? kept_by_hooks(e, inside, n->table, "stayed") : changed_meanwhile(e, n->table);
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
    if (query_number(s, &st, &left, e) < 0)
        return -1;
    return left ? kids_stayed(s, p, parent, n, left, e) : 0;
}

static int count_set(struct sql_store *s, const struct node *n, int64_t *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    sql_set_left(&st, s->engine->dialect, n);
    return query_number(s, &st, ret, e);
}

static int set_is_gone(struct sql_store *s, const struct node *n, struct err *e)
{
    int64_t left;
    if (count_set(s, n, &left, e) < 0)
        return -1;
    return left ? kept_by_hooks(e, left, n->table, "stayed") : 0;
}

/* The subtree from its leaves up, where a foreign key would otherwise act on rows of the same statement:
 * refuse them, or delete them uncounted. Ends with the first pass that finds no leaf: what is left then are
 * cycles, which go at once. */
static int delete_tree(struct sql_store *s, const struct node *n, int64_t *gone, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t leaves, cycles, counted;
    sql_delete_leaves(&st, s->engine->dialect, n);
    do {
        if (s->engine->execute(s, &st, &leaves, e) < 0)
            return -1;
        *gone += leaves;
    } while (leaves);
    if (count_set(s, n, &cycles, e) < 0)
        return -1;
    *gone += cycles;
    sql_delete_set(&st, s->engine->dialect, n);
    return cycles ? s->engine->execute(s, &st, &counted, e) : 0;
}

static int delete_rows(struct sql_store *s, const struct node *n, int64_t *gone, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    sql_delete_set(&st, s->engine->dialect, n);
    return s->engine->execute(s, &st, gone, e);
}

/* Rows of a set, by key. Fewer than the set holds may be right (a row that two ways lead to went the first
 * time), so ask whether any is still there. */
static int delete_set(struct sql_store *s, const struct plan *p, const struct node *n, struct slice *ret,
                      struct err *e)
{
    bool tree = n->n_grow && p->facts->fkeys_act_at_once;
    int64_t gone = 0;
    int64_t found = (int64_t)s->sets[n->set].rows.n_rows;
    if (!found)
        return 0;
    if ((tree ? delete_tree(s, n, &gone, e) : delete_rows(s, n, &gone, e)) < 0)
        return -1;
    ret->gone[n->slot] += gone;
    if (gone > found)
        return err_set(e, ERR_DATABASE, "%lld keys of %s found %lld rows: the key does not tell rows apart",
                       (long long)found, n->table->print, (long long)gone);
    return gone == found && !tree ? 0 : set_is_gone(s, n, e);
}

/* Once every trigger has run, the deferred ones too: none of them has put a row back. */
static int stays_gone(struct sql_store *s, const struct node *n, struct err *e)
{
    if (n->set < 0 || !s->sets[n->set].rows.n_rows)
        return 0;
    for (size_t i = 0; i < n->n_kids; i++)
        if (stays_gone(s, &n->kids[i], e) < 0)
            return -1;
    return n->table->delete_hooks ? set_is_gone(s, n, e) : 0;
}

static int erase(struct sql_store *s, const struct plan *p, const struct node *n, struct slice *ret,
                 struct err *e)
{
    if (!s->sets[n->set].rows.n_rows)
        return 0;
    for (size_t i = 0; i < n->n_kids; i++) {
        const struct node *kid = &n->kids[i];
        int r = kid->set < 0 ? delete_leaf(s, p, n, kid, ret, e) : erase(s, p, kid, ret, e);
        if (r < 0)
            return -1;
    }
    for (size_t i = 0; i < n->n_detach; i++)
        if (run_detachment(s, p, n, &n->detach[i], ret, e) < 0)
            return -1;
    return delete_set(s, p, n, ret, e);
}

/* What follows once the rows of set 0 are locked. */
static int take_roots(struct sql_store *s, const struct plan *p, struct slice *ret, struct err *e)
{
    if (!ret->picked)
        return 0;
    if (ret->picked == 1)
        ret->key = key_text(&p->root, rows_at(&s->sets[0].rows, 0));
    if (p->judge_again && judge(s, p, e) < 0)
        return -1;
    if (!s->sets[0].rows.n_rows)
        return 0;
    if (gather(s, &p->root, e) < 0 || still_free(s, p, e) < 0 || erase(s, p, &p->root, ret, e) < 0)
        return -1;
    return s->engine->settle(s, e) < 0 ? -1 : stays_gone(s, &p->root, e);
}

int sqlstore_slice(struct store *store, const struct plan *p, const struct cursor *from, int64_t most,
                   struct slice *ret, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(stmt_release) struct stmt st = {0};
    prepare_sets(s, p);
    sql_pick(&st, s->engine->dialect, p, from, most);
    return pick(s, p, &st, ret, e) < 0 ? -1 : take_roots(s, p, ret, e);
}

int sqlstore_slice_of(struct store *store, const struct plan *p, const struct rows *these, struct slice *ret,
                      struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(stmt_release) struct stmt st = {0};
    prepare_sets(s, p);
    set_roots(s, p, these);
    sql_pick_set(&st, s->engine->dialect, p);
    if (s->engine->load_set(s, 0, e) < 0 || pick(s, p, &st, ret, e) < 0)
        return -1;
    /* Whatever was locked: the next slice begins behind all that were asked for. */
    cursor_set(&ret->end, rows_at(these, these->n_rows - 1) + p->root.n_carry, p->n_order);
    return take_roots(s, p, ret, e);
}

int sqlstore_begin(struct store *store, const struct plan *p, struct err *e)
{
    struct sql_store *s = of(store);
    s->writing = true;
    return s->engine->begin_write(s, p->policy->lock_timeout_us, p->policy->statement_timeout_us, e);
}

int sqlstore_mark(struct store *s, struct err *e)
{
    return of(s)->engine->mark(of(s), e);
}

int sqlstore_undo(struct store *s, struct err *e)
{
    return of(s)->engine->undo(of(s), e);
}

int sqlstore_commit(struct store *s, struct err *e)
{
    of(s)->writing = false;
    return of(s)->engine->commit(of(s), e);
}

void sqlstore_rollback(struct store *s)
{
    of(s)->writing = false;
    of(s)->engine->rollback(of(s));
}

/* --- reading
 * -------------------------------------------------------------------------------------------------- */

/* Runs one reading function in a transaction that cannot write and is always rolled back. */
static int reading(struct sql_store *s, const struct plan *p, struct err *e)
{
    return s->engine->begin_read(s, p->policy->statement_timeout_us, e);
}

int sqlstore_look_begin(struct store *store, int64_t statement_timeout_us, struct err *e)
{
    struct sql_store *s = of(store);
    s->looking = s->engine->begin_read(s, statement_timeout_us, e) == 0;
    return s->looking ? 0 : -1;
}

void sqlstore_look_end(struct store *store)
{
    struct sql_store *s = of(store);
    s->looking = false;
    s->engine->rollback(s);
}

int sqlstore_probe(struct store *store, const struct plan *p, bool *ret, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sql_probe(&st, s->engine->dialect, p);
    if (s->looking)
        return query_any(s, &st, ret, e);
    int r = reading(s, p, e);
    if (r == 0)
        r = query_any(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_scout(struct store *store, const struct plan *p, const struct cursor *from, int64_t most,
                   struct rows *ret, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sql_scout(&st, s->engine->dialect, p, from, most);
    if (s->writing)
        return s->engine->query(s, &st, ret, e);
    int r = reading(s, p, e);
    if (r == 0)
        r = s->engine->query(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_size(struct store *store, const struct plan *p, int64_t *ret, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sql_size(&st, s->engine->dialect, p);
    int r = reading(s, p, e);
    if (r == 0)
        r = query_number(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_remaining(struct store *store, const struct plan *p, int64_t most, int64_t *ret, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sql_remaining(&st, s->engine->dialect, p, most);
    int r = reading(s, p, e);
    if (r == 0)
        r = query_number(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

/* The rows that were not read are younger: those that were came in the order of their time. */
static bool oldest_first(const struct plan *p)
{
    return p->n_times == 1 && p->n_order && p->order[0] == p->times[0].column;
}

int sqlstore_backlog(struct store *store, const struct plan *p, int64_t most, int64_t timeout_us,
                     struct backlog *ret, struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    sql_backlog(&st, s->engine->dialect, p, most);
    int r = s->engine->begin_read(s, timeout_us, e);
    if (r == 0)
        r = s->engine->query(s, &st, &found, e);
    s->engine->rollback(s);
    if (r < 0)
        return -1;
    const struct value *row = rows_at(&found, 0);
    *ret = (struct backlog){.rows = number(&row[0])};
    ret->has_oldest = row[1].kind != VALUE_NULL && (ret->rows < most || oldest_first(p));
    ret->oldest = ret->has_oldest ? number(&row[1]) : 0;
    return 0;
}

static void read_counts(const struct plan *p, const struct value *row, struct due *ret)
{
    for (size_t i = 0; i < p->n_slots; i++)
        ret->gone[i] = number(row++);
    for (size_t i = 0; i < p->n_detach_slots; i++)
        ret->detached[i] = number(row++);
    ret->has_range = row[0].kind != VALUE_NULL;
    ret->oldest = number(&row[0]);
    ret->newest = number(&row[1]);
}

static int count_in(struct sql_store *s, const struct plan *p, struct due *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows counts = {0}, kept = {0};
    sql_count(&st, s->engine->dialect, p);
    if (s->engine->query(s, &st, &counts, e) < 0)
        return -1;
    read_counts(p, rows_at(&counts, 0), ret);
    sql_kept(&st, s->engine->dialect, p);
    if (s->engine->query(s, &st, &kept, e) < 0)
        return -1;
    const struct value *row = rows_at(&kept, 0);
    ret->null_time = number(&row[0]);
    ret->unreadable_time = number(&row[1]);
    ret->held = number(&row[2]);
    ret->waiting = number(&row[3]);
    return 0;
}

int sqlstore_count(struct store *store, const struct plan *p, struct due *ret, struct err *e)
{
    struct sql_store *s = of(store);
    int r = reading(s, p, e);
    if (r == 0)
        r = count_in(s, p, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_has_value(struct store *store, const struct table *t, const struct expr *is, bool *ret,
                       struct err *e)
{
    struct sql_store *s = of(store);
    AUTO(stmt_release) struct stmt st = {0};
    sql_has(&st, s->engine->dialect, t, is);
    int r = s->engine->begin_read(s, 30 * US_PER_S, e);
    if (r == 0)
        r = query_any(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

enum { EXAMPLE_SIZE = sizeof(((struct time_sample *)0)->example) };
_Static_assert(sizeof(((struct disorder *)0)->one) == EXAMPLE_SIZE, "examples are of one size");

static void print_example(char to[EXAMPLE_SIZE], const struct value *v)
{
    AUTO(text_release) struct text t = {0};
    value_print(v, &t);
    size_t len = t.len < EXAMPLE_SIZE - 1 ? t.len : EXAMPLE_SIZE - 1;
    memcpy(to, text_str(&t), len);
    to[len] = '\0';
}

static void set_example(struct time_sample *ret, const struct value *v)
{
    if (!ret->example[0])
        print_example(ret->example, v);
}

/* PostgreSQL gives whole numbers as texts; SQLite keeps in a column of whole numbers any text that is none.
 */
static bool is_whole(const struct value *v)
{
    if (v->kind != VALUE_TEXT)
        return v->kind == VALUE_INTEGER;
    size_t sign = v->text[0] == '-';
    return v->len > sign && strspn(v->text + sign, "0123456789") == v->len - sign;
}

static void sample_integer(const struct time_column *t, const struct value *v, struct time_sample *ret)
{
    if (!is_whole(v)) {
        ret->unreadable++;
        set_example(ret, v);
        return;
    }
    int64_t i = number(v);
    ret->plausible_s += time_is_plausible(i, US_PER_S);
    ret->plausible_ms += time_is_plausible(i, US_PER_MS);
    ret->plausible_us += time_is_plausible(i, 1);
    if (!time_is_plausible(i, t->unit_us))
        set_example(ret, v);
}

static void sample_text(const struct time_column *t, const struct value *v, struct time_sample *ret)
{
    instant ignored;
    size_t len = v->kind == VALUE_TEXT ? v->len : 0;
    while (len && v->text[len - 1] == ' ') /* a char(n) comes padded */
        len--;
    if (len && when_parse(v->text, len, t->zone, &ignored))
        return;
    ret->unreadable++;
    set_example(ret, v);
}

static int sample_of(struct sql_store *s, const struct plan *p, const struct column *c, struct rows *ret,
                     struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    sql_sample(&st, s->engine->dialect, p, c, SAMPLE_ROWS);
    int r = reading(s, p, e);
    if (r == 0)
        r = s->engine->query(s, &st, ret, e);
    s->engine->rollback(s);
    return r;
}

int sqlstore_sample(struct store *store, const struct plan *p, size_t time, struct time_sample *ret,
                    struct err *e)
{
    struct sql_store *s = of(store);
    const struct time_column *t = &p->times[time];
    AUTO(rows_release) struct rows found = {0};
    *ret = (struct time_sample){0};
    int r = sample_of(s, p, t->column, &found, e);
    for (size_t i = 0; r == 0 && i < found.n_rows; i++) {
        ret->n++;
        if (t->encoding == TIME_INTEGER)
            sample_integer(t, rows_at(&found, i), ret);
        else if (t->encoding == TIME_TEXT)
            sample_text(t, rows_at(&found, i), ret);
    }
    return r;
}

static bool is_number(const struct value *v)
{
    return v->kind == VALUE_INTEGER || v->kind == VALUE_REAL;
}

/* How a time is written, as far as it decides how texts sort: what stands between date and time, whether
 * there are seconds, and the offset. A fraction moves a time by less than a second. */
struct form {
    char between;
    bool seconds;
    const char *offset;
    size_t offset_len;
};

static bool form_of(const struct value *v, struct form *ret)
{
    instant ignored;
    size_t len = v->kind == VALUE_TEXT ? v->len : 0;
    while (len && v->text[len - 1] == ' ')
        len--;
    if (len < 16 || !when_parse(v->text, len, NULL, &ignored))
        return false;
    size_t at = 16; /* YYYY-MM-DDTHH:MM */
    *ret = (struct form){.between = v->text[10], .seconds = v->text[at] == ':'};
    while (at < len && !strchr("Zz+-", v->text[at]))
        at++;
    ret->offset = v->text + at;
    ret->offset_len = len - at;
    return true;
}

static bool same_form(const struct form *a, const struct form *b)
{
    return a->between == b->between && a->seconds == b->seconds && a->offset_len == b->offset_len &&
           memcmp(a->offset, b->offset, a->offset_len) == 0;
}

static bool clash(const struct value *a, const struct value *b, struct disorder *ret)
{
    struct form of_a, of_b;
    ret->of_times = is_number(a) == is_number(b);
    if (ret->of_times && (!form_of(a, &of_a) || !form_of(b, &of_b) || same_form(&of_a, &of_b)))
        return false;
    print_example(ret->one, a);
    print_example(ret->other, b);
    return true;
}

/* Each against the first of all, which is a number or none, and against the first that is a time. */
static void find_disorder(const struct rows *r, struct disorder *ret)
{
    struct form ignored;
    const struct value *time = NULL;
    for (size_t i = 0; i < r->n_rows && !ret->found; i++) {
        const struct value *v = rows_at(r, i);
        ret->found = clash(rows_at(r, 0), v, ret) || (time && clash(time, v, ret));
        if (!time && form_of(v, &ignored))
            time = v;
    }
}

int sqlstore_disorder(struct store *store, const struct plan *p, const struct column *c, struct disorder *ret,
                      struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    *ret = (struct disorder){0};
    int r = sample_of(of(store), p, c, &found, e);
    if (r == 0)
        find_disorder(&found, ret);
    return r;
}

/* --- what the engine thinks of it
 * -------------------------------------------------------------------------------- */

static int scan_conditions(const struct dialect *d, const struct plan *p, const struct expr *x, struct err *e)
{
    if (!x)
        return 0;
    if (x->kind == EXPR_SQL) {
        if (sql_condition(NULL, d, "this", x->sql, p->now, e) < 0)
            return -1;
        return sql_now_is_time(d, x->sql, p->facts, x->table, e);
    }
    for (size_t i = 0; i < x->n_kids; i++)
        if (scan_conditions(d, p, x->kids[i], e) < 0)
            return -1;
    return 0;
}

/* A condition on another table's rows must hold its own there: beside the swept row, a column that only the
 * swept table has would be taken from that one, and the condition would be about the wrong row. */
static int accepts_alone(struct sql_store *s, const struct plan *p, const struct table *t,
                         const struct expr *x, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    if (!x)
        return 0;
    sql_alone(&st, s->engine->dialect, p, t, x);
    return s->engine->accepts(s, &st, e);
}

static int accepts_nodes(struct sql_store *s, const struct plan *p, const struct node *n, struct err *e)
{
    for (size_t i = 0; i < n->n_grow; i++)
        if (accepts_alone(s, p, n->table, n->grow_where[i], e) < 0)
            return -1;
    for (size_t i = 0; i < n->n_after; i++)
        if (n->after[i]->n_kids && accepts_alone(s, p, n->after[i]->table, n->after[i]->kids[0], e) < 0)
            return -1;
    for (size_t i = 0; i < n->n_kids; i++)
        if (accepts_alone(s, p, n->kids[i].table, n->kids[i].where, e) < 0 ||
            accepts_nodes(s, p, &n->kids[i], e) < 0)
            return -1;
    return 0;
}

static bool has_sql(const struct expr *x)
{
    bool found = x->kind == EXPR_SQL;
    for (size_t i = 0; i < x->n_kids && !found; i++)
        found = has_sql(x->kids[i]);
    return found;
}

/* A condition that writes is found out when it is carried out, in a transaction that cannot. */
static int accepts_matching(struct sql_store *s, const struct plan *p, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    bool ignored;
    if (!p->matching)
        return 0;
    if (accepts_alone(s, p, p->source, p->matching, e) < 0)
        return -1;
    sql_try(&st, s->engine->dialect, p, p->source, p->matching);
    return has_sql(p->matching) ? query_any(s, &st, &ignored, e) : 0;
}

int sqlstore_accepts(struct store *store, const struct plan *p, struct err *e)
{
    struct sql_store *s = of(store);
    const struct dialect *d = s->engine->dialect;
    /* Conditions of owned rows are in there too: they say what a row waits for. */
    if (scan_conditions(d, p, p->due, e) < 0 || scan_conditions(d, p, p->matching, e) < 0)
        return -1;
    AUTO(stmt_release) struct stmt st = {0};
    sql_probe(&st, d, p);
    int r = reading(s, p, e);
    if (r == 0)
        r = s->engine->accepts(s, &st, e);
    if (r == 0 && p->beyond) { /* whose probe does not rank */
        sql_remaining(&st, d, p, 1);
        r = s->engine->accepts(s, &st, e);
    }
    if (r == 0) {
        sql_count(&st, d, p);
        r = s->engine->accepts(s, &st, e);
    }
    if (r == 0)
        r = accepts_nodes(s, p, &p->root, e);
    if (r == 0)
        r = accepts_matching(s, p, e);
    s->engine->rollback(s);
    return r;
}

/* --- for people
 * ----------------------------------------------------------------------------------------------------- */

static void show(struct text *out, const struct stmt *st, const char *what)
{
    text_addf(out, "-- %s\n%s;\n", what, text_str(&st->sql));
    for (size_t i = 0; i < st->n_params; i++) {
        const struct param *m = &st->params[i];
        text_addf(out, "--   %zu = ", i + 1);
        if (m->set >= 0)
            text_addf(out, "keys of set %d", m->set);
        else
            value_print(&m->value, out);
        text_add(out, "\n");
    }
    text_add(out, "\n");
}

static void explain_gather(const struct dialect *d, const struct plan *p, const struct node *n,
                           struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(text_release) struct text what = {0};
    for (size_t way = 0; way < n->n_grow; way++) {
        sql_grow(&st, d, n, way, p->n_sets);
        text_clear(&what);
        text_addf(&what, "lock the subtree, level by level, into set %d", n->set);
        show(out, &st, text_str(&what));
    }
    for (size_t i = 0; i < n->n_kids; i++) {
        if (n->kids[i].set < 0)
            continue;
        sql_pick_kids(&st, d, n, &n->kids[i]);
        text_clear(&what);
        text_addf(&what, "lock owned rows of %s into set %d", n->kids[i].table->print, n->kids[i].set);
        show(out, &st, text_str(&what));
        explain_gather(d, p, &n->kids[i], out);
    }
}

static void explain_erase(const struct dialect *d, const struct plan *p, const struct node *n,
                          struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(text_release) struct text what = {0};
    for (size_t i = 0; i < n->n_kids; i++) {
        if (n->kids[i].set >= 0) {
            explain_erase(d, p, &n->kids[i], out);
            continue;
        }
        sql_delete_kids(&st, d, p, n, &n->kids[i]);
        text_clear(&what);
        text_addf(&what, "delete owned rows of %s", n->kids[i].table->print);
        show(out, &st, text_str(&what));
    }
    for (size_t i = 0; i < n->n_detach; i++) {
        sql_detach(&st, d, p, n, &n->detach[i], false);
        text_clear(&what);
        text_addf(&what, "detach rows of %s", n->detach[i].table->print);
        show(out, &st, text_str(&what));
    }
    sql_delete_set(&st, d, n);
    text_clear(&what);
    text_addf(&what, "delete the rows of %s", n->table->print);
    show(out, &st, text_str(&what));
}

void sqlstore_explain(struct store *store, const struct plan *p, struct text *out)
{
    const struct dialect *d = of(store)->engine->dialect;
    AUTO(stmt_release) struct stmt st = {0};
    if (p->examines) {
        sql_scout(&st, d, p, NULL, SCOUT_MOST);
        show(out, &st,
             "find rows that look due, for many batches at once; a batch is so many of them, set 0");
        sql_pick_set(&st, d, p);
        show(out, &st, "lock those of set 0 that are still as they were");
    } else {
        sql_pick(&st, d, p, NULL, p->policy->batch == BATCH_ALL ? SLICE_ALL : p->policy->batch);
        show(out, &st, "pick and lock due rows into set 0 (later batches begin after the last row)");
    }
    if (p->source_locked && d->locks_rows) {
        sql_lock_source(&st, d, p);
        show(out, &st, "lock the source rows of set 0, so that they stay as they are judged");
    }
    if (p->judge_again) {
        sql_judge(&st, d, p);
        show(out, &st, "judge again what looks at other rows");
    }
    explain_gather(d, p, &p->root, out);
    explain_erase(d, p, &p->root, out);
}
