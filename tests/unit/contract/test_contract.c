/* The contract: every mistake with its place and words, the whole vocabulary, and input that means harm. */
#include "contract/contract.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

/* What was wrong, a line for each mistake; "" when nothing was. */
static void mistakes_of(const char *yaml, size_t len, struct text *out)
{
    struct mistakes m;
    struct err e = ERR_INIT;
    AUTO(contract_free_p) struct contract *c = NULL;
    int rc = contract_parse("dir/lapse.yaml", yaml, len, &c, &m, &e);
    assert_int_equal(rc, m.n > 0 ? -1 : 0);
    assert_int_equal(e.kind, m.n > 0 ? ERR_CONTRACT : ERR_NONE);
    assert_true((c != NULL) == (rc == 0));
    for (size_t i = 0; i < m.n; i++)
        text_addf(out, "%s%d:%d %s", i > 0 ? "\n" : "", m.list[i].at.line, m.list[i].at.column,
                  m.list[i].text);
    mistakes_release(&m);
}

static struct contract *good(const char *yaml)
{
    struct mistakes m;
    struct err e = ERR_INIT;
    struct contract *c = NULL;
    if (contract_parse("dir/lapse.yaml", yaml, strlen(yaml), &c, &m, &e) != 0)
        fail_msg("%s: %s", e.text, m.n ? m.list[0].text : "");
    mistakes_release(&m);
    return c;
}

#define POLICY   "store: sqlite:a.db\npolicies:\n  p:\n    table: t\n"
#define EXPIRES  POLICY "    expires: e\n"
#define AGE      POLICY "    age: c\n"
#define AGE_KEEP AGE "    keep: 1d\n"
#define BARE     "policies: { p: { table: t, expires: e } }\n"
#define GOOD     "store: sqlite:a.db\n" BARE

