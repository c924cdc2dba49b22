/* explain: what the server says of how it would read a table, as EXPLAIN has it in columns.
 *
 * Not as JSON: MariaDB writes the conditions into that as they are, quotes and all, and MySQL has several
 * forms of it. The columns have been the same for as long as there are both. */
#include "store/mariadb/store.h"

#include <string.h>

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

/* "ref" finds all rows of a state: had the time been of use, it were a range of both. "index" reads the whole
 * index: MySQL prefers that to a range of a table that is empty, and rightly so, but then names the index
 * among the possible. */
bool mariadb_reads_range(const struct mariadb_access *a)
{
    static const char *const few[] = {"range", "const", "eq_ref", "system"};
    if (!a->type) /* "Impossible WHERE" and the like: nothing is read */
        return true;
    if (a->extra && strstr(a->extra, "Using filesort"))
        return false;
    return is_one_of(a->type, few, COUNT_OF(few)) || (a->possible && strcmp(a->type, "index") == 0);
}

void mariadb_access_words(const struct mariadb_access *a, struct text *out)
{
    text_addf(out, "%sEXPLAIN says type %s", out->len ? "; " : "", a->type ? a->type : "NULL");
    if (a->key)
        text_addf(out, ", key %s", a->key);
    if (a->extra && *a->extra)
        text_addf(out, ", %s", a->extra);
}
