/* A statement as text, for tests that compare SQL. */
#ifndef LAPSE_TEST_SHOWN_H
#define LAPSE_TEST_SHOWN_H

#include "sql.h"

/* A statement with the value of each placeholder behind it in braces. */
static void show(const struct stmt *s, char mark, struct text *out)
{
    for (const char *c = text_str(&s->sql); *c; c++) {
        text_add_n(out, c, 1);
        size_t n = 0;
        if (*c == mark)
            for (; c[1] >= '0' && c[1] <= '9'; c++) {
                text_add_n(out, c + 1, 1);
                n = n * 10 + (size_t)(c[1] - '0');
            }
        if (!n || n > s->n_params)
            continue;
        const struct param *p = &s->params[n - 1];
        if (p->set >= 0)
            text_addf(out, "{set %d.%zu}", p->set, p->set_column);
        else if (p->value.kind == VALUE_INTEGER)
            text_addf(out, "{%lld}", (long long)p->value.integer);
        else
            text_addf(out, "{%.*s}", (int)p->value.len, p->value.text);
    }
}

#endif
