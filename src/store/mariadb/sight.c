/* sight: the foreign keys that point at a table, and what this user may see and do. What a
 * user has no right on, information_schema leaves out without a word, and a foreign key that is not seen
 * would cascade unseen: so it is also said how far the user's sight reaches. */
#include "store/mariadb/catalog.h"

#include <string.h>
#include <strings.h>

static bool is_code(const struct err *e, const char *const *codes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(e->code, codes[i]) == 0)
            return true;
    return false;
}

/* --- grants -------------------------------------------------------------------------------------- */

/* A line of SHOW GRANTS, which lists what the user, its roles in force and PUBLIC have:
 *     GRANT SELECT (`id`, `b`), DELETE ON `app`.`p` TO …
 * An object is *.*, `pattern`.* or `schema`.`table`; lines about roles, routines and proxies are others. */
struct grant {
    bool sees;           /* a right on the tables themselves, whichever */
    bool triggers;       /* to see triggers */
    bool reads, deletes; /* whole rows */
    bool revoked;        /* MySQL's partial revokes */
    bool on_all, on_schema;
    char schema[256]; /* a pattern where on_schema */
    char table[256];
};

static const char *skip_name(const char *p)
{
    for (p++; *p && (*p != '`' || p[1] == '`'); p++)
        p += *p == '`';
    return *p ? p + 1 : p;
}

/* The text of a quoted name; *p goes behind it. */
static bool take_name(const char **p, char *ret, size_t size)
{
    size_t n = 0;
    const char *s = *p, *end = *s == '`' ? skip_name(s) : s;
    for (s++; s + 1 < end; s++) {
        s += *s == '`';
        if (n + 1 == size)
            return false;
        ret[n++] = *s;
    }
    ret[n] = '\0';
    bool ok = end > *p;
    *p = end;
    return ok;
}

static bool take(const char **p, const char *word)
{
    size_t len = strlen(word);
    if (strncmp(*p, word, len) != 0)
        return false;
    *p += len;
    return true;
}

/* A privilege without the columns it may be limited to; *p goes behind it, to a comma or " ON ". */
static size_t take_privilege(const char **p, const char **ret)
{
    *ret = *p;
    size_t len = 0;
    while (**p && **p != ',' && strncmp(*p, " ON ", 4) != 0) {
        if (**p == '(') {
            len = len ? len : (size_t)(*p - *ret);
            while (**p && **p != ')')
                *p = **p == '`' ? skip_name(*p) : *p + 1;
        }
        *p += **p != '\0';
    }
    len = len ? len : (size_t)(*p - *ret);
    while (len && (*ret)[len - 1] == ' ')
        len--;
    return len;
}

static bool is_word(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && strncasecmp(s, word, len) == 0;
}

/* limited: to some columns */
static void note_privilege(struct grant *g, const char *s, size_t len, bool limited)
{
    static const char *const of_tables[] = {
        "ALL PRIVILEGES", "SELECT", "INSERT",      "UPDATE",    "DELETE",  "CREATE",         "DROP",
        "REFERENCES",     "INDEX",  "CREATE VIEW", "SHOW VIEW", "TRIGGER", "DELETE HISTORY", "ALTER",
    };
    for (size_t i = 0; i < COUNT_OF(of_tables); i++)
        g->sees |= is_word(s, len, of_tables[i]);
    bool all = is_word(s, len, "ALL PRIVILEGES");
    g->triggers |= all || is_word(s, len, "TRIGGER");
    g->reads |= all || (is_word(s, len, "SELECT") && !limited);
    g->deletes |= all || is_word(s, len, "DELETE");
}

