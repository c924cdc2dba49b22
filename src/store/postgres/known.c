/* known: the statements that a sweep runs batch by batch. See store.h. */
#include "store/postgres/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct known_statement *statements_meet(struct statements *all, const struct text *sql)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->list[i].len == sql->len && memcmp(all->list[i].sql, sql->data, sql->len) == 0)
            return &all->list[i];
    if (all->n < COUNT_OF(all->list)) {
        struct known_statement *k = &all->list[all->n++];
        *k = (struct known_statement){.sql = mem_alloc(sql->len + 1), .len = sql->len};
        memcpy(k->sql, sql->data, sql->len);
        snprintf(k->name, sizeof(k->name), "lapse_%s_%" PRIu32, all->mark, ++all->met);
    }
    return NULL;
}

bool statements_any_named(const struct statements *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->list[i].is_named)
            return true;
    return false;
}

void statements_forget(struct statements *all)
{
    for (size_t i = 0; i < all->n; i++)
        free(all->list[i].sql);
    all->n = 0;
}
