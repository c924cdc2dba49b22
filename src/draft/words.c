/* words: the vocabulary, in tables, and how names are taken apart. All words are in the singular. */
#include "draft/words.h"

#include <ctype.h>
#include <string.h>

/* --- tables -----------------------------------------------------------------------------------------------
 */

/* Decides what may stand in a draft without being decided by someone: add to it with care. */
static const char *const ephemeral[] = {
    "session",  "lease",     "lock",      "token",      "nonce",   "dedupe",  "dedup",     "deduplication",
    "cache",    "presence",  "heartbeat", "connection", "pending", "mutex",   "semaphore", "idempotency",
    "throttle", "ratelimit", "cooldown",  "handshake",  "otp",     "captcha", "csrf",      "reset",
};
/* Say nothing at the end of a name: presence_entries, idempotency_keys. */
static const char *const filler[] = {"entry", "row",    "data",      "store", "table", "key", "tbl",
                                     "map",   "bucket", "directory", "uint",  "str",   "dbl", "bin"};
/* Beside them in a name: words that only say where such a row comes from. With any other word it may be
 * somebody's own: a vehicle lease, a trading session, a security token. */
static const char *const technical[] = {
    "access",         "active",   "actor",     "advisory",  "agent",        "app",       "auth",
    "authentication", "browser",  "channel",   "cluster",   "config",       "cookie",    "cron",
    "daemon",         "db",       "dev",       "dist",      "email",        "ephemeral", "flow",
    "grpc",           "http",     "inbound",   "inbox",     "instance",     "job",       "jwt",
    "lane",           "leader",   "limit",     "lock",      "login",        "magic",     "mfa",
    "migration",      "model",    "node",      "oauth",     "oauth2",       "oidc",      "outbound",
    "outbox",         "page",     "partition", "password",  "pkce",         "poll",      "poller",
    "process",        "pwd",      "query",     "queue",     "rate",         "refresh",   "render",
    "request",        "response", "saml",      "schedule",  "scheduler",    "shard",     "signin",
    "signup",         "socket",   "sso",       "stream",    "sync",         "task",      "temp",
    "temporary",      "tmp",      "totp",      "user",      "verification", "view",      "web",
    "websocket",      "worker",   "workflow",  "workspace", "ws",           "xsrf",
};
static const char *const queue[] = {"queue", "outbox", "inbox", "mailbox",
                                    "spool", "letter", "retry", "delivery"};
static const char *const operational[] = {
    "activity",     "attempt",    "audit", "change",    "check",    "checkpoint",  "click",   "consumer",
    "delivery",     "error",      "event", "execution", "export",   "heartbeat",   "history", "hit",
    "import",       "inbox",      "job",   "letter",    "log",      "mailbox",     "message", "metric",
    "notification", "outbox",     "ping",  "queue",     "request",  "retry",       "run",     "sample",
    "snapshot",     "span",       "spool", "step",      "task",     "trace",       "visit",   "webhook",
    "workflow",     "accounting", "acct",  "radacct",   "postauth", "radpostauth", "trend",
};
/* At the end of a name written in one word: auditlog, mailqueue. */
static const char *const operational_end[] = {"log",   "history", "queue", "outbox",
                                              "inbox", "event",   "job",   "task"};
/* Words that only seem to end so. */
static const char *const no_end[] = {"blog", "weblog", "catalog", "dialog", "analog", "prolog", "backlog"};
/* Its rows are handed out again and again, whatever they say of an end. */
static const char *const pool[] = {"pool", "ippool", "radippool", "addresspool"};
/* The key of a table whose rows are the queues, not what waits in them. */
static const char *const queue_key[] = {"name", "queue", "queue_name", "queuename", "slug"};

/* --- columns ----------------------------------------------------------------------------------------------
 */

/* At the end of a column that holds a time, and saying no more than that. */
static const char *const time_suffix[] = {
    "at",  "on",     "time",   "ts",     "timestamp", "date",  "datetime", "utc",   "ms",  "us",   "s",
    "sec", "second", "millis", "micros", "milli",     "epoch", "unix",     "micro", "gmt", "clock"};