static bool parse_grant(const char *line, struct grant *ret)
{
    const char *p = line, *word;
    *ret = (struct grant){.revoked = take(&p, "REVOKE ")};
    if (!ret->revoked && !take(&p, "GRANT "))
        return false;
    do {
        size_t len = take_privilege(&p, &word);
        note_privilege(ret, word, len, p[-1] == ')');
    } while (take(&p, ", "));
    if (!take(&p, " ON "))
        return false;
    ret->on_all = take(&p, "*.*");
    if (ret->on_all)
        return true;
    if (!take_name(&p, ret->schema, sizeof(ret->schema)) || !take(&p, "."))
        return false;
    ret->on_schema = take(&p, "*");
    return ret->on_schema || take_name(&p, ret->table, sizeof(ret->table));
}

/* % and _ as in LIKE; \ takes what follows as it is. Ends: every turn takes a character of the pattern. */
static bool matches_pattern(const char *pattern, const char *s)
{
    for (; *pattern; pattern++, s++) {
        if (*pattern == '%') {
            for (;; s++) {
                if (matches_pattern(pattern + 1, s))
                    return true;
                if (!*s)
                    return false;
            }
        }
        if (!*s)
            return false;
        bool any = *pattern == '_';
        pattern += *pattern == '\\' && pattern[1];
        if (!any && *pattern != *s)
            return false;
    }
    return !*s;
}

static bool grant_covers(const struct grant *g, const struct table *t)
{
    if (g->on_all || g->on_schema)
        return g->on_all || matches_pattern(g->schema, t->schema);
    return strcmp(g->schema, t->schema) == 0 && strcmp(g->table, t->name) == 0;
}

/* What is revoked again in part is worth nothing here. */
static bool has_revokes(const struct grant *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].revoked)
            return true;
    return false;
}

static enum fkey_sight sight_of(const struct grant *list, size_t n, const struct table *t)
{
    enum fkey_sight best = SIGHT_SOME;
    if (has_revokes(list, n))
        return best;
    for (size_t i = 0; i < n; i++) {
        if (!list[i].sees || !grant_covers(&list[i], t))
            continue;
        if (list[i].on_all)
            return SIGHT_ALL;
        best = list[i].on_schema ? SIGHT_SCHEMA : best;
    }
    return best;
}

static bool sees_triggers(const struct grant *list, size_t n, const struct table *t)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].triggers && !list[i].revoked && grant_covers(&list[i], t))
            return true;
    return false;
}

static bool sees_everything(const struct grant *list, size_t n)
{
    bool all = false;
    for (size_t i = 0; i < n; i++)
        all |= list[i].on_all && list[i].sees;
    return all && !has_revokes(list, n);
}

int mariadb_read_grants(struct reading *r, struct err *e)
{
    AUTO(rows_release) struct rows lines = {0};
    if (mariadb_ask(r->store, "SHOW GRANTS", NULL, 0, &lines, e) < 0)
        return -1;
    struct grant *list = arena_alloc(r->facts->arena, (lines.n_rows + 1) * sizeof(*list));
    size_t n = 0;
    for (size_t i = 0; i < lines.n_rows; i++) {
        const char *line = mariadb_cell(&lines, i, 0);
        if (line && parse_grant(line, &list[n]))
            n++;
    }
    r->grants = list;
    r->n_grants = n;
    r->facts->hides = !sees_everything(list, n);
    return 0;
}

/* --- foreign keys -------------------------------------------------------------------------------- */

/* Either source is read whole whatever is asked of it, so it is asked once for all tables: first which
 * foreign keys there are, then their columns or their actions. */
enum { TABLES_NAMED = 32 }; /* more are not told apart in SQL */

static struct fkey *push_fkey(struct arena *a, struct table *t)
{
    t->fkeys_in = arena_push(a, t->fkeys_in, t->n_fkeys_in, sizeof(*t->fkeys_in));
    struct fkey *k = &t->fkeys_in[t->n_fkeys_in++];
    *k = (struct fkey){0};
    return k;
}

static const char *copy(struct arena *a, const struct rows *r, size_t row, size_t column)
{
    return arena_strdup(a, mariadb_cell(r, row, column));
}

