/* pace: how hard a sweep may push. See pace.h.
 *
 * Two things are steered. The size of a batch follows the time that transactions take: one that took too long
 * makes the next one as small as it should have been, or half; after that they grow by an eighth each. What a
 * transaction costs by itself (to find rows, to commit) is told from what each row costs, by batches of different
 * sizes: it is no reason to take ever fewer rows. And after each transaction there is a pause, where something asks
 * for one: of all that do, the longest.
 *
 * Where nobody else is at work none of this costs anything: pauses for others begin when others are seen to
 * write, and end soon after they stop. */
#include "sweep/pace.h"

#include <stdio.h>
#include <string.h>

enum {
    FIRST_ROW_US = 500, /* what a row is taken to cost before one was measured */
    GROW_PARTS = 8,     /* a batch grows by such a part of itself */
    GROSS = 4,          /* times the target: then it is not halved, but cut to what fits */
    USUAL_AFTER = 8,    /* batches of about a size tell what is usual */
    LOOK_SHARE = 50,    /* looks take a fiftieth of the time at most */
    SLOWER_MOST = 8,    /* what one batch that took very long may count */
    LATENCY_PAUSES = 3, /* the longest pause for it, in batches */
    SMALL_PARTS = 32,   /* such a part of a batch is small */
    LEAST_ROWS = 100,   /* no fewer, unless somebody asks for less */
    LOCKED_AFTER = 32,  /* batches, for which locks that were met ask for less */
    QUEUE_LONG = 8,     /* transactions that a node of a cluster has yet to apply: soon it holds up all */
};
static const int64_t LOOK_EVERY_US = 200 * US_PER_MS, LAG_STEP_US = 500 * US_PER_MS,
                     SNAPSHOT_OLD_US = 600 * US_PER_S, MISSING_US = 10 * US_PER_S,
                     LAG_BYTES_MANY = INT64_C(128) << 20;
/* Beside others: where only one may write at a time, a transaction is what they wait for; elsewhere they
 * share the machine and its disk with it, and where each commit is a sync of that disk, they wait for it,
 * too. Where the transaction itself costs more than the rows in it, many short ones would hold them up more
 * than fewer long ones. */
static const int64_t BESIDE_TARGET_US = 2 * US_PER_MS, BESIDE_DEAR_TARGET_US = 20 * US_PER_MS,
                     ONE_WRITER_TARGET_US = 1 * US_PER_MS;
static const double BESIDE_DUTY = 0.08, BESIDE_LAX_DUTY = 0.3, ONE_WRITER_DUTY = 0.025,
                    ONE_WRITER_LONG_DUTY = 0.2;
static const double SNAPSHOT_DUTY = 0.5, LAG_DUTY = 0.1, FLOW_DUTY = 0.5, FLOW_MUCH_DUTY = 0.1;
/* What others must write in a second to be heeded. Where one keeps all others out, whoever gets through at
 * all is one of many that do not. */
static const double OTHERS_ON = 2, OTHERS_OFF = 0.5, ONE_WRITER_ON = 0.5, ONE_WRITER_OFF = 0.2;
static const double OTHERS_MEMORY_US = 1e6;
/* … and who waits for its lock sleeps up to 100 ms between two tries of it: a pause that is longer lets in
 * whoever waits, and so it is seen; without one nobody might ever be. */
static const int64_t PROBE_EVERY_US = 2500 * US_PER_MS, PROBE_FIRST_US = 50 * US_PER_MS,
                     PROBE_US = 110 * US_PER_MS;
static const double FLOW_SOME = 0.01, FLOW_MUCH = 0.1, FLOW_STOP = 0.5; /* shares of the time */
static const double DEAR = 0.8; /* of the time of a transaction: what it costs itself */
static const double SLOWER = 3; /* times longer than usual: others need the machine */

