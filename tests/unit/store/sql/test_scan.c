/* scan: conditions written by people. No database: the suites on real ones say whether they are right. */
#include "shown.h"
#include "world.h"

#include "store/mariadb/store.h"
#include "store/postgres/store.h"
#include "store/sqlite/store.h"

/* --- conditions ------------------------------------------------------------------------------- */

#define NOW (INT64_C(1718452800) * US_PER_S) /* 2024-06-15T12:00:00Z */

/* What becomes of a condition, with `this` written as row. = is: as it was. A text that begins with ! is what
 * the condition is refused with. */
static const struct {
    const char *sql, *postgres, *sqlite;
} conditions[] = {
    /* clang-format off */
    /* this, wherever it stands */
    {"this.a > 1", "row.a > 1", "row.a > 1"},
    {"1 < this.a", "1 < row.a", "1 < row.a"},
    {"THIS.a = This.b", "row.a = row.b", "row.a = row.b"},
    {"f(this)", "f(row)", "f(row)"},
    {"(this).a", "(row).a", "(row).a"},
    {"this . a = 1", "row . a = 1", "row . a = 1"},
    {"-this.a<this.b", "-row.a<row.b", "-row.a<row.b"},
    {"this", "row", "row"},
    {"a.this = 1", "=", "="},
    {"a . this = 1", "=", "="},
    {"a./* the column */this = this.a", "a. this = row.a", "a. this = row.a"},
    {"a.-- the column\nthis = 1", "a. \nthis = 1", "a. \nthis = 1"},
    {"\"this\".a = 1", "=", "="},
    {"this_one = thisone", "=", "="},
    {"x$this = 1", "=", "="},
    {"éthis = 1", "=", "="},
    {"this.a /* this */ = 1", "row.a   = 1", "row.a   = 1"},
    {"exists (select 1 from t where t.x = this.id)", "exists (select 1 from t where t.x = row.id)",
     "exists (select 1 from t where t.x = row.id)"},
    {"1.this", "1.this", "1.this"},
    /* :now */
    {":now > this.at", "$1{2024-06-15 12:00:00.000000+00}::timestamp with time zone > row.at",
     "?1{2024-06-15 12:00:00.000} > row.at"},
    {"a<:NOW", "a<$1{2024-06-15 12:00:00.000000+00}::timestamp with time zone", "a<?1{2024-06-15 12:00:00.000}"},
    {"f(:now,:now)",
     "f($1{2024-06-15 12:00:00.000000+00}::timestamp with time zone,"
     "$2{2024-06-15 12:00:00.000000+00}::timestamp with time zone)",
     "f(?1{2024-06-15 12:00:00.000},?2{2024-06-15 12:00:00.000})"},
    {":now", "$1{2024-06-15 12:00:00.000000+00}::timestamp with time zone", "?1{2024-06-15 12:00:00.000}"},
    {"':now' = \":now\"", "=", "="},
    {"1 /* :now */ -- :now", "1    ", "1    "},
    {"a::text = 'x'", "=", "="},
    {"f(a := 1)", "=", "="},
    {"a[1:2] = b", "=", "="},
    {"a < :nowhere", "!has a parameter that is not :now at character 5", "!has a parameter that is not :now at character 5"},
    {"a < :x", "!has a parameter that is not :now at character 5", "!has a parameter that is not :now at character 5"},
    /* other parameters */
    {"a = $1", "!has a parameter; only :now is one at character 5", "!has a parameter; only :now is one at character 5"},
    {"a = $x", "!has a parameter; only :now is one at character 5", "!has a parameter; only :now is one at character 5"},
    {"a ? 'key'", "=", "!has a parameter; only :now is one at character 3"},
    {"a = ?1", "=", "!has a parameter; only :now is one at character 5"},
    /* strings and names */
    {"a = 'it''s ; ) ('", "=", "="},
    {"a = ''", "=", "="},
    {"a = 'x", "!has a string that is not closed at character 5", "!has a string that is not closed at character 5"},
    {"a = '''", "!has a string that is not closed at character 5", "!has a string that is not closed at character 5"},
    {"\"a;)\" = \"b\"\"c\"", "=", "="},
    {"\"a = 1", "!has a quoted name that is not closed at character 1", "!has a quoted name that is not closed at character 1"},
    {"`a;` = 1", "!has a ';', but must be one expression, at character 3", "="},
    {"`a = 1", "=", "!has a quoted name that is not closed at character 1"},
    {"[a;)] = 1", "!has a ';', but must be one expression, at character 3", "="},
    {"[a = 1", "=", "!has a quoted name that is not closed at character 1"},
    {"a = E'it\\'s ;)'", "=", "!has a ';', but must be one expression, at character 13"},
    {"a = e'\\\\'", "=", "="},
    {"a = e'\\'", "!has a string that is not closed at character 6", "="},
    {"a = '\\'", "=", "="},
    {"a = 'x\\' or 'y'", "=", "="},
    {"name'\\'", "=", "="},
    {"a = E'x'\n'\\' ;'", "=", "!has a ';', but must be one expression, at character 14"}, /* one string on two lines */
    /* dollar quotes */
    {"a = $$it's ;)$$", "=", "!has a parameter; only :now is one at character 5"},
    {"a = $t$ $$ ; $x$ $t$", "=", "!has a parameter; only :now is one at character 5"},
    {"a = $t$ x $t", "!has a dollar-quoted string that is not closed at character 5",
     "!has a parameter; only :now is one at character 5"},
    {"a = $$x", "!has a dollar-quoted string that is not closed at character 5",
     "!has a parameter; only :now is one at character 5"},
    {"a = $1$x$1$", "!has a parameter; only :now is one at character 5", "!has a parameter; only :now is one at character 5"},
    {"a$b$c = 1", "=", "="},
    /* comments */
    {"a = 1 -- it's ) ;", "a = 1  ", "a = 1  "},
    {"a = 1 -- one\n and b = 2", "a = 1  \n and b = 2", "a = 1  \n and b = 2"},
    {"a = 1 -- one\r\n", "a = 1  \r\n", "a = 1  \r\n"},
    {"a = 1 -- one\r) or (1 = 1", "!closes a parenthesis that it did not open at character 14",
     "!closes a parenthesis that it did not open at character 14"},
    {"a -1", "=", "="},
    {"a /* it's ) ; */ = 1", "a   = 1", "a   = 1"},
    {"a /* one", "!has a comment that is not closed at character 3", "!has a comment that is not closed at character 3"},
    {"a /* /* */ */ = 1", "a   = 1", "a   */ = 1"},
    {"a /* /* */ = 1", "!has a comment that is not closed at character 3", "a   = 1"},
    {"a /* /* */ ) */ = 1", "a   = 1", "!closes a parenthesis that it did not open at character 12"},
    {"a = 1 /*", "!has a comment that is not closed at character 7", "!has a comment that is not closed at character 7"},
    {"a /*/ = 1", "!has a comment that is not closed at character 3", "!has a comment that is not closed at character 3"},
    /* what would leave the parentheses it stands in */
    {"a = 1; delete from t", "!has a ';', but must be one expression, at character 6",
     "!has a ';', but must be one expression, at character 6"},
    {"a = 1) or (b = 1", "!closes a parenthesis that it did not open at character 6",
     "!closes a parenthesis that it did not open at character 6"},
    {"(a = 1", "!leaves a parenthesis open at character 7", "!leaves a parenthesis open at character 7"},
    {")(", "!closes a parenthesis that it did not open at character 1",
     "!closes a parenthesis that it did not open at character 1"},
    {"((a) = (b))", "=", "="},
    {"", "!is empty at character 1", "!is empty at character 1"},
    {" \n\t", "!is empty at character 4", "!is empty at character 4"},
    {"-- nothing", "!is empty at character 11", "!is empty at character 11"},
    {"/* nothing */ ", "!is empty at character 15", "!is empty at character 15"},
    /* clang-format on */
};