/* The foreign keys' own spelling of a column may differ in case from the table's. */
static const char *parent_column(const struct table *t, const char *name)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (strcasecmp(t->columns[i].name, name) == 0)
            return t->columns[i].name;
    return name;
}

static void push_pair(struct arena *a, const struct table *t, struct fkey *k, const char *from,
                      const char *to)
{
    k->child_columns = arena_push(a, k->child_columns, k->n, sizeof(*k->child_columns));
    k->parent_columns = arena_push(a, k->parent_columns, k->n, sizeof(*k->parent_columns));
    k->child_columns[k->n] = arena_strdup(a, from);
    k->parent_columns[k->n++] = parent_column(t, arena_strdup(a, to));
}

static bool is_base(const struct table *t)
{
    return t->kind == KIND_TABLE || t->kind == KIND_PARTITIONED;
}

/* InnoDB and file systems may spell names in lower case that are declared otherwise. */
static struct table *table_called(const struct reading *r, const char *schema, const char *name)
{
    for (size_t i = 0; i < r->facts->n_tables; i++) {
        struct table *t = r->facts->tables[i];
        bool same = r->server.names_fold
                        ? strcasecmp(t->name, name) == 0 && strcasecmp(t->schema, schema) == 0
                        : strcmp(t->name, name) == 0 && strcmp(t->schema, schema) == 0;
        if (same && is_base(t))
            return t;
    }
    return NULL;
}

/* " <word> <before>{1}<between>{2}<after> OR …": the tables asked for, if they are few. */
static size_t add_tables(const struct reading *r, struct text *sql, const char *word,
                         const char *const parts[3], const char **names)
{
    size_t n = 0;
    if (r->facts->n_tables > TABLES_NAMED)
        return 0;
    for (size_t i = 0; i < r->facts->n_tables; i++) {
        text_addf(sql, "%s%s{%zu}%s{%zu}%s", i ? " OR " : word, parts[0], n + 1, parts[1], n + 2, parts[2]);
        names[n++] = r->facts->tables[i]->schema;
        names[n++] = r->facts->tables[i]->name;
    }
    text_add(sql, n ? ")" : "");
    return n;
}

/* --- as InnoDB knows them: all of them, for those who have the right PROCESS */

enum { FK_ID, FK_SCHEMA, FK_TABLE, FK_PARENT_SCHEMA, FK_PARENT, FK_TYPE };
enum { PAIR_ID, PAIR_FROM, PAIR_TO };

/* How it writes the names of tables, and a condition on the parent's: before, between and behind schema and
 * table. MariaDB's are those of files. MySQL's are as they are; a schema with a slash in its name is taken
 * apart in the wrong place, which makes a table that is not there, and that is refused. */
struct innodb {
    const char *table, *sql, *parts[3];
};

static const struct innodb innodb_mariadb = {
    .table = "INNODB_SYS_FOREIGN",
    .sql = "SELECT CAST(ID AS BINARY) AS id,"
           "       CONVERT(CAST(SUBSTRING_INDEX(FOR_NAME, '/', 1) AS BINARY) USING filename),"
           "       CONVERT(CAST(SUBSTRING_INDEX(FOR_NAME, '/', -1) AS BINARY) USING filename),"
           "       CONVERT(CAST(SUBSTRING_INDEX(REF_NAME, '/', 1) AS BINARY) USING filename),"
           "       CONVERT(CAST(SUBSTRING_INDEX(REF_NAME, '/', -1) AS BINARY) USING filename), TYPE "
           "FROM information_schema.INNODB_SYS_FOREIGN",
    .parts = {"CAST(REF_NAME AS BINARY) = CAST(CONCAT(CAST(CONVERT(",
              " USING filename) AS BINARY), '/', CAST(CONVERT(", " USING filename) AS BINARY)) AS BINARY)"},
};
static const struct innodb innodb_mysql = {
    .table = "INNODB_FOREIGN",
    .sql = "SELECT CAST(ID AS BINARY) AS id,"
           "       SUBSTRING_INDEX(FOR_NAME, '/', 1), SUBSTRING(FOR_NAME, LOCATE('/', FOR_NAME) + 1),"
           "       SUBSTRING_INDEX(REF_NAME, '/', 1), SUBSTRING(REF_NAME, LOCATE('/', REF_NAME) + 1), TYPE "
           "FROM information_schema.INNODB_FOREIGN",
    .parts = {"CAST(REF_NAME AS BINARY) = CAST(CONCAT(", ", '/', ", ") AS BINARY)"},
};

