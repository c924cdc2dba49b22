/* lapse keys: the reference of the contract's language, as Markdown, from the table that the parser uses. */
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

int cmd_keys(const struct call *call)
{
    (void)call;
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
