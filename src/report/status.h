/* status: how the schedulers stand, and past runs. Part of report. */
#ifndef LAPSE_REPORT_STATUS_H
#define LAPSE_REPORT_STATUS_H

#include "report/report.h"
#include "schedule/ticker.h"

enum { STATUS_RECENT_MOST = 24 }; /* runs in the small chart of a scheduler */

/* A scheduler as the database knows it. Texts live in the report's arena. */
struct status_scheduler {
    const struct scheduler *scheduler;
    bool built_in;     /* of lapse's own tables */
    const char *ticks; /* "every 5m", "cron 0 3 * * * (Europe/Prague)" */
    size_t n_policies;
    const struct lease_row *lease; /* NULL: it is not exclusive, or nobody ever took it */
    bool lease_expired;
    const struct run_row *last, *daemon; /* the newest of all, of a daemon; NULL: it never ran */
    instant next;                        /* by the schedule; NEVER: not known, or it does not tick */
    int64_t late_us;                     /* 0: it is not */
    const struct brake *brakes;          /* in force, on the scheduler or a policy of it */
    size_t n_brakes;
    const struct brake *released; /* the last of each name that were released */
    size_t n_released;
    struct status_fuse {
        const char *policy;
        struct fuse_row row;
    } * fuses; /* that have tripped and are not acknowledged */
    size_t n_fuses;
    struct status_fuse *acks; /* that were acknowledged, and perhaps used */
    size_t n_acks;
    struct run_total total;             /* of the history that is kept */
    int64_t recent[STATUS_RECENT_MOST]; /* rows of the last runs, the newest last */
    size_t n_recent;
};
struct status {
    struct status_scheduler *list;
    size_t n;
};

#endif