static const struct {
    const char *yaml, *mistakes;
} wrong[] = {
    /* clang-format off */
    /* the file */
    {"",
     "1:1 the file is empty"},
    {"# nothing\n",
     "1:1 the file is empty"},
    {"store: sqlite:a.db\nschedulers: { lapse: { every: 1m } }\npolicies: { lapse.x: { table: t, expires: e } }\n",
     "2:15 'lapse' is the scheduler of lapse's own tables: name this one otherwise\n"
     "3:13 'lapse.x': names that begin with 'lapse.' are those of the policies on lapse's own tables: name this one "
     "otherwise"},
    {"5\n",
     "1:1 a contract is a map with keys like 'store' and 'policies'"},
    {"[]\n",
     "1:1 a contract is a map with keys like 'store' and 'policies'"},
    {"{}\n",
     "1:1 a contract is a map with keys like 'store' and 'policies'"},
    {"store: sqlite:a.db\n",
     "1:1 there are no 'policies' and no 'purges'"},
    {"policies: {}\nstore: sqlite:a.db\n",
     "1:11 'policies' is an empty map; leave it out or write a map of policies"},
    {"policies: ''\nstore: sqlite:a.db\n",
     "1:11 'policies' must be a map of policies, not the text ''"},
    {BARE,
     "1:1 'store' is missing: sqlite:PATH, postgresql://…, mariadb://… or mysql://…"},
    {GOOD "lapse: 2\n",
     "3:8 'lapse' must be 1, the only version of this language that this program reads, not '2'"},
    {GOOD "polices: {}\n",
     "3:1 unknown key 'polices' (did you mean 'policies'?)"},
    {GOOD "zzz: 1\n",
     "3:1 unknown key 'zzz'; allowed: lapse, store, store_file, schedulers, policies, purges, unbounded, serve, own_schema, own_owner"},
    {GOOD "store: sqlite:b\n",
     "3:1 the key 'store' is here twice; first on line 1, column 1"},
    {GOOD "---\na: 1\n",
     "3:1 a second document begins here; a contract is one document"},
    {GOOD "x: [\n",
     "4:1 not valid YAML: flow sequence without a closing bracket"},
    {GOOD "own_schema: [a]\n",
     "3:13 'own_schema' must be a text, not a list"},
    {GOOD "own_schema: ''\n",
     "3:13 'own_schema' must be a text with something in it, not the text ''"},
    {"postgresql://u:secret@h/db\n",
     "1:1 a contract is a map with keys like 'store' and 'policies'"},
    {"{store:postgresql://u:secret@h/db, policies: 1}\n",
     "1:1 'store' is missing: sqlite:PATH, postgresql://…, mariadb://… or mysql://…\n"
     "1:2 unknown key 'store:postgresql://…'; allowed: lapse, store, store_file, schedulers, policies, purges, unbounded, serve, own_schema, own_owner\n"
     "1:46 'policies' must be a map of policies, not '1'"},
    /* the store */
    {"store: a.db\n" BARE,
     "1:8 'store' has no scheme (did you mean sqlite:PATH?); allowed: sqlite:PATH, postgresql://…, mariadb://… or mysql://…"},
    {"store: /var/lib/secret.db\n" BARE,
     "1:8 'store' has no scheme (did you mean sqlite:PATH?); allowed: sqlite:PATH, postgresql://…, mariadb://… or mysql://…"},
    {"store: oracle://u:secret@h/db\n" BARE,
     "1:8 the scheme 'oracle' of 'store' is not known; allowed: sqlite:PATH, postgresql://…, mariadb://… or mysql://…"},
    {"store: postgre://u:secret@h/db\n" BARE,
     "1:8 the scheme 'postgre' of 'store' is not known (did you mean 'postgres'?); allowed: sqlite:PATH, postgresql://…, mariadb://… or mysql://…"},
    {"store: u:secret@h/db\n" BARE,
     "1:8 'store' has no scheme (did you mean sqlite:PATH?); allowed: sqlite:PATH, postgresql://…, mariadb://… or mysql://…"},
    {"store: sqlit:a.db\n" BARE,
     "1:8 'store' is not an address (did you mean 'sqlite:PATH'?); allowed: sqlite:PATH, postgresql://…, mariadb://… or mysql://…"},
    {"store: 'sqlite:'\n" BARE,
     "1:8 'store' names no file; write sqlite:PATH"},
    {"store:\n" BARE,
     "1:1 'store' must be one of sqlite:PATH, postgresql://…, mariadb://… or mysql://…"},
    {"store: [postgresql://u:secret@h/db]\n" BARE,
     "1:8 'store' must be one of sqlite:PATH, postgresql://…, mariadb://… or mysql://…"},
    {"store: host=h password=secret\n" BARE,
     "1:8 'store' has no scheme (did you mean sqlite:PATH?); allowed: sqlite:PATH, postgresql://…, mariadb://… or mysql://…"},
    {"store: postgresql://u:${LAPSE_NO_SUCH}@h/db\n" BARE,
     "1:8 '${LAPSE_NO_SUCH}' is not set in the environment and has no default (${NAME:-default})"},
    {"store: sqlite:a\nstore_file: /nonexistent/dsn\n" BARE,
     "2:1 'store' and 'store_file' exclude each other\n"
     "2:13 'store_file': cannot read /nonexistent/dsn: No such file or directory"},
    {"store_file: /\n" BARE,
     "1:13 'store_file': cannot read /: it is a directory, not a file"},
    /* replacement */
    {EXPIRES "    label: ${LAPSE_NO_SUCH}\n",
     "6:12 '${LAPSE_NO_SUCH}' is not set in the environment and has no default (${NAME:-default})"},
    {EXPIRES "    label: ${LAPSE_NO_SUCH:-x\n",
     "6:12 '${' has no closing '}' (a literal '${' is '$${')"},
    {EXPIRES "    label: ${1X}\n",
     "6:12 '${' is not followed by NAME} or NAME:-default} (a literal '${' is '$${')"},
    {EXPIRES "    label: ${X-d}\n",
     "6:12 '${' is not followed by NAME} or NAME:-default} (a literal '${' is '$${')"},
    {EXPIRES "    label: ${A:-${B}}\n",
     "6:12 '${' is not followed by NAME} or NAME:-default} (a literal '${' is '$${')"},
    {EXPIRES "    label: ${LAPSE_NO_SUCH:-}\n",
     "6:12 nothing is left here once ${…} is replaced; put it in quotes if an empty text is meant"},
    {EXPIRES "    batch: ${LAPSE_NO_SUCH:-many}\n",
     "6:12 'batch' must be a whole number of at least 1, not 'many'"},
    {AGE "    keep: ${LAPSE_NO_SUCH}d\n",
     "6:11 '${LAPSE_NO_SUCH}' is not set in the environment and has no default (${NAME:-default})"},
    {EXPIRES "    ${LAPSE_NO_SUCH}: 1\n",
     "6:5 '${LAPSE_NO_SUCH}' is not set in the environment and has no default (${NAME:-default})"},
    /* serve */
    {GOOD "serve: on\n",
     "3:8 'serve' must be { listen, token_file } or off, not 'on'"},
    {GOOD "serve: 'off'\n",
     "3:8 'serve' must be { listen, token_file } or off, not the text 'off'"},
    {GOOD "serve: { listen: 9933 }\n",
     "3:18 'listen' must be host:port, like 127.0.0.1:9933, not '9933'"},
    {GOOD "serve: { listen: 'h:99999' }\n",
     "3:18 'listen' must be host:port, like 127.0.0.1:9933, not the text 'h:99999'"},
    {GOOD "serve: { listen: '::1:80' }\n",
     "3:18 'listen' must be host:port, like 127.0.0.1:9933, not the text '::1:80'"},
    {GOOD "serve: { port: 1 }\n",
     "3:10 unknown key 'port'; allowed: listen, token_file"},
    {GOOD "serve: {}\n",
     "3:8 'serve' must be a map with some of the keys (listen, token_file), not an empty map"},
    {GOOD "serve: false\n",
     "3:8 'serve' must be { listen, token_file } or off, not 'false'"},
    /* schedulers */
    {GOOD "schedulers: { d: {} }\n",
     "3:18 'd' must be a map with some of the keys (every, cron, timezone, run_on_start, jitter, exclusive, lease, budget, window, enabled), not an empty map"},
    {GOOD "schedulers: {}\n",
     "3:13 'schedulers' is an empty map; leave it out or write a map of schedulers"},
    {GOOD "schedulers: [a]\n",
     "3:13 'schedulers' must be a map of schedulers, not a list"},
    {GOOD "schedulers: { d: { jitter: 1s } }\n",
     "3:15 scheduler 'd' needs 'every' or 'cron'"},
    {GOOD "schedulers: { d: { every: 1m, cron: '@daily' } }\n",
     "3:31 'every' and 'cron' exclude each other"},
    {GOOD "schedulers: { d: { every: 0s } }\n",
     "3:27 'every' must be a duration longer than 0, not '0s'"},
    {GOOD "schedulers: { d: { every: never } }\n",
     "3:27 'every' must be a duration longer than 0, not 'never'"},
    {GOOD "schedulers: { d: { every: '60' } }\n",
     "3:27 'every': '60' has no unit; write 60s, 60m, 60h, 60d, 60w or 60ms"},
    {GOOD "schedulers: { d: { every: '0 3 * * *' } }\n",
     "3:27 'every' must be a duration like 5m (did you mean 'cron'?), not the text '0 3 * * *'"},
    {GOOD "schedulers: { d: { every: 'CRON 0 99 * * *' } }\n",
     "3:27 'every': cron '0 99 * * *': hour '99' is not in 0-23"},
    {GOOD "schedulers: { d: { cron: '0 0 30 2 *' } }\n",
     "3:26 'cron': cron '0 0 30 2 *' never fires: no month has such a day"},
    {GOOD "schedulers: { d: { cron: 5 } }\n",
     "3:26 'cron': cron '5' has 1 field; write 5 (minute, hour, day of month, month, weekday) or 6 with leading seconds"},
    {GOOD "schedulers: { d: { every: 1m, timezone: Europe/Prag } }\n",
     "3:41 'timezone': no time zone 'Europe/Prag' in /usr/share/zoneinfo; write an IANA name like Europe/Prague or UTC"},
    {GOOD "schedulers: { d: { every: 1m, run_on_start: yes } }\n",
     "3:45 'run_on_start' must be true or false (did you mean true?), not 'yes'"},
    {GOOD "schedulers: { d: { every: 1m, exclusive: 'true' } }\n",
     "3:42 'exclusive' must be true or false, not the text 'true'"},
    {GOOD "schedulers: { d: { every: 1m, lease: 0 } }\n",
     "3:38 'lease' must be a duration longer than 0, not '0'"},
    {GOOD "schedulers: { d: { every: 1m, jitter: never } }\n",
     "3:39 'jitter' must be a duration, not 'never'"},
    {GOOD "schedulers: { d: { cron: '0 12 * * *', window: '22:00-06:00' } }\n",
     "3:40 scheduler 'd' never runs: no time of its cron '0 12 * * *' lies in its window"},
    {GOOD "schedulers: { d: { window: '06:00-22:00', every: 'CRON */5 22-23,0-5 * * *' } }\n",
     "3:20 scheduler 'd' never runs: no time of its cron '*/5 22-23,0-5 * * *' lies in its window"},
    {GOOD "schedulers: { d: { every: 1m, window: 22:00 } }\n",
     "3:39 'window' must be a part of the day like \"22:00-06:00\", not '22:00'"},
    {GOOD "schedulers: { d: { every: 1m, window: '22:00-25:00' } }\n",
     "3:39 'window' must be a part of the day like \"22:00-06:00\", not the text '22:00-25:00'"},
    {GOOD "schedulers: { d: { every: 1m, window: '00:00-24:00' } }\n",
     "3:39 'window' must be a part of the day like \"22:00-06:00\", not the text '00:00-24:00'"},
    {GOOD "schedulers: { d: { every: 1m, budget: { rows: 0 } } }\n",
     "3:47 'rows' must be a whole number of at least 1, not '0'"},
    {GOOD "schedulers: { d: { every: 1m, budget: { time: 0s, row: 1 } } }\n",
     "3:47 'time' must be a duration longer than 0, not '0s'\n"
     "3:51 unknown key 'row' (did you mean 'rows'?)"},
    {GOOD "schedulers: { d: { every: 1m, budget: 5 } }\n",
     "3:39 'budget' must be a map with some of the keys (rows, batches, time), not '5'"},
    {EXPIRES "    scheduler: nigtly\nschedulers: { nightly: { cron: '@daily' }, b: { every: 1m } }\n",
     "6:16 there is no scheduler 'nigtly' (did you mean 'nightly'?)"},
    {EXPIRES "    scheduler: zzz\n",
     "6:16 there is no scheduler 'zzz'"},
    {EXPIRES "    scheduler: [a]\n",
     "6:16 'scheduler' must be a text, not a list"},
    {GOOD "schedulers: { d: { every: 1m }, d: { every: 2m } }\n",
     "3:33 the key 'd' is here twice; first on line 3, column 15"},
    {GOOD "schedulers: { '': { every: 1m } }\n",
     "3:15 a name in 'schedulers' is empty or holds a control character"},
    /* bounds */
    {POLICY,
     "3:3 policy 'p' has no bound: expires, age with keep, orphan or cap"},
    {EXPIRES "    cap: { rows: 1, newest: n }\n",
     "6:5 'expires' and 'cap' are two bounds; a policy has one of expires, age with keep, orphan, cap"},
    {AGE "    expires: e\n    keep: 1d\n",
     "6:5 'age' and 'expires' are two bounds; a policy has one of expires, age with keep, orphan, cap"},
    {POLICY "    keep: 1d\n",
     "5:5 'keep' needs 'age'"},
    {AGE,
     "5:5 'age' needs 'keep'"},
    {EXPIRES "    keep: 1d\n",
     "6:5 'keep' needs 'age'"},
    {EXPIRES "    inclusive: true\n",
     "6:5 'inclusive' needs 'age'"},
    {EXPIRES "    keep_newest: { rows: 1, newest: n }\n",
     "6:5 'keep_newest' needs 'age'"},
    {POLICY "    orphan: { of: o(id), by: x }\n    expires: e\n",
     "5:5 'orphan' needs 'age', the columns its grace counts from, or 'keep: now' for no grace\n"
     "6:5 'orphan' and 'expires' are two bounds; a policy has one of expires, age with keep, orphan, cap"},
    {POLICY "    orphan: { of: o(id), by: x }\n",
     "5:5 'orphan' needs 'age', the columns its grace counts from, or 'keep: now' for no grace"},
    {POLICY "    orphan: { of: o(id), by: x }\n    keep: 1h\n",
     "5:5 'orphan' needs 'age', the columns its grace counts from, or 'keep: now' for no grace"},
    {"store: sqlite:a\npolicies:\n  p: {}\n",
     "3:6 'p' must be a map with some of the keys (table, scheduler, enabled, label, rows, where, hold, expires, age, keep, inclusive, keep_newest, unit, zone, orphan, cap, with, detach, after, batch, limits, pace, timeouts, workers, partitions, invariant, also), not an empty map"},
    {"store: sqlite:a\npolicies:\n  p: 5\n",
     "3:6 'p' must be a map with some of the keys (table, scheduler, enabled, label, rows, where, hold, expires, age, keep, inclusive, keep_newest, unit, zone, orphan, cap, with, detach, after, batch, limits, pace, timeouts, workers, partitions, invariant, also), not '5'"},
    {"store: sqlite:a\npolicies:\n  p: { expires: e }\n",
     "3:3 'table' is missing. The base table it bounds, schema-qualified where the engine has schemas."},
    {"store: sqlite:a\npolicies:\n  p: { table: t, expires: e }\n  p: { table: t, expires: e }\n",
     "4:3 the key 'p' is here twice; first on line 3, column 3"},
    {"store: sqlite:a\npolicies:\n  \"a\\nb\": { table: t, expires: e }\n",
     "3:3 a name in 'policies' is empty or holds a control character"},
    /* keep */
    {AGE "    keep: 0\n",
     "6:11 'keep' is 0, which deletes at once; write 'now' if that is meant"},
    {AGE "    keep: 0s\n",
     "6:11 'keep' is 0, which deletes at once; write 'now' if that is meant"},
    {AGE "    keep: '60'\n",
     "6:11 'keep': '60' has no unit; write 60s, 60m, 60h, 60d, 60w or 60ms"},
    {AGE "    keep: 30\n",
     "6:11 'keep': 30 is 30 milliseconds, for a number counts milliseconds; write 30d, 30h or 30m (or 30ms if that is meant)"},
    {AGE "    keep: 6M\n",
     "6:11 'keep': '6M': M means months elsewhere, which have no fixed length; write m for minutes, or days"},
    {AGE "    keep: 1d\n    where: { a: { older_than: 3600 }, b: { newer_than: 90 } }\n",
     "7:31 'older_than': 3600 is 3 seconds 600 milliseconds, for a number counts milliseconds; write 1h if it counts seconds (or 3600ms if that is meant)\n"
     "7:56 'newer_than': 90 is 90 milliseconds, for a number counts milliseconds; write 90d, 90h or 90m (or 90ms if that is meant)"},
    {AGE "    keep: { by: s, values: { a: 2592000 }, otherwise: 86400 }\n",
     "6:33 'a': 2592000 is 43 minutes 12 seconds, for a number counts milliseconds; write 30d if it counts seconds (or 2592000ms if that is meant)\n"
     "6:55 'otherwise': 86400 is 1 minute 26 seconds 400 milliseconds, for a number counts milliseconds; write 1d if it counts seconds (or 86400ms if that is meant)"},
    {AGE "    keep: { column: c, unit: M }\n",
     "6:30 'unit' must be us, ms, s, m, h, d or w, not 'M'"},
    {AGE "    keep: -5\n",
     "6:11 'keep': '-5' has a sign; a duration has none"},
    {AGE "    keep: 1 month\n",
     "6:11 'keep': '1 month': months and years have no fixed length; use days"},
    {AGE "    keep: [1d]\n",
     "6:11 'keep' must be a duration like 90s, 1h30m or 7d, not a list"},
    {AGE "    keep:\n",
     "6:5 'keep' must be a duration like 90s, 1h30m or 7d, not empty"},
    {AGE "    keep: {}\n",
     "6:11 'keep' must be a map with some of the keys (by, values, otherwise, column, unit), not an empty map"},
    {AGE "    keep: { by: s }\n",
     "6:13 'by' needs 'values', a map of values and durations"},
    {AGE "    keep: { values: { a: 1d } }\n",
     "6:11 'keep' must be a duration, { by, values, otherwise } or { column, unit }"},
    {AGE "    keep: { by: s, values: {} }\n",
     "6:28 'values' is an empty map; leave it out or write a map of values and durations, like { failed: 24h }"},
    {AGE "    keep: { by: s, values: { a: 0s, b: soon }, otherwise: 0 }\n",
     "6:33 'a' is 0, which deletes at once; write 'now' if that is meant\n"
     "6:40 'b': 'soon' is no duration; write numbers with units like 1h30m, 60 seconds, 1.5h, or never or now\n"
     "6:59 'otherwise' is 0, which deletes at once; write 'now' if that is meant"},
    {AGE "    keep: { by: s, values: [1d] }\n",
     "6:28 'values' must be a map of values and durations, like { failed: 24h }, not a list"},
    {AGE "    keep: { by: s, column: c, values: { a: 1d } }\n",
     "6:11 'keep' must be a duration, { by, values, otherwise } or { column, unit }"},
    {AGE "    keep: { by: s, values: { a: 1d }, unit: s }\n",
     "6:39 'unit' does not go with 'by'"},
    {AGE "    keep: { column: c, otherwise: 1d }\n",
     "6:24 'otherwise' does not go with 'column'"},
    {AGE "    keep: { column: c, unit: month }\n",
     "6:30 'unit' must be us, ms, s, m, h, d or w, not 'month'"},
    {AGE "    keep: { column: c, unit: 5 }\n",
     "6:30 'unit' must be us, ms, s, m, h, d or w, not '5'"},
    {AGE "    keep: { colum: c }\n",
     "6:13 unknown key 'colum' (did you mean 'column'?)"},
    /* plain values */
    {EXPIRES "    kepp: 1d\n",
     "6:5 unknown key 'kepp' (did you mean 'keep'?)"},
    {EXPIRES "    tabel: t\n",
     "6:5 unknown key 'tabel' (did you mean 'table'?)"},
    {EXPIRES "    foo: 1\n",
     "6:5 unknown key 'foo'; allowed: table, scheduler, enabled, label, rows, where, hold, expires, age, keep, inclusive, keep_newest, unit, zone, orphan, cap, with, detach, after, batch, limits, pace, timeouts, workers, partitions, invariant, also"},
    {EXPIRES "    enabled: yes\n",
     "6:14 'enabled' must be true or false (did you mean true?), not 'yes'"},
    {EXPIRES "    enabled: off\n",
     "6:14 'enabled' must be true or false (did you mean false?), not 'off'"},
    {EXPIRES "    enabled: maybe\n",
     "6:14 'enabled' must be true or false, not 'maybe'"},
    {EXPIRES "    enabled: []\n",
     "6:14 'enabled' must be true or false, not an empty list"},
    {EXPIRES "    label:\n",
     "6:5 'label' must be a text, not empty"},
    {EXPIRES "    batch: 0\n",
     "6:12 'batch' must be a whole number of at least 1, not '0'"},
    {EXPIRES "    batch: -1\n",
     "6:12 'batch' must be a whole number of at least 1, not '-1'"},
    {EXPIRES "    batch: '10'\n",
     "6:12 'batch' must be a whole number of at least 1, not the text '10'"},
    {EXPIRES "    batch: 99999999999999999999\n",
     "6:12 'batch' must be a whole number of at least 1, not '99999999999999999999'"},
    {EXPIRES "    batch:\n",
     "6:5 'batch' must be a whole number of at least 1, or null for everything due in one transaction, not empty"},
    {EXPIRES "    workers: 0\n",
     "6:14 'workers' must be a whole number of at least 1, not '0'"},
    {EXPIRES "    workers: 65\n",
     "6:14 'workers' must be a whole number from 1 to 64, not '65'"},
    {EXPIRES "    workers: 99999999999999999999\n",
     "6:14 'workers' must be a whole number of at least 1, not '99999999999999999999'"},
    {EXPIRES "    batch: null\n    workers: 2\n",
     "7:5 'workers' cannot stand with 'batch: null': what goes in one transaction goes over one connection"},
    {EXPIRES "    workers: 1.5\n",
     "6:14 'workers' must be a whole number of at least 1, not '1.5'"},
    {EXPIRES "    unit: m\n",
     "6:11 'unit' must be s, ms or us, not 'm'"},
    {EXPIRES "    unit: sec\n",
     "6:11 'unit' must be s, ms or us, not 'sec'"},
    {EXPIRES "    zone: Nowhere\n",
     "6:11 'zone': no time zone 'Nowhere' in /usr/share/zoneinfo; write an IANA name like Europe/Prague or UTC"},
    {EXPIRES "    zone: ../../etc/passwd\n",
     "6:11 'zone': '../../etc/passwd' is no time zone name; write an IANA name like Europe/Prague or UTC"},
    {EXPIRES "    limits: { fraction: 0 }\n",
     "6:25 'fraction' must be a fraction above 0 and at most 1, like 0.25, not '0'"},
    {EXPIRES "    limits: { fraction: 1.5 }\n",
     "6:25 'fraction' must be a fraction above 0 and at most 1, like 0.25, not '1.5'"},
    {EXPIRES "    limits: { fraction: 10% }\n",
     "6:25 'fraction' must be a fraction above 0 and at most 1, like 0.25, not '10%'"},
    {EXPIRES "    limits: { rows: 0 }\n",
     "6:21 'rows' must be a whole number of at least 1, not '0'"},
    {EXPIRES "    limits: {}\n",
     "6:13 'limits' must be a map with some of the keys (rows, fraction), not an empty map"},
    {EXPIRES "    limits: 5\n",
     "6:13 'limits' must be a map with some of the keys (rows, fraction), not '5'"},
    {EXPIRES "    pace: { target: 0, rows_per_second: 0, duty: 2, lag: never, lag_bytes: x }\n",
     "6:21 'target' must be a duration longer than 0, not '0'\n"
     "6:41 'rows_per_second' must be a number above 0, not '0'\n"
     "6:50 'duty' must be a fraction above 0 and at most 1, like 0.25, not '2'\n"
     "6:58 'lag' must be a duration longer than 0, not 'never'\n"
     "6:76 'lag_bytes' must be a whole number of at least 1, not 'x'"},
    {EXPIRES "    timeouts: { lock: 0, statement: never, foo: 1 }\n",
     "6:23 'lock' must be a duration longer than 0, not '0'\n"
     "6:37 'statement' must be a duration longer than 0, not 'never'\n"
     "6:44 unknown key 'foo'; allowed: lock, statement, away"},
    {EXPIRES "    partitions: keep\n",
     "6:17 'partitions' must be drop, not 'keep'"},
    {EXPIRES "    also: []\n",
     "6:11 'also' is an empty list; leave it out or name something"},
    {EXPIRES "    also: [a, [b]]\n",
     "6:15 'also' must be a text, not a list"},
    {EXPIRES "    invariant: { a: b }\n",
     "6:16 'invariant' must be a text, not a map"},
    /* names */
    {"store: sqlite:a\npolicies:\n  p: { table: a.b.c, expires: e }\n",
     "3:15 'table': 'a.b.c' is not a table name; write table or schema.table, a name with . ( ) , in it as \"na.me\""},
    {"store: sqlite:a\npolicies:\n  p: { table: 't(x)', expires: e }\n",
     "3:15 'table': 't(x)' is not a table name; write table or schema.table, a name with . ( ) , in it as \"na.me\""},
    {"store: sqlite:a\npolicies:\n  p: { table: '\"t', expires: e }\n",
     "3:15 'table': '\"t' is not a table name; write table or schema.table, a name with . ( ) , in it as \"na.me\""},
    {POLICY "    expires: '\"a'\n",
     "5:14 'expires': '\"a' is not a column name; write it bare or as \"name\""},
    {POLICY "    expires: [a, b]\n",
     "5:14 'expires' must be the name of a column, not a list"},
    {POLICY "    age: []\n    keep: 1d\n",
     "5:10 'age' is an empty list; leave it out or name something"},
    {POLICY "    age: [a, a]\n    keep: 1d\n",
     "5:14 'age' names the column 'a' twice"},
    {POLICY "    age: [a, '']\n    keep: 1d\n",
     "5:14 'age': '' is not a column name; write it bare or as \"name\""},
    {POLICY "    age: { a: b }\n    keep: 1d\n",
     "5:10 'age' must be the name of a column, not a map"},
    /* references */
    {EXPIRES "    with: trax.log metadata_id\n",
     "6:11 'with': 'trax.log metadata_id' is not a reference; write table(column, …)"},
    {EXPIRES "    with: []\n",
     "6:11 'with' is an empty list; leave it out or name something"},
    {EXPIRES "    with: [log(a, b]\n",
     "6:12 'with': 'log(a' is not a reference; write table(column, …)\n"
     "6:19 'with': 'b' is not a reference; write table(column, …)"},
    {EXPIRES "    with: ['log()']\n",
     "6:12 'with': 'log()' is not a reference; write table(column, …)"},
    {EXPIRES "    with: ['log(a) -> (x, y)']\n",
     "6:12 'with': 'log(a) -> (x, y)' has 1 in the first list of columns and 2 in the second; they must agree"},
    {EXPIRES "    with: ['log(a, a)']\n",
     "6:12 'with': 'log(a, a)' names the column 'a' twice"},
    {EXPIRES "    with: [[log(a)]]\n",
     "6:12 'with' must be a reference, table(column, …), or a map with a 'ref', not a list"},
    {EXPIRES "    with: [{ where: { a: 1 } }]\n",
     "6:12 'ref' is missing. The owned rows, as table(column, …)."},
    {EXPIRES "    with: [{ ref: log(a), wehre: { a: 1 } }]\n",
     "6:27 unknown key 'wehre' (did you mean 'where'?)"},
    {EXPIRES "    with: [{ ref: log(a), with: x, detach: y, after: z, split: 1 }]\n",
     "6:33 'with': 'x' is not a reference; write table(column, …)\n"
     "6:44 'detach': 'y' is not a reference; write table(column, …)\n"
     "6:54 'after': 'z' is not a reference; write table(column, …)\n"
     "6:64 'split' must be true or false (did you mean true?), not '1'"},
    {EXPIRES "    detach: [{ ref: log(a) }]\n",
     "6:14 'detach' must be a reference, table(column, …), not a map"},
    {EXPIRES "    after: [{ ref: log(a), with: [x(a)] }]\n",
     "6:28 unknown key 'with'; allowed: ref, where"},
    {EXPIRES "    after: 5\n",
     "6:12 'after': '5' is not a reference; write table(column, …)"},
    /* conditions */
    {EXPIRES "    rows: {}\n",
     "6:11 'rows' is an empty map; leave it out or write a map of columns, like { status: [completed, failed] }"},
    {EXPIRES "    rows: status\n",
     "6:11 'rows' must be a map of columns, like { status: [completed, failed] }, not 'status'"},
    {EXPIRES "    rows: [a]\n",
     "6:11 'rows' must be a map of columns, like { status: [completed, failed] }, not a list"},
    {EXPIRES "    rows: { status: [] }\n",
     "6:21 'status' has an empty list; name at least one value"},
    {EXPIRES "    rows: { status: { not: x } }\n",
     "6:21 'status' must be a value or a list of values here (did you mean 'where'?), not a map"},
    {EXPIRES "    rows: { status: [a, [b]] }\n",
     "6:25 'status' must be a value or a list of values, not a list"},
    {EXPIRES "    rows: { status }\n",
     "6:13 'status' has no value; write null for SQL NULL"},
    {EXPIRES "    rows: { status: '*' }\n",
     "6:21 'status': '*' alone is every value; leave the column out, or write \\* for a star"},
    {EXPIRES "    rows: { '\"x': 1 }\n",
     "6:13 '\"x': '\"x' is not a column name; write it bare or as \"name\""},
    {EXPIRES "    where: {}\n",
     "6:12 'where' is an empty map; leave it out or write a condition: a map like { status: paid }, or a text of SQL"},
    {EXPIRES "    where: [a]\n",
     "6:12 'where' must be a condition: a map like { status: paid }, or a text of SQL, not a list"},
    {EXPIRES "    where: 5\n",
     "6:12 'where' must be a condition: a map like { status: paid }, or a text of SQL, not '5'"},
    {EXPIRES "    where: true\n",
     "6:12 'where' must be a condition: a map like { status: paid }, or a text of SQL, not 'true'"},
    {EXPIRES "    where: ''\n",
     "6:12 'where' must be a condition: a map like { status: paid }, or a text of SQL, not the text ''"},
    {EXPIRES "    where:\n",
     "6:5 'where' must be a condition: a map like { status: paid }, or a text of SQL, not empty"},
    {EXPIRES "    where: { a: {} }\n",
     "6:17 'a' has an empty map; write an operator like { gte: 3 }"},
    {EXPIRES "    where: { a: [] }\n",
     "6:17 'a' has an empty list; name at least one value"},
    {EXPIRES "    where: { a: { gt: null } }\n",
     "6:23 'gt' must be one value that is not null, not null"},
    {EXPIRES "    where: { a: { gt: [1] } }\n",
     "6:23 'gt' must be one value that is not null, not a list"},
    {EXPIRES "    where: { a: { eq: { b: 1 } } }\n",
     "6:23 'eq' must be a value or a list of values, not a map"},
    {EXPIRES "    where: { a: { older: 1d } }\n",
     "6:19 unknown key 'older' (did you mean 'older_than'?)"},
    {EXPIRES "    where: { a: { older_than: 1 fortnight, newer_than: never } }\n",
     "6:31 'older_than': '1 fortnight': unknown unit 'fortnight'; units are ms, s sec second, m min minute, h hr hour, d day, w week\n"
     "6:56 'newer_than' must be a duration, not 'never'"},
    {EXPIRES "    where: { any: { a: 1 } }\n",
     "6:19 'any' must be a list of conditions (a column of that name is written '\"any\"'), not a map"},
    {EXPIRES "    where: { any: [] }\n",
     "6:19 'any' must be a list of conditions (a column of that name is written '\"any\"'), not an empty list"},
    {EXPIRES "    where: { any: [{ a: { foo: 1 } }, 5] }\n",
     "6:27 unknown key 'foo'; allowed: eq, not, lt, lte, gt, gte, like, older_than, newer_than\n"
     "6:39 'any' must be a condition: a map like { status: paid }, or a text of SQL, not '5'"},
    {EXPIRES "    hold: { a: { like: [x] } }\n",
     "6:24 'like' must be one value that is not null, not a list"},
    /* orphan and cap */
    {AGE "    orphan: {}\n",
     "6:13 'orphan' must be a map with some of the keys (of, by, matching, delete_when, allow_empty), not an empty map"},
    {AGE "    orphan: { of: o }\n",
     "6:13 'by' is missing. The columns of this table that hold the source's key; a row with a NULL there is kept.\n"
     "6:19 'of': 'o' is not a reference; write table(column, …)"},
    {AGE "    orphan: { of: o(id), by: [a, b] }\n",
     "6:26 'by' names 2 columns and 'of' has a key of 1; they must agree"},
    {AGE "    orphan: { of: o(id) -> (x), by: a }\n",
     "6:19 'of' is table(key); the columns of this table go under 'by', not after ->"},
    {AGE "    orphan: { of: o(id), by: a, delete_when: gone }\n",
     "6:46 'delete_when' must be deleted, deleted_or_unmatched or never, not 'gone'"},
    {AGE "    orphan: { of: o(id), by: a, delete_when: delted }\n",
     "6:46 'delete_when' must be deleted, deleted_or_unmatched or never (did you mean deleted?), not 'delted'"},
    {AGE "    orphan: { of: o(id), by: a, delete_when: deleted_or_unmatched }\n",
     "6:33 'delete_when: deleted_or_unmatched' needs 'matching'"},
    {AGE "    orphan: { of: o(id), by: a, allow_empty: 1 }\n",
     "6:46 'allow_empty' must be true or false (did you mean true?), not '1'"},
    {POLICY "    cap: { rows: 0, newest: n }\n",
     "5:18 'rows' must be a whole number of at least 1, not '0'"},
    {POLICY "    cap: { rows: 5 }\n",
     "5:10 'newest' is missing. The columns that say which rows are newest; NULLs are oldest, and the key breaks ties."},
    {POLICY "    cap: { newest: [n], per: [] }\n",
     "5:10 'rows' is missing. How many rows of a group stay.\n"
     "5:30 'per' is an empty list; leave it out or name something"},
    {POLICY "    cap: 500\n",
     "5:10 'cap' must be a map with some of the keys (rows, per, newest), not '500'"},
    {AGE_KEEP "    keep_newest: { row: 5, newest: n }\n",
     "7:18 'rows' is missing. How many rows of a group stay.\n"
     "7:20 unknown key 'row' (did you mean 'rows'?)"},
    /* purges */
    {"store: sqlite:a\npurges: {}\n",
     "2:9 'purges' is an empty map; leave it out or write a map of purge spaces"},
    {"store: sqlite:a\npurges: [a]\n",
     "2:9 'purges' must be a map of purge spaces, not a list"},
    {"store: sqlite:a\npurges: { w: {} }\n",
     "2:14 'w' must be a map with some of the keys (label, delay, retention, only, erases, notify, timeouts), not an empty map"},
    {"store: sqlite:a\npurges: { w: { delay: 1s } }\n",
     "2:11 'erases' is missing. What is deleted: every row whose column holds the instance."},
    {"store: sqlite:a\npurges: { w: { erases: [] } }\n",
     "2:24 'erases' is an empty list; leave it out or name something"},
    {"store: sqlite:a\npurges: { w: { erases: [x] } }\n",
     "2:25 'erases': 'x' is not a reference; write table(column, …)"},
    {"store: sqlite:a\npurges: { w: { erases: ['x(a, b)'] } }\n",
     "2:25 'erases': an instance has one id, so one column holds it"},
    {"store: sqlite:a\npurges: { w: { erases: [x(a)], delay: '5' } }\n",
     "2:39 'delay': '5' has no unit; write 5s, 5m, 5h, 5d, 5w or 5ms"},
    {"store: sqlite:a\npurges: { w: { erases: [x(a)], retention: { failed: soon } } }\n",
     "2:53 'failed': 'soon' is no duration; write numbers with units like 1h30m, 60 seconds, 1.5h, or never or now"},
    {"store: sqlite:a\npurges: { w: { erases: [x(a)], retention: 5 } }\n",
     "2:43 'retention' must be a map of reasons and durations, like { failed: 24h }, not '5'"},
    {"store: sqlite:a\npurges: { w: { erases: [x(a)], retention: { failed: 1h }, only: [completed] } }\n",
     "2:45 the reason 'failed' has a retention and is not in 'only'"},
    {"store: sqlite:a\npurges: { w: { erases: [x(a)], only: [] } }\n",
     "2:38 'only' is an empty list; leave it out or name something"},
    {"store: sqlite:a\npurges: { w: { erases: [{ ref: x(a), keep: {} }] } }\n",
     "2:44 'keep' is an empty map; leave it out or write a map of columns, like { status: [completed, failed] }"},
    {"store: sqlite:a\npurges: { w: { erases: [{ keep: { a: 1 } }] } }\n",
     "2:25 'ref' is missing. The rows to delete, as table(column)."},
    {"store: sqlite:a\npurges: { w: { erases: [{ ref: x(a), kep: { a: 1 } }] } }\n",
     "2:38 unknown key 'kep' (did you mean 'keep'?)"},
    /* unbounded */
    {GOOD "unbounded: {}\n",
     "3:12 'unbounded' is an empty map; leave it out or write a map of tables and reasons"},
    {GOOD "unbounded: [a]\n",
     "3:12 'unbounded' must be a map of tables and reasons, not a list"},
    {GOOD "unbounded: { a: }\n",
     "3:14 'a' must be a text, not empty"},
    {GOOD "unbounded: { a: '' }\n",
     "3:17 'a' must be a text with something in it, not the text ''"},
    {GOOD "unbounded: { a: { b: c } }\n",
     "3:17 'a' must be a text, not a map"},
    /* several at once */
    {"polices: {}\nstore: x\npolicies:\n  a: { table: t, keep: 1x, age: c }\n  b:\n    kepp: 1\n    rows: { s: [] }\n",
     "1:1 unknown key 'polices' (did you mean 'policies'?)\n"
     "2:8 'store' has no scheme (did you mean sqlite:PATH?); allowed: sqlite:PATH, postgresql://…, mariadb://… or mysql://…\n"
     "4:24 'keep': '1x': unknown unit 'x'; units are ms, s sec second, m min minute, h hr hour, d day, w week\n"
     "5:3 'table' is missing. The base table it bounds, schema-qualified where the engine has schemas.\n"
     "5:3 policy 'b' has no bound: expires, age with keep, orphan or cap\n"
     "6:5 unknown key 'kepp' (did you mean 'keep'?)\n"
     "7:16 's' has an empty list; name at least one value"},
    /* clang-format on */
};

