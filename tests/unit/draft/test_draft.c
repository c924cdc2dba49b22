/* draft: words, times, references and the text, from facts by hand. */
#include "world.h"

#include "draft/internal.h"
#include "draft/words.h"

/* --- words -------------------------------------------------------------------------------------- */

static void tables_that_come_and_go(void **state)
{
    struct world *w = *state;
    static const char *const yes[] = {
        "sessions",         "user_sessions", "UserSessions",   "lane_leases",           "locks",
        "refresh_tokens",   "nonces",        "inbound_dedupe", "idempotency_keys",      "http_cache",
        "presence_entries", "connections",   "oauth_pending",  "models_refresh_leases", "sessions_v2",
        "password_resets",  "cache",
    };
    static const char *const no[] = {
        "users",
        "orders",
        "payments",
        "audit_log",
        "pending_orders",
        "session_users",
        "api_keys",
        "api_tokens",
        "tokens_history",
        "subscriptions",
        "certificates",
        "jobs",
        "work_queue",
        "outbox",
        "cached_files",
        "checkout_sessions",
        "audit_sessions",
        "bank_connections",
        "keys",
        "entries",
        "",
        "payment_tokens",
        "game_sessions",
        "leases_archive",
        "session_log",
        "lockers",
        "_",
        "rental_leases",
    };
    for (size_t i = 0; i < COUNT_OF(yes); i++)
        if (!words_are_ephemeral(w->arena, yes[i]))
            fail_msg("%s", yes[i]);
    for (size_t i = 0; i < COUNT_OF(no); i++)
        if (words_are_ephemeral(w->arena, no[i]))
            fail_msg("%s", no[i]);
}