const char *pace_reason_name(enum pace_reason r)
{
    static const char *const names[N_PACE_REASONS] = {
        [PACE_FREE] = "",
        [PACE_TARGET] = "target",
        [PACE_LOCKS] = "locks",
        [PACE_WRITERS] = "writers",
        [PACE_PROBE] = "probe",
        [PACE_LATENCY] = "latency",
        [PACE_ROWS_PER_SECOND] = "rows_per_second",
        [PACE_DUTY] = "duty",
        [PACE_SNAPSHOT] = "snapshot",
        [PACE_FLOW_CONTROL] = "flow_control",
        [PACE_LAG] = "lag",
        [PACE_AWAY] = "away",
    };
    return names[r];
}

/* A time that was reckoned; some are longer than any clock lasts. */
static int64_t to_us(double us)
{
    const double most = 9e15;
    return us > 0 ? (int64_t)(us < most ? us : most) : 0;
}

static int64_t clamp(int64_t n, int64_t least, int64_t most)
{
    return n < least ? least : n > most ? most : n;
}

/* A clock that was set back takes all times along that were noted by it. */
static void see(struct pacer *p, int64_t now_us)
{
    int64_t back = p->seen_us - now_us;
    p->seen_us = now_us;
    if (back <= 0)
        return;
    p->until_us -= back;
    p->paid_us -= (double)back;
    p->looked_us -= back;
    p->probed_us -= back;
    p->missing_us -= p->missing_us ? back : 0;
    for (size_t i = 0; i < p->n_positions; i++)
        p->positions[i].us -= back;
}

void pacer_init(struct pacer *p, const struct policy *policy, int64_t now_us)
{
    static const struct pace none = {.target = {SPAN_TIME, 50 * US_PER_MS},
                                     .rows_per_second = -1,
                                     .duty = -1,
                                     .lag = {SPAN_NEVER, INT64_MAX},
                                     .lag_bytes = -1};
    const struct pace *said = policy->pace ? policy->pace : &none;
    *p = (struct pacer){.batch = policy->batch == BATCH_ALL ? SLICE_ALL : policy->batch,
                        .whole = policy->batch == BATCH_ALL,
                        .own_target = said->target_set,
                        .own_duty = said->duty > 0,
                        .own_lag = said->lag.kind == SPAN_TIME || said->lag_bytes >= 0,
                        .target_us = said->target.us > 0 ? said->target.us : 1,
                        .duty = said->duty,
                        .rows_per_second = said->rows_per_second,
                        .lag_us = said->lag.kind == SPAN_TIME ? said->lag.us : INT64_MAX,
                        .lag_bytes = said->lag_bytes >= 0 ? said->lag_bytes : INT64_MAX};
    p->seen_us = p->until_us = now_us;
    p->probed_us = now_us - PROBE_EVERY_US + PROBE_FIRST_US;
    p->slower = 1;
    p->doubling = true;
    p->rows = p->whole ? p->batch : clamp(p->target_us / FIRST_ROW_US, 1, p->batch);
}

/* --- how many rows ---------------------------------------------------------------------------------------
 */

static bool beside(const struct pacer *p)
{
    return p->beside && !p->own_duty;
}

static int64_t target_us(const struct pacer *p)
{
    int64_t most = p->heard.one_writer ? ONE_WRITER_TARGET_US
                   : p->dear           ? BESIDE_DEAR_TARGET_US
                                       : BESIDE_TARGET_US;
    return p->own_target || !beside(p) || p->target_us < most ? p->target_us : most;
}

static int size_of(int64_t rows)
{
    int size = 0;
    for (; rows > 1 && size < PACE_SIZES - 1; rows /= 2)
        size++;
    return size;
}

static int64_t small(const struct pacer *p)
{
    return p->batch > SMALL_PARTS ? p->batch / SMALL_PARTS : 1;
}

/* So many rows fit into the target, as far as can be told. */
static int64_t fitting(const struct pacer *p, double share)
{
    double room = (double)target_us(p) * share - p->fit.a_us;
    if (room <= 0 || p->fit.n == 0)
        return 1;
    return p->fit.b_us > room / (double)p->batch ? (int64_t)(room / p->fit.b_us) : p->batch;
}

/* Rows so dear that not even some of them fit into the target, by far. */
static bool rows_are_dear(const struct pacer *p, int64_t rows)
{
    return p->fit.b_us * (double)rows > (double)target_us(p) * GROSS;
}

