/* own_trust: whether lapse's own tables are trusted. Whoever owns a table, or may hang a trigger on it,
 * has code run with the rights of those who use it, and decides about leases, fuses and purges. So the
 * catalog is asked before the first statement that touches one of them. */
#include <string.h>

#include "base/quote.h"
#include "store/sql/own_internal.h"

enum { FOUND_MOST = 4 }; /* that are told one by one */

/* "say own_owner: mallory in the contract" */
static void add_line(struct text *out, const char *who)
{
    text_add(out, "if that is right, say own_owner: ");
    yaml_scalar(out, who, false);
    text_add(out, " in the contract; else ");
}

static int refuse(const struct rows *found, struct err *e)
{
    AUTO(text_release) struct text t = {0};
    for (size_t i = 0; i < found->n_rows && i < FOUND_MOST; i++) {
        const struct value *v = rows_at(found, i);
        text_addf(&t, "%s%s (", i ? "; " : "", v[0].text);
        if (v[2].kind == VALUE_TEXT)
            add_line(&t, v[2].text);
        text_addf(&t, "%s)", v[1].text);
    }
    if (found->n_rows > FOUND_MOST)
        text_addf(&t, "; and %zu more", found->n_rows - FOUND_MOST);
    return err_set(e, ERR_FINDINGS, "lapse's own tables are not trusted, and not touched: %s", text_str(&t));
}

int sqlown_trust(struct sql_store *s, const char *names, bool inside, struct err *e)
{
    AUTO(rows_release) struct rows found = {0};
    const struct store *store = &s->store;
    const struct own_arg args[] = {{ARG_NAME, .name = store->own.schema},
                                   {ARG_NAME, .name = store->own_owner, .null = !store->own_owner},
                                   {ARG_COUNT, .number = store->own_schema != NULL},
                                   {ARG_NAME, .name = names}};
    const char *sql = s->engine->dialect->own.foreign;
    if ((inside ? own_ask : own_look_up)(s, sql, args, &found, e) < 0)
        return err_wrap(e, "who owns lapse's own tables");
    return found.n_rows ? refuse(&found, e) : 0;
}