static void columns_that_end_a_row(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *table, *column;
        enum expiry is;
    } cases[] = {
        {"sessions", "expires_at", EXPIRY_OF_ROW},
        {"sessions", "expires_at_ms", EXPIRY_OF_ROW},
        {"sessions", "expiresAt", EXPIRY_OF_ROW},
        {"sessions", "expiry", EXPIRY_OF_ROW},
        {"sessions", "expiration_time", EXPIRY_OF_ROW},
        {"sessions", "session_expires_at", EXPIRY_OF_ROW},
        {"sessions", "valid_until", EXPIRY_OF_ROW},
        {"sessions", "delete_after", EXPIRY_OF_ROW},
        {"sessions", "purge_at", EXPIRY_OF_ROW},
        {"lane_leases", "lease_expires_at_ms", EXPIRY_OF_ROW},
        {"lane_leases", "leased_until", EXPIRY_OF_ROW},
        {"locks", "locked_until", EXPIRY_OF_ROW},
        {"jobs", "lease_expires_at_ms", EXPIRY_OF_PART},
        {"jobs", "locked_until", EXPIRY_OF_PART},
        {"users", "password_expires_at", EXPIRY_OF_PART},
        {"users", "token_expires_at", EXPIRY_OF_PART},
        {"sessions", "refresh_expires_at", EXPIRY_OF_PART},
        {"sessions", "expiresat", EXPIRY_OF_ROW},
        {"sessions", "expirytime", EXPIRY_OF_ROW},
        {"users", "passwordexpiresat", EXPIRY_OF_PART},
        {"sessions", "until", EXPIRY_NONE},
        {"sessions", "expired_at", EXPIRY_NONE},
        {"sessions", "expires_in", EXPIRY_NONE},
        {"sessions", "ttl", EXPIRY_NONE},
        {"sessions", "delete", EXPIRY_NONE},
        {"sessions", "created_at", EXPIRY_NONE},
        {"sessions", "", EXPIRY_NONE},
        {"sessions", "at", EXPIRY_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (words_expiry(w->arena, cases[i].table, cases[i].column) != cases[i].is)
            fail_msg("%s.%s", cases[i].table, cases[i].column);
}

static void states_and_ages(void **state)
{
    struct world *w = *state;
    struct arena *a = w->arena;
    static const char *const ended[] = {"completed", "COMPLETED",     "Timed Out",
                                        "timed_out", "dead-lettered", "canceled"};
    static const char *const alive[] = {"running",     "pending",        "", "complet", "error",
                                        "uncompleted", "completed by me"};
    for (size_t i = 0; i < COUNT_OF(ended); i++)
        assert_true(word_is_ended(a, ended[i], strlen(ended[i])));
    for (size_t i = 0; i < COUNT_OF(alive); i++)
        assert_false(word_is_ended(a, alive[i], strlen(alive[i])));
    assert_int_equal(words_state(a, "status"), 1);
    assert_int_equal(words_state(a, "train_state"), 2);
    assert_int_equal(words_state(a, "statement"), 0);
    assert_in_range(words_age(a, "finished_at"), 1, words_age(a, "updated_at") - 1);
    assert_in_range(words_age(a, "updatedAt"), 1, words_age(a, "created_at_ms") - 1);
    assert_in_range(words_age(a, "created_at"), 1, words_age(a, "timestamp") - 1);
    assert_true(words_age(a, "last_updated"));
    assert_false(words_age(a, "birth_date"));
    assert_false(words_age(a, "s"));
    assert_true(words_extend(a, "workflow_step", "workflow"));
    assert_true(words_extend(a, "order_items", "orders"));
    assert_false(words_extend(a, "workflows", "workflow"));
    assert_string_equal(word_singular(a, "entries"), "entry");
    assert_string_equal(word_singular(a, "inboxes"), "inbox");
    assert_string_equal(word_singular(a, "status"), "status");
    assert_true(words_outlive_expiry(a, "refresh_token"));
    assert_true(words_outlive_expiry(a, "autoRenew"));
    assert_false(words_outlive_expiry(a, "token"));
}

static void words_without_gaps(void **state)
{
    struct world *w = *state;
    static const char *const ages[] = {"receivedat", "acctstoptime", "acctstarttime", "authdate",
                                       "clock",      "lastaccess",   "changed",       "timecreated",
                                       "event_time", "at",           "happened_at",   "last_activity",
                                       "createdon",  "date_created"};
    static const char *const no_ages[] = {"format",
                                          "state",
                                          "data",
                                          "next_run_time",
                                          "combination",
                                          "repeat",
                                          "candidate",
                                          "run_at",
                                          "scheduled_at",
                                          "response_time",
                                          "password_changed_at",
                                          "birthdate",
                                          "update_count",
                                          "on_time_deleted_at",
                                          "location",
                                          "estimate",
                                          "due_date"};
    for (size_t i = 0; i < COUNT_OF(ages); i++)
        if (!words_age(w->arena, ages[i]))
            fail_msg("%s", ages[i]);
    for (size_t i = 0; i < COUNT_OF(no_ages); i++)
        if (words_age(w->arena, no_ages[i]))
            fail_msg("%s", no_ages[i]);
    /* The end before the beginning, its own before another's, and any of these before one that is only a
     * time. */
    static const char *const order[] = {"acctstoptime", "acctstarttime", "event_time"};
    assert_true(words_age(w->arena, "created_at") < words_age(w->arena, order[0]));
    for (size_t i = 1; i < COUNT_OF(order); i++)
        assert_true(words_age(w->arena, order[i - 1]) < words_age(w->arena, order[i]));
}

static void marks_of_a_row(void **state)
{
    struct world *w = *state;
    struct arena *a = w->arena;
    static const char *const handed_on[] = {"published_at", "dispatched", "is_sent", "deliveredAt",
                                            "processedat",  "sent_date",  "msg_sent"};
    static const char *const not_handed_on[] = {"unsent",    "sender", "not_sent",
                                                "last_sent", "status", "created_at"};
    for (size_t i = 0; i < COUNT_OF(handed_on); i++)
        if (!words_handed_on(a, handed_on[i]))
            fail_msg("%s", handed_on[i]);
    for (size_t i = 0; i < COUNT_OF(not_handed_on); i++)
        if (words_handed_on(a, not_handed_on[i]))
            fail_msg("%s", not_handed_on[i]);
    assert_true(words_soft_deleted(a, "deleted") && words_soft_deleted(a, "deleted_at"));
    assert_true(words_soft_deleted(a, "is_deleted") && words_soft_deleted(a, "del") &&
                words_soft_deleted(a, "deletedat"));
    assert_false(words_soft_deleted(a, "delete_at") || words_soft_deleted(a, "deleted_by") ||
                 words_soft_deleted(a, "model"));
    assert_true(words_are_operational(a, "auditlog") && words_are_operational(a, "mailqueue"));
    assert_true(words_are_operational(a, "radacct") && words_are_operational(a, "audit_log"));
    assert_false(words_are_operational(a, "blog") || words_are_operational(a, "catalogs"));
    assert_true(words_are_pool(a, "radippool") && words_are_pool(a, "address_pools"));
    assert_false(words_are_pool(a, "pool_members"));
    assert_true(words_name_queue(a, "queue_name") && words_name_queue(a, "name"));
    assert_false(words_name_queue(a, "id"));
}

/* --- times -------------------------------------------------------------------------------------- */

/* Values with "|" between them; numbers are numbers, "-" is NULL. */
static void put_values(struct world *w, struct draft_look *l, const char *values)
{
    l->rows.n_columns = l->n_columns;
    for (const char *s = values; *s;) {
        size_t len = strcspn(s, "|");
        struct value v = {.kind = VALUE_TEXT, .text = arena_strndup(w->arena, s, len), .len = len};
        if (len == 1 && *s == '-')
            v = (struct value){.kind = VALUE_NULL};
        struct value row[8];
        for (size_t i = 0; i < l->n_columns; i++)
            row[i] = v;
        rows_push(&l->rows, row);
        s += len + (s[len] == '|');
    }
    l->whole = true;
}

static struct draft_time time_of(struct world *w, const char *column, const char *values)
{
    struct table *t = add_table(w, "public", "t", column, "");
    struct draft_look l = {.table = t, .n_columns = 1, .columns = arena_alloc(w->arena, sizeof(void *))};
    l.columns[0] = &t->columns[0];
    put_values(w, &l, values);
    struct draft_time time = draft_time_of(&l, &t->columns[0], w->arena);
    rows_release(&l.rows);
    return time;
}

static void units_and_zones(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *column, *values;
        bool usable, certain;
        const char *unit, *zone;
    } cases[] = {
        {"e:timestamptz", "", true, true, NULL, NULL},
        {"e:timestamp", "", true, false, NULL, "UTC"},
        {"e:date", "", true, false, NULL, "UTC"},
        {"e_ms:integer", "", true, true, NULL, NULL},
        {"e_ms:integer", "1718452800000|-", true, true, NULL, NULL},
        {"e_ms:integer", "1718452800000|0|-1", true, true, NULL, NULL},
        {"e_ms:integer", "1718452800000|12", true, false, NULL, NULL},
        {"e_ms:integer", "1718452800", true, false, "s", NULL},
        {"e:integer", "1718452800", true, true, "s", NULL},
        {"e:integer", "1718452800000", true, true, "ms", NULL},
        {"e:integer", "1718452800000000", true, true, "us", NULL},
        {"e:integer", "1718452800000|1718452800", true, false, "s", NULL},
        {"e:integer", "", true, false, "s", NULL},
        {"e:integer", "1|2|3", false, false, "s", NULL},
        {"e:integer", "1718452800000000000000000", false, false, "s", NULL},
        {"e:text", "2024-06-15T12:00:00Z|2024-06-15 12:00:00+02:00", true, true, NULL, NULL},
        {"e:text", "2024-06-15 12:00:00", true, false, NULL, "UTC"},
        {"e:text", "2024-06-15", false, false, NULL, "UTC"},
        {"e:text", "2024-06-15T12:00:00Z|soon", true, false, NULL, "UTC"},
        {"e:text", "soon", false, false, NULL, "UTC"},
        {"e:text", "", true, false, NULL, "UTC"},
        {"e:any", "1718452800", true, true, "s", NULL},
        {"e:any", "2024-06-15T12:00:00Z", true, true, NULL, NULL},
        {"e:boolean", "", false, true, NULL, NULL},
        {"e:real", "1718452800", false, true, NULL, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct draft_time t = time_of(w, cases[i].column, cases[i].values);
        bool same_unit = !t.unit || !cases[i].unit ? t.unit == cases[i].unit : !strcmp(t.unit, cases[i].unit);
        bool same_zone = !t.zone == !cases[i].zone;
        if (t.usable != cases[i].usable || (t.usable && !t.decide.n != cases[i].certain) ||
            (t.usable && (!same_unit || !same_zone)))
            fail_msg("%s %s: usable %d, %zu to decide (%s), unit %s, zone %s", cases[i].column,
                     cases[i].values, t.usable, t.decide.n, t.decide.n ? t.decide.list[0] : "",
                     t.unit ? t.unit : "-", t.zone ? t.zone : "-");
    }
}

/* --- the whole ---------------------------------------------------------------------------------- */

struct drafting {
    struct draft_look looks[16];
    struct draft *draft;
    struct text text;
};

static struct drafting *draft(struct world *w, const char *states)
{
    struct drafting *g = arena_alloc(w->arena, sizeof(*g));
    for (size_t i = 0; i < w->facts->n_tables; i++) {
        struct draft_look *l = &g->looks[i];
        l->table = w->facts->tables[i];
        l->columns = arena_alloc(w->arena, (l->table->n_columns + 1) * sizeof(*l->columns));
        l->n_columns = draft_columns(l->table, l->columns);
        bool text = false;
        for (size_t k = 0; k < l->n_columns; k++)
            text |= l->columns[k]->type == TYPE_TEXT;
        put_values(w, l, text ? states : "");
    }
    g->draft = draft_make(w->facts, g->looks, 0);
    draft_text(g->draft, "postgresql:///app", &g->text);
    return g;
}

static void drafting_free(struct world *w, struct drafting *g)
{
    for (size_t i = 0; i < w->facts->n_tables; i++)
        rows_release(&g->looks[i].rows);
    draft_free(g->draft);
    text_release(&g->text);
}

static const struct draft_policy *policy_of(const struct drafting *g, const char *name)
{
    for (size_t i = 0; i < g->draft->n_policies; i++)
        if (strcmp(g->draft->policies[i].name, name) == 0)
            return &g->draft->policies[i];
    fail_msg("no policy %s in %s", name, text_str(&g->text));
    return NULL;
}

static const struct draft_ref *ref_of(const struct draft_policy *p, const char *child)
{
    for (size_t i = 0; i < p->n_refs; i++)
        if (strcmp(p->refs[i].fkey->child_table, child) == 0)
            return &p->refs[i];
    fail_msg("no reference from %s", child);
    return NULL;
}

static void has(const struct drafting *g, const char *line)
{
    if (!strstr(text_str(&g->text), line))
        fail_msg("'%s' is not in\n%s", line, text_str(&g->text));
}

/* Without its first "# ", every line: the contract with all decided as drafted. */
static void uncommented_parses(struct world *w, const struct drafting *g)
{
    AUTO(text_release) struct text all = {0};
    for (const char *s = text_str(&g->text); *s;) {
        size_t len = strcspn(s, "\n") + 1;
        size_t off = strncmp(s, "# ", 2) == 0 ? 2 : 0;
        text_add_n(&all, s + off, len - off);
        s += len;
    }
    contract_free_p(&w->contract);
    parse(w, text_str(&all));
    assert_int_equal(w->contract->n_policies, g->draft->n_policies);
    contract_free_p(&w->contract);
    parse(w, text_str(&g->text));
    assert_int_equal(w->contract->n_policies, g->draft->n_certain);
}

static void certain_only_where_the_row_ends(void **state)
{
    struct world *w = *state;
    add_table(w, "public", "sessions", "id!, expires_at", "id");
    add_table(w, "public", "subscriptions", "id!, expires_at", "id");
    add_table(w, "public", "oauth_tokens", "id!, expires_at, refresh_token:text", "id");
    add_table(w, "public", "two_locks", "id!, expires_at, password_expires_at", "id");
    add_table(w, "public", "keyless_locks", "id, expires_at", "");
    add_table(w, "public", "denied_locks", "id!, expires_at", "id")->may_delete = false;
    struct drafting *g = draft(w, "");
    assert_int_equal(g->draft->n_certain, 1);
    assert_string_equal(g->draft->policies[0].name, "sessions");
    has(g, "\n  sessions:\n    table: sessions\n    expires: expires_at");
    has(g, "\n#   subscriptions:\n#     table: subscriptions\n");
    has(g, "decide: whether the row is over then: it also has refresh_token\n");
    has(g, "decide: more than one column says when something expires\n");
    has(g, "## decide: check says: ");
    uncommented_parses(w, g);
    drafting_free(w, g);
}

static void what_points_at_a_row(void **state)
{
    struct world *w = *state;
    struct table *s = add_table(w, "public", "sessions", "id!, expires_at, parent_id", "id");
    struct table *lock = add_table(w, "public", "session_locks", "id!, session_id!", "id");
    struct table *cache = add_table(w, "public", "page_cache", "id!, session_id", "id");
    add_fkey(w, lock, "session_id", s, "id", ON_DELETE_CASCADE);
    add_fkey(w, cache, "session_id", s, "id", ON_DELETE_SET_NULL);
    add_fkey(w, s, "parent_id", s, "id", ON_DELETE_SET_NULL);
    struct drafting *g = draft(w, "");
    const struct draft_policy *p = policy_of(g, "sessions");
    assert_int_equal(p->decide.n, 0); /* all as the schema itself has it, all of them come and go */
    assert_int_equal(ref_of(p, "session_locks")->role, DRAFT_WITH);
    assert_int_equal(ref_of(p, "page_cache")->role, DRAFT_DETACH);
    assert_int_equal(ref_of(p, "sessions")->role, DRAFT_DETACH);
    uncommented_parses(w, g);
    drafting_free(w, g);
}

static void what_somebody_may_miss(void **state)
{
    struct world *w = *state;
    static const enum on_delete actions[] = {ON_DELETE_CASCADE, ON_DELETE_SET_NULL, ON_DELETE_NO_ACTION,
                                             ON_DELETE_RESTRICT, ON_DELETE_SET_DEFAULT};
    struct table *s = add_table(w, "public", "sessions", "id!, expires_at", "id");
    struct table *o = add_table(w, "public", "orders", "id!, session_id", "id");
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        s->n_fkeys_in = 0;
        add_fkey(w, o, "session_id", s, "id", actions[i]);
        struct drafting *g = draft(w, "");
        assert_int_equal(g->draft->n_certain, 0);
        assert_true(policy_of(g, "sessions")->decide.n > 0);
        uncommented_parses(w, g);
        drafting_free(w, g);
    }
}