static void test_every_mistake(void **state)
{
    (void)state;
    unsetenv("LAPSE_NO_SUCH");
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        AUTO(text_release) struct text found = {0};
        mistakes_of(wrong[i].yaml, strlen(wrong[i].yaml), &found);
        if (strcmp(text_str(&found), wrong[i].mistakes) != 0)
            fail_msg("%s\nexpected:\n%s\nfound:\n%s", wrong[i].yaml, wrong[i].mistakes, text_str(&found));
        assert_null(strstr(text_str(&found), "secret"));
    }
}

/* --- what is right ------------------------------------------------------------------------------- */

static const char full[] =
    "lapse: 1\n"
    "store: postgresql:///app\n"
    "schedulers:\n"
    "  metadata:   { every: 1m }\n"
    "  statestore: { every: 5m, run_on_start: false, exclusive: true }\n"
    "  nightly:    { cron: \"0 3 * * *\", timezone: Europe/Prague, jitter: 30s }\n"
    "policies:\n"
    "  metadata:\n"
    "    scheduler: metadata\n"
    "    table: trax.metadata\n"
    "    rows: { name: [ManifestManagerTrain, MetadataCleanupTrain],\n"
    "            train_state: [completed, failed, cancelled] }\n"
    "    age: start_time\n"
    "    keep: 30m\n"
    "    with:   [trax.work_queue(metadata_id), trax.log(metadata_id)]\n"
    "    detach: [trax.dead_letter(retry_metadata_id), trax.metadata(parent_id)]\n"
    "    batch: 1000\n"
    "  presence_entries:\n"
    "    scheduler: statestore\n"
    "    table: presence_entries\n"
    "    expires: expires_at_ms\n"
    "    invariant: presence is derived inventory, not durable truth\n"
    "    also: [the websocket heartbeat prunes expired rows inline]\n"
    "  presence_entries.cap: { scheduler: statestore, table: presence_entries,\n"
    "                          cap: { rows: 500, per: [tenant_id], newest: [last_seen_at_ms, instance_id] } "
    "}\n"
    "  channel_inbox.completed:\n"
    "    scheduler: statestore\n"
    "    table: channel_inbox\n"
    "    rows: { status: completed }\n"
    "    age: received_at_ms\n"
    "    keep: ${LAPSE_TEST_DAYS:-7}d\n"
    "    after: [channel_outbox(tenant_id, inbox_id)]\n"
    "  remind-pending-order:\n"
    "    scheduler: nightly\n"
    "    table: orders_tasks\n"
    "    rows: { task: remind-pending-order }\n"
    "    orphan:\n"
    "      of: orders(id)\n"
    "      by: source_doc_id\n"
    "      matching: { created_at: { older_than: 24h } }\n"
    "      delete_when: deleted_or_unmatched\n"
    "    age: [updated_at, last_finalized_at]\n"
    "    keep: 1h\n"
    "  workflow:\n"
    "    table: workflow\n"
    "    rows: { status: [completed, failed, cancelled] }\n"
    "    age: finished_at\n"
    "    keep: { by: status, values: { completed: 1m, failed: 24h, cancelled: 5m }, otherwise: never }\n"
    "    with: [workflow_step(workflow_id)]\n"
    "purges:\n"
    "  workflow:\n"
    "    label: Workflow\n"
    "    delay: 60s\n"
    "    retention: { failed: 24h }\n"
    "    only: [completed, failed]\n"
    "    erases:\n"
    "      - workflow_step(workflow_id)\n"
    "      - { ref: workflow_kv(instance_id), keep: { key: [\"workflow:output\", \"workflow:status\", "
    "\"meta:*\"] } }\n"
    "      - workflow(id)\n"
    "unbounded:\n"
    "  models_dev_cache: singleton primary key (id = 1)\n"
    "  channel_outbox.sent: deleted inline after delivery\n";

