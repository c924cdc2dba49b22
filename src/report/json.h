/* What the files that speak JSON to machines share. */
#ifndef LAPSE_REPORT_JSON_H
#define LAPSE_REPORT_JSON_H

#include "report/report.h"

struct json_t;                                                      /* jansson's */
void put_string(struct json_t *to, const char *key, const char *s); /* any bytes; NULL is null */
void put_integer(struct json_t *to, const char *key, int64_t n);
struct json_t *instant_json(instant at);
void put_time(struct json_t *to, const char *key, bool there, instant at); /* not there: null */

struct run_row;
struct json_t *run_json(const struct run_row *r); /* NULL is null */

/* The parts of report_json that have a file of their own. */
void put_status(struct json_t *to, const struct report *r);
void put_history(struct json_t *to, const struct report *r);

#endif