static void rows_that_ended(void **state)
{
    struct world *w = *state;
    struct table *m = add_table(w, "trax", "metadata", "id!, state, finished_at, parent_id", "id");
    struct table *q = add_table(w, "trax", "work_queue", "id!, metadata_id!, created_at", "id");
    struct table *l = add_table(w, "trax", "log", "id!, metadata_id!", "id");
    struct table *s = add_table(w, "trax", "metadata_step", "id!, metadata_id!, state, finished_at", "id");
    struct table *d = add_table(w, "trax", "dead_letter", "id!, retry_id", "id");
    struct table *n = add_table(w, "trax", "step_note", "step_id!, no!", "step_id, no");
    add_fkey(w, q, "metadata_id", m, "id", ON_DELETE_NO_ACTION);
    add_fkey(w, l, "metadata_id", m, "id", ON_DELETE_CASCADE);
    add_fkey(w, s, "metadata_id", m, "id", ON_DELETE_NO_ACTION);
    add_fkey(w, d, "retry_id", m, "id", ON_DELETE_SET_NULL);
    add_fkey(w, m, "parent_id", m, "id", ON_DELETE_NO_ACTION);
    add_fkey(w, n, "step_id", s, "id", ON_DELETE_CASCADE);
    struct drafting *g = draft(w, "Failed|completed|running|completed");
    const struct draft_policy *p = policy_of(g, "metadata");
    assert_true(p->decide.n > 0);
    assert_int_equal(p->n_states, 2);
    assert_int_equal(ref_of(p, "work_queue")->role, DRAFT_AFTER);
    assert_int_equal(ref_of(p, "log")->role, DRAFT_WITH);
    assert_int_equal(ref_of(p, "metadata_step")->role, DRAFT_WITH); /* a part of it: no policy of its own */
    assert_int_equal(ref_of(p, "metadata_step")->n_below, 1);
    assert_int_equal(ref_of(p, "dead_letter")->role, DRAFT_DETACH);
    assert_int_equal(ref_of(p, "metadata")->role, DRAFT_DETACH);
    has(g, "#     rows: { state: [completed, Failed] }\n");
    has(g, "#     keep: never");
    has(g, "state says which rows have ended; in 4 rows: completed 2, Failed 1, running 1\n");
    has(g, "#       - ref: trax.metadata_step(metadata_id)");
    has(g, "#           - trax.step_note(step_id)");
    assert_int_equal(g->draft->n_certain, 0);
    uncommented_parses(w, g);
    drafting_free(w, g);
}