/* TYPE: 1 CASCADE, 2 SET NULL, 16 NO ACTION; the rest is about UPDATE. */
static enum on_delete innodb_action(int64_t type)
{
    return type & 1    ? ON_DELETE_CASCADE
           : type & 2  ? ON_DELETE_SET_NULL
           : type & 16 ? ON_DELETE_NO_ACTION
                       : ON_DELETE_RESTRICT;
}

static const struct innodb *innodb_of(const struct reading *r)
{
    return r->server.mariadb ? &innodb_mariadb : &innodb_mysql;
}

static int ask_innodb(const struct reading *r, struct rows *ret, struct err *e)
{
    const struct innodb *innodb = innodb_of(r);
    const char *names[2 * TABLES_NAMED];
    AUTO(text_release) struct text sql = {0};
    text_add(&sql, innodb->sql);
    size_t n = add_tables(r, &sql, " WHERE (", innodb->parts, names);
    text_add(&sql, " ORDER BY id");
    return mariadb_ask(r->store, text_str(&sql), names, n, ret, e);
}

static int ask_pairs(const struct reading *r, const struct rows *fkeys, struct rows *ret, struct err *e)
{
    const char *ids[TABLES_NAMED];
    size_t n = fkeys->n_rows <= TABLES_NAMED ? fkeys->n_rows : 0;
    AUTO(text_release) struct text sql = {0};
    text_addf(&sql,
              "SELECT CAST(ID AS BINARY) AS id, FOR_COL_NAME, REF_COL_NAME FROM information_schema.%s_COLS",
              innodb_of(r)->table);
    for (size_t i = 0; i < n; i++) {
        text_addf(&sql, "%s{%zu}", i ? ", " : " WHERE ID IN (", i + 1);
        ids[i] = mariadb_cell(fkeys, i, FK_ID);
    }
    text_addf(&sql, "%s ORDER BY id, POS", n ? ")" : "");
    return mariadb_ask(r->store, text_str(&sql), ids, n, ret, e);
}

/* Both are sorted by their ids, byte by byte: `pairs` is gone through once. */
static void fill_innodb(const struct reading *r, const struct rows *fkeys, const struct rows *pairs)
{
    struct arena *a = r->facts->arena;
    for (size_t i = 0, p = 0; i < fkeys->n_rows; i++) {
        const char *id = mariadb_cell(fkeys, i, FK_ID);
        struct table *t =
            table_called(r, mariadb_cell(fkeys, i, FK_PARENT_SCHEMA), mariadb_cell(fkeys, i, FK_PARENT));
        if (!t)
            continue;
        struct fkey *k = push_fkey(a, t);
        k->name = strchr(id, '/') ? arena_strdup(a, strchr(id, '/') + 1) : "";
        k->child_schema = copy(a, fkeys, i, FK_SCHEMA);
        k->child_table = copy(a, fkeys, i, FK_TABLE);
        k->action = innodb_action(mariadb_number(fkeys, i, FK_TYPE));
        while (p < pairs->n_rows && strcmp(mariadb_cell(pairs, p, PAIR_ID), id) < 0)
            p++;
        for (; p < pairs->n_rows && strcmp(mariadb_cell(pairs, p, PAIR_ID), id) == 0; p++)
            push_pair(a, t, k, mariadb_cell(pairs, p, PAIR_FROM), mariadb_cell(pairs, p, PAIR_TO));
    }
}