/* What a column written in one word may begin or end with: receivedat, acctstoptime, timecreated. */
static const char *const glued_end[] = {"timestamp", "datetime", "time", "date", "at", "on"};
static const char *const glued_start[] = {"last", "time", "date"};
/* Before another time they say that it lies ahead, or is no time of day but how long something took. */
static const char *const not_age[] = {
    "next",       "due",     "schedule", "scheduled", "run",      "retry",    "birth",    "valid",
    "available",  "visible", "expected", "planned",   "eta",      "not",      "before",   "after",
    "lock",       "locked",  "lease",    "until",     "from",     "to",       "response", "elapsed",
    "wait",       "waiting", "total",    "duration",  "avg",      "mean",     "cpu",      "execution",
    "processing", "run",     "max",      "min",       "target",   "deadline", "trial",    "effective",
    "reminder",   "snooze",  "fire",     "trigger",   "password", "expires",  "expire",   "expiry",
    "expiration", "delete",  "purge",    "evict",     "remove",   "prune",    "deleted",  "removed",
    "trashed"};
/* Behind nothing but is, was, has: what a queue or outbox has done with a row. */
static const char *const handed_on[] = {"published", "dispatched",  "delivered",    "sent",      "relayed",
                                        "forwarded", "emitted",     "pushed",       "processed", "consumed",
                                        "handled",   "acked",       "acknowledged", "exported",  "synced",
                                        "notified",  "transmitted", "flushed",      "archived"};
static const char *const soft_deleted[] = {"deleted", "del", "removed", "trashed", "softdeleted"};
static const char *const flag_words[] = {"is",   "was", "has",     "been",  "flag", "soft",
                                         "date", "msg", "message", "event", "row"};
static const char *const expires[] = {"expires", "expire", "expiry", "expiration"};
/* With `until` behind them they speak of the row. */
static const char *const lasting[] = {"valid", "keep", "alive", "live"};
/* With `at` or `after` behind them. */
static const char *const removal[] = {"delete", "purge", "evict", "remove", "prune"};
static const char *const of_the_row[] = {"row", "record", "entry", "ttl"};
/* A token that is refreshed, money, a renewal; a mark that a row is to stay. */
static const char *const outliving[] = {
    "refresh",    "renewal", "credential", "amount", "price",     "rent",     "cost",    "currency",
    "balance",    "deposit", "landlord",   "salary", "secret",    "never",    "forever", "permanent",
    "persistent", "pinned",  "hold",       "retain", "retention", "protected"};
static const char *const states[] = {"status", "state", "phase"};
static const char *const ended[] = {
    "completed", "complete",     "done",      "finished",     "succeeded", "success",    "successful",
    "failed",    "failure",      "cancelled", "canceled",     "aborted",   "expired",    "dead",
    "sent",      "delivered",    "processed", "timedout",     "timeout",   "terminated", "killed",
    "skipped",   "consumed",     "acked",     "ended",        "revoked",   "rejected",   "closed",
    "discarded", "acknowledged", "abandoned", "deadlettered", "exhausted", "resolved",   "superseded",
};
/* The end of the row first, then its last change, then its beginning. */
static const char *const ages[] = {
    "finished",  "finish",     "finalized",   "completed", "ended",      "end",          "done",
    "closed",    "terminated", "stopped",     "stop",      "failed",     "cancelled",    "canceled",
    "processed", "delivered",  "sent",        "published", "dispatched", "relayed",      "forwarded",
    "emitted",   "pushed",     "handled",     "consumed",  "acked",      "acknowledged", "exported",
    "synced",    "notified",   "transmitted", "flushed",   "resolved",   "updated",      "update",
    "modified",  "changed",    "change",      "seen",      "accessed",   "access",       "activity",
    "used",      "received",   "occurred",    "happened",  "action",     "logged",       "auth",
    "login",     "started",    "start",       "created",   "create",     "inserted",     "added",
    "enqueued",  "queued",     "recorded",
};

/* They say when a row was last of use, beside the beginning and the end of it. */
static const char *const last_used[] = {"seen",    "accessed", "access",   "activity", "used",
                                        "updated", "update",   "modified", "changed",  "change"};

/* --- taking names apart -----------------------------------------------------------------------------------
 */

#define IS_AMONG(word, table) is_among(word, table, COUNT_OF(table))

static bool is_among(const char *word, const char *const *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, table[i]) == 0)
            return true;
    return false;
}

