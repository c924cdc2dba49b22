/* split: roots whose rows may go ahead of them, in transactions of their own.
 *
 * A slice first asks whether what its roots own of split nodes is more than may go in one transaction. If so,
 * roots that alone own too much stay (heavy), and of the others as many as fit go; the rest is put off.
 * Nothing counts further than it must: a root with millions of rows costs as much as one with a few too many.
 *
 * A heavy root is then gone ahead of, in one transaction after the other: it is locked and judged as ever, so
 * many of its rows go, and it stays. Once the rest fits, all of it goes like any other root. So a row only
 * ever goes while the root that owns it is locked, and due. */
#include "store/sql/store_internal.h"

#include <stdlib.h>
#include <string.h>

enum { AHEAD_KEYS = 10000 }; /* found at once: deleted rows are walked over again by whoever looks for more */

/* --- paths -------------------------------------------------------------------------------------------- */

struct paths {
    struct sql_path *list;
    size_t n;
};

static void paths_release(struct paths *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->list[i].nodes);
    free(p->list);
}

static void add_path(struct paths *to, const struct sql_path *way)
{
    to->list = mem_grow(to->list, to->n + 1, sizeof(*to->list));
    struct sql_path *copy = &to->list[to->n++];
    copy->n = way->n;
    copy->nodes = mem_alloc(way->n * sizeof(*copy->nodes));
    memcpy(copy->nodes, way->nodes, way->n * sizeof(*copy->nodes));
}

/* From the node at the end of the way down to every split node, or to every node. */
static void find_paths(const struct node *n, struct sql_path *way, bool all, struct paths *ret)
{
    way->nodes = mem_grow(way->nodes, way->n + 1, sizeof(*way->nodes));
    way->nodes[way->n++] = n;
    if (way->n > 1 && (n->split || all))
        add_path(ret, way);
    for (size_t i = 0; i < n->n_kids; i++)
        find_paths(&n->kids[i], way, all, ret);
    way->n--;
}

static struct paths paths_from(const struct node *n, bool all)
{
    struct paths ret = {0};
    struct sql_path way = {0};
    find_paths(n, &way, all, &ret);
    free(way.nodes);
    return ret;
}

/* --- how much it is ------------------------------------------------------------------------------------- */

/* How many rows of split nodes the node's set owns; no further than one more than `most`. */
static int count_split(struct sql_store *s, const struct plan *p, const struct node *n, int64_t most,
                       int64_t *ret, struct err *e)
{
    AUTO(paths_release) struct paths paths = paths_from(n, false);
    AUTO(stmt_release) struct stmt st = {0};
    *ret = 0;
    for (size_t i = 0; i < paths.n && *ret <= most; i++) {
        int64_t rows;
        sql_path_count(&st, s->engine->dialect, p, &paths.list[i], most - *ret + 1);
        if (sqlstore_query_number(s, &st, &rows, e) < 0)
            return -1;
        *ret += rows;
    }
    return 0;
}

static void set_of(struct keyset *to, const struct node *n, const struct rows *rows, size_t first,
                   size_t count, size_t columns)
{
    rows_release(&to->rows);
    to->node = n;
    to->rows.n_columns = columns;
    for (size_t i = 0; i < count; i++)
        rows_push(&to->rows, rows_at(rows, first + i));
}

/* Whether what the first so many roots own fits. Set 0 is then what they are with their subtrees. */
static int roots_fit(struct sql_store *s, const struct plan *p, const struct rows *roots, size_t count,
                     int64_t most, bool *ret, struct err *e)
{
    int64_t rows;
    set_of(&s->sets[0], &p->root, roots, 0, count, p->root.n_carry);
    if (sqlstore_grow(s, &p->root, e) < 0 || s->engine->load_set(s, 0, e) < 0 ||
        count_split(s, p, &p->root, most, &rows, e) < 0)
        return -1;
    *ret = rows <= most;
    return 0;
}

