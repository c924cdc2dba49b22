/* words: what names of tables and columns, and values of states, commonly mean. Only words: nothing
 * here decides that rows go. */
#ifndef LAPSE_DRAFT_WORDS_H
#define LAPSE_DRAFT_WORDS_H

#include "base/base.h"

/* A name's words, in lower case: "leaseExpires_at_ms" has lease, expires, at, ms. */
struct words {
    const char **list;
    size_t n;
};
struct words words_of_name(struct arena *a, const char *name);
/* One word without its plural: "leases" and "lease" are the same. */
const char *word_singular(struct arena *a, const char *word);

/* The table's rows come and go by design: the last word that says something is session, lease, token, cache,
 * … and no word speaks of money, records or people's things. */
bool words_are_ephemeral(struct arena *a, const char *table);
/* The same of the last word alone: whose they are is for people to decide. */
bool words_end_as_ephemeral(struct arena *a, const char *table);
/* Rows that are to be worked off or delivered: queue, outbox, … They have a life of their own. */
bool words_are_queue(struct arena *a, const char *table);
/* The name is no more than "queues": each row may be one. */
bool words_are_queues(struct arena *a, const char *table);
/* Rows that pile up by design: log, event, run, attempt, … */
bool words_are_operational(struct arena *a, const char *table);
/* Rows that are handed out and given back: an end that is written in one is not its end. */
bool words_are_pool(struct arena *a, const char *table);
/* As the key of a table: its rows are the queues themselves, with their settings. */
bool words_name_queue(struct arena *a, const char *column);
/* A column beside which an expiry does not mean the end of the row: it can be renewed, or is worth something.
 */
bool words_outlive_expiry(struct arena *a, const char *column);
/* The child's name begins with the parent's: workflow_step of workflow, order_items of orders. */
bool words_extend(struct arena *a, const char *child, const char *parent);

enum expiry { EXPIRY_NONE, EXPIRY_OF_PART, EXPIRY_OF_ROW };
/* Whether the column says when something ends: the row itself (expires_at; lease_expires_at in a table of
 * leases), or a part of it (password_expires_at, locked_until in a table of jobs). */
enum expiry words_expiry(struct arena *a, const char *table, const char *column);
/* The name ends with at, time, date, … */
bool words_say_time(struct arena *a, const char *column);
/* status, state, phase: 1 when it is the whole name, 2 when it ends the name, 0 for another column. */
int words_state(struct arena *a, const char *column);
/* A value that says the row has ended: completed, FAILED, Timed Out, … */
bool word_is_ended(struct arena *a, const char *value, size_t len);
/* Without it a row of a queue or outbox is not over: published_at, is_sent. */
bool words_handed_on(struct arena *a, const char *column);
/* A row that is only marked as deleted: deleted_at, is_deleted, del. */
bool words_soft_deleted(struct arena *a, const char *column);
/* The column says when a row was last used or changed: lastaccess, last_seen_at, updated_at. */
bool words_last_used(struct arena *a, const char *column);
/* How well the column says since when a row is as it is: the lower the better, from 1; 0: not at all. */
int words_age(struct arena *a, const char *column);

#endif