static void assert_ref(const struct ref *r, const char *expected)
{
    AUTO(text_release) struct text t = {0};
    ref_print(r, &t);
    assert_string_equal(text_str(&t), expected);
}

static void test_full_top(void **state)
{
    (void)state;
    AUTO(contract_free_p) struct contract *c = good(full);
    assert_string_equal(c->store, "postgresql:///app");
    assert_string_equal(c->listen, "127.0.0.1:9933");
    assert_null(c->own_schema);
    assert_int_equal(c->n_schedulers, 4);
    const struct scheduler *s = c->schedulers;
    assert_int_equal(s[0].every.us, 60 * US_PER_S);
    assert_true(s[0].run_on_start && s[0].enabled && !s[0].exclusive && !s[0].cron);
    assert_string_equal(s[0].timezone, "UTC");
    assert_int_equal(s[0].lease.us, 30 * US_PER_S);
    assert_int_equal(s[0].jitter.us, 0);
    assert_int_equal(s[0].budget_rows, -1);
    assert_int_equal(s[0].budget_time.kind, SPAN_NEVER);
    assert_int_equal(s[0].window_from, -1);
    assert_true(!s[1].run_on_start && s[1].exclusive);
    assert_string_equal(s[2].cron, "0 3 * * *");
    assert_string_equal(s[2].timezone, "Europe/Prague");
    assert_true(!s[2].run_on_start && s[2].every.kind == SPAN_NEVER);
    assert_int_equal(s[2].jitter.us, 30 * US_PER_S);
    assert_string_equal(s[3].name, "default");
    assert_int_equal(s[3].at.line, 0);

    assert_int_equal(c->n_unbounded, 2);
    assert_string_equal(c->unbounded[1].name, "channel_outbox.sent");
    assert_string_equal(c->unbounded[0].why, "singleton primary key (id = 1)");
}