void sqlstore_put_off(const struct plan *p, const struct value *carried, struct rows *to)
{
    size_t n = p->root.n_carry;
    AUTO(mem_free_p) struct value *cells = mem_alloc((n + p->n_order) * sizeof(*cells));
    memcpy(cells, carried, n * sizeof(*cells));
    to->n_columns = n + p->n_order;
    rows_push(to, cells);
}

/* Takes out those that alone own too much of one node. */
static int take_out_heavy(struct sql_store *s, const struct plan *p, struct rows *roots, struct slice *ret,
                          struct err *e)
{
    AUTO(paths_release) struct paths paths = paths_from(&p->root, false);
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    struct rows light = {.n_columns = p->root.n_carry};
    sql_heavy(&st, s->engine->dialect, p, paths.list, paths.n, ret->split_most);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    for (size_t i = 0; i < found.n_rows; i++) {
        const struct value *row = rows_at(&found, i);
        if (sqlstore_number(&row[p->root.n_carry]))
            sqlstore_put_off(p, row, &ret->heavy);
        else
            rows_push(&light, row);
    }
    rows_release(roots);
    *roots = light;
    return 0;
}

/* As many roots as fit. One that does not fit alone is heavy. */
static int narrow(struct sql_store *s, const struct plan *p, const struct rows *roots, struct slice *ret,
                  struct err *e)
{
    size_t count = roots->n_rows;
    bool fit = !count;
    while (count && !fit) {
        if (roots_fit(s, p, roots, count, ret->split_most, &fit, e) < 0)
            return -1;
        count = fit ? count : count / 2;
    }
    for (size_t i = count; i < roots->n_rows; i++)
        sqlstore_put_off(p, rows_at(roots, i), i || count ? &ret->put_off : &ret->heavy);
    set_of(&s->sets[0], &p->root, roots, 0, count, p->root.n_carry);
    return 0;
}

static int choose_roots(struct sql_store *s, const struct plan *p, struct rows *roots, struct slice *ret,
                        struct err *e)
{
    bool fit;
    if (roots_fit(s, p, roots, roots->n_rows, ret->split_most, &fit, e) < 0)
        return -1;
    if (fit) {
        set_of(&s->sets[0], &p->root, roots, 0, roots->n_rows, p->root.n_carry);
        return 0;
    }
    if (!p->root.n_grow && roots->n_rows > 1 && take_out_heavy(s, p, roots, ret, e) < 0)
        return -1;
    return narrow(s, p, roots, ret, e);
}

/* --- going ahead ---------------------------------------------------------------------------------------- */

void sqlstore_forget_ahead(struct sql_store *s)
{
    free(s->ahead.root);
    rows_release(&s->ahead.keys);
    memset(&s->ahead, 0, sizeof(s->ahead));
}

static struct keyset *keys_of(struct sql_store *s, int *ret_number)
{
    *ret_number = (int)s->n_sets - 1;
    return &s->sets[*ret_number];
}

/* The next keys of those found before. */
static int next_keys(struct sql_store *s, const struct node *n, int64_t most, struct err *e)
{
    int number;
    struct keyset *keys = keys_of(s, &number);
    size_t left = s->ahead.keys.n_rows - s->ahead.taken, count = left < (size_t)most ? left : (size_t)most;
    set_of(keys, n, &s->ahead.keys, s->ahead.taken, count, n->table->n_key);
    s->ahead.taken += count;
    return s->engine->load_set(s, number, e);
}

static bool has_keys(const struct sql_store *s, const struct node *n, const char *root)
{
    return s->ahead.node == n && root && strcmp(s->ahead.root, root) == 0 &&
           s->ahead.taken < s->ahead.keys.n_rows;
}

/* The keys of some rows of the node go into the last set. root: its key, if that is what owns them; then more
 * are found at once. */
static int find_keys(struct sql_store *s, const struct node *parent, const struct node *n, const char *root,
                     int64_t most, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int64_t at_once = root && most < AHEAD_KEYS ? AHEAD_KEYS : most;
    if (has_keys(s, n, root))
        return next_keys(s, n, most, e);
    sqlstore_forget_ahead(s);
    sql_ahead_keys(&st, s->engine->dialect, parent, n, at_once);
    if (s->engine->query(s, &st, &s->ahead.keys, e) < 0)
        return -1;
    s->ahead.node = n;
    s->ahead.root = mem_strdup(root ? root : "");
    return next_keys(s, n, most, e);
}