/* 1: this user may not ask. */
static int read_innodb(const struct reading *r, struct err *e)
{
    static const char *const denied[] = {"1227", "1109", "1142", "1044"};
    struct err failed = ERR_INIT;
    AUTO(rows_release) struct rows fkeys = {0}, pairs = {0};
    if (ask_innodb(r, &fkeys, &failed) < 0) {
        if (is_code(&failed, denied, COUNT_OF(denied)))
            return 1;
        *e = failed;
        return -1;
    }
    if (fkeys.n_rows && ask_pairs(r, &fkeys, &pairs, e) < 0)
        return -1;
    fill_innodb(r, &fkeys, &pairs);
    return 0;
}

/* --- as everyone may ask: those of tables on which this user has a right, and what they do on DELETE only
 * where it is more than SELECT */

enum { USE_SCHEMA, USE_TABLE, USE_NAME, USE_FROM, USE_PARENT_SCHEMA, USE_PARENT, USE_TO };
enum { RULE_SCHEMA, RULE_TABLE, RULE_NAME, RULE_ACTION };

/* Whose tables are not even opened. */
#define SERVERS_OWN "('information_schema', 'performance_schema', 'mysql', 'sys')"

static int ask_usage(const struct reading *r, struct rows *ret, struct err *e)
{
    static const char *const parts[3] = {"REFERENCED_TABLE_SCHEMA = ", " AND REFERENCED_TABLE_NAME = ", ""};
    const char *names[2 * TABLES_NAMED];
    AUTO(text_release) struct text sql = {0};
    text_add(&sql, "SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA,"
                   "       REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME "
                   "FROM information_schema.KEY_COLUMN_USAGE "
                   "WHERE REFERENCED_TABLE_NAME IS NOT NULL AND TABLE_SCHEMA NOT IN " SERVERS_OWN);
    size_t n = add_tables(r, &sql, " AND (", parts, names);
    text_add(&sql, " ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION");
    return mariadb_ask(r->store, text_str(&sql), names, n, ret, e);
}

/* Of tables named one by one only these are opened. */
static int ask_rules(const struct reading *r, const struct rows *usage, struct rows *ret, struct err *e)
{
    const char *names[2 * TABLES_NAMED];
    size_t n = usage->n_rows <= TABLES_NAMED ? usage->n_rows : 0;
    AUTO(text_release) struct text sql = {0};
    for (size_t i = 0; i < n || !i; i++) {
        text_addf(&sql,
                  "%sSELECT CONSTRAINT_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, DELETE_RULE "
                  "FROM information_schema.REFERENTIAL_CONSTRAINTS",
                  i ? " UNION ALL " : "");
        if (!n)
            text_add(&sql, " WHERE CONSTRAINT_SCHEMA NOT IN " SERVERS_OWN);
        if (!n)
            break;
        text_addf(&sql, " WHERE CONSTRAINT_SCHEMA = {%zu} AND TABLE_NAME = {%zu}", 2 * i + 1, 2 * i + 2);
        names[2 * i] = mariadb_cell(usage, i, USE_SCHEMA);
        names[2 * i + 1] = mariadb_cell(usage, i, USE_TABLE);
    }
    return mariadb_ask(r->store, text_str(&sql), names, 2 * n, ret, e);
}

static enum on_delete action_of(const char *words)
{
    for (int a = ON_DELETE_NO_ACTION; words && a <= ON_DELETE_SET_DEFAULT; a++)
        if (strcmp(words, on_delete_name((enum on_delete)a) + strlen("ON DELETE ")) == 0)
            return (enum on_delete)a;
    return ON_DELETE_HIDDEN;
}