static void test_full_policies(void **state)
{
    (void)state;
    AUTO(contract_free_p) struct contract *c = good(full);
    assert_int_equal(c->n_policies, 6);
    const struct policy *p = contract_policy(c, "metadata");
    assert_ptr_equal(p, &c->policies[0]);
    assert_null(contract_policy(c, "metadat"));
    assert_string_equal(p->label, "metadata");
    assert_string_equal(p->table.schema.text, "trax");
    assert_int_equal(p->rows->op, COND_ALL);
    assert_int_equal(p->rows->n_kids, 2);
    assert_int_equal(p->rows->kids[1]->op, COND_IN);
    assert_string_equal(p->rows->kids[1]->column.text, "train_state");
    assert_int_equal(p->rows->kids[1]->n_values, 3);
    assert_string_equal(p->rows->kids[1]->values[2].text, "cancelled");
    assert_int_equal(p->n_age, 1);
    assert_int_equal(p->keep.kind, KEEP_SPAN);
    assert_int_equal(p->keep.span.us, 30 * 60 * US_PER_S);
    assert_int_equal(p->n_with, 2);
    assert_ref(&p->with[1].ref, "trax.log(metadata_id)");
    assert_int_equal(p->n_detach, 2);
    assert_true(p->batch == 1000 && p->workers == 1 && p->enabled && !p->inclusive);
    assert_true(p->lock_timeout_us == 2 * US_PER_S && p->statement_timeout_us == 30 * US_PER_S);
    assert_string_equal(p->zone, "UTC");
    assert_int_equal(p->n_not_yet, 0);
    assert_int_equal(p->at.line, 8);

    assert_string_equal(p[1].expires.text, "expires_at_ms");
    assert_int_equal(p[1].n_also, 1);
    assert_int_equal(p[2].cap->rows, 500);
    assert_int_equal(p[2].cap->n_newest, 2);
    assert_int_equal(p[2].n_not_yet, 0);
    assert_int_equal(p[3].keep.span.us, 7 * US_PER_DAY);
    assert_int_equal(p[3].n_after, 1);
    assert_ref(&p[3].after[0].ref, "channel_outbox(tenant_id, inbox_id)");
    assert_int_equal(p[4].orphan->when, ORPHAN_DELETED_OR_UNMATCHED);
    assert_int_equal(p[4].orphan->matching->kids[0]->op, COND_OLDER_THAN);
    assert_int_equal(p[4].n_age, 2);
    assert_int_equal(p[5].keep.kind, KEEP_BY);
    assert_int_equal(p[5].keep.n_values, 3);
    assert_string_equal(p[5].keep.values[1].value.text, "failed");
    assert_int_equal(p[5].keep.values[1].span.us, US_PER_DAY);
    assert_int_equal(p[5].keep.span.kind, SPAN_NEVER);
    assert_string_equal(p[5].scheduler, "default");
}

