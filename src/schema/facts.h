/* facts: what a live schema says: tables, columns, keys, foreign keys, indexes. Plain data, filled by an
 * adapter, read by everyone else; lives in one arena. */
#ifndef LAPSE_SCHEMA_FACTS_H
#define LAPSE_SCHEMA_FACTS_H

#include "contract/policy.h"

enum type_class {
    TYPE_BOOLEAN,
    TYPE_INTEGER,
    TYPE_REAL,    /* binary floating point */
    TYPE_NUMERIC, /* exact decimals */
    TYPE_TEXT,
    TYPE_ENUM,
    TYPE_TIMESTAMPTZ, /* an instant */
    TYPE_TIMESTAMP,   /* a local time */
    TYPE_DATE,
    TYPE_BLOB,
    TYPE_DYNAMIC, /* SQLite: a column that may hold anything and prefers nothing, or numbers */
    TYPE_OTHER,   /* uuid, inet, json, … : compared by the engine, written as text */
};

struct column {
    const char *name;
    const char *sql_type; /* as the engine spells it for a cast, without length: "integer", "bpchar",
                             "public.state" */
    enum type_class type;
    bool not_null;
    bool generated;           /* computed from other columns: it cannot be set */
    bool unordered;           /* its type has no order (json, point, …) */
    const char *generated_as; /* generated: from this expression; NULL: not known */
    const char *operators; /* PostgreSQL: the schema, quoted, of the operators by which its type is compared,
                              where that is not pg_catalog (citext, …); NULL: it is */
    bool parts;            /* PostgreSQL: by ranges of it, the table is divided into partitions */
    bool any_class;        /* SQLite: a value keeps the class it came with, so that '1' and 1 are two */
    const char *collation; /* NULL: the type has none, or the default */
    bool folds;            /* it finds texts equal that are not: in case, accents, marks */
    bool pads;             /* … or in blanks at their end */
    bool trims;            /* char(n): blanks at the end are no part of a value */
    bool sorts_apart;      /* MariaDB: it is sorted by other rules than it is compared by (enum, set) */
    bool cut_in_indexes;   /* MariaDB: an index can hold only the beginning of its values */
    bool is_unsigned;      /* TYPE_INTEGER: no value is below 0 */
    int bytes;             /* TYPE_INTEGER: what a value takes, where less than 8 do; 0: 8 */
    int64_t longest;       /* TYPE_TEXT: in characters, or at least no fewer; 0: any length */
    uint32_t last_character; /* TYPE_TEXT: 0x7f or 0xffff; 0: any, or which is not known */
    const char **labels;     /* TYPE_ENUM */
    size_t n_labels;
};

struct index {
    const char *name;
    const struct column **columns; /* NULL entry: an expression */
    size_t n_columns;
    bool unique;
    bool partial;
    const char *predicate; /* partial: its text, or NULL */
    bool primary;
    bool too_new;  /* it is not used as long as transactions run that began before it was made (PostgreSQL) */
    bool descends; /* some of it, so that it serves no order of the others (MariaDB) */
};

enum on_delete {
    ON_DELETE_NO_ACTION,
    ON_DELETE_RESTRICT,
    ON_DELETE_CASCADE,
    ON_DELETE_SET_NULL,
    ON_DELETE_SET_DEFAULT,
    ON_DELETE_HIDDEN /* this user may not see it */
};
const char *on_delete_name(enum on_delete action); /* "ON DELETE CASCADE" */

/* A foreign key that points at a table. Its child may be a table that is not in the facts. */
struct fkey {
    const char *name;                       /* may be "" */
    const char *child_schema, *child_table; /* schema NULL where the engine has none */
    const char **child_columns;
    const char **parent_columns;
    size_t n;
    enum on_delete action;
};

/* Which foreign keys that point at a table are known: all; those of tables of its own schema, and of others
 * that this user has a right on; only the latter. */
enum fkey_sight { SIGHT_ALL, SIGHT_SCHEMA, SIGHT_SOME };

enum table_kind { KIND_TABLE, KIND_PARTITIONED, KIND_VIEW, KIND_FOREIGN, KIND_VIRTUAL, KIND_SEQUENCE };

struct table {
    const char *schema; /* NULL where the engine has none */
    const char *name;
    bool bare; /* a name without a schema finds it */
    enum table_kind kind;
    struct column *columns;
    size_t n_columns;
    const struct column *
        *key;             /* what tells rows apart: the primary key, else a unique key of NOT NULL columns */
    size_t n_key;         /* 0: no usable key */
    bool key_may_be_null; /* SQLite: a primary key that admits NULL; such rows are never touched */
    struct index *indexes;
    size_t n_indexes;
    struct fkey *fkeys_in; /* foreign keys that point at this table (or a partition of it) */
    size_t n_fkeys_in;
    enum fkey_sight fkeys_seen;
    const char **checks; /* the expressions of CHECK constraints that every row satisfies */
    size_t n_checks;
    bool inheritors; /* PostgreSQL inheritance: its key does not tell rows apart */
    const char
        *part_of; /* the table it is a partition of, or inherits from: its rows are not all; NULL: none */
    bool ranges;  /* it has partitions by range, at any depth */
    const struct table *whole;  /* it stands for a partition of this one, alone; NULL: for itself */
    const char *owner;          /* whom it belongs to; NULL: nobody, or it does not matter */
    bool owned;                 /* … which this user is, or may act as */
    bool delete_hooks;          /* a trigger or rule may keep a row that is deleted, or put it back */
    bool update_hooks;          /* … that is updated */
    bool hooks_hidden;          /* this user may not see triggers: there may be such */
    const char *hooks;          /* their names, ", " between them; NULL: not known */
    const char *delete_trigger; /* PostgreSQL: one whose function looks names up on the search path; NULL:
                                   there is none */
    const char *update_trigger; /* the same of rows that are updated */
    const char *unsafe_engine;  /* MariaDB: its storage engine, which keeps no transactions; NULL: it does */
    bool keeps_history;         /* rows that are deleted stay in it as its history */
    bool rows_hidden;           /* row security applies to us */
    bool may_select, may_delete, may_update, may_insert; /* privileges */
    const char *print;                                   /* "schema.table" for people */
    const struct column *place; /* where a row lies: what is hidden in every table and found by it fast; NULL:
                                   there is no such thing, or it does not order all rows of this one */
    bool lies_by_key;           /* rows lie in the order of the key */
};
/* What the engine reckons of a table, without reading much of it. Below 0: not known. */
struct estimate {
    double rows, due; /* all of them; those that are due */
    double blocks;    /* which they take */
    double order;     /* 1: rows lie as the plan's index has them, or the other way round; 0: anywhere */
};