/* Fewer rows than that only make it fall behind: what every transaction costs would be most of the time. And
 * where nobody has asked for less, neither the contract, nor others who write, nor those whose locks were
 * met, some rows are no burden, but where each is dear. */
static int64_t least_rows(const struct pacer *p)
{
    int64_t even = pace_fit_even(&p->fit), some = LEAST_ROWS < p->batch ? LEAST_ROWS : p->batch;
    if (beside(p) && even > small(p))
        even = small(p);
    if (p->own_target || beside(p) || p->locked || rows_are_dear(p, some))
        some = 1;
    return clamp(even > some ? even : some, 1, p->batch);
}

static void shrink(struct pacer *p, int64_t rows, enum pace_reason why)
{
    p->rows = clamp(rows, 1, p->rows);
    p->doubling = false;
    p->size_reason = why;
}

static enum pace_reason target_reason(const struct pacer *p)
{
    return target_us(p) < p->target_us ? PACE_WRITERS : PACE_TARGET;
}

/* Of a batch that took too long: what would have fitted, with some room; at once only where it was far too
 * long, for a moment that was slow by chance is no measure. */
static void fit(struct pacer *p, const struct pace_batch *b)
{
    double target = (double)target_us(p), fits = (double)b->rows * target * 0.8 / (double)b->us;
    int64_t least = (double)b->us > target * GROSS ? 1 : b->rows / 2, sensible = least_rows(p);
    if (least < small(p) && b->rows > small(p))
        least = small(p); /* that far first: what fewer cost is seen then */
    least = sensible > least ? sensible : least;
    shrink(p, clamp((int64_t)fits, least, b->rows > least ? b->rows - 1 : least), target_reason(p));
}

/* Batches of one size do not tell what of their time is for rows, and so whether more of them would take much longer:
 * then the next one has fewer, or, where these would be too few, more. */
static void vary(struct pacer *p)
{
    if (beside(p) || p->fit.known || p->fit.n < PACE_FIT_EXPECTS || p->rows == p->batch)
        return;
    int64_t fewer = p->rows - p->rows / 4, more = clamp(p->rows / 2, 0, p->batch - p->rows);
    p->rows = fewer < least_rows(p) ? p->rows + more : fewer;
}

/* Only what was full says that more would do; never beyond what the target seems to allow, by this batch or
 * by the last ones. */
static void grow(struct pacer *p, const struct pace_batch *b)
{
    double fits = b->us > 0 ? (double)b->rows * (double)target_us(p) * 0.9 / (double)b->us : (double)p->batch;
    int64_t more = p->doubling ? p->rows : p->rows / GROW_PARTS;
    int64_t rows = p->rows + clamp(more, 1, p->batch - p->rows), most = fitting(p, 0.9);
    if (fits > (double)most)
        most = fits < (double)p->batch ? (int64_t)fits : p->batch;
    if (rows > most && most < p->batch) {
        rows = most > p->rows ? most : p->rows;
        p->doubling = false;
        p->size_reason = target_reason(p);
    }
    bool stays = rows == p->rows;
    p->rows = clamp(rows, 1, p->batch);
    if (stays)
        vary(p);
}

/* Back from what turned out to be too few: by steps, of which each tells more. Beside others too few are only
 * left by growing. */
static void enough(struct pacer *p, const struct pace_batch *b)
{
    int64_t least = least_rows(p), most = b->rows > p->batch / 2 ? p->batch : b->rows * 2;
    if (beside(p) || p->locked || p->fit.odd_rows)
        return;
    least = least < most ? least : most;
    p->rows = least > p->rows ? least : p->rows;
}

static void resize(struct pacer *p, const struct pace_batch *b)
{
    pace_fit_add(&p->fit, b->rows, b->us);
    if (p->whole)
        return;
    double all = p->fit.a_us + p->fit.b_us * (double)b->rows;
    p->fixed = beside(p) && all > 0 ? p->fixed + (p->fit.a_us / all - p->fixed) / 16 : 0;
    p->dear |= p->fixed > DEAR;
    if (b->us > target_us(p))
        fit(p, b);
    else if (b->rows >= b->asked && b->asked >= p->rows)
        grow(p, b);
    if (b->rows >= b->asked)
        enough(p, b);
    p->locked -= p->locked > 0;
    if (p->rows == p->batch)
        p->size_reason = PACE_FREE;
}