/* Rows that own none themselves. Those that others moved or deleted meanwhile are no concern; those that
 * stayed are. */
static int delete_leaves(struct sql_store *s, const struct plan *p, const struct node *parent,
                         const struct node *n, struct slice *ret, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int number;
    int64_t gone, found = (int64_t)keys_of(s, &number)->rows.n_rows, left, inside;
    sql_delete_ahead(&st, s->engine->dialect, p, parent, n, number);
    if (s->engine->execute(s, &st, &gone, e) < 0 || s->engine->settle(s, e) < 0)
        return -1;
    ret->gone[n->slot] += gone;
    if (gone == found && !n->table->delete_hooks)
        return 0;
    sql_ahead_left(&st, s->engine->dialect, p, parent, n, number, false);
    if (sqlstore_query_number(s, &st, &left, e) < 0)
        return -1;
    sql_ahead_left(&st, s->engine->dialect, p, parent, n, number, true);
    if (sqlstore_query_number(s, &st, &inside, e) < 0)
        return -1;
    if (inside)
        return sqlstore_kept_by_hooks(e, inside, n->table, "stayed");
    return left ? sqlstore_changed_meanwhile(e, n->table) : 0;
}

/* Of the keys in the last set, the rows that the parent's set still owns: locked, in the node's own set. */
static int lock_rows(struct sql_store *s, const struct node *parent, const struct node *n, struct err *e)
{
    AUTO(stmt_release) struct stmt st = {0};
    int number;
    keys_of(s, &number);
    struct keyset *set = &s->sets[n->set];
    rows_release(&set->rows);
    set->node = n;
    sql_ahead_lock(&st, s->engine->dialect, parent, n, number);
    if (s->engine->query(s, &st, &set->rows, e) < 0)
        return -1;
    set->rows.n_columns = n->n_carry;
    return s->engine->load_set(s, n->set, e);
}

static int go_ahead(struct sql_store *s, const struct plan *p, const struct node *n, const char *root,
                    struct slice *ret, int64_t *left, struct err *e);

/* Fewer rows of the node's set, until they fit with what they own of split nodes below, or one is left. */
static int narrow_set(struct sql_store *s, const struct plan *p, const struct node *n, int64_t most,
                      int64_t *ret_below, struct err *e)
{
    struct rows *rows = &s->sets[n->set].rows;
    for (;;) {
        if (count_split(s, p, n, most, ret_below, e) < 0)
            return -1;
        if ((int64_t)rows->n_rows + *ret_below <= most || rows->n_rows <= 1)
            return 0;
        struct rows all = *rows;
        *rows = (struct rows){0};
        set_of(&s->sets[n->set], n, &all, 0, all.n_rows / 2, n->n_carry);
        rows_release(&all);
        if (s->engine->load_set(s, n->set, e) < 0)
            return -1;
    }
}

/* Rows with all that they own; a row that owns too much itself is gone ahead of in turn. */
static int erase_rows(struct sql_store *s, const struct plan *p, const struct node *parent,
                      const struct node *n, struct slice *ret, int64_t *left, struct err *e)
{
    int64_t below;
    if (lock_rows(s, parent, n, e) < 0)
        return -1;
    if (!s->sets[n->set].rows.n_rows)
        return 0;
    if (narrow_set(s, p, n, *left, &below, e) < 0)
        return -1;
    if (below && below + 1 > *left) {
        sqlstore_forget_ahead(s); /* these are found again */
        return go_ahead(s, p, n, NULL, ret, left, e);
    }
    int64_t rows = (int64_t)s->sets[n->set].rows.n_rows;
    if (sqlstore_gather(s, n, e) < 0 || sqlstore_still_free(s, p, e) < 0 ||
        sqlstore_erase(s, p, n, ret, e) < 0 || s->engine->settle(s, e) < 0 ||
        sqlstore_stays_gone(s, n, e) < 0)
        return -1;
    *left -= rows + below;
    return 0;
}