/* PostgreSQL: a schema of the search path, and a role that may create objects in it. */
struct path_schema {
    const char *name; /* quoted where it has to be */
    bool there;       /* else the role may create the schema itself */
    const char *who;  /* "PUBLIC", or a role, quoted where it has to be; NULL: nobody who matters */
    bool owner;       /* the schema is the role's own */
    const char
        *acts_as; /* owners of the tables of the facts, as whom the role may act, each followed by a line
                            break */
};

struct facts {
    struct arena *arena;
    struct table **tables; /* those asked for, each once */
    size_t n_tables;
    bool folds_lower;           /* bare names also match in lower case (PostgreSQL) */
    bool ignores_case;          /* names match in any case (SQLite) */
    bool fkeys_act_at_once;     /* foreign keys act row by row, inside a statement (SQLite, MariaDB) */
    bool restricts_at_once;     /* ON DELETE RESTRICT holds rows that go in the same statement (SQLite) */
    bool one_writer;            /* one transaction at a time writes (SQLite) */
    bool booleans_are_integers; /* true and false stand for 1 and 0 in integer columns (SQLite, MariaDB) */
    const char *create_index;   /* "CREATE INDEX" or "CREATE INDEX CONCURRENTLY" */
    const char *end_of_index;   /* what follows its columns; NULL: nothing */
    bool names_indexes;         /* an index has to be given a name (SQLite, MariaDB) */
    const char *default_schema; /* where an unqualified name was found first; NULL: no schemas */
    struct path_schema *path;   /* in its order; a schema has an entry for each role, or one */
    size_t n_path;
    const char *role;          /* this user, quoted where it has to be; NULL: not known */
    bool columns_ignore_case;  /* names of columns match in any case, whatever those of tables do (MariaDB) */
    bool locking_takes_update; /* a SELECT that locks rows needs the right to update them (PostgreSQL) */
    bool hides;                /* what this user has no right on looks as if it were not there (MariaDB) */
    bool backticks;            /* names are quoted so, not in double quotes (MariaDB) */
    const char *refused;       /* why nothing may be swept here, and … */
    const char *refused_fix;   /* … what to do; NULL: it may */
    const char *certifies;  /* what decides at COMMIT which transactions of several servers go through, where
                               locks hold on one of them only: "Galera"; NULL: locks do */
    const char *drops_not;  /* why no partition can be dropped here; NULL: it can */
    const char *engine_fix; /* … follows "ALTER TABLE t": what keeps a table in transactions */
    const char *sight_fix;  /* what lets this user see every foreign key */
    bool looks_on;          /* this user only looks, or operates: it lacks what only a sweep needs */
    const char *grants;     /* what prints the rights that this user should have; NULL: there are no roles */
};

struct facts *facts_new(void);
void facts_free(struct facts *f);
void facts_free_p(struct facts **f);
/* How a name matches: exactly; or, when it was not quoted, as the engine folds bare names. */
bool name_matches(const struct facts *f, const struct name *n, const char *real);
/* NULL: not in the facts, or no such column. An exact match wins over a folded one. */
const struct table *facts_table(const struct facts *f, const struct table_name *n);
const struct column *table_column(const struct facts *f, const struct table *t, const struct name *n);
/* By its real name. */
const struct column *column_named(const struct table *t, const char *name);
bool fkey_is_own(const struct table *t, const struct fkey *k); /* of the table itself */
bool table_is_key_column(const struct table *t, const struct column *c);
/* An index (not partial, or partial only by IS NOT NULL of these columns) that leads with these columns, in
 * any order. */
const struct index *table_index_on(const struct table *t, const struct column *const *columns, size_t n);

/* What is wrong, or worth saying, about a contract on a schema. */
enum finding_level { FINDING_ERROR, FINDING_WARNING, FINDING_NOTE };
struct finding {
    enum finding_level level;
    const char *policy; /* NULL: none */
    struct place at;    /* line 0: the file as a whole */
    const char *what;
    const char *fix; /* what to do; "" if nothing. For a missing index its CREATE INDEX, and nothing else */
    bool unnamed;    /* it is about a table that the contract does not name */
};
struct findings {
    struct arena *arena; /* borrowed */
    struct finding *list;
    size_t n;
    size_t errors;
};
void findings_add(struct findings *f, enum finding_level level, const char *policy, struct place at,
                  const char *fix, const char *what_fmt, ...) PRINTF(6, 7);

#endif