int64_t pacer_rows(const struct pacer *p)
{
    if (p->whole || p->rows_per_second <= 0)
        return p->rows;
    int64_t second = p->rows_per_second < (double)p->rows ? (int64_t)p->rows_per_second : p->rows;
    return second > 1 ? second : 1; /* else a second's worth would come at once, and then nothing for long */
}

void pacer_locked(struct pacer *p)
{
    if (!p->whole && p->rows > small(p))
        shrink(p, p->rows / 2, PACE_LOCKS);
    p->locked = LOCKED_AFTER;
}

/* --- how long it usually takes ---------------------------------------------------------------------------
 */

/* Batches are compared with those of about their size, for each has costs that do not grow with it. What is
 * usual follows what is fast soon, and what is slow late: a part of the table in which rows cost more is no
 * trouble of others. */
static void compare(struct pacer *p, const struct pace_batch *b)
{
    int size = size_of(b->rows_all);
    double cost = (double)b->us / (double)b->rows_all, *usual = &p->usual[size].us_per_row;
    if (p->usual[size].n++ == 0)
        *usual = cost;
    double times = *usual > 0 ? cost / *usual : 1;
    times = times < SLOWER_MOST ? times : SLOWER_MOST;
    *usual += (cost - *usual) / (cost < *usual ? 16 : 64);
    p->usual[size].n = p->usual[size].n < USUAL_AFTER ? p->usual[size].n : USUAL_AFTER;
    if (p->usual[size].n >= USUAL_AFTER)
        p->slower += (times - p->slower) / 4;
}

/* --- pauses ----------------------------------------------------------------------------------------------
 */

static void wait_for(struct pacer *p, double us, int64_t now_us, enum pace_reason why)
{
    int64_t until;
    if (us < 1 || !add_i64(now_us, to_us(us), &until) || until <= p->until_us)
        return;
    p->until_us = until;
    p->wait_reason = why;
}

/* So long that the transaction was no larger part of the time. */
static void heed_duty(struct pacer *p, double duty, const struct pace_batch *b, int64_t now_us,
                      enum pace_reason why)
{
    if (duty > 0 && duty < 1)
        wait_for(p, (double)b->us * (1 / duty - 1), now_us, why);
}

/* Where one writes at a time, and even the shortest transaction is long, others wait for it anyway: with
 * pauses as many times longer it would fall behind for nothing. */
static void heed_writers(struct pacer *p, const struct pace_batch *b, int64_t now_us)
{
    if (!p->heard.one_writer) {
        heed_duty(p, p->heard.lax ? BESIDE_LAX_DUTY : BESIDE_DUTY, b, now_us, PACE_WRITERS);
        return;
    }
    struct pace_batch in_time = {.us = b->us < ONE_WRITER_TARGET_US ? b->us : ONE_WRITER_TARGET_US};
    heed_duty(p, ONE_WRITER_DUTY, &in_time, now_us, PACE_WRITERS);
    heed_duty(p, ONE_WRITER_LONG_DUTY, b, now_us, PACE_WRITERS);
}

/* What is not used is not saved up. */
static void heed_rate(struct pacer *p, const struct pace_batch *b, int64_t now_us)
{
    double begun = (double)(now_us - b->us);
    if (p->rows_per_second <= 0)
        return;
    p->paid_us = (p->paid_us > begun ? p->paid_us : begun) + (double)b->rows * 1e6 / p->rows_per_second;
    wait_for(p, p->paid_us - (double)now_us, now_us, PACE_ROWS_PER_SECOND);
}

static void heed_latency(struct pacer *p, const struct pace_batch *b, int64_t now_us)
{
    double pauses = p->slower / SLOWER;
    if (pauses >= 1 && !p->own_duty)
        wait_for(p, (double)b->us * (pauses < LATENCY_PAUSES ? pauses : LATENCY_PAUSES), now_us,
                 PACE_LATENCY);
}

