/* Tells the suites when lapse's cron fires. Reads lines `EXPRESSION<TAB>ZONE<TAB>FROM<TAB>TO<TAB>MOST`,
 * writes for each a line of the instants after FROM and before TO, at most MOST, all in whole seconds;
 * `refused: WHY` for an expression or a zone that is not accepted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "time/when.h"

static int print_times(const struct cron *c, const struct zone *z, char *numbers)
{
    int64_t from, to, most;
    if (sscanf(numbers, "%" SCNd64 "\t%" SCNd64 "\t%" SCNd64, &from, &to, &most) != 3)
        return -1;
    instant at = from * US_PER_S;
    for (int64_t i = 0; i < most && cron_next(c, z, at, &at) && at < to * US_PER_S; i++)
        printf(i ? " %" PRId64 : "%" PRId64, at / US_PER_S);
    putchar('\n');
    return 0;
}

static int answer(char *line)
{
    char *zone = strchr(line, '\t'), *numbers = zone ? strchr(zone + 1, '\t') : NULL;
    if (!numbers)
        return -1;
    *zone++ = '\0';
    *numbers++ = '\0';
    AUTO(cron_free_p) struct cron *c = NULL;
    AUTO(zone_free_p) struct zone *z = NULL;
    struct err e = ERR_INIT;
    if (cron_parse(line, &c, &e) == 0 && zone_open(zone, &z, &e) == 0)
        return print_times(c, z, numbers);
    printf("refused: %s\n", e.text);
    return 0;
}

int main(void)
{
    static char line[4096];
    while (fgets(line, sizeof(line), stdin))
        if (answer(line) < 0) {
            fprintf(stderr, "cron_next: not a question: %s\n", line);
            return 1;
        }
    return 0;
}