static bool is_part_of_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* A word ends before a capital that follows another letter, as in leaseExpires. */
static size_t word_length(const char *s)
{
    size_t len = 1;
    while (is_part_of_word(s[len]) && !(is_upper(s[len]) && !is_upper(s[len - 1])))
        len++;
    return len;
}

struct words words_of_name(struct arena *a, const char *name)
{
    struct words w = {0};
    for (const char *s = name; *s;) {
        if (!is_part_of_word(*s)) {
            s++;
            continue;
        }
        size_t len = word_length(s);
        char *word = arena_strndup(a, s, len);
        for (char *c = word; *c; c++)
            *c = is_upper(*c) ? (char)(*c - 'A' + 'a') : *c;
        w.list = arena_push(a, w.list, w.n, sizeof(*w.list));
        w.list[w.n++] = word;
        s += len;
    }
    return w;
}

static bool ends_with(const char *s, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len > n && memcmp(s + len - n, end, n) == 0;
}

/* --- words run together ------------------------------------------------------------------------------------
 */

static bool says_when(const char *word)
{
    return IS_AMONG(word, ages) || IS_AMONG(word, expires) || IS_AMONG(word, lasting) ||
           IS_AMONG(word, soft_deleted);
}

static bool is_one_word(const char *word)
{
    return says_when(word) || IS_AMONG(word, time_suffix) || IS_AMONG(word, handed_on);
}

static void push_word(struct arena *a, struct words *w, const char *word, size_t len)
{
    w->list = arena_push(a, w->list, w->n, sizeof(*w->list));
    w->list[w->n++] = arena_strndup(a, word, len);
}

/* "acctstop" as acct, stop: the longest word that says when. False: there is none at its end. */
static bool push_before(struct arena *a, struct words *w, const char *word, size_t len)
{
    enum { LEAST = 3 }; /* of what stands before: an abbreviation */
    const char *start = arena_strndup(a, word, len);
    for (size_t from = 0; from + LEAST < len; from++) {
        if (!says_when(start + from) || (from > 0 && from < LEAST))
            continue;
        if (from)
            push_word(a, w, start, from);
        push_word(a, w, start + from, len - from);
        return true;
    }
    return false;
}

/* What one word of a column's name is made of: itself, unless it is several that stand without a gap. */
static void push_parts(struct arena *a, struct words *w, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i < COUNT_OF(glued_end) && !is_one_word(word); i++) {
        size_t end = strlen(glued_end[i]);
        if (!ends_with(word, len, glued_end[i]) || !push_before(a, w, word, len - end))
            continue;
        push_word(a, w, glued_end[i], end);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(glued_start) && !is_one_word(word); i++) {
        size_t start = strlen(glued_start[i]);
        if (strncmp(word, glued_start[i], start) != 0 || !says_when(word + start))
            continue;
        if (i == 0)
            push_word(a, w, "last", start);
        push_word(a, w, word + start, len - start);
        if (i > 0)
            push_word(a, w, glued_start[i], start);
        return;
    }
    push_word(a, w, word, len);
}

/* A column's words, also where its name has them in one: receivedat, lastaccess. */
static struct words words_of_column(struct arena *a, const char *column)
{
    struct words w = words_of_name(a, column), parts = {0};
    for (size_t i = 0; i < w.n; i++)
        push_parts(a, &parts, w.list[i]);
    return parts;
}

const char *word_singular(struct arena *a, const char *word)
{
    size_t len = strlen(word);
    if (len < 4 || word[len - 1] != 's' || ends_with(word, len, "ss") || ends_with(word, len, "us"))
        return word;
    if (ends_with(word, len, "ies"))
        return arena_printf(a, "%.*sy", (int)(len - 3), word);
    if (ends_with(word, len, "xes") || ends_with(word, len, "sses"))
        return arena_strndup(a, word, len - 2);
    return arena_strndup(a, word, len - 1);
}

static struct words singular_words(struct arena *a, const char *name)
{
    struct words w = words_of_name(a, name);
    for (size_t i = 0; i < w.n; i++)
        w.list[i] = word_singular(a, w.list[i]);
    return w;
}

/* A version or a number, as in sessions_v2. */
static bool is_number(const char *word)
{
    return word[strspn(word, "v")] && !word[strspn(word, "v0123456789")];
}

