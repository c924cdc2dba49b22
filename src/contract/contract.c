/* contract: the sections of the file, and the key table. */
#include "contract/contract.h"
#include "contract/rule.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the store -----------------------------------------------------------------------------------
 * The address may hold a password: no message shows more of it than a scheme. */

#define ALLOWED_STORES "sqlite:PATH, postgresql://…, mariadb://… or mysql://…"

static const char *const schemes[] = {"sqlite:", "postgresql://", "postgres://", "mariadb://", "mysql://"};

static bool scheme_known(const char *store)
{
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        size_t len = strlen(schemes[i]);
        if (strncmp(store, schemes[i], len) == 0)
            return store[len] != '\0' || i > 0;
    }
    return false;
}

static void check_store(struct reader *r, struct place at, const char *store)
{
    static const char *const words[] = {"sqlite", "postgresql", "postgres", "mariadb", "mysql"};
    if (scheme_known(store))
        return;
    size_t len = strspn(store, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    const char *scheme = arena_strndup(r->arena, store, len);
    const char *near = nearest_word(scheme, words, COUNT_OF(words));
    if (len > 0 && len <= 20 && strncmp(store + len, "://", 3) == 0)
        mistakes_add(r->mistakes, at, "the scheme '%s' of '%s' is not known%s%s%s; allowed: " ALLOWED_STORES,
                     scheme, r->key, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    else if (strcmp(store, "sqlite:") == 0)
        mistakes_add(r->mistakes, at, "'%s' names no file; write sqlite:PATH", r->key);
    else if (near && store[len] == ':')
        mistakes_add(r->mistakes, at, "'%s' is not an address (did you mean '%s'?); allowed: " ALLOWED_STORES,
                     r->key, strcmp(near, "sqlite") == 0 ? "sqlite:PATH" : near);
    else
        mistakes_add(r->mistakes, at,
                     "'%s' has no scheme (did you mean sqlite:PATH?); allowed: " ALLOWED_STORES, r->key);
}

static void read_store(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    if (n->kind == NODE_SCALAR && n->broken)
        return;
    if (n->kind != NODE_SCALAR || node_is_null(n)) {
        mistakes_add(r->mistakes, n->at, "'%s' must be one of " ALLOWED_STORES, r->key);
        return;
    }
    check_store(r, n->at, n->text);
    *(const char **)field = n->text;
}

static void close_p(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* At most one byte more than `most`, by which the caller sees that there is too much. Only of a file: a pipe
 * would be waited for, and would hold nothing when it is read again. */
static int read_file(const char *path, size_t most, struct text *out, struct err *e)
{
    struct stat st;
    AUTO(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, ERR_CONTRACT, "cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CONTRACT, "cannot read %s: it is %s, not a file", path,
                       S_ISDIR(st.st_mode)    ? "a directory"
                       : S_ISFIFO(st.st_mode) ? "a pipe"
                                              : "a device");
    char piece[16384];
    while (out->len <= most) {
        size_t room = most + 1 - out->len;
        ssize_t n = read(fd, piece, room < sizeof(piece) ? room : sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(e, ERR_CONTRACT, "cannot read %s: %s", path, strerror(errno));
        if (n == 0)
            return 0;
        text_add_n(out, piece, (size_t)n);
    }
    return 0;
}

static void read_store_file(struct reader *r, const struct node *n, void *field, size_t *count)
{
    enum { MOST = 64 * 1024 };
    const char *path = NULL;
    read_path(r, n, &path, count);
    if (!path)
        return;
    struct err e = ERR_INIT;
    AUTO(text_release) struct text t = {0};
    struct place bad;
    if (read_file(path, MOST, &t, &e) != 0) {
        mistakes_add(r->mistakes, n->at, "'store_file': %s", e.text);
        return;
    }
    while (t.len > 0 && strchr("\r\n", t.data[t.len - 1]))
        t.data[--t.len] = '\0';
    if (t.len == 0 || t.len > MOST || !yaml_check_text(t.data, t.len, &bad) || memchr(t.data, '\n', t.len)) {
        mistakes_add(r->mistakes, n->at, "'store_file': %s is not one line of text", path);
        return;
    }
    check_store(r, n->at, t.data);
    *(const char **)field = arena_strdup(r->arena, t.data);
}

/* --- the rest of the top level ------------------------------------------------------------------- */

static void read_version(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)field;
    (void)count;
    const char *s = reader_text(r, n, "1");
    if (s && strcmp(s, "1") != 0)
        reader_wrong(r, n, "1, the only version of this language that this program reads");
}

/* host:port, or [host]:port where the host has colons itself. */
static bool is_listen_address(const char *s)
{
    const char *colon = strrchr(s, ':');
    if (!colon || colon == s)
        return false;
    bool bracketed = s[0] == '[' && colon[-1] == ']';
    if (!bracketed && memchr(s, ':', (size_t)(colon - s)))
        return false;
    size_t digits = strspn(colon + 1, "0123456789");
    int port = 0;
    for (size_t i = 0; i < digits && i < 6; i++)
        port = port * 10 + (colon[1 + i] - '0');
    return digits > 0 && digits < 6 && colon[1 + digits] == '\0' && port <= 65535;
}

static void read_listen(struct reader *r, const struct node *n, void *field, size_t *count)
{
    static const char allowed[] = "host:port, like 127.0.0.1:9933";
    (void)count;
    const char *s = reader_text(r, n, allowed);
    if (s && is_listen_address(s))
        *(const char **)field = s;
    else if (s)
        reader_wrong(r, n, allowed);
}

static void read_serve(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct contract *c = field;
    if (n->kind == NODE_MAP)
        reader_section(r, "serve", n->at, n, c);
    else if (n->kind == NODE_SCALAR && !n->quoted && strcmp(n->text, "off") == 0)
        c->listen = NULL;
    else
        reader_wrong(r, n, "{ listen, token_file } or off");
}

static bool is_printable(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return false;
    return true;
}

/* The name that the contract gives to a policy, a scheduler or a purge. */
static void check_own_name(struct reader *r, const struct node *key)
{
    if (!key->text[0] || !is_printable(key->text))
        mistakes_add(r->mistakes, key->at, "a name in '%s' is empty or holds a control character", r->key);
}

/* A key with nothing behind it: a draft in which all is still to be decided. check says that it is empty. */
static bool is_left_empty(const struct node *n)
{
    return n->kind == NODE_SCALAR && !n->quoted && !n->broken && !*n->text;
}

static void read_unbounded(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct unbounded *list = NULL;
    if (is_left_empty(n) || !reader_map(r, n, "a map of tables and reasons"))
        return;
    for (size_t i = 0; i < n->n_pairs; i++) {
        const struct pair *p = &n->pairs[i];
        check_own_name(r, p->key);
        list = arena_push(r->arena, list, i, sizeof(*list));
        list[i] = (struct unbounded){.name = p->key->text, .at = p->key->at};
        const char *outer = r->key;
        r->key = p->key->text;
        read_text(r, p->value, &list[i].why, NULL);
        r->key = outer;
    }
    *(struct unbounded **)field = list;
    *count = n->n_pairs;
}

/* --- schedulers ---------------------------------------------------------------------------------- */

static bool has_cron_prefix(const char *s)
{
    return strncasecmp(s, "cron", 4) == 0 && (s[4] == ' ' || s[4] == '\t');
}

static void set_cron(struct reader *r, const struct node *n, const char **field)
{
    const char *s = reader_text(r, n, "a cron expression like \"0 3 * * *\"");
    if (!s)
        return;
    struct err e = ERR_INIT;
    AUTO(cron_free_p) struct cron *cron = NULL;
    if (cron_parse(s, &cron, &e) != 0) {
        mistakes_add(r->mistakes, n->at, "'%s': %s", r->key, e.text);
        return;
    }
    s += strspn(s, " \t");
    if (has_cron_prefix(s))
        s += 4 + strspn(s + 4, " \t");
    *field = s;
}

static void read_cron(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    set_cron(r, n, field);
}

static bool looks_like_cron(const char *s)
{
    return s[0] == '@' || strchr(s, '*') != NULL;
}

static void read_every(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct scheduler *s = field;
    bool scalar = n->kind == NODE_SCALAR && !n->broken;
    if (scalar && has_cron_prefix(n->text + strspn(n->text, " \t")))
        set_cron(r, n, &s->cron);
    else if (scalar && looks_like_cron(n->text))
        reader_wrong(r, n, "a duration like 5m (did you mean 'cron'?)");
    else
        read_time(r, n, &s->every, count);
}

/* HH:MM as minutes of the day; -1 if it is not that. */
static int clock_minutes(const char *s)
{
    static const char shape[] = "00:00";
    for (int i = 0; i < 5; i++)
        if (shape[i] == ':' ? s[i] != ':' : s[i] < '0' || s[i] > '9')
            return -1;
    int hours = (s[0] - '0') * 10 + s[1] - '0', minutes = (s[3] - '0') * 10 + s[4] - '0';
    if (minutes > 59 || hours * 60 + minutes > 24 * 60)
        return -1;
    return (hours * 60 + minutes) % (24 * 60);
}

static void read_window(struct reader *r, const struct node *n, void *field, size_t *count)
{
    static const char allowed[] = "a part of the day like \"22:00-06:00\"";
    (void)count;
    struct scheduler *s = field;
    const char *text = reader_text(r, n, allowed);
    if (!text)
        return;
    bool shaped = strlen(text) == 11 && text[5] == '-';
    int from = shaped ? clock_minutes(text) : -1, to = shaped ? clock_minutes(text + 6) : -1;
    if (from < 0 || to < 0 || from == to) {
        reader_wrong(r, n, allowed);
        return;
    }
    s->window_from = from;
    s->window_to = to;
}

static void read_budget(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    reader_section(r, "scheduler.budget", n->at, n, field);
}

static struct scheduler new_scheduler(const char *name, struct place at)
{
    return (struct scheduler){.name = name,
                              .every = {SPAN_NEVER, INT64_MAX},
                              .budget_rows = -1,
                              .budget_batches = -1,
                              .budget_time = {SPAN_NEVER, INT64_MAX},
                              .window_from = -1,
                              .window_to = -1,
                              .at = at};
}

/* A scheduler that can never run would be found out by nobody. */
static void check_window(struct reader *r, const struct node *n, const struct scheduler *s)
{
    AUTO(cron_free_p) struct cron *cron = NULL;
    if (s->window_from < 0 || !s->cron || cron_parse(s->cron, &cron, NULL) < 0)
        return;
    if (!cron_fires_within(cron, s->window_from, s->window_to))
        mistakes_add(r->mistakes, node_find(n, "window")->key->at,
                     "scheduler '%s' never runs: no time of its cron '%.100s' lies in its window", s->name,
                     s->cron);
}

/* Else a tick could begin after the one that follows it. */
static void check_jitter(struct reader *r, const struct node *n, const struct scheduler *s)
{
    if (s->every.kind != SPAN_TIME || s->jitter.us < s->every.us)
        return;
    AUTO(text_release) struct text jitter = {0}, every = {0};
    span_format(s->jitter.us, &jitter);
    span_format(s->every.us, &every);
    mistakes_add(r->mistakes, node_find(n, "jitter")->value->at,
                 "'jitter' must be shorter than 'every': %s is not shorter than %s", text_str(&jitter),
                 text_str(&every));
}

static void read_scheduler(struct reader *r, const struct pair *p, struct scheduler *s)
{
    *s = new_scheduler(p->key->text, p->key->at);
    check_own_name(r, p->key);
    const char *outer = r->key;
    r->key = s->name;
    if (reader_section(r, "scheduler", s->at, p->value, s)) {
        const struct pair *every = node_find(p->value, "every"), *cron = node_find(p->value, "cron");
        if (every && cron)
            mistakes_add(r->mistakes, cron->key->at, "'every' and 'cron' exclude each other");
        if (!every && !cron)
            mistakes_add(r->mistakes, s->at, "scheduler '%s' needs 'every' or 'cron'", s->name);
        if (!node_find(p->value, "run_on_start"))
            s->run_on_start = !s->cron;
        check_window(r, p->value, s);
        if (node_find(p->value, "jitter"))
            check_jitter(r, p->value, s);
    }
    r->key = outer;
}

static void read_schedulers(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct scheduler *list = NULL;
    enum { MOST = 100 }; /* each is a thread and a connection */
    if (!reader_map(r, n, "a map of schedulers"))
        return;
    if (n->n_pairs > MOST) {
        mistakes_add(r->mistakes, n->at, "there are more than %d schedulers", MOST);
        return;
    }
    for (size_t i = 0; i < n->n_pairs; i++) {
        list = arena_push(r->arena, list, i, sizeof(*list));
        read_scheduler(r, &n->pairs[i], &list[i]);
    }
    *(struct scheduler **)field = list;
    *count = n->n_pairs;
}

/* `default` exists without being written: every minute. */
static void add_default_scheduler(struct reader *r, struct contract *c)
{
    c->schedulers = arena_push(r->arena, c->schedulers, c->n_schedulers, sizeof(*c->schedulers));
    struct scheduler *s = &c->schedulers[c->n_schedulers++];
    *s = new_scheduler("default", (struct place){0});
    reader_defaults(r, "scheduler", s);
    s->every = (struct span){SPAN_TIME, 60 * US_PER_S};
    s->run_on_start = true;
}

/* --- purges -------------------------------------------------------------------------------------- */

static void read_retention(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    struct purge_space *space = field;
    if (!reader_map(r, n, "a map of reasons and durations, like { failed: 24h }"))
        return;
    for (size_t i = 0; i < n->n_pairs; i++) {
        space->retention = arena_push(r->arena, space->retention, i, sizeof(*space->retention));
        space->retention[i].reason = n->pairs[i].key->text;
        const char *outer = r->key;
        r->key = n->pairs[i].key->text;
        read_delay(r, n->pairs[i].value, &space->retention[i].span, NULL);
        r->key = outer;
    }
    space->n_retention = n->n_pairs;
}

static void read_erases(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct erase *list = NULL;
    size_t n_items, n_list = 0;
    const struct node **items = reader_items(r, n, &n_items);
    for (size_t i = 0; i < n_items; i++) {
        list = arena_push(r->arena, list, n_list, sizeof(*list));
        struct erase *erase = &list[n_list++];
        if (items[i]->kind == NODE_MAP)
            reader_section(r, "purge.erases", items[i]->at, items[i], erase);
        else
            read_ref(r, items[i], &erase->ref, NULL);
        if (erase->ref.n_targets)
            mistakes_add(r->mistakes, erase->ref.at, "'%s': an instance has one id, so -> points nowhere",
                         r->key);
        if (erase->ref.n_columns > 1)
            mistakes_add(r->mistakes, erase->ref.at, "'%s': an instance has one id, so one column holds it",
                         r->key);
    }
    *(struct erase **)field = list;
    *count = n_list;
}

static void read_purge_timeouts(struct reader *r, const struct node *n, void *field, size_t *count)
{
    (void)count;
    reader_section(r, "purge.timeouts", n->at, n, field);
}

/* A delay for a reason that `only` leaves out would never be used. */
static void check_retention(struct reader *r, const struct purge_space *s, const struct node *map)
{
    const struct pair *retention = node_find(map, "retention");
    for (size_t i = 0; i < s->n_retention && s->n_only; i++) {
        bool found = false;
        for (size_t k = 0; k < s->n_only && !found; k++)
            found = s->only[k] && strcmp(s->only[k], s->retention[i].reason) == 0;
        if (!found)
            mistakes_add(r->mistakes, retention->value->pairs[i].key->at,
                         "the reason '%s' has a retention and is not in 'only'", s->retention[i].reason);
        if (mistakes_full(r->mistakes))
            return;
    }
}

static void read_purges(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct purge_space *list = NULL;
    if (!reader_map(r, n, "a map of purge spaces"))
        return;
    for (size_t i = 0; i < n->n_pairs; i++) {
        const struct pair *p = &n->pairs[i];
        const char *outer = r->key;
        check_own_name(r, p->key);
        list = arena_push(r->arena, list, i, sizeof(*list));
        list[i] = (struct purge_space){.name = p->key->text, .label = p->key->text, .at = p->key->at};
        r->key = p->key->text;
        reader_defaults(r, "purge.timeouts", &list[i]);
        if (reader_section(r, "purge", p->key->at, p->value, &list[i]))
            check_retention(r, &list[i], p->value);
        r->key = outer;
    }
    *(struct purge_space **)field = list;
    *count = n->n_pairs;
}

/* --- policies ------------------------------------------------------------------------------------ */

static void read_policies(struct reader *r, const struct node *n, void *field, size_t *count)
{
    struct policy *list = NULL;
    if (is_left_empty(n) || !reader_map(r, n, "a map of policies"))
        return;
    for (size_t i = 0; i < n->n_pairs; i++) {
        check_own_name(r, n->pairs[i].key);
        list = arena_push(r->arena, list, i, sizeof(*list));
        rule_read(r, n->pairs[i].key, n->pairs[i].value, &list[i]);
    }
    *(struct policy **)field = list;
    *count = n->n_pairs;
}

static bool has_scheduler(const struct contract *c, const char *name)
{
    for (size_t i = 0; i < c->n_schedulers; i++)
        if (strcmp(c->schedulers[i].name, name) == 0)
            return true;
    return false;
}

static void no_such_scheduler(struct reader *r, const struct contract *c, struct place at, const char *name)
{
    const char **names = arena_alloc(r->arena, c->n_schedulers * sizeof(*names));
    for (size_t i = 0; i < c->n_schedulers; i++)
        names[i] = c->schedulers[i].name;
    const char *near = nearest_word(name, names, c->n_schedulers);
    mistakes_add(r->mistakes, at, "there is no scheduler '%.64s'%s%s%s", name, near ? " (did you mean '" : "",
                 near ? near : "", near ? "'?)" : "");
}

/* The scheduler a policy names, else the only one there is, else `default`. Policies stand in the order of
 * the map's pairs. */
static void resolve_schedulers(struct reader *r, struct contract *c, const struct node *policies)
{
    const char *unnamed = c->n_schedulers == 1 ? c->schedulers[0].name : "default";
    for (size_t i = 0; i < c->n_policies && !mistakes_full(r->mistakes); i++) {
        struct policy *p = &c->policies[i];
        const struct node *map = policies->pairs[i].value;
        const struct pair *written = map->kind == NODE_MAP ? node_find(map, "scheduler") : NULL;
        if (!written)
            p->scheduler = unnamed;
        if (!p->scheduler || has_scheduler(c, p->scheduler))
            continue;
        if (strcmp(p->scheduler, "default") == 0)
            add_default_scheduler(r, c);
        else
            no_such_scheduler(r, c, written->value->at, p->scheduler);
    }
}

/* --- the key table ------------------------------------------------------------------------------- */

#define FIELD(type, member) .offset = offsetof(struct type, member)
#define LIST(type, member)                                                                                   \
    .offset = offsetof(struct type, member), .count_offset = offsetof(struct type, n_##member)
#define REQUIRED .required = true
#define NOT_YET  .not_yet = true

/* Section, key, type, default, one sentence; then how it is read, and into which field. */
static const struct key_doc keys[] = {
    /* clang-format off */
    {"contract", "lapse", "number", "1",
     "The version of this language.",
     .read = read_version},
    {"contract", "store", "address", "",
     "The database: sqlite:PATH, postgresql://… or mariadb://user@host:port/db.",
     .read = read_store, FIELD(contract, store)},
    {"contract", "store_file", "path", "",
     "A file that holds the address of the database, in place of store; a relative path is beside the "
     "contract.",
     .read = read_store_file, FIELD(contract, store)},
    {"contract", "schedulers", "map of schedulers", "",
     "When policies run; a scheduler called default, every minute, is there without being written.",
     .read = read_schedulers, LIST(contract, schedulers)},
    {"contract", "policies", "map of policies", "",
     "What bounds each table; the policies of a scheduler run in this order.",
     .read = read_policies, LIST(contract, policies)},
    {"contract", "purges", "map of purge spaces", "",
     "Kinds of instances whose data is purged some time after they ended.",
     .read = read_purges, LIST(contract, purges)},
    {"contract", "unbounded", "map of texts", "",
     "Tables that need no rule, each with the reason.",
     .read = read_unbounded, LIST(contract, unbounded)},
    {"contract", "serve", "map or off", "",
     "Where the daemon serves metrics, health and the dashboard; off for nowhere.",
     .read = read_serve},
    {"contract", "own_schema", "text", "",
     "The schema that lapse's own tables are in, where the engine has schemas; lapse install creates it.",
     .read = read_text, FIELD(contract, own_schema)},
    {"contract", "own_owner", "text", "",
     "A role that may own lapse's own tables, and whose triggers may be on them, besides those who are trusted anyway: "
     "on PostgreSQL the role itself, one it is a member of, superusers, the owner of the database, and the owner of an "
     "own_schema in which nobody else may create. On MariaDB the definer of triggers on them, like app or app@%.",
     .read = read_text, FIELD(contract, own_owner)},

    {"serve", "listen", "host:port", "127.0.0.1:9933",
     "The address to listen on; port 0 picks a free one. Anything but loopback needs a token_file. Read at the start, "
     "where an address that cannot be had ends the daemon, and at every reload, where the old one then stays.",
     .read = read_listen, FIELD(contract, listen)},
    {"serve", "token_file", "path", "",
     "A file with one word, the token. Off loopback every request but those for health must carry it: Authorization: "
     "Bearer TOKEN.",
     .read = read_path, FIELD(contract, token_file)},

    {"scheduler", "every", "duration", "",
     "The time from one run to the next, counted from begin to begin; runs that were missed because one took longer, "
     "or the machine slept, are one run. \"CRON …\" is a cron expression.",
     .read = read_every},
    {"scheduler", "cron", "cron", "",
     "When to run, in five fields or six with leading seconds, in place of every. A time that a clock change skips "
     "runs at the next instant that exists; a repeated one runs once, but both times where the hour field begins "
     "with * or holds every hour.",
     .read = read_cron, FIELD(scheduler, cron)},
    {"scheduler", "timezone", "time zone", "UTC",
     "The IANA time zone of cron and window.",
     .read = read_zone, FIELD(scheduler, timezone)},
    {"scheduler", "run_on_start", "true or false", "",
     "Whether to run at every start of the daemon; true with every, false with cron. false with every: an interval "
     "goes on from the last run, as the database keeps it. A contract that is read again is no start.",
     .read = read_bool, FIELD(scheduler, run_on_start)},
    {"scheduler", "jitter", "duration", "0s",
     "Up to this much is added to each run's time at random, but not beyond the window; shorter than every. The beat "
     "itself has none of it, so nothing drifts.",
     .read = read_time_or_none, FIELD(scheduler, jitter)},
    {"scheduler", "exclusive", "true or false", "false",
     "Whether only one sweeper in the cluster runs it, by a lease in the database.",
     .read = read_bool, FIELD(scheduler, exclusive)},
    {"scheduler", "lease", "duration", "30s",
     "How long the lease of an exclusive scheduler lasts unless it is renewed, as every batch does; more than a batch takes.",
     .read = read_time, FIELD(scheduler, lease)},
    {"scheduler", "budget", "map", "",
     "The most that one policy may do in one run, of the daemon or of lapse sweep. Where rows are still due when it is "
     "used up, that is said (sweep exits 6), and the next run goes on.",
     .read = read_budget},
    {"scheduler", "window", "HH:MM-HH:MM", "",
     "The part of the day in which the daemon may run it. An interval that ends outside goes on when the window opens; "
     "a time of cron outside is left out. A run that is under way when it closes ends after its batch. lapse sweep, "
     "by hand, runs at any time.",
     .read = read_window},
    {"scheduler", "enabled", "true or false", "true",
     "false switches it off for now: the daemon does not run it. lapse sweep, by hand, still sweeps its policies.",
     .read = read_bool, FIELD(scheduler, enabled)},

    {"scheduler.budget", "rows", "number", "",
     "The most rows of the policy's own table; batches are cut to what is left of it.",
     .read = read_count, FIELD(scheduler, budget_rows)},
    {"scheduler.budget", "batches", "number", "",
     "The most transactions.",
     .read = read_count, FIELD(scheduler, budget_batches)},
    {"scheduler.budget", "time", "duration", "",
     "The most time, looked at after each transaction; at least one is tried.",
     .read = read_time, FIELD(scheduler, budget_time)},

    {"policy", "table", "table", "",
     "The base table it bounds, schema-qualified where the engine has schemas.",
     REQUIRED, .read = read_table, FIELD(policy, table)},
    {"policy", "scheduler", "text", "",
     "The scheduler that runs it; unless given the only one there is, else default.",
     .read = read_text, FIELD(policy, scheduler)},
    {"policy", "enabled", "true or false", "true",
     "false switches it off for now.",
     .read = read_bool, FIELD(policy, enabled)},
    {"policy", "label", "text", "",
     "Its name in metrics and logs; the policy's own name unless given.",
     .read = read_text, FIELD(policy, label)},
    {"policy", "rows", "map of values", "",
     "The only rows it may ever touch: for each column a value or a list, of texts the very same; null is SQL "
     "NULL, a trailing * is a prefix, \\* is a star.",
     .read = read_rows, FIELD(policy, rows)},
    {"policy", "where", "condition", "",
     "A further condition on the row.",
     .read = read_condition, FIELD(policy, where)},
    {"policy", "hold", "condition", "",
     "A row is deleted only where this is not true.",
     .read = read_condition, FIELD(policy, hold)},
    {"policy", "expires", "column", "",
     "A row is due when the time in this column has come.",
     .read = read_name, FIELD(policy, expires)},
    {"policy", "age", "list of columns", "",
     "The columns whose latest time says how old a row is; all NULL is never due.",
     .read = read_names, LIST(policy, age)},
    {"policy", "keep", "duration or map", "",
     "How long a row is kept after its age; 24h for an orphan unless given. A number is milliseconds, and whole minutes.",
     .read = read_keep, FIELD(policy, keep)},
    {"policy", "inclusive", "true or false", "false",
     "Whether a row that is exactly as old as keep is due already.",
     .read = read_bool, FIELD(policy, inclusive)},
    {"policy", "keep_newest", "map", "",
     "However old, the newest rows of each group stay.",
     .read = read_keep_newest, FIELD(policy, keep_newest)},
    {"policy", "unit", "s, ms or us", "",
     "What an integer time column counts; taken from a suffix _s, _ms or _us unless given.",
     .read = read_unit, FIELD(policy, unit_us)},
    {"policy", "zone", "time zone", "UTC",
     "The IANA time zone of a time column that has none.",
     .read = read_zone, FIELD(policy, zone)},
    {"policy", "orphan", "map", "",
     "A row is due when what it belongs to is gone; age and keep are its grace.",
     .read = read_orphan, FIELD(policy, orphan)},
    {"policy", "cap", "map", "",
     "Only the newest rows of each group stay.",
     .read = read_cap, FIELD(policy, cap)},
    {"policy", "with", "list of references", "",
     "Rows that the doomed row owns; they are deleted with it, and first.",
     .read = read_with, LIST(policy, with)},
    {"policy", "detach", "list of references", "",
     "Columns that refer to the doomed row; they are set to NULL and their rows stay.",
     .read = read_refs, LIST(policy, detach)},
    {"policy", "after", "list of references", "",
     "The row waits while any row refers to it in this way.",
     .read = read_after, LIST(policy, after)},
    {"policy", "batch", "number or null", "1000",
     "The most rows in one transaction; null is everything that is due.",
     .read = read_batch, FIELD(policy, batch)},
    {"policy", "limits", "map", "",
     "A fuse: a run that would delete more deletes nothing and stays stopped until lapse ack.",
     .read = read_limits, FIELD(policy, limits)},
    {"policy", "pace", "map", "",
     "How hard it may push the database, and what slows it down. By itself it is as fast as it can while nobody else "
     "writes; beside others it makes its transactions short and leaves them most of the time. All of it happens between "
     "transactions.",
     .read = read_pace, FIELD(policy, pace)},
    {"policy", "timeouts", "map", "",
     "How long it waits for the database.",
     .read = read_timeouts},
    {"policy", "workers", "number", "1",
     "How many connections sweep this policy at once, 64 at most: each takes the next part of the rows. One where the "
     "engine has one writer (SQLite), and with cap and keep_newest, whose batches exclude each other. Not with "
     "batch: null, which is one transaction.",
     .read = read_workers, FIELD(policy, workers)},
    {"policy", "partitions", "drop", "",
     "With drop (PostgreSQL), a partition whose range has ended and that has rows, every one of them due, is dropped "
     "instead of deleted from. An empty one stays.",
     .read = read_partitions, FIELD(policy, partitions)},
    {"policy", "invariant", "text", "",
     "Why this is safe, in words for the operators' page.",
     .read = read_text, FIELD(policy, invariant)},
    {"policy", "also", "list of texts", "",
     "What else bounds the table, in words for the operators' page.",
     .read = read_texts, LIST(policy, also)},

    {"policy.keep", "by", "column", "",
     "The column whose value says how long.",
     .read = read_name, FIELD(keep, column)},
    {"policy.keep", "values", "map of durations", "",
     "A duration for each value of the column in by; a value that the column takes for one of these, but that is "
     "not the same text, is kept for the longer of that and otherwise.",
     .read = read_keep_values},
    {"policy.keep", "otherwise", "duration", "never",
     "The duration for every other value.",
     .read = read_keep_span, FIELD(keep, span)},
    {"policy.keep", "column", "column", "",
     "The column in which each row says how long; NULL, 0 and less are never.",
     .read = read_name, FIELD(keep, column)},
    {"policy.keep", "unit", "us, ms, s, m, h, d or w", "",
     "What that column counts; taken from a suffix _s, _ms or _us unless given.",
     .read = read_keep_unit, FIELD(keep, unit_us)},

    {"policy.keep_newest", "rows", "number", "",
     "How many rows of a group stay.",
     REQUIRED, .read = read_count, FIELD(newest, rows)},
    {"policy.keep_newest", "per", "list of columns", "",
     "Rows with the same values in these columns are a group; without it all rows are one.",
     .read = read_names, LIST(newest, per)},
    {"policy.keep_newest", "newest", "list of columns", "",
     "The columns that say which rows are newest.",
     REQUIRED, .read = read_names, LIST(newest, newest)},

    {"policy.orphan", "of", "reference", "",
     "The table that is the source, and its key.",
     REQUIRED, .read = read_ref, FIELD(orphan, of)},
    {"policy.orphan", "by", "list of columns", "",
     "The columns of this table that hold the source's key; a row with a NULL there is kept.",
     REQUIRED, .read = read_names, LIST(orphan, by)},
    {"policy.orphan", "matching", "condition", "",
     "A condition on the source row; unknown is not matching.",
     .read = read_condition, FIELD(orphan, matching)},
    {"policy.orphan", "delete_when", "deleted, deleted_or_unmatched or never", "deleted",
     "Whether a source row that no longer matches counts as gone too.",
     .read = read_orphan_when, FIELD(orphan, when)},
    {"policy.orphan", "allow_empty", "true or false", "false",
     "Whether to run even when the source table is empty.",
     .read = read_bool, FIELD(orphan, allow_empty)},

    {"policy.cap", "rows", "number", "",
     "How many rows of a group stay.",
     REQUIRED, .read = read_count, FIELD(newest, rows)},
    {"policy.cap", "per", "list of columns", "",
     "Rows with the same values in these columns are a group; without it all rows are one.",
     .read = read_names, LIST(newest, per)},
    {"policy.cap", "newest", "list of columns", "",
     "The columns that say which rows are newest; NULLs are oldest, and the key breaks ties.",
     REQUIRED, .read = read_names, LIST(newest, newest)},

    {"policy.with", "ref", "reference", "",
     "The owned rows, as table(column, …).",
     REQUIRED, .read = read_ref, FIELD(with, ref)},
    {"policy.with", "where", "condition", "",
     "Only these are deleted; a row that owns others waits.",
     .read = read_condition, FIELD(with, where)},
    {"policy.with", "with", "list of references", "",
     "Rows that these rows own.",
     .read = read_with, LIST(with, with)},
    {"policy.with", "detach", "list of references", "",
     "Columns that refer to these rows and are set to NULL.",
     .read = read_refs, LIST(with, detach)},
    {"policy.with", "after", "list of references", "",
     "The whole waits while any row refers to these rows in this way.",
     .read = read_after, LIST(with, after)},
    {"policy.with", "split", "true or false", "false",
     "Whether these rows may go ahead in transactions of their own, at most `batch` of them in one, while the row "
     "that owns them is due. It goes with the last of them; one that comes back to life in between keeps only "
     "what is left of them: that a row and what it owns go in one transaction or stay does not hold for this "
     "table. For a row that owns very many; it goes after its siblings.",
     .read = read_bool, FIELD(with, split)},

    {"policy.after", "ref", "reference", "",
     "The rows to wait for, as table(column, …).",
     REQUIRED, .read = read_ref, FIELD(after, ref)},
    {"policy.after", "where", "condition", "",
     "Only these are waited for.",
     .read = read_condition, FIELD(after, where)},

    {"policy.limits", "rows", "number", "",
     "The most rows that one run may delete.",
     .read = read_count, FIELD(limits, rows)},
    {"policy.limits", "fraction", "fraction", "",
     "The largest part of the table that one run may delete.",
     .read = read_fraction, FIELD(limits, fraction)},

    {"policy.pace", "target", "duration", "50ms",
     "How long a transaction should take. Batches begin small; one that takes longer makes the next ones smaller, and "
     "they grow back, never beyond batch. Locks and conflicts make them smaller, too. Unless it is given, it is 2ms "
     "while others write (20ms where most of that is spent on the transaction itself, as with a slow disk or a server that "
     "is far away), and 1ms where only one can write at a time (SQLite); and while nobody writes, and no lock is in the way, "
     "batches keep 100 rows, as long as these take at most four times the target. Of no use with batch: null.",
     .read = read_time, FIELD(pace, target)},
    {"policy.pace", "rows_per_second", "number", "",
     "The most rows of the policy's own table that are deleted in a second.",
     .read = read_rate, FIELD(pace, rows_per_second)},
    {"policy.pace", "duty", "fraction", "",
     "The largest part of the time that is spent in transactions; after each there is a pause. Unless it is given, it "
     "is 1 while nobody else writes, then 0.08, or 0.3 where commits need not wait for the disk one by one (PostgreSQL), and "
     "0.025 to 0.2 where only one can write at a time (SQLite); 0.5 beside a snapshot that is older than 10 minutes. 1: others "
     "are ignored.",
     .read = read_fraction, FIELD(pace, duty)},
    {"policy.pace", "lag", "duration", "",
     "PostgreSQL: it waits while a replica is further behind than this, or while that cannot be known.",
     .read = read_time, FIELD(pace, lag)},
    {"policy.pace", "lag_bytes", "number", "",
     "PostgreSQL: it waits while a replica has more bytes of the log than this yet to replay, or while that cannot be "
     "known. One that is away counts by what its slot holds back. With neither lag nor lag_bytes, more than 128 MB make "
     "pauses ten times as long as transactions.",
     .read = read_count, FIELD(pace, lag_bytes)},

    {"policy.timeouts", "lock", "duration", "2s",
     "How long to wait for a lock.",
     .read = read_time_us, FIELD(policy, lock_timeout_us)},
    {"policy.timeouts", "statement", "duration", "30s",
     "How long one statement may take.",
     .read = read_time_us, FIELD(policy, statement_timeout_us)},
    {"policy.timeouts", "away", "duration", "60s",
     "How long to wait for a database that was there and is not any more, while another server takes over. Then the "
     "sweep ends with exit 5.",
     .read = read_time_us, FIELD(policy, away_us)},

    {"condition", "eq", "value or list", "",
     "The column is this value, or one of these; null is SQL NULL. A text that lets a row go must be the very same; "
     "where it keeps one, equal for the column is enough.",
     .read = read_in},
    {"condition", "not", "value or list", "",
     "The column is none of these.",
     .read = read_not_in},
    {"condition", "lt", "value", "",
     "The column is less than this.",
     .read = read_lt},
    {"condition", "lte", "value", "",
     "The column is this or less.",
     .read = read_lte},
    {"condition", "gt", "value", "",
     "The column is greater than this.",
     .read = read_gt},
    {"condition", "gte", "value", "",
     "The column is this or greater.",
     .read = read_gte},
    {"condition", "like", "text", "",
     "The column matches this pattern: % is any text, _ any character, \\ escapes, and case counts.",
     .read = read_like},
    {"condition", "older_than", "duration", "",
     "The time in the column is longer ago than this.",
     .read = read_older_than},
    {"condition", "newer_than", "duration", "",
     "The time in the column is less long ago than this.",
     .read = read_newer_than},

    {"purge", "label", "text", "",
     "Its name in the log; the space's own name unless given.",
     .read = read_text, FIELD(purge_space, label)},
    {"purge", "delay", "duration", "60s",
     "The time from the end of an instance to its purge; 0 is at once.",
     .read = read_delay, FIELD(purge_space, delay)},
    {"purge", "retention", "map of durations", "",
     "Another delay for a reason.",
     .read = read_retention},
    {"purge", "only", "list of texts", "",
     "The reasons that are purged; without it all are.",
     .read = read_texts, LIST(purge_space, only)},
    {"purge", "erases", "list of references", "",
     "What is deleted: every row whose column holds the instance.",
     REQUIRED, .read = read_erases, LIST(purge_space, erases)},
    {"purge", "notify", "true or false", "false",
     "Whether lapse run also listens on the channel lapse_purge: after NOTIFY lapse_purge in the transaction "
     "that schedules, it looks at once. Without it, and however the notification is lost, it looks every "
     "second. Needs a connection that stays: a pooler that hands out a server per transaction loses them. "
     "PostgreSQL only.",
     .read = read_bool, FIELD(purge_space, notify)},
    {"purge", "timeouts", "map", "",
     "How long it waits for the database.",
     .read = read_purge_timeouts},

    {"purge.timeouts", "statement", "duration", "30s",
     "How long one statement may take. An instance whose data takes longer cannot be purged.",
     .read = read_time_us, FIELD(purge_space, statement_timeout_us)},
    {"purge.timeouts", "away", "duration", "60s",
     "How long to wait for a database that was there and is not any more, while another server takes over.",
     .read = read_time_us, FIELD(purge_space, away_us)},

    {"purge.erases", "ref", "reference", "",
     "The rows to delete, as table(column).",
     REQUIRED, .read = read_ref, FIELD(erase, ref)},
    {"purge.erases", "keep", "map of values", "",
     "Rows that stay: for each column a value or a list; a trailing * is a prefix.",
     .read = read_rows, FIELD(erase, keep)},
    /* clang-format on */
};

const struct key_doc *contract_keys(size_t *ret_n)
{
    *ret_n = COUNT_OF(keys);
    return keys;
}

/* --- lapse's own tables ----------------------------------------------------------------------------- */

/* The newest of a scheduler stays, whether a daemon or a sweep by hand ran it: intervals go on from there. A
 * run whose process was killed has no end; it is as old as its start. */
static const char own_yaml[] =
    "store: 'sqlite:lapse'\n"
    "schedulers: { " OWN_SCHEDULER ": { every: 10m, run_on_start: false } }\n"
    "policies:\n"
    "  " OWN_SCHEDULER ".run:\n"
    "    table: lapse_run\n"
    "    label: lapse_run\n"
    "    age: started_at\n"
    "    keep: { by: rows_gone, values: { 0: 30m }, otherwise: 7d }\n"
    "    keep_newest: { rows: 1, per: [scheduler, source], newest: [started_at, id] }\n"
    "    invariant: the newest run of a scheduler stays, so that its interval goes on after a restart\n";

static int parse(const char *file, const char *yaml, size_t len, bool own, struct contract **ret,
                 struct mistakes *mistakes, struct err *e);

static void add_own(struct contract *c)
{
    AUTO(mistakes_release) struct mistakes mistakes = {0};
    struct contract *own = NULL;
    struct err e = ERR_INIT;
    if (parse("(built in)", own_yaml, strlen(own_yaml), true, &own, &mistakes, &e) < 0)
        abort(); /* not the user's doing: the text above is wrong */
    own->store = c->store;
    own->own_schema = c->own_schema;
    own->own_owner = c->own_owner;
    own->listen = c->listen;
    own->token_file = c->token_file;
    for (size_t i = 0; i < own->n_policies && c->own_schema; i++)
        own->policies[i].table.schema = (struct name){.text = c->own_schema};
    c->own = own;
}

static void check_reserved(struct reader *r, const struct contract *c)
{
    const char dotted[] = OWN_SCHEDULER ".";
    for (size_t i = 0; i < c->n_schedulers; i++)
        if (c->schedulers[i].name && strcmp(c->schedulers[i].name, OWN_SCHEDULER) == 0)
            mistakes_add(r->mistakes, c->schedulers[i].at,
                         "'" OWN_SCHEDULER
                         "' is the scheduler of lapse's own tables: name this one otherwise");
    for (size_t i = 0; i < c->n_policies; i++)
        if (c->policies[i].name && strncmp(c->policies[i].name, dotted, strlen(dotted)) == 0)
            mistakes_add(
                r->mistakes, c->policies[i].at,
                "'%.64s': names that begin with '%s' are those of the policies on lapse's own tables: "
                "name this one otherwise",
                c->policies[i].name, dotted);
}

/* --- the file ------------------------------------------------------------------------------------ */

static void check_contract(struct reader *r, struct contract *c, const struct node *root)
{
    const struct pair *store = node_find(root, "store"), *store_file = node_find(root, "store_file");
    const struct pair *policies = node_find(root, "policies");
    if (store && store_file)
        mistakes_add(r->mistakes, store_file->key->at, "'store' and 'store_file' exclude each other");
    if (!store && !store_file)
        mistakes_add(r->mistakes, root->at, "'store' is missing: " ALLOWED_STORES);
    if (!policies && !node_find(root, "purges"))
        mistakes_add(r->mistakes, root->at, "there are no 'policies' and no 'purges'");
    if (!node_find(root, "schedulers"))
        add_default_scheduler(r, c);
    if (c->n_schedulers > 0 && c->n_policies > 0)
        resolve_schedulers(r, c, policies->value);
}

static void read_contract(struct contract *c, const struct node *root, bool own, struct mistakes *mistakes)
{
    struct reader r = {.arena = c->arena,
                       .mistakes = mistakes,
                       .file = c->file,
                       .keys = keys,
                       .n_keys = COUNT_OF(keys),
                       .key = "contract"};
    if (root->kind != NODE_MAP || root->n_pairs == 0) {
        mistakes_add(mistakes, root->at, "a contract is a map with keys like 'store' and 'policies'");
        return;
    }
    reader_defaults(&r, "serve", c);
    reader_section(&r, "contract", root->at, root, c);
    check_contract(&r, c, root);
    if (!own)
        check_reserved(&r, c);
}

static int parse(const char *file, const char *yaml, size_t len, bool own, struct contract **ret,
                 struct mistakes *mistakes, struct err *e)
{
    *mistakes = (struct mistakes){0};
    struct arena *arena = arena_new();
    struct contract *c = arena_alloc(arena, sizeof(*c));
    c->arena = arena;
    c->file = arena_strdup(arena, file);
    const struct node *root = c->root = yaml_parse(arena, yaml, len, mistakes);
    if (root)
        read_contract(c, root, own, mistakes);
    mistakes_settle(mistakes);
    if (mistakes->n > 0) {
        contract_free(c);
        return err_set(e, ERR_CONTRACT, "%s has %zu mistake%s", file, mistakes->n,
                       mistakes->n == 1 ? "" : "s");
    }
    if (!own)
        add_own(c);
    *ret = c;
    return 0;
}

int contract_parse(const char *file, const char *yaml, size_t len, struct contract **ret,
                   struct mistakes *mistakes, struct err *e)
{
    return parse(file, yaml, len, false, ret, mistakes, e);
}

int contract_load(const char *path, struct contract **ret, struct mistakes *mistakes, struct err *e)
{
    *mistakes = (struct mistakes){0};
    AUTO(text_release) struct text yaml = {0};
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return err_set(e, ERR_CONTRACT,
                       "cannot read %s: %s ('lapse init DSN' drafts a contract; -f FILE names another)", path,
                       strerror(ENOENT));
    if (read_file(path, YAML_MOST_BYTES, &yaml, e) != 0)
        return -1;
    return contract_parse(path, text_str(&yaml), yaml.len, ret, mistakes, e);
}

void contract_free(struct contract *c)
{
    if (!c)
        return;
    if (c->own)
        arena_free(c->own->arena);
    arena_free(c->arena);
}

void contract_free_p(struct contract **c)
{
    contract_free(*c);
    *c = NULL;
}

const struct policy *contract_policy(const struct contract *c, const char *name)
{
    for (size_t i = 0; i < c->n_policies; i++)
        if (strcmp(c->policies[i].name, name) == 0)
            return &c->policies[i];
    return NULL;
}