static void test_full_purges(void **state)
{
    (void)state;
    AUTO(contract_free_p) struct contract *c = good(full);
    const struct purge_space *s = c->purges;
    assert_int_equal(c->n_purges, 1);
    assert_string_equal(s->label, "Workflow");
    assert_int_equal(s->delay.us, 60 * US_PER_S);
    assert_int_equal(s->n_only, 2);
    assert_int_equal(s->n_retention, 1);
    assert_string_equal(s->retention[0].reason, "failed");
    assert_int_equal(s->n_erases, 3);
    const struct cond *keep = s->erases[1].keep->kids[0];
    assert_int_equal(keep->n_values, 3);
    assert_true(keep->values[2].prefix && !keep->values[0].prefix);
    assert_string_equal(keep->values[2].text, "meta:");
    assert_null(s->erases[0].keep);
}

static void test_defaults(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c = good("store: sqlite:a\n" BARE "serve: off\n"
                              "purges: { w: { erases: x(a), delay: 0 } }\n");
    assert_null(c->listen);
    assert_int_equal(c->n_schedulers, 1);
    assert_string_equal(c->schedulers[0].name, "default");
    assert_int_equal(c->schedulers[0].every.us, 60 * US_PER_S);
    assert_true(c->schedulers[0].run_on_start && c->schedulers[0].enabled);
    assert_string_equal(c->policies[0].scheduler, "default");
    assert_int_equal(c->purges[0].delay.us, 0);
    assert_null(c->purges[0].only);

    AUTO(contract_free_p) struct contract *only = good(GOOD "schedulers: { slow: { every: 1h } }\n");
    assert_string_equal(only->policies[0].scheduler, "slow");

    AUTO(contract_free_p)
    struct contract *none_named = good(GOOD "schedulers: { slow: { every: 1h }, slower: { every: 2h } }\n");
    assert_string_equal(none_named->policies[0].scheduler, "default");
    assert_int_equal(none_named->n_schedulers, 3);
    assert_string_equal(none_named->schedulers[2].name, "default");
    assert_int_equal(none_named->schedulers[2].every.us, 60 * US_PER_S);
}