static void states_of_an_enum(void **state)
{
    struct world *w = *state;
    struct table *t = add_table(w, "public", "jobs", "id!, status:mood, updated_at", "id");
    t->columns[1].labels = words(w->arena, "QUEUED, DONE, dead", &t->columns[1].n_labels);
    struct drafting *g = draft(w, "");
    has(g, "#     rows: { status: [DONE, dead] }\n");
    uncommented_parses(w, g);
    drafting_free(w, g);
}

static void everything_else_is_asked(void **state)
{
    struct world *w = *state;
    add_table(w, "public", "users", "id!, password_expires_at", "id");
    struct table *one = add_table(w, "public", "settings", "id!", "id");
    add_index(w, one, "id", NULL);
    one->indexes[0].unique = one->indexes[0].primary = true;
    one->checks = arena_push(w->arena, NULL, 0, sizeof(*one->checks));
    one->checks[one->n_checks++] = "(id = 1)";
    add_table(w, "public", "lapse_run", "id!, finished_at, state", "id");
    add_table(w, "public", "a view", "id!, expires_at", "id")->kind = KIND_VIEW;
    add_table(w, "public", "evil\n  evil: { table: evil }", "id!, expires_at", "id");
    add_table(w, "public", "sessions", "id!, expires_at:text", "id")->columns[1].name = "expires_at";
    struct drafting *g = draft(w, "2024-06-15T12:00:00Z");
    has(g, "\nunbounded:\n  settings: singleton primary key (id = 1)\n");
    has(g, "password_expires_at is about a part of the row, not about the row\n#   users: \"?\"\n");
    assert_null(strstr(text_str(&g->text), "lapse_run"));
    assert_null(strstr(text_str(&g->text), "a view"));
    assert_null(strstr(text_str(&g->text), "\n  evil"));
    has(g, "  ## public.evil\xEF\xBF\xBD  evil");
    assert_int_equal(g->draft->n_certain, 1);
    uncommented_parses(w, g);
    drafting_free(w, g);
}

