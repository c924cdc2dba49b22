/* history: the row of a run in lapse's own tables. See history.h. */
#include "record/history.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/quote.h"
#include "store/retry.h"

const char *history_obstacle(const struct store *s, const char **ret_fix)
{
    *ret_fix = "run lapse install";
    if (!s->own.version)
        return "lapse's own tables are not installed";
    if (s->own.version < OWN_SINCE_RUNS)
        return "lapse's own tables are of an earlier version, which has none";
    *ret_fix = s->own.hint;
    return s->own.lacks_runs;
}

void history_excuse(const struct store *s, struct text *out)
{
    const char *fix, *why = history_obstacle(s, &fix);
    if (!*why)
        return;
    text_addf(out, "no history is kept: %s%s", s->own.version < OWN_SINCE_RUNS ? "" : "this user lacks ",
              why);
    if (s->own.version && *fix)
        text_addf(out, " (%s)", fix);
}

/* Outcomes from the lightest to the gravest: a run is what its gravest part is. */
static const struct grade {
    const char *outcome;
    bool is_error;
} grades[] = {{"running", false}, {"done", false},   {"window", false}, {"budget", false}, {"paused", false},
              {"stopped", false}, {"refused", true}, {"fuse", true},    {"failed", true}};

static size_t grade_of(const char *outcome)
{
    for (size_t i = 0; i < COUNT_OF(grades); i++)
        if (strcmp(grades[i].outcome, outcome) == 0)
            return i;
    return COUNT_OF(grades) - 1; /* what is unknown is not made light of */
}

/* --- writing -------------------------------------------------------------------------------------------- */

/* No other run has it: 128 bits of chance, or else the time and the place. */
static void name_run(char *ret, size_t size)
{
    uint64_t random[2];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        random[0] = (uint64_t)when_now();
        random[1] = (uint64_t)when_monotonic_us() ^ (uint64_t)(uintptr_t)ret;
    }
    snprintf(ret, size, "%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
}

static int put(struct history *h, struct err *e)
{
    return h->store->ops->own->run_put(h->store, &h->row, e);
}

/* Again over a new connection where the old one broke: the row is the same, whether it arrived or not. */
static void write_row(struct history *h)
{
    struct err e = ERR_INIT;
    AUTO(text_release) struct text counts = {0};
    if (!h->kept)
        return;
    history_counts_json(h, &counts);
    AUTO(text_release) struct text policies = {0};
    text_addf(&policies, "[%s]", text_str(&h->policies));
    h->row.counts = text_str(&counts);
    h->row.policies = text_str(&policies);
    int r = put(h, &e);
    if (r < 0 && (e.kind == ERR_LOST || e.kind == ERR_COMMIT_UNKNOWN) &&
        retry_reconnect(h->store, &h->store->patience, &e))
        r = put(h, &e);
    h->row.counts = h->row.policies = NULL;
    h->written = h->written || r == 0;
    h->trouble = r < 0 ? e : (struct err)ERR_INIT; /* each writing holds all that the ones before it did */
}

/* --- what happened -------------------------------------------------------------------------------------- */

/* A database refuses text that is no UTF-8, and an error may have been cut in the middle of a character. */
static const char *clean(struct arena *a, const char *text)
{
    AUTO(text_release) struct text t = {0};
    for (const char *s = text; *s;) {
        size_t n = utf8_length(s);
        text_add_n(&t, n ? s : "?", n ? n : 1);
        s += n ? n : 1;
    }
    return arena_strdup(a, text_str(&t));
}

static void count(struct history *h, const char *label, int64_t rows)
{
    h->row.rows += rows;
    for (size_t i = 0; i < h->n_counts; i++)
        if (strcmp(h->counts[i].label, label) == 0) {
            h->counts[i].rows += rows;
            return;
        }
    h->counts = arena_push(h->arena, h->counts, h->n_counts, sizeof(*h->counts));
    h->counts[h->n_counts++] = (struct history_count){arena_strdup(h->arena, label), rows};
}

static void judge(struct history *h, const char *outcome, const char *error)
{
    size_t grade = grade_of(outcome);
    if (grade > grade_of(h->row.outcome))
        h->row.outcome = grades[grade].outcome;
    if (!grades[grade].is_error)
        return;
    h->row.errors++;
    if (error && !h->row.error)
        h->row.error = clean(h->arena, error);
}

void history_open(struct history *h, struct store *s, const char *scheduler, const char *source,
                  const char *owner, instant started)
{
    const char *fix;
    struct arena *a = arena_new();
    *h = (struct history){.store = s, .arena = a, .kept = !*history_obstacle(s, &fix)};
    name_run(h->row.id, sizeof(h->row.id));
    h->row.scheduler = arena_strdup(a, scheduler);
    h->row.source = arena_strdup(a, source);
    h->row.owner = arena_strdup(a, owner);
    h->row.started = started;
    h->row.outcome = grades[0].outcome;
}

void history_contract(struct history *h, const char *hash)
{
    h->row.contract = arena_strdup(h->arena, hash);
}

void history_begin(struct history *h)
{
    if (!h->written)
        write_row(h);
}

/* While it goes on, the row says "running", whatever became of a part. */
static void write_running(struct history *h)
{
    const char *outcome = h->row.outcome;
    h->row.outcome = grades[0].outcome;
    write_row(h);
    h->row.outcome = outcome;
}

void history_add(struct history *h, const struct history_part *part)
{
    if (strcmp(part->outcome, "disabled") == 0)
        return;
    if (strcmp(part->outcome, "held_elsewhere") == 0) {
        h->held = true;
        return;
    }
    int64_t before = h->row.rows;
    for (size_t i = 0; i < part->n; i++)
        if (part->gone[i])
            count(h, part->labels[i], part->gone[i]);
    if (h->policies.len)
        text_add(&h->policies, ",");
    history_part_json(part, &h->policies);
    if (part->has_cutoff && (!h->row.has_cutoff || part->cutoff > h->row.cutoff))
        h->row.cutoff = part->cutoff;
    h->row.has_cutoff |= part->has_cutoff;
    h->parts++;
    h->row.skipped += part->skipped;
    h->row.unknown += part->unknown;
    h->row.batches += part->batches;
    judge(h, part->outcome, part->error);
    if (h->row.rows > before || part->unknown)
        write_running(h);
}

void history_fail(struct history *h, const char *outcome, const char *error)
{
    h->parts++;
    judge(h, outcome, error);
}

void history_end(struct history *h, instant ended)
{
    if (h->held && !h->parts && !h->written)
        return;
    judge(h, "done", NULL);
    h->row.ended = true;
    h->row.ended_at = ended > h->row.started ? ended : h->row.started;
    write_row(h);
}

void history_release(struct history *h)
{
    arena_free(h->arena);
    text_release(&h->policies);
    *h = (struct history){0};
}