static void test_scheduler_values(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c = good(
        GOOD
        "schedulers:\n  s: { every: \"cron @hourly\", window: \"22:00-06:00\", lease: 1m, enabled: false,\n"
        "       budget: { rows: 5, batches: 6, time: 7s } }\n  t: { cron: CRON 0 3 * * *, run_on_start: true "
        "}\n");
    const struct scheduler *s = c->schedulers;
    assert_string_equal(s[0].cron, "@hourly");
    assert_int_equal(s[0].every.kind, SPAN_NEVER);
    assert_int_equal(s[0].window_from, 22 * 60);
    assert_int_equal(s[0].window_to, 6 * 60);
    assert_int_equal(s[0].lease.us, 60 * US_PER_S);
    assert_true(s[0].budget_rows == 5 && s[0].budget_batches == 6 && s[0].budget_time.us == 7 * US_PER_S);
    assert_true(!s[0].enabled && !s[0].run_on_start);
    assert_int_equal(s[0].at.line, 4);
    assert_string_equal(s[1].cron, "0 3 * * *");
    assert_true(s[1].run_on_start);
}

static void test_keep_forms(void **state)
{
    (void)state;
    static const struct {
        const char *keep;
        enum keep_kind kind;
        enum span_kind span;
        int64_t us, unit_us;
    } forms[] = {
        {"now", KEEP_SPAN, SPAN_NOW, 0, 0},
        {"never", KEEP_SPAN, SPAN_NEVER, INT64_MAX, 0},
        {"60000", KEEP_SPAN, SPAN_TIME, 60 * US_PER_S, 0},
        {"1h30m", KEEP_SPAN, SPAN_TIME, 5400 * US_PER_S, 0},
        {"{ by: s, values: { a: now, null: 1d } }", KEEP_BY, SPAN_NEVER, INT64_MAX, 0},
        {"{ by: s, values: { a: 1h }, otherwise: 2s }", KEEP_BY, SPAN_TIME, 2 * US_PER_S, 0},
        {"{ column: days, unit: d }", KEEP_COLUMN, SPAN_NEVER, INT64_MAX, US_PER_DAY},
        {"{ column: x, unit: Hours }", KEEP_COLUMN, SPAN_NEVER, INT64_MAX, 3600 * US_PER_S},
        {"{ column: x, unit: us }", KEEP_COLUMN, SPAN_NEVER, INT64_MAX, 1},
        {"{ column: x_ms }", KEEP_COLUMN, SPAN_NEVER, INT64_MAX, 0},
    };
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        char yaml[300];
        snprintf(yaml, sizeof(yaml), AGE "    keep: %s\n", forms[i].keep);
        AUTO(contract_free_p) struct contract *c = good(yaml);
        const struct keep *k = &c->policies[0].keep;
        assert_int_equal(k->kind, forms[i].kind);
        assert_int_equal(k->span.kind, forms[i].span);
        assert_int_equal(k->span.us, forms[i].us);
        assert_int_equal(k->unit_us, forms[i].unit_us);
    }
}

static void test_policy_values(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c =
        good("store: sqlite:a\npolicies:\n  p:\n    table: '\"My Schema\".\"odd.name\"'\n    enabled: "
             "false\n    label: L\n"
             "    age: '\"a,b\"'\n    keep: 1d\n    inclusive: true\n    unit: us\n    zone: Europe/Prague\n"
             "    batch: null\n    workers: 1\n    timeouts: { lock: 5s }\n"
             "    with: { ref: x(a, b) -> (c, d), where: n > 1, with: y(z), detach: u(v), split: false,\n"
             "            after: { ref: w(q), where: { s: open } } }\n");
    const struct policy *p = c->policies;
    assert_string_equal(p->table.schema.text, "My Schema");
    assert_string_equal(p->table.table.text, "odd.name");
    assert_true(!p->enabled && p->inclusive && p->unit_us == 1 && p->batch == BATCH_ALL);
    assert_string_equal(p->label, "L");
    assert_true(p->age[0].quoted);
    assert_string_equal(p->age[0].text, "a,b");
    assert_string_equal(p->zone, "Europe/Prague");
    assert_true(p->lock_timeout_us == 5 * US_PER_S && p->statement_timeout_us == 30 * US_PER_S);
    assert_int_equal(p->n_not_yet, 0);
    assert_ref(&p->with[0].ref, "x(a, b) -> (c, d)");
    assert_int_equal(p->with[0].where->op, COND_SQL);
    assert_string_equal(p->with[0].where->sql, "n > 1");
    assert_ref(&p->with[0].with[0].ref, "y(z)");
    assert_ref(&p->with[0].detach[0], "u(v)");
    assert_ref(&p->with[0].after[0].ref, "w(q)");
    assert_non_null(p->with[0].after[0].where);
}

static void test_limits_and_pace(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c = good(AGE_KEEP "    keep_newest: { rows: 1, newest: n }\n"
                                       "    pace: { duty: 1, rows_per_second: 2.5 }\n"
                                       "    with: [{ ref: x(a), split: true }]\n"
                                       "    limits: { rows: 1, fraction: 0.5 }\n");
    const struct policy *p = c->policies;
    assert_true(p->limits->fraction > 0.49 && p->limits->fraction < 0.51);
    assert_true(p->pace->rows_per_second > 2.49 && p->pace->rows_per_second < 2.51);
    assert_true(p->pace->target.us == 50 * US_PER_MS && p->pace->lag_bytes == -1);
    assert_int_equal(p->pace->lag.kind, SPAN_NEVER);
}

static void test_orphan(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c = good(
        "store: sqlite:a\npolicies:\n"
        "  a: { table: t, age: u, orphan: { of: o(x, y), by: [a, b], matching: { s: 1 },\n"
        "       delete_when: sourceDocumentDeletedOrNoLongerMatching } }\n"
        "  b: { table: t, keep: now, orphan: { of: o(x), by: a, delete_when: sourceDocumentDeleted } }\n"
        "  c: { table: t, age: u, orphan: { of: o(x), by: a, delete_when: never, allow_empty: true } }\n");
    const struct policy *p = c->policies;
    assert_int_equal(p[0].keep.span.us, US_PER_DAY);
    assert_int_equal(p[0].orphan->of.n_columns, 2);
    assert_int_equal(p[0].orphan->when, ORPHAN_DELETED_OR_UNMATCHED);
    assert_int_equal(p[1].orphan->when, ORPHAN_DELETED);
    assert_int_equal(p[2].orphan->when, ORPHAN_NEVER);
    assert_true(p[2].orphan->allow_empty);
}

static void test_conditions(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c =
        good(EXPIRES "    rows: { a: 'x*', b: ['y\\*', null, '5', 5], '\"any\"': 1 }\n"
                     "    where: { s: [a, null], n: { gte: 3, lt: 9 }, e: { not: null }, l: { like: 'a%' },\n"
                     "             t: { newer_than: 1d }, any: [{ x: 1 }, \"y = 'z'\"], '\"any\"': 2 }\n"
                     "    hold: this.legal is not null\n");
    const struct cond *rows = c->policies[0].rows, *where = c->policies[0].where;
    assert_true(rows->kids[0]->values[0].prefix);
    assert_string_equal(rows->kids[0]->values[0].text, "x");
    assert_string_equal(rows->kids[1]->values[0].text, "y*");
    assert_false(rows->kids[1]->values[0].prefix);
    assert_true(rows->kids[1]->values[1].null);
    assert_true(rows->kids[1]->values[2].quoted && !rows->kids[1]->values[3].quoted);
    assert_string_equal(rows->kids[2]->column.text, "any");
    static const enum cond_op ops[] = {COND_IN,   COND_GTE,        COND_LT,  COND_NOT_IN,
                                       COND_LIKE, COND_NEWER_THAN, COND_ANY, COND_IN};
    assert_int_equal(where->n_kids, COUNT_OF(ops));
    for (size_t i = 0; i < COUNT_OF(ops); i++)
        assert_int_equal(where->kids[i]->op, ops[i]);
    assert_string_equal(where->kids[2]->column.text, "n");
    assert_int_equal(where->kids[6]->n_kids, 2);
    assert_int_equal(where->kids[6]->kids[1]->op, COND_SQL);
    assert_string_equal(c->policies[0].hold->sql, "this.legal is not null");
}

