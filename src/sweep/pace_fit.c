/* pace: what a transaction costs by itself, and what each row costs. See pace.h.
 *
 * Weighted least squares over recent batches. One batch that took far longer than expected is set aside: it
 * was a moment that was slow by chance. When the next one is as slow, the database is another than it was:
 * with two batches of different sizes it begins anew from these, else both costs grow by as much. */
#include "sweep/pace.h"

static const double KEPT = 15.0 / 16; /* of the weight of older batches, at each new one */
static const double ODD = 4;          /* times longer or shorter than expected: set aside */
static const double SPREAD = 0.1;     /* of sizes, in parts of their mean: less does not tell a from b */

static double expected_us(const struct pace_fit *f, double rows)
{
    return f->a_us + f->b_us * rows;
}

static void add(struct pace_fit *f, double rows, double us)
{
    f->weight = f->weight * KEPT + 1;
    f->x = f->x * KEPT + rows;
    f->y = f->y * KEPT + us;
    f->xx = f->xx * KEPT + rows * rows;
    f->xy = f->xy * KEPT + rows * us;
    f->n += f->n < PACE_FIT_EXPECTS;
}

/* Without different sizes all of the time is taken to be for rows: then smaller batches are tried where these
 * take too long, and tell more. */
static void solve(struct pace_fit *f)
{
    double mean_x = f->x / f->weight, mean_y = f->y / f->weight;
    double spread = f->xx / f->weight - mean_x * mean_x;
    f->known = spread > SPREAD * SPREAD * mean_x * mean_x;
    f->b_us = f->known ? (f->xy / f->weight - mean_x * mean_y) / spread : mean_y / mean_x;
    f->b_us = f->b_us > 0 ? f->b_us : 0;
    f->b_us = f->b_us * mean_x < mean_y ? f->b_us : mean_y / mean_x;
    f->a_us = mean_y - f->b_us * mean_x;
}

static void begin_anew(struct pace_fit *f, int64_t rows, int64_t us)
{
    int64_t odd_rows = f->odd_rows, odd_us = f->odd_us;
    *f = (struct pace_fit){.n = PACE_FIT_EXPECTS};
    add(f, (double)odd_rows, (double)odd_us);
    add(f, (double)rows, (double)us);
}

void pace_fit_add(struct pace_fit *f, int64_t rows, int64_t us)
{
    double expected = expected_us(f, (double)rows);
    bool odd = f->n >= PACE_FIT_EXPECTS && ((double)us > ODD * expected || (double)us * ODD < expected);
    if (odd && !f->odd_rows) {
        f->odd_rows = rows;
        f->odd_us = us;
        return;
    }
    if (odd)
        begin_anew(f, rows, us);
    else
        add(f, (double)rows, (double)us);
    f->odd_rows = f->odd_us = 0;
    solve(f);
}

int64_t pace_fit_even(const struct pace_fit *f)
{
    const double most = 9e15;
    if (!f->known || f->a_us <= 0)
        return 1;
    double rows = f->a_us / most < f->b_us ? f->a_us / f->b_us : most;
    return rows < 1 ? 1 : rows < most ? (int64_t)rows : INT64_MAX;
}
