/* lapse keys: the reference of the contract's language, as Markdown, or one key; from the table that the
 * parser uses. */
#include <string.h>

#include "prog.h"

/* What Markdown would read as its own is escaped: in code only the bar, which ends a cell. */
static void put_cell(const char *s, const char *quote)
{
    const char *special = *quote ? "|" : "|\\*_<`";
    fputs("| ", stdout);
    fputs(*s ? quote : "", stdout);
    for (const char *c = s; *c; c++)
        printf("%s%c", strchr(special, *c) ? "\\" : "", *c);
    fputs(*s ? quote : "", stdout);
    putchar(' ');
}

static void put_section(const char *section)
{
    printf("\n## %s\n\n| key | type | default | meaning |\n|---|---|---|---|\n", section);
}

/* "keep", or "policy.keep" for the one of a section. */
static bool is_named(const struct lapse_key *key, const char *name)
{
    size_t n = strlen(key->section);
    bool full = strncmp(name, key->section, n) == 0 && name[n] == '.';
    return strcmp(full ? name + n + 1 : name, key->key) == 0;
}

bool show_key(const char *name)
{
    struct lapse_key key;
    bool found = false;
    for (size_t i = 0; lapse_contract_key(i, &key); i++)
        if (is_named(&key, name)) {
            printf("%s%s.%s: %s%s%s%s\n  %s\n", found ? "\n" : "", key.section, key.key, key.type,
                   *key.standard ? " (default: " : "", key.standard, *key.standard ? ")" : "", key.doc);
            found = true;
        }
    return found;
}

const char *nearest_key(const char *name)
{
    const char *names[1024];
    size_t n = 0;
    struct lapse_key key;
    while (n < sizeof(names) / sizeof(names[0]) && lapse_contract_key(n, &key))
        names[n++] = key.key;
    return lapse_nearest(name, names, n);
}

static int unknown_key(const char *name)
{
    const char *near = nearest_key(name);
    fprintf(stderr, "lapse: no key '%s'", name);
    if (near)
        fprintf(stderr, " (did you mean '%s'?)", near);
    fputs("; 'lapse keys' lists them\n", stderr);
    return LAPSE_BAD_INPUT;
}

int cmd_keys(const struct call *call)
{
    if (call->n_names)
        return show_key(call->names[0]) ? LAPSE_DONE : unknown_key(call->names[0]);
    fputs("# The contract's language\n\n"
          "Every key of `lapse.yaml`, printed by `lapse keys` from the table that the parser uses. Keys "
          "marked\n"
          "*later* are read and validated but do not run yet: a policy that uses one is refused by name; "
          "purges\n"
          "do not stop a sweep.\n",
          stdout);
    struct lapse_key key;
    const char *section = "";
    for (size_t i = 0; lapse_contract_key(i, &key); i++) {
        if (strcmp(section, key.section) != 0)
            put_section(key.section);
        section = key.section;
        put_cell(key.key, "`");
        put_cell(key.type, "");
        put_cell(key.standard, "`");
        put_cell(key.doc, "");
        fputs(key.not_yet ? "*later* |\n" : "|\n", stdout);
    }
    return LAPSE_DONE;
}