static void check_condition(const struct dialect *d, char mark, const char *sql, const char *expected)
{
    AUTO(stmt_release) struct stmt s = {0};
    AUTO(text_release) struct text out = {0};
    struct err e = ERR_INIT, again = ERR_INIT;
    int r = sql_condition(&s, d, "row", sql, NOW, &e);
    if (r < 0)
        text_addf(&out, "!%s", e.text + strlen("the condition "));
    else
        show(&s, mark, &out);
    if (strcmp(text_str(&out), expected[0] == '=' ? sql : expected) != 0)
        fail_msg("%s: became: %s", sql, text_str(&out));
    /* only looking at it says the same */
    assert_int_equal(e.kind, r < 0 ? ERR_USAGE : ERR_NONE);
    assert_int_equal(sql_condition(NULL, d, "row", sql, NOW, &again), r);
    assert_string_equal(again.text, e.text);
}

static void conditions_are_copied_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(conditions); i++) {
        check_condition(&dialect_postgres, '$', conditions[i].sql, conditions[i].postgres);
        check_condition(&dialect_sqlite, '?', conditions[i].sql, conditions[i].sqlite);
    }
}

/* MariaDB's strings and comments: \ escapes in both quotes, -- takes a blank, # is one, one that begins with
 * ! is none. */