static enum on_delete rule_of(const struct rows *rules, const struct fkey *k)
{
    for (size_t i = 0; i < rules->n_rows; i++)
        if (strcmp(mariadb_cell(rules, i, RULE_NAME), k->name) == 0 &&
            strcmp(mariadb_cell(rules, i, RULE_TABLE), k->child_table) == 0 &&
            strcmp(mariadb_cell(rules, i, RULE_SCHEMA), k->child_schema) == 0)
            return action_of(mariadb_cell(rules, i, RULE_ACTION));
    return ON_DELETE_HIDDEN;
}

static bool same_cell(const struct rows *r, size_t row, size_t column)
{
    return strcmp(mariadb_cell(r, row, column), mariadb_cell(r, row - 1, column)) == 0;
}

static bool begins_fkey(const struct rows *r, size_t row)
{
    return !row || !same_cell(r, row, USE_SCHEMA) || !same_cell(r, row, USE_TABLE) ||
           !same_cell(r, row, USE_NAME);
}

static void fill_usage(const struct reading *r, const struct rows *usage, const struct rows *rules)
{
    struct arena *a = r->facts->arena;
    struct fkey *k = NULL;
    struct table *t = NULL;
    for (size_t i = 0; i < usage->n_rows; i++) {
        if (begins_fkey(usage, i)) {
            t = table_called(r, mariadb_cell(usage, i, USE_PARENT_SCHEMA),
                             mariadb_cell(usage, i, USE_PARENT));
            k = t ? push_fkey(a, t) : NULL;
            if (k) {
                k->name = copy(a, usage, i, USE_NAME);
                k->child_schema = copy(a, usage, i, USE_SCHEMA);
                k->child_table = copy(a, usage, i, USE_TABLE);
                k->action = rule_of(rules, k);
            }
        }
        if (k)
            push_pair(a, t, k, mariadb_cell(usage, i, USE_FROM), mariadb_cell(usage, i, USE_TO));
    }
}

static int read_usage(const struct reading *r, struct err *e)
{
    AUTO(rows_release) struct rows usage = {0}, rules = {0};
    if (ask_usage(r, &usage, e) < 0 || (usage.n_rows && ask_rules(r, &usage, &rules, e) < 0))
        return -1;
    fill_usage(r, &usage, &rules);
    return 0;
}

static void note_triggers(const struct reading *r, struct table *t)
{
    /* MariaDB shows them to whoever may write to the table. */
    t->hooks_hidden = !r->server.mariadb && !sees_triggers(r->grants, r->n_grants, t);
    t->delete_hooks |= t->hooks_hidden;
    t->update_hooks |= t->hooks_hidden;
}

int mariadb_read_fkeys(const struct reading *r, struct err *e)
{
    struct facts *f = r->facts;
    f->sight_fix =
        "GRANT REFERENCES ON *.* TO the user that lapse connects as: it shows which tables refer to "
        "others, and nothing of their rows";
    int denied = read_innodb(r, e);
    if (denied < 0 || (denied && read_usage(r, e) < 0))
        return -1;
    for (size_t i = 0; i < f->n_tables; i++) {
        note_triggers(r, f->tables[i]);
        if (is_base(f->tables[i]) && denied)
            f->tables[i]->fkeys_seen = sight_of(r->grants, r->n_grants, f->tables[i]);
    }
    return 0;
}

/* --- what it may do ------------------------------------------------------------------------------ */

/* Whether the server would let this user: it is asked to explain, which is judged by the same rights,
 * whatever roles and patterns they come by. In a transaction that cannot write it says so once the rights are
 * found sufficient. */