static int erase_ahead(struct sql_store *s, const struct plan *p, const struct node *parent,
                       const struct node *n, const char *root, struct slice *ret, int64_t *left,
                       struct err *e)
{
    int number;
    if (find_keys(s, parent, n, root, *left, e) < 0)
        return -1;
    int64_t found = (int64_t)keys_of(s, &number)->rows.n_rows;
    if (!found)
        return 0;
    if (n->set >= 0)
        return erase_rows(s, p, parent, n, ret, left, e);
    *left -= found;
    return delete_leaves(s, p, parent, n, ret, e);
}

/* Rows that stay themselves, but own rows that may go ahead. */
static int erase_below(struct sql_store *s, const struct plan *p, const struct node *parent,
                       const struct node *n, struct slice *ret, int64_t *left, struct err *e)
{
    AUTO(paths_release) struct paths paths = paths_from(n, false);
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows found = {0};
    int number;
    struct keyset *keys = keys_of(s, &number);
    if (!paths.n)
        return 0;
    sql_owners(&st, s->engine->dialect, p, parent, n, paths.list, paths.n, *left);
    if (s->engine->query(s, &st, &found, e) < 0)
        return -1;
    set_of(keys, n, &found, 0, found.n_rows, n->table->n_key);
    if (!found.n_rows)
        return 0;
    if (s->engine->load_set(s, number, e) < 0 || lock_rows(s, parent, n, e) < 0)
        return -1;
    return s->sets[n->set].rows.n_rows ? go_ahead(s, p, n, NULL, ret, left, e) : 0;
}