/* The last word that says what a row is; NULL: none. */
static const char *head_of(const struct words *w)
{
    for (size_t i = w->n; i > 0; i--)
        if (!IS_AMONG(w->list[i - 1], filler) && !is_number(w->list[i - 1]))
            return w->list[i - 1];
    return NULL;
}

/* --- what tables hold -------------------------------------------------------------------------------------
 */

bool words_are_ephemeral(struct arena *a, const char *table)
{
    struct words w = singular_words(a, table);
    const char *head = head_of(&w);
    for (size_t i = 0; i < w.n; i++) {
        const char *word = w.list[i];
        if (!IS_AMONG(word, ephemeral) && !IS_AMONG(word, filler) && !IS_AMONG(word, technical) &&
            !is_number(word))
            return false;
    }
    return head && IS_AMONG(head, ephemeral);
}

static bool head_is_among(struct arena *a, const char *table, const char *const *words, size_t n)
{
    struct words w = singular_words(a, table);
    const char *head = head_of(&w);
    return head && is_among(head, words, n);
}

bool words_are_queue(struct arena *a, const char *table)
{
    return head_is_among(a, table, queue, COUNT_OF(queue));
}

bool words_are_queues(struct arena *a, const char *table)
{
    struct words w = words_of_name(a, table);
    const char *one = w.n == 1 ? word_singular(a, w.list[0]) : NULL;
    return one && strcmp(one, w.list[0]) != 0 && IS_AMONG(one, queue);
}

/* "auditlog" is a log, a "catalog" is none. */
static bool ends_as_operational(struct arena *a, const char *table)
{
    struct words w = singular_words(a, table);
    const char *head = head_of(&w);
    if (!head || IS_AMONG(head, no_end))
        return false;
    for (size_t i = 0; i < COUNT_OF(operational_end); i++)
        if (ends_with(head, strlen(head), operational_end[i]))
            return true;
    return false;
}

bool words_are_operational(struct arena *a, const char *table)
{
    return head_is_among(a, table, operational, COUNT_OF(operational)) || ends_as_operational(a, table);
}

bool words_end_as_ephemeral(struct arena *a, const char *table)
{
    return head_is_among(a, table, ephemeral, COUNT_OF(ephemeral));
}

bool words_are_pool(struct arena *a, const char *table)
{
    return head_is_among(a, table, pool, COUNT_OF(pool));
}

bool words_name_queue(struct arena *a, const char *column)
{
    AUTO(text_release) struct text name = {0};
    struct words w = words_of_name(a, column);
    for (size_t i = 0; i < w.n; i++)
        text_addf(&name, "%s%s", i ? "_" : "", w.list[i]);
    return IS_AMONG(text_str(&name), queue_key);
}

/* An access token in a row is refreshed by something; alone it is no more than the row's key. */
bool words_outlive_expiry(struct arena *a, const char *column)
{
    struct words w = singular_words(a, column);
    for (size_t i = 0; i < w.n; i++) {
        bool access = i + 1 < w.n && strcmp(w.list[i], "access") == 0 && strcmp(w.list[i + 1], "token") == 0;
        bool renewed =
            i + 1 < w.n && strcmp(w.list[i], "auto") == 0 && strncmp(w.list[i + 1], "renew", 5) == 0;
        if (access || renewed || IS_AMONG(w.list[i], outliving))
            return true;
    }
    return false;
}

bool words_extend(struct arena *a, const char *child, const char *parent)
{
    struct words c = singular_words(a, child), p = singular_words(a, parent);
    if (p.n == 0 || c.n <= p.n)
        return false;
    for (size_t i = 0; i < p.n; i++)
        if (strcmp(c.list[i], p.list[i]) != 0)
            return false;
    return true;
}

/* --- what columns say -------------------------------------------------------------------------------------
 */

static struct words without_suffix(struct arena *a, const char *column)
{
    struct words w = words_of_column(a, column);
    while (w.n && IS_AMONG(w.list[w.n - 1], time_suffix))
        w.n--;
    return w;
}

/* The words of the column before the one that says "expires"; SIZE_MAX: none does. */
static size_t words_before_expiry(const struct words *w, const char *last)
{
    if (w->n && IS_AMONG(w->list[w->n - 1], expires))
        return w->n - 1;
    if (w->n > 1 && strcmp(w->list[w->n - 1], "until") == 0)
        return IS_AMONG(w->list[w->n - 2], lasting) ? w->n - 2 : w->n - 1;
    bool after = w->n > 1 && strcmp(w->list[w->n - 1], "after") == 0;
    if (after && IS_AMONG(w->list[w->n - 2], removal))
        return w->n - 2;
    return w->n && strcmp(last, "at") == 0 && IS_AMONG(w->list[w->n - 1], removal) ? w->n - 1 : SIZE_MAX;
}

