/* fkeys: foreign keys into tables that lose rows, which the policy names nowhere. Deleting their parent
 * would do to their rows whatever ON DELETE says, unseen. */
#include "check/internal.h"

#include <string.h>

/* Each node is judged on its own: what one `with` entry names does nothing for rows that go through another.
 * An `after` with a `where` lets rows pass that others still refer to, so it covers nothing. */
static bool is_covered(const struct survey *s, const struct loser *l, const struct fkey *k)
{
    for (size_t i = 0; i < s->n_references; i++) {
        const struct reference *r = &s->references[i];
        if (r->parent == l && !r->narrowed && fkey_is_from(k, r->child) && join_covers_fkey(&r->join, k))
            return true;
    }
    return false;
}

static const char *consequence(enum on_delete action)
{
    switch (action) {
    case ON_DELETE_CASCADE:
        return "its rows would be deleted silently";
    case ON_DELETE_SET_NULL:
        return "its columns would be set to NULL silently";
    case ON_DELETE_SET_DEFAULT:
        return "its columns would be set to their default silently";
    case ON_DELETE_HIDDEN:
        return "its rows may be deleted or changed silently";
    case ON_DELETE_NO_ACTION:
    case ON_DELETE_RESTRICT:
        break;
    }
    return "the delete would be refused while it has such rows";
}

/* A reference inside [ ] or { } of YAML: a comma would end it there. */
static void add_yaml(struct text *out, const char *reference)
{
    if (!strpbrk(reference, ",\"'#:[]{}&*!|>%@` ")) {
        text_add(out, reference);
        return;
    }
    text_add(out, "'");
    for (const char *s = reference; *s; s++)
        text_add_n(out, *s == '\'' ? "''" : s, *s == '\'' ? 2 : 1);
    text_add(out, "'");
}

/* The line to add, from the policy's own keys down to the `with` entry concerned. */
static void add_line(struct text *out, const struct loser *l, const char *inner)
{
    if (!l->with) {
        text_add(out, inner);
        return;
    }
    AUTO(text_release) struct text line = {0}, ref = {0};
    ref_print(&l->with->ref, &ref);
    text_add(&line, "with: [{ ref: ");
    add_yaml(&line, text_str(&ref));
    text_addf(&line, ", %s }]", inner);
    add_line(out, l->above, text_str(&line));
}

static const char *remedy(struct arena *a, const struct loser *l, const struct fkey *k)
{
    const char *words = fkey_words(a, k);
    AUTO(text_release) struct text out = {0}, line = {0}, entry = {0};
    if (l->with)
        ref_print(&l->with->ref, &entry);
    text_addf(&out,
              "add to with (its rows go too), detach (its columns become NULL) or after (the row waits for "
              "it)%s%s: %s; for example ",
              l->with ? " of the with entry " : "", text_str(&entry), words);
    text_addf(&line, "%s: [", k->action == ON_DELETE_SET_NULL ? "detach" : "with");
    add_yaml(&line, words);
    text_add(&line, "]");
    add_line(&out, l, text_str(&line));
    return arena_strdup(a, text_str(&out));
}

static void say_named_nowhere(const struct survey *s, const struct loser *l, const struct fkey *k)
{
    struct arena *a = s->findings->arena;
    findings_add(s->findings, FINDING_ERROR, s->plan->policy->name, l->at, remedy(a, l, k),
                 "%s refers to %s (%s: %s) and is named nowhere", fkey_words(a, k), l->node->table->print,
                 on_delete_name(k->action), consequence(k->action));
}

void check_fkeys(const struct survey *s)
{
    for (size_t i = 0; i < s->n_losers; i++) {
        const struct loser *l = s->losers[i];
        const struct table *t = l->node->table;
        for (size_t k = 0; k < t->n_fkeys_in; k++)
            if (!is_covered(s, l, &t->fkeys_in[k]))
                say_named_nowhere(s, l, &t->fkeys_in[k]);
    }
}