/* Rows below the node's set, until `left` is used up. */
static int go_ahead(struct sql_store *s, const struct plan *p, const struct node *n, const char *root,
                    struct slice *ret, int64_t *left, struct err *e)
{
    for (size_t i = 0; i<n->n_kids && * left> 0; i++) {
        const struct node *kid = &n->kids[i];
        int r = kid->split ? erase_ahead(s, p, n, kid, root, ret, left, e)
                           : erase_below(s, p, n, kid, ret, left, e);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* Sets of nodes that are not looked at hold nothing: a detachment may ask. */
static int empty_sets(struct sql_store *s, const struct node *n, struct err *e)
{
    for (size_t i = 0; i < n->n_kids; i++) {
        const struct node *kid = &n->kids[i];
        if (kid->set < 0)
            continue;
        s->sets[kid->set].node = kid;
        s->sets[kid->set].rows.n_columns = kid->n_carry;
        if (s->engine->load_set(s, kid->set, e) < 0 || empty_sets(s, kid, e) < 0)
            return -1;
    }
    return 0;
}

static bool has_found(const struct sql_store *s, const struct plan *p, const char *root)
{
    bool found = false;
    for (size_t i = 0; i < p->root.n_kids && !found; i++)
        found = p->root.kids[i].split && has_keys(s, &p->root.kids[i], root);
    return found;
}

/* While keys are left of those found, there is too much; else it is counted again. */
static int ahead_of_root(struct sql_store *s, const struct plan *p, const struct rows *roots,
                         struct slice *ret, struct err *e)
{
    bool fit = false;
    int64_t left = ret->split_most;
    if (has_found(s, p, ret->key)) {
        if (sqlstore_grow(s, &p->root, e) < 0 || s->engine->load_set(s, 0, e) < 0)
            return -1;
    } else if (roots_fit(s, p, roots, 1, ret->split_most, &fit, e) < 0) {
        return -1;
    }
    if (!fit && (empty_sets(s, &p->root, e) < 0 || go_ahead(s, p, &p->root, ret->key, ret, &left, e) < 0))
        return -1;
    ret->stays = left < ret->split_most; /* nothing that could be found by its key: it goes with the row */
    set_of(&s->sets[0], &p->root, roots, 0, ret->stays ? 0 : 1, p->root.n_carry);
    return 0;
}

int sqlstore_split(struct sql_store *s, const struct plan *p, struct slice *ret, struct err *e)
{
    struct rows roots = s->sets[0].rows;
    s->sets[0].rows = (struct rows){0};
    set_of(&s->sets[0], &p->root, &roots, 0, roots.n_rows, p->root.n_carry);
    bool ahead = ret->ahead && roots.n_rows == 1;
    if (!ahead)
        sqlstore_forget_ahead(s);
    int r = ahead ? ahead_of_root(s, p, &roots, ret, e) : choose_roots(s, p, &roots, ret, e);
    if (r < 0)
        sqlstore_forget_ahead(s);
    rows_release(&roots);
    return r;
}

/* --- what a row weighs ---------------------------------------------------------------------------------- */

static int weigh(struct sql_store *s, const struct plan *p, int64_t most, int64_t *ret, struct err *e)
{
    AUTO(paths_release) struct paths paths = paths_from(&p->root, true);
    AUTO(stmt_release) struct stmt st = {0};
    for (size_t i = 0; i < paths.n; i++) {
        const struct sql_path *path = &paths.list[i];
        int64_t rows;
        sql_path_count(&st, s->engine->dialect, p, path, most);
        if (sqlstore_query_number(s, &st, &rows, e) < 0)
            return -1;
        ret[path->nodes[path->n - 1]->slot] += rows;
    }
    return 0;
}

int sqlstore_weigh(struct store *store, const struct plan *p, const struct rows *root, int64_t most,
                   int64_t timeout_us, int64_t *ret, struct err *e)
{
    struct sql_store *s = sqlstore_of(store);
    memset(ret, 0, p->n_slots * sizeof(*ret));
    int r = s->engine->begin_read(s, timeout_us, e);
    if (r == 0) {
        sqlstore_prepare_sets(s, p);
        set_of(&s->sets[0], &p->root, root, 0, 1, p->root.n_carry);
        r = s->engine->load_set(s, 0, e);
    }
    if (r == 0)
        r = weigh(s, p, most, ret, e);
    s->engine->rollback(s);
    return r;
}

/* --- for people ----------------------------------------------------------------------------------------- */

static void explain_ahead(const struct dialect *d, const struct plan *p, const struct node *n,
                          struct text *out)
{
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(text_release) struct text what = {0};
    for (size_t i = 0; i < n->n_kids; i++) {
        const struct node *kid = &n->kids[i];
        explain_ahead(d, p, kid, out);
        if (!kid->split)
            continue;
        sql_ahead_keys(&st, d, n, kid, AHEAD_KEYS);
        text_addf(&what, "a row that owns more: find rows of %s that may go ahead of it, set %d",
                  kid->table->print, p->n_sets);
        sqlstore_show(out, d, &st, text_str(&what));
        text_clear(&what);
        if (kid->set < 0)
            sql_delete_ahead(&st, d, p, n, kid, p->n_sets);
        else
            sql_ahead_lock(&st, d, n, kid, p->n_sets);
        text_addf(&what, "%s as many of them as go in one transaction%s", kid->set < 0 ? "delete" : "lock",
                  kid->set < 0 ? "" : ", and delete them as below");
        sqlstore_show(out, d, &st, text_str(&what));
        text_clear(&what);
    }
}

void sqlstore_explain_split(const struct dialect *d, const struct plan *p, struct text *out)
{
    AUTO(paths_release) struct paths paths = paths_from(&p->root, false);
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(text_release) struct text what = {0};
    for (size_t i = 0; i < paths.n; i++) {
        const struct sql_path *path = &paths.list[i];
        sql_path_count(&st, d, p, path, p->policy->batch + 1);
        text_addf(&what, "is it more of %s than goes in one transaction?",
                  path->nodes[path->n - 1]->table->print);
        sqlstore_show(out, d, &st, text_str(&what));
        text_clear(&what);
    }
    if (!paths.n)
        return;
    sql_heavy(&st, d, p, paths.list, paths.n, p->policy->batch);
    sqlstore_show(out, d, &st, "if so: which rows alone own more? These stay until the others are gone");
    explain_ahead(d, p, &p->root, out);
}