static void probe(struct pacer *p, int64_t now_us)
{
    if (p->own_duty || p->beside || !p->has_heard || !p->heard.one_writer)
        return;
    if (now_us - p->probed_us < PROBE_EVERY_US)
        return;
    p->probed_us = now_us;
    wait_for(p, (double)PROBE_US, now_us, PACE_PROBE);
}

static bool lags_much(const struct pacer *p)
{
    return p->has_heard && !p->own_lag && p->heard.lag_bytes > LAG_BYTES_MANY;
}

/* Of several connections each tells of its batches: a short one does not end the pause that a long one asked
 * for. */
static void rest(struct pacer *p, const struct pace_batch *b, int64_t now_us)
{
    if (p->until_us <= now_us) {
        p->until_us = now_us;
        p->wait_reason = PACE_FREE;
    }
    heed_duty(p, p->duty, b, now_us, PACE_DUTY);
    if (beside(p))
        heed_writers(p, b, now_us);
    if (p->has_heard && p->heard.snapshot_us >= SNAPSHOT_OLD_US)
        heed_duty(p, SNAPSHOT_DUTY, b, now_us, PACE_SNAPSHOT);
    if (p->held_up > FLOW_SOME || (p->has_heard && p->heard.queued >= QUEUE_LONG))
        heed_duty(p, p->held_up > FLOW_MUCH ? FLOW_MUCH_DUTY : FLOW_DUTY, b, now_us, PACE_FLOW_CONTROL);
    if (lags_much(p))
        heed_duty(p, LAG_DUTY, b, now_us, PACE_LAG);
    heed_latency(p, b, now_us);
    heed_rate(p, b, now_us);
    probe(p, now_us);
}

void pacer_batch(struct pacer *p, const struct pace_batch *b, int64_t now_us)
{
    see(p, now_us);
    if (b->rows < 1 || b->rows_all < b->rows || b->us < 0)
        return;
    resize(p, b);
    compare(p, b);
    rest(p, b, now_us);
    p->partial = b->rows < b->asked;
    p->passed = false;
}

/* --- what the database says ------------------------------------------------------------------------------
 */

bool pacer_wants_look(const struct pacer *p, int64_t now_us)
{
    int64_t rest = p->look_took_us > INT64_MAX / LOOK_SHARE ? INT64_MAX : p->look_took_us * LOOK_SHARE;
    rest = rest > LOOK_EVERY_US ? rest : LOOK_EVERY_US;
    return !p->looked || now_us - p->looked_us >= rest || now_us < p->looked_us;
}

/* How fast something grew since the last look; what shrinks is another server's. */
static double growth(int64_t before, int64_t now, int64_t us)
{
    return before >= 0 && now > before && us > 0 ? (double)(now - before) / (double)us : 0;
}

/* What others have written for sure: nothing of it is what our own connections had under way at a look, and
 * it never shrinks, unless it is another server's count. */
static int64_t written_by_others(const struct pacer *p, const struct pressure *said)
{
    int64_t least, before = p->heard.others;
    if (!p->has_heard || before < 0 || said->others < before ||
        !sub_i64(said->others, said->under_way, &least))
        return said->others;
    return least > before ? least : before;
}

/* The average over about the last second. */
static void hear_others(struct pacer *p, const struct pressure *said, int64_t us)
{
    double weight = (double)us / ((double)us + OTHERS_MEMORY_US);
    p->others += weight * (growth(p->heard.others, said->others, us) * 1e6 - p->others);
    bool was = p->beside;
    p->heard.one_writer = said->one_writer;
    if (said->one_writer && said->others > p->heard.others && p->heard.others >= 0 &&
        p->others < ONE_WRITER_ON)
        p->others = ONE_WRITER_ON;
    p->beside = p->others >= (said->one_writer ? ONE_WRITER_OFF : was ? OTHERS_OFF : OTHERS_ON);
    if (p->beside == was || p->whole)
        return;
    p->doubling = !p->beside; /* alone again: soon as fast as before */
    p->dear = false;
    int64_t fits = fitting(p, 1), least = least_rows(p);
    fits = fits > least ? fits : least;
    if (beside(p) && !p->own_target && p->fit.n && fits < p->rows)
        shrink(p, fits, PACE_WRITERS);
}