static int may(struct sql_store *s, const char *words, const struct table *t, bool *ret, struct err *e)
{
    static const char *const denied[] = {"1142", "1143", "1044", "1227", "1370"}, *const allowed[] = {"1792",
                                                                                                      "1290"};
    struct err failed = ERR_INIT;
    AUTO(stmt_release) struct stmt st = {0};
    AUTO(rows_release) struct rows ignored = {0};
    text_addf(&st.sql, "EXPLAIN %s ", words);
    sql_table(&st, s->engine->dialect, t);
    text_add(&st.sql, " WHERE FALSE");
    int result = s->engine->query(s, &st, &ignored, &failed);
    if (result < 0 && !is_code(&failed, denied, COUNT_OF(denied)) &&
        !is_code(&failed, allowed, COUNT_OF(allowed))) {
        *e = failed;
        return err_wrap(e, "reading the rights on %s", t->print);
    }
    *ret = result == 0 || is_code(&failed, allowed, COUNT_OF(allowed));
    return 0;
}

/* Of several patterns that fit a schema only one counts, and which is the server's to say. */
static bool is_plain(const struct reading *r, const struct table *t)
{
    size_t patterns = 0;
    for (size_t i = 0; i < r->n_grants; i++)
        patterns += r->grants[i].on_schema && grant_covers(&r->grants[i], t);
    return patterns < 2 && !has_revokes(r->grants, r->n_grants);
}

/* The plain cases need no question. */
static void note_granted(const struct reading *r, struct table *t)
{
    bool plain = is_plain(r, t);
    for (size_t i = 0; plain && i < r->n_grants; i++)
        if (grant_covers(&r->grants[i], t)) {
            t->may_select |= r->grants[i].reads;
            t->may_delete |= r->grants[i].deletes;
        }
}

int mariadb_read_rights(const struct reading *r, struct err *e)
{
    for (size_t i = 0; i < r->facts->n_tables; i++) {
        struct table *t = r->facts->tables[i];
        if (!is_base(t))
            continue;
        note_granted(r, t);
        if ((!t->may_select && may(r->store, "SELECT * FROM", t, &t->may_select, e) < 0) ||
            (!t->may_delete && may(r->store, "DELETE FROM", t, &t->may_delete, e) < 0))
            return -1;
    }
    return 0;
}

/* --- the schema's number ------------------------------------------------------------------------- */

/* The statements that change a schema or a right, as the server has counted them since it was started: by
 * whomever, replicated ones included, failed ones too. Another connection may be to a server that was started
 * again and counts from 0, so its number is a part. */
static const char stamp_sql[] =
    "SHOW GLOBAL STATUS WHERE Variable_name IN ("
    "'Com_alter_db', 'Com_alter_table', 'Com_create_db', 'Com_create_index', 'Com_create_table',"
    "'Com_create_trigger', 'Com_create_view', 'Com_drop_db', 'Com_drop_index', 'Com_drop_table',"
    "'Com_drop_trigger', 'Com_drop_view', 'Com_rename_table', 'Com_truncate', 'Com_grant', 'Com_grant_role',"
    "'Com_revoke', 'Com_revoke_all', 'Com_revoke_role', 'Com_drop_user', 'Com_drop_role')";

static void mix(uint64_t *hash, const char *text)
{
    for (; *text; text++)
        *hash = (*hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    *hash = (*hash ^ '\n') * UINT64_C(1099511628211);
}

int mariadb_read_stamp(struct sql_store *s, int64_t *ret, struct err *e)
{
    AUTO(rows_release) struct rows counts = {0}, connection = {0};
    uint64_t hash = UINT64_C(14695981039346656037);
    if (mariadb_ask(s, "SELECT CONCAT('', CONNECTION_ID())", NULL, 0, &connection, e) < 0 ||
        mariadb_ask(s, stamp_sql, NULL, 0, &counts, e) < 0)
        return -1;
    mix(&hash, mariadb_cell(&connection, 0, 0));
    for (size_t i = 0; i < counts.n_rows; i++)
        for (size_t k = 0; k < counts.n_columns; k++)
            if (mariadb_cell(&counts, i, k))
                mix(&hash, mariadb_cell(&counts, i, k));
    *ret = (int64_t)(hash & INT64_MAX);
    return 0;
}