static const struct {
    const char *sql, *mariadb;
} of_mariadb[] = {
    {"this.a > :now", "row.a > TIMESTAMP'2024-06-15 12:00:00.000000'"},
    {"a = 'it\\'s ; ) this :now'", "="},
    {"a = \"it\\\"s ; ) this\"", "="},
    {"a = '\\'", "!has a string that is not closed at character 5"},
    {"a = \"\\\"", "!has a quoted name that is not closed at character 5"},
    {"a = '\\\\' or this.b", "a = '\\\\' or row.b"},
    {"`a\\` = this.b", "`a\\` = row.b"}, /* no escape in a name */
    {"`a;``)` = 1", "="},
    {"[a;)] = 1", "!has a ';', but must be one expression, at character 3"},
    {"a # it's ) ;\n = 1", "a  \n = 1"},
    {"a = 5--1", "="},
    {"a = 5 --1) ;", "!closes a parenthesis that it did not open at character 10"},
    {"a = 5 -- it's ) ;", "a = 5  "},
    {"a = 5 --\tit's", "a = 5  "},
    {"a = 5 --", "a = 5  "},
    {"a = 5 --\n+ this.b", "a = 5  \n+ row.b"},
    {"a /*! + 1 */ = 1", "!has a comment that the server runs at character 3"},
    {"a /*!50000 + 1 */ = 1", "!has a comment that the server runs at character 3"},
    {"a /*M! + 1 */ = 1", "!has a comment that the server runs at character 3"},
    {"a = '/*! */'", "="},
    {"a /* ! */ = 1", "a   = 1"},
    {"a /* /* */ = 1", "a   = 1"},
    {"a = \x01"
     "1\x01",
     "!has a control character at character 5"},
    {"a = 'x\x01"
     "1\x01'",
     "!has a control character at character 5"},
    {"a = `x\x01`", "!has a control character at character 5"},
    {"a /* \x01 */ = 1", "a   = 1"}, /* left out */
    {"a = ?", "!has a parameter; only :now is one at character 5"},
    {"# nothing", "!is empty at character 10"},
};

static void mariadb_reads_other_strings_and_comments(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(of_mariadb); i++)
        check_condition(&dialect_mariadb, '?', of_mariadb[i].sql, of_mariadb[i].mariadb);
}

/* --- :now against numbers ---------------------------------------------------------------------- */

static const struct {
    const char *sql, *column; /* the column that is refused, or NULL */
} nows[] = {
    {"this.at_s < :now", "at_s"},
    {"at_s<:now", "at_s"},
    {":now > this.at_s", "at_s"},
    {":NOW>=at_s", "at_s"},
    {"this . at_s <> :now", "at_s"},
    {"THIS.AT_S = :now", "at_s"},
    {"this.\"at_s\" < :now", "at_s"},
    {"`at_s` < :now", "at_s"},
    {":now > [at_s]", "at_s"},
    {"this.\"odd one\" < :now", "odd one"},
    {"this.at_s /* since */ < -- 1970\n :now", "at_s"},
    {"(n = 1 or this.at_s < :now)", "at_s"},
    {"this.at < :now and :now > n", "n"},
    {"this.at < :now", NULL},
    {":now > at", NULL},
    {"other.at_s < :now", NULL}, /* another table's: its type is not known here */
    {"this.nope < :now", NULL},
    {"strftime('%s', :now) > this.at_s", NULL},
    {"this.at_s < unixepoch(:now)", NULL},
    {"this.at_s < 5", NULL},
    {"':now' > this.at_s", NULL},
    {"this.at_s < ':now'", NULL},
    {"this.at_s < 1 -- :now", NULL},
    {"this.at_s /* < :now */ > 1", NULL},
    {"this.at_s < :nowhere", NULL},
    {":now", NULL},
    {"< :now >", NULL},
    {"\"", NULL},
    {"this.[at_s", NULL},
    {"", NULL},
};

static void now_is_not_compared_with_numbers(void **state)
{
    struct world *w = *state;
    w->facts->folds_lower = false;
    w->facts->ignores_case = true;
    const struct table *t =
        add_table(w, NULL, "t", "at_s:integer, n:integer, odd one:integer, at:text, free:any", "n");
    struct dialect d = dialect_sqlite;
    d.now_is_text = "do so";
    for (size_t i = 0; i < COUNT_OF(nows); i++) {
        AUTO(text_release) struct text expected = {0};
        struct err e = ERR_INIT;
        int r = sql_now_is_time(&d, nows[i].sql, w->facts, t, &e);
        if (nows[i].column)
            text_addf(&expected, "the condition compares :now with '%s', which holds whole numbers; do so",
                      nows[i].column);
        if (r != (nows[i].column ? -1 : 0) || strcmp(e.text, text_str(&expected)) != 0)
            fail_msg("%s: %d %s", nows[i].sql, r, e.text);
        assert_int_equal(e.kind, r ? ERR_USAGE : ERR_NONE);
        assert_int_equal(sql_now_is_time(&dialect_postgres, nows[i].sql, w->facts, t, &e), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_are_copied_or_refused),
        cmocka_unit_test(mariadb_reads_other_strings_and_comments),
        cmocka_unit_test_setup_teardown(now_is_not_compared_with_numbers, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
