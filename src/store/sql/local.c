/* local: what dialects share: how local times are compared with an instant. Declared in sql.h. */
#include "store/sql/sql.h"

struct local_bound sql_bound_of(const struct time_column *t, enum compare cmp, instant at)
{
    /* What is not < is >=, what is not <= is >. */
    return zone_bound(t->zone, at, cmp == CMP_LE || cmp == CMP_GT);
}

void sql_within(struct stmt *s, const struct dialect *d, const char *subject, const struct local_bound *b,
                bool within, void (*write)(struct stmt *s, int64_t value))
{
    bool hole = b->hole_from < b->hole_to;
    int64_t first = !within && hole ? b->hole_from : b->below;
    int64_t gap_from = within ? b->hole_from : b->hole_to, gap_to = within ? b->hole_to : b->below;
    text_add(&s->sql, subject);
    sql_sign(s, d, within ? "<" : ">=");
    write(s, first);
    if (!hole)
        return;
    text_addf(&s->sql, " AND NOT (%s", subject);
    sql_sign(s, d, ">=");
    write(s, gap_from);
    text_addf(&s->sql, " AND %s", subject);
    sql_sign(s, d, "<");
    write(s, gap_to);
    text_add(&s->sql, ")");
}

static int64_t first_day_from(int64_t local_us)
{
    return when_floor_div(local_us, US_PER_DAY) + (when_floor_mod(local_us, US_PER_DAY) != 0);
}

struct local_bound sql_bound_days(struct local_bound b)
{
    struct local_bound d = {first_day_from(b.below), 0, 0};
    if (b.hole_from < b.hole_to) {
        d.hole_from = first_day_from(b.hole_from);
        d.hole_to = first_day_from(b.hole_to);
    }
    if (d.hole_from < d.hole_to && d.hole_to >= d.below) {
        d.below = d.hole_from;
        d.hole_from = d.hole_to = 0;
    }
    return d;
}