static void test_environment_and_aliases(void **state)
{
    (void)state;
    setenv("LAPSE_TEST_N", "25", 1);
    AUTO(contract_free_p)
    struct contract *c =
        good("store: sqlite:${LAPSE_TEST_N}.db\npolicies:\n  a: &a\n    table: t\n    age: c\n    keep: "
             "${LAPSE_TEST_N}d\n"
             "    batch: ${LAPSE_TEST_N}\n    invariant: costs $${x}\n  b: { <<: *a, table: u, batch: 7 }\n");
    unsetenv("LAPSE_TEST_N");
    assert_string_equal(c->store, "sqlite:25.db");
    assert_int_equal(c->policies[0].keep.span.us, 25 * US_PER_DAY);
    assert_int_equal(c->policies[0].batch, 25);
    assert_string_equal(c->policies[0].invariant, "costs ${x}");
    assert_int_equal(c->policies[1].batch, 7);
    assert_string_equal(c->policies[1].table.table.text, "u");
    assert_int_equal(c->policies[1].keep.span.us, 25 * US_PER_DAY);
}

/* --- files --------------------------------------------------------------------------------------- */

static char folder[] = "/tmp/lapse-test-XXXXXX";

static const char *write_file(const char *name, const char *content)
{
    static char path[200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
    return path;
}

static int setup_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"dsn", "lapse.yaml"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[200];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void test_store_file(void **state)
{
    (void)state;
    struct mistakes m;
    struct err e = ERR_INIT;
    AUTO(contract_free_p) struct contract *c = NULL;
    write_file("dsn", "postgresql://u:secret@h/db\r\n");
    const char *path = write_file("lapse.yaml", "store_file: dsn\n" BARE);
    assert_int_equal(contract_load(path, &c, &m, &e), 0);
    assert_string_equal(c->store, "postgresql://u:secret@h/db");

    static const char *const bad[][2] = {{"oracle://u:secret@h/db", "the scheme 'oracle' of 'store_file'"},
                                         {"", "is not one line of text"},
                                         {"a\nb\n", "is not one line of text"}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        write_file("dsn", bad[i][0]);
        struct contract *none = NULL;
        path = write_file("lapse.yaml", "store_file: dsn\n" BARE);
        assert_int_equal(contract_load(path, &none, &m, &e), -1);
        assert_int_equal(m.n, 1);
        assert_non_null(strstr(m.list[0].text, bad[i][1]));
        assert_null(strstr(m.list[0].text, "secret"));
        mistakes_release(&m);
    }
}

static void test_unreadable(void **state)
{
    (void)state;
    static const char *const paths[][2] = {{"/nonexistent/lapse.yaml", "No such file"}, {"/", "a directory"}};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct mistakes m;
        struct err e = ERR_INIT;
        struct contract *c = NULL;
        assert_int_equal(contract_load(paths[i][0], &c, &m, &e), -1);
        assert_int_equal(m.n, 0);
        assert_int_equal(e.kind, ERR_CONTRACT);
        assert_non_null(strstr(e.text, paths[i][0]));
        assert_non_null(strstr(e.text, paths[i][1]));
    }
}

/* --- input that means harm ----------------------------------------------------------------------- */

/* A draft in which all is still to be decided. */
static void test_left_empty(void **state)
{
    (void)state;
    struct contract *c = good("store: sqlite:a.db\npolicies:\nunbounded:\n");
    assert_int_equal(c->n_policies, 0);
    assert_int_equal(c->n_unbounded, 0);
    contract_free(c);
}

static void test_hundred_mistakes(void **state)
{
    (void)state;
    AUTO(text_release) struct text yaml = {0};
    text_add(&yaml, GOOD);
    for (int i = 0; i < 500; i++)
        text_addf(&yaml, "zz%d: 1\n", i);
    struct mistakes m;
    struct contract *c = NULL;
    assert_int_equal(contract_parse("f", yaml.data, yaml.len, &c, &m, NULL), -1);
    assert_int_equal(m.n, 100);
    assert_string_equal(m.list[99].text, "and 401 more mistakes from here on");
    assert_int_equal(m.list[99].at.line, 102);
    mistakes_release(&m);
}

/* A mistake that is read through several aliases is one mistake. */
static void test_mistake_in_alias(void **state)
{
    (void)state;
    AUTO(text_release) struct text found = {0};
    static const char yaml[] =
        "store: sqlite:a\npolicies:\n  a: &a { table: t, expires: e, batch: 0 }\n  b: *a\n  c: *a\n";
    mistakes_of(yaml, strlen(yaml), &found);
    assert_string_equal(text_str(&found), "3:40 'batch' must be a whole number of at least 1, not '0'");
}

/* Deterministic, so that a failure can be repeated. */
static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Bytes changed, dropped, doubled and moved: whatever comes of it, it ends and it is a contract or mistakes.
 */
static void test_mutations(void **state)
{
    (void)state;
    static const char spice[] = "{}[]:,-&*!|>'\"%@`#?\\\n\t $\x80\xff()<~";
    uint32_t seed = 20261116;
    for (int round = 0; round < 1500; round++) {
        AUTO(text_release) struct text yaml = {0}, found = {0};
        text_add_n(&yaml, full, sizeof(full) - 1);
        for (uint32_t n = next_random(&seed) % 6 + 1; n > 0; n--) {
            size_t at = next_random(&seed) % yaml.len, len = next_random(&seed) % 40;
            if (at + len > yaml.len)
                len = yaml.len - at;
            switch (next_random(&seed) % 4) {
            case 0:
                yaml.data[at] = spice[next_random(&seed) % sizeof(spice)];
                break;
            case 1:
                memmove(yaml.data + at, yaml.data + at + len, yaml.len - at - len);
                yaml.len -= len;
                break;
            case 2: {
                AUTO(text_release) struct text piece = {0};
                text_add_n(&piece, yaml.data + at, len);
                text_add_n(&yaml, text_str(&piece), piece.len);
                break;
            }
            default:
                memmove(yaml.data + next_random(&seed) % (yaml.len - len + 1), yaml.data + at, len);
            }
        }
        mistakes_of(yaml.data, yaml.len, &found);
    }
}

/* --- the key table ------------------------------------------------------------------------------- */

static void test_keys_are_documented(void **state)
{
    (void)state;
    size_t n;
    const struct key_doc *keys = contract_keys(&n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(keys[i].doc);
        assert_true(keys[i].section[0] && keys[i].key[0] && keys[i].type[0]);
        if (len < 10 || keys[i].doc[len - 1] != '.' || !keys[i].read)
            fail_msg("%s.%s is not documented", keys[i].section, keys[i].key);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(keys[i].section, keys[k].section) && !strcmp(keys[i].key, keys[k].key))
                fail_msg("%s.%s is there twice", keys[i].section, keys[i].key);
    }
}

/* What bounds lapse's own tables is a contract like any other, of the same store. */
static void test_own_tables(void **state)
{
    (void)state;
    AUTO(contract_free_p)
    struct contract *c = good("own_schema: upkeep\nserve: { listen: 127.0.0.1:1 }\n" GOOD);
    const struct contract *own = c->own;
    assert_non_null(own);
    assert_null(own->own);
    assert_ptr_equal(own->store, c->store);
    assert_string_equal(own->own_schema, "upkeep");
    assert_string_equal(own->listen, "127.0.0.1:1");
    assert_int_equal(own->n_schedulers, 1);
    assert_string_equal(own->schedulers[0].name, OWN_SCHEDULER);
    assert_false(own->schedulers[0].run_on_start);
    assert_int_equal(own->schedulers[0].every.us, 600 * US_PER_S);
    assert_int_equal(own->n_policies, 1);
    const struct policy *p = &own->policies[0];
    assert_string_equal(p->name, "lapse.run");
    assert_string_equal(p->table.schema.text, "upkeep");
    assert_string_equal(p->table.table.text, "lapse_run");
    assert_int_equal(p->n_not_yet, 0);
    assert_null(contract_policy(c, "lapse.run"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_mistake),
        cmocka_unit_test(test_full_top),
        cmocka_unit_test(test_full_policies),
        cmocka_unit_test(test_full_purges),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_scheduler_values),
        cmocka_unit_test(test_keep_forms),
        cmocka_unit_test(test_policy_values),
        cmocka_unit_test(test_limits_and_pace),
        cmocka_unit_test(test_orphan),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_environment_and_aliases),
        cmocka_unit_test_setup_teardown(test_store_file, setup_folder, remove_folder),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_left_empty),
        cmocka_unit_test(test_hundred_mistakes),
        cmocka_unit_test(test_mistake_in_alias),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_keys_are_documented),
        cmocka_unit_test(test_own_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