/* "lease" and "leased" belong to a table of leases. */
static bool belongs_to(struct arena *a, const char *word, const char *table)
{
    struct words t = singular_words(a, table);
    if (IS_AMONG(word, of_the_row))
        return true;
    for (size_t i = 0; i < t.n; i++)
        if (strlen(t.list[i]) > 2 && strncmp(word, t.list[i], strlen(t.list[i])) == 0)
            return true;
    return false;
}

enum expiry words_expiry(struct arena *a, const char *table, const char *column)
{
    struct words all = words_of_column(a, column), w = without_suffix(a, column);
    const char *behind = w.n < all.n ? all.list[w.n] : "";
    size_t before = words_before_expiry(&w, behind);
    if (before == SIZE_MAX)
        return EXPIRY_NONE;
    for (size_t i = 0; i < before; i++)
        if (!belongs_to(a, w.list[i], table))
            return EXPIRY_OF_PART;
    return EXPIRY_OF_ROW;
}

bool words_say_time(struct arena *a, const char *column)
{
    return without_suffix(a, column).n < words_of_column(a, column).n;
}

int words_state(struct arena *a, const char *column)
{
    struct words w = words_of_name(a, column);
    if (!w.n || w.n > 3 || !IS_AMONG(w.list[w.n - 1], states))
        return 0;
    return w.n == 1 ? 1 : 2;
}

bool word_is_ended(struct arena *a, const char *value, size_t len)
{
    char *word = arena_alloc(a, len + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        if (is_part_of_word(value[i]))
            word[n++] = is_upper(value[i]) ? (char)(value[i] - 'A' + 'a') : value[i];
    return IS_AMONG(word, ended);
}

/* The word is the whole name, but for words that change nothing: is_sent, deleted_flag, date_deleted. */
static bool is_only(struct arena *a, const char *column, const char *const *table, size_t n)
{
    struct words w = without_suffix(a, column);
    size_t said = 0;
    for (size_t i = 0; i < w.n; i++) {
        bool says = is_among(w.list[i], table, n);
        if (!says && !IS_AMONG(w.list[i], flag_words))
            return false;
        said += says;
    }
    return said == 1;
}

bool words_handed_on(struct arena *a, const char *column)
{
    return is_only(a, column, handed_on, COUNT_OF(handed_on));
}

bool words_soft_deleted(struct arena *a, const char *column)
{
    return is_only(a, column, soft_deleted, COUNT_OF(soft_deleted));
}

static size_t age_rank(const char *word)
{
    for (size_t i = 0; i < COUNT_OF(ages); i++)
        if (strcmp(word, ages[i]) == 0)
            return i + 1;
    return 0;
}

static bool speaks_of_no_age(const struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (IS_AMONG(w->list[i], not_age))
            return true;
    return false;
}

/* The word alone, with "last" or "date" before it; a bare `timestamp`, `clock` or `at`; the word of something
 * (acct_stop_time); any other time (event_time). */
int words_age(struct arena *a, const char *column)
{
    const size_t bare = COUNT_OF(ages) + 1, of_something = bare, other = bare + COUNT_OF(ages) + 1;
    struct words all = words_of_column(a, column), w = without_suffix(a, column);
    if (w.n == 0)
        return all.n == 1 && strlen(all.list[0]) > 1 ? (int)bare : 0;
    size_t rank = age_rank(w.list[w.n - 1]);
    bool alone = w.n == 1 || (w.n == 2 && (strcmp(w.list[0], "last") == 0 || strcmp(w.list[0], "date") == 0));
    if (rank && alone)
        return (int)rank;
    if (w.n == all.n || speaks_of_no_age(&w))
        return 0;
    if (rank)
        return (int)(of_something + rank);
    return strstr(all.list[w.n], "time") ? (int)other : 0;
}

bool words_last_used(struct arena *a, const char *column)
{
    struct words w = without_suffix(a, column);
    return w.n && IS_AMONG(w.list[w.n - 1], last_used);
}