/* Where the log stood when, often enough to tell the delays that matter. */
static void note_position(struct pacer *p, int64_t written, int64_t now_us)
{
    size_t n = p->n_positions;
    int64_t every = p->lag_us == INT64_MAX ? LOOK_EVERY_US : p->lag_us / (PACE_POSITIONS / 4);
    if (n && now_us - p->positions[n - 1].us < every)
        return;
    if (n == PACE_POSITIONS)
        memmove(p->positions, p->positions + 1, --n * sizeof(*p->positions));
    p->positions[n].us = now_us;
    p->positions[n].written = written;
    p->n_positions = n + 1;
}

/* How long ago the log stood where the replica is now: what a server says of the delay is of the last time
 * that it moved. Further back than is known, it is at least as long as that. */
static int64_t delay_us(const struct pacer *p, const struct pressure *said, int64_t now_us)
{
    int64_t at;
    if (said->lag_bytes <= 0 || !sub_i64(said->written, said->lag_bytes, &at))
        return 0;
    size_t i = p->n_positions;
    while (i > 0 && p->positions[i - 1].written > at)
        i--;
    if (i == p->n_positions)
        return 0; /* as far as at the last look */
    int64_t then = p->positions[i].us;
    if (i > 0) {
        double part = (double)(at - p->positions[i - 1].written) /
                      (double)(p->positions[i].written - p->positions[i - 1].written);
        then = p->positions[i - 1].us + (int64_t)(part * (double)(then - p->positions[i - 1].us));
    }
    int64_t delay = now_us > then ? now_us - then : 0;
    return delay > said->lag_us ? delay : said->lag_us;
}

/* One that was driven away by what it could not follow is not behind, but it will be when it is back. */
static void miss_replicas(struct pacer *p, const struct pressure *said, int64_t now_us)
{
    if (said->replicas >= p->most_replicas) {
        p->most_replicas = said->replicas;
        p->missing_us = 0;
    } else if (!p->missing_us) {
        p->missing_us = now_us ? now_us : 1;
    } else if (now_us - p->missing_us >= MISSING_US) {
        p->most_replicas = said->replicas;
        p->missing_us = 0;
    }
}

static void note_look(struct pacer *p, int64_t now_us, int64_t took_us)
{
    p->looked = true;
    p->looked_us = now_us;
    p->look_took_us = took_us > 0 ? took_us : 0;
}

void pacer_heard(struct pacer *p, const struct pressure *all_said, int64_t now_us, int64_t took_us)
{
    struct pressure known = *all_said, *said = &known;
    known.others = written_by_others(p, all_said);
    see(p, now_us);
    int64_t us = now_us - p->looked_us;
    if (p->has_heard && us > 0) {
        hear_others(p, said, us);
        p->held_up = growth(p->heard.held_up_us, said->held_up_us, us);
    }
    if (said->written < p->heard.written)
        p->n_positions = 0; /* another server's log */
    p->lag_now_us = delay_us(p, said, now_us);
    note_position(p, said->written, now_us);
    miss_replicas(p, said, now_us);
    p->heard = *said;
    p->has_heard = true;
    p->deaf = false;
    note_look(p, now_us, took_us);
}

void pacer_deaf(struct pacer *p, const char *why, int64_t now_us, int64_t took_us)
{
    see(p, now_us);
    p->deaf = true;
    p->beside = false;
    snprintf(p->deaf_why, sizeof(p->deaf_why), "%s", why);
    note_look(p, now_us, took_us);
}

/* --- whether to wait -------------------------------------------------------------------------------------
 */

static bool lags(const struct pacer *p)
{
    if (!p->own_lag)
        return false;
    return p->deaf || !p->has_heard || p->heard.lag_bytes < 0 || p->heard.lag_bytes > p->lag_bytes ||
           p->lag_now_us > p->lag_us || p->missing_us;
}