static void odd_names(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {
        "my.sessions", "Sessions", "a \"quoted\" lock", "true lock", "${HOME} lock", "žluť lock",
        "- lock",      "#lock",    "lock: x",           "(lock)"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct table *t = add_table(w, "Odd.Schema", names[i], "id!, expires_at", "id");
        t->columns[1].name = "\"expires\" at";
        t->n_key = 1;
    }
    struct drafting *g = draft(w, "");
    assert_int_equal(g->draft->n_policies, COUNT_OF(names));
    uncommented_parses(w, g);
    for (size_t i = 0; i < w->contract->n_policies; i++)
        assert_non_null(facts_table(w->facts, &w->contract->policies[i].table));
    drafting_free(w, g);
}

static void passwords_stay_out(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *dsn, *shown;
    } cases[] = {
        {"postgresql:///app", "store: postgresql:///app\n"},
        {"postgresql://me@host:5432/app?sslmode=require",
         "store: postgresql://me@host:5432/app?sslmode=require\n"},
        {"postgresql://me:secret@host/app", "store: ${LAPSE_STORE}"},
        {"postgresql://host/app?password=secret", "store: ${LAPSE_STORE}"},
        {"postgresql://host/app?p%61ssword=secret", "store: ${LAPSE_STORE}"},
        {"postgres://me:@host/app", "store: ${LAPSE_STORE}"},
        {"odd", "store: ${LAPSE_STORE}"},
        {"sqlite:/x y/${A}.db", "store: \"sqlite:/x y/$${A}.db\"\n"},
        {"sqlite:a\nb", "store: ${LAPSE_STORE}"},
    };
    struct draft *d = draft_make(w->facts, NULL, 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(text_release) struct text out = {0};
        draft_text(d, cases[i].dsn, &out);
        if (!strstr(text_str(&out), cases[i].shown) || strstr(text_str(&out), "secret"))
            fail_msg("%s: %s", cases[i].dsn, text_str(&out));
    }
    draft_free(d);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tables_that_come_and_go),
        TEST(columns_that_end_a_row),
        TEST(states_and_ages),
        TEST(words_without_gaps),
        TEST(marks_of_a_row),
        TEST(units_and_zones),
        TEST(certain_only_where_the_row_ends),
        TEST(what_points_at_a_row),
        TEST(what_somebody_may_miss),
        TEST(rows_that_ended),
        TEST(states_of_an_enum),
        TEST(everything_else_is_asked),
        TEST(odd_names),
        TEST(passwords_stay_out),
    };
    return cmocka_run_group_tests_name("draft", tests, NULL, NULL);
}