struct pace_wait pacer_wait(struct pacer *p, int64_t now_us)
{
    see(p, now_us);
    if (lags(p))
        return (struct pace_wait){LAG_STEP_US, PACE_LAG};
    if (p->held_up > FLOW_STOP)
        return (struct pace_wait){LOOK_EVERY_US, PACE_FLOW_CONTROL};
    if (now_us >= p->until_us)
        return (struct pace_wait){0, PACE_FREE};
    if (p->partial && !p->passed) { /* most likely nothing is left; what is owed stays owed */
        p->passed = true;
        return (struct pace_wait){0, PACE_FREE};
    }
    return (struct pace_wait){p->until_us - now_us, p->wait_reason};
}

enum pace_reason pacer_reason(const struct pacer *p)
{
    if (lags(p))
        return PACE_LAG;
    if (p->held_up > FLOW_STOP)
        return PACE_FLOW_CONTROL;
    return p->wait_reason && p->wait_reason != PACE_PROBE ? p->wait_reason : p->size_reason;
}

/* --- in words --------------------------------------------------------------------------------------------
 */

static void add_bytes(struct text *out, int64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    size_t u = 0;
    double n = (double)bytes;
    while (n >= 10000 && u + 1 < COUNT_OF(units)) {
        n /= 1024;
        u++;
    }
    text_addf(out, "%.0f %s", n, units[u]);
}

static void add_lag(const struct pacer *p, struct text *out)
{
    const struct pressure *h = &p->heard;
    if (p->deaf || !p->has_heard)
        text_addf(out, "how far replicas are behind could not be asked%s%s", p->deaf ? ": " : "",
                  p->deaf_why);
    else if (h->lag_bytes < 0)
        text_addf(out, "%s%s%s", h->unknown, h->fix[0] ? "; " : "", h->fix);
    else if (p->missing_us && h->lag_bytes <= p->lag_bytes && p->lag_now_us <= p->lag_us)
        text_add(out, "a replica went away, and will be behind when it is back");
    else {
        text_addf(out, "the replica '%s' is ", h->furthest);
        add_bytes(out, h->lag_bytes);
        if (p->lag_now_us >= US_PER_S)
            text_addf(out, " and %lld s", (long long)(p->lag_now_us / US_PER_S));
        text_add(out, " behind");
    }
}

void pacer_words(const struct pacer *p, enum pace_reason r, struct text *out)
{
    AUTO(text_release) struct text span = {0};
    switch (r) {
    case PACE_FREE:
    case N_PACE_REASONS:
        break;
    case PACE_TARGET:
        span_format(p->target_us, &span);
        text_addf(out, "more than %lld row%s at once would take longer than %s", (long long)p->rows,
                  p->rows == 1 ? "" : "s", text_str(&span));
        break;
    case PACE_LOCKS:
        text_add(out, "others hold locks on what is due");
        break;
    case PACE_WRITERS:
        text_add(out, "others write, and get the larger part of the time");
        break;
    case PACE_PROBE:
        text_add(out, "a pause, to see whether others wait to write");
        break;
    case PACE_LATENCY:
        text_addf(out, "rows take %.0f times as long as before", p->slower);
        break;
    case PACE_ROWS_PER_SECOND:
        text_addf(out, "no more than %.10g rows a second", p->rows_per_second);
        break;
    case PACE_DUTY:
        text_addf(out, "no more than %.10g of the time", p->duty);
        break;
    case PACE_SNAPSHOT:
        text_addf(out,
                  "a transaction has been open for %lld min: until it ends, what is deleted cannot be "
                  "cleaned up",
                  (long long)(p->heard.snapshot_us / (60 * US_PER_S)));
        break;
    case PACE_FLOW_CONTROL:
        text_add(out, "a node of the cluster does not keep up, and the cluster holds its writers up");
        break;
    case PACE_LAG:
        add_lag(p, out);
        break;
    case PACE_AWAY:
        text_add(out, "the database is not there");
        break;
    }
}
