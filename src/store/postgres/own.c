/* own: the question whether lapse's own tables are trusted. See dialect.own.foreign. */
#include "store/postgres/store.h"

#define EQ         " OPERATOR(pg_catalog.=) "
#define NE         " OPERATOR(pg_catalog.<>) "
#define TEXT       "::pg_catalog.text"
#define CLASS(oid) "'pg_catalog." oid "'::pg_catalog.regclass"

/* An expression that lapse did not write calls functions, or depends on more than columns. What is built in
 * is not recorded as a dependency, and some of it runs any SQL. */
#define EXPRESSION(columns) "pg_catalog.pg_get_expr(" columns ")"
#define CALLS(columns)      EXPRESSION(columns) " OPERATOR(pg_catalog.~) '[[:alnum:]_\"][(]'"
#define DEPENDS(catalog, object)                                                                             \
    "EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid" EQ CLASS(                                   \
        catalog) " AND d.objid" EQ object " AND d.refclassid" NE CLASS("pg_class") ")"
#define THE_TIME "'^(pg_catalog[.])?(clock_timestamp|statement_timestamp|transaction_timestamp|now)[(][)]$'"

#define DROP(what, name)          "pg_catalog.format('DROP " what " %I ON %s', " name ", tab.print)"
#define OF_TABLE(catalog, column) "tab JOIN pg_catalog." catalog " x ON x." column EQ "tab.oid"

/* self: this role and those it is a member of. (To pg_has_role a superuser is one of all.) known: whose code
 * may run with this role's rights. trusted: also the owner of a schema that the contract names, where nobody
 * else may create. A foreign key counts because the triggers of the table it is on may run with this role's
 * rights when they are deferred. */
/* clang-format off */
const char postgres_foreign[] =
    "WITH RECURSIVE self (oid) AS ("
    "    SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname" EQ "CURRENT_USER"
    "  UNION"
    "    SELECT m.roleid FROM pg_catalog.pg_auth_members m JOIN self ON m.member" EQ "self.oid"
    "), known (oid) AS ("
    "    SELECT self.oid FROM self"
    "  UNION"
    "    SELECT r.oid FROM pg_catalog.pg_roles r"
    "    WHERE r.rolsuper OR r.rolname" EQ "'pg_database_owner' OR r.rolname" TEXT EQ "{2}"
    "  UNION"
    "    SELECT b.datdba FROM pg_catalog.pg_database b WHERE b.datname" EQ "pg_catalog.current_database()"
    "), home AS ("
    "    SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_catalog.pg_namespace n"
    "    WHERE n.nspname" TEXT EQ "{1}"
    "), trusted (oid) AS ("
    "    SELECT known.oid FROM known"
    "  UNION"
    "    SELECT home.nspowner FROM home WHERE {3}" EQ "1 AND NOT EXISTS ("
    "        SELECT FROM pg_catalog.aclexplode(home.nspacl) a WHERE a.privilege_type" EQ "'CREATE'"
    "            AND a.grantee" NE "home.nspowner"
    "            AND NOT EXISTS (SELECT FROM known WHERE known.oid" EQ "a.grantee))"
    "), tab AS ("
    "    SELECT c.oid, c.relowner, c.relkind, c.relrowsecurity,"
    "           pg_catalog.format('%I.%I', home.nspname, c.relname) AS print"
    "    FROM pg_catalog.pg_class c JOIN home ON home.oid" EQ "c.relnamespace"
    "    WHERE c.relkind" EQ "ANY (ARRAY['r', 'p', 'v', 'm', 'f']::pg_catalog.\"char\"[])"
    "      AND c.relname" TEXT EQ "ANY (pg_catalog.string_to_array({4}, ','))"
    ") "
    "SELECT found.what, found.fix, found.who FROM ("
    "    SELECT 1 AS place, pg_catalog.format('%s %s to %I',"
    "               pg_catalog.string_agg(tab.print, ', ' ORDER BY tab.print),"
    "               CASE WHEN pg_catalog.count(*)" EQ "1 THEN 'belongs' ELSE 'belong' END, o.rolname) AS what,"
    "           'drop what is not lapse''s own and run lapse install, or set own_schema' AS fix,"
    "           o.rolname" TEXT " AS who"
    "    FROM tab JOIN pg_catalog.pg_roles o ON o.oid" EQ "tab.relowner"
    "    WHERE NOT EXISTS (SELECT FROM trusted WHERE trusted.oid" EQ "tab.relowner) GROUP BY o.rolname"
    "  UNION ALL"
    "    SELECT 2, pg_catalog.format('the trigger %I on %s runs code of %I', x.tgname, tab.print, o.rolname),"
    "           " DROP("TRIGGER", "x.tgname") ", o.rolname" TEXT
    "    FROM " OF_TABLE("pg_trigger", "tgrelid")
    "    JOIN pg_catalog.pg_proc p ON p.oid" EQ "x.tgfoid"
    "    JOIN pg_catalog.pg_roles o ON o.oid" EQ "p.proowner"
    "    WHERE NOT x.tgisinternal AND x.tgenabled" NE "'D'"
    "      AND NOT EXISTS (SELECT FROM trusted WHERE trusted.oid" EQ "p.proowner)"
    "  UNION ALL"
    "    SELECT 3, pg_catalog.format('the trigger %I on %s has a condition of its own', x.tgname, tab.print),"
    "           " DROP("TRIGGER", "x.tgname") ", NULL"
    "    FROM " OF_TABLE("pg_trigger", "tgrelid")
    "    WHERE NOT x.tgisinternal AND x.tgenabled" NE "'D' AND x.tgqual IS NOT NULL"
    "  UNION ALL"
    "    SELECT 4, pg_catalog.format('there is a rule %I on %s', x.rulename, tab.print),"
    "           " DROP("RULE", "x.rulename") ", NULL"
    "    FROM " OF_TABLE("pg_rewrite", "ev_class") " WHERE tab.relkind" EQ "'r'"
    "  UNION ALL"
    "    SELECT 5, pg_catalog.format('there is a row security policy %I on %s', x.polname, tab.print),"
    "           " DROP("POLICY", "x.polname") ", NULL"
    "    FROM " OF_TABLE("pg_policy", "polrelid") " WHERE tab.relrowsecurity"
    "  UNION ALL"
    "    SELECT 6, pg_catalog.format('%s takes its %I from %s', tab.print, a.attname,"
    "               " EXPRESSION("x.adbin, x.adrelid") "),"
    "           pg_catalog.format('ALTER TABLE %s ALTER %I DROP %s', tab.print, a.attname,"
    "               CASE WHEN a.attgenerated" EQ "'' THEN 'DEFAULT' ELSE 'EXPRESSION' END), NULL"
    "    FROM " OF_TABLE("pg_attrdef", "adrelid")
    "    JOIN pg_catalog.pg_attribute a ON a.attrelid" EQ "x.adrelid AND a.attnum" EQ "x.adnum"
    "    WHERE a.attgenerated" NE "'' OR " DEPENDS("pg_attrdef", "x.oid")
    "       OR (" CALLS("x.adbin, x.adrelid")
    "           AND " EXPRESSION("x.adbin, x.adrelid") " OPERATOR(pg_catalog.!~) " THE_TIME ")"
    "  UNION ALL"
    "    SELECT 7, pg_catalog.format('there is a constraint %I on %s', x.conname, tab.print),"
    "           pg_catalog.format('ALTER TABLE %s DROP CONSTRAINT %I', tab.print, x.conname), NULL"
    "    FROM " OF_TABLE("pg_constraint", "conrelid")
    "    WHERE x.contype" EQ "'f' OR (x.contype" EQ "'c' AND (" CALLS("x.conbin, x.conrelid")
    "       OR " DEPENDS("pg_constraint", "x.oid") "))"
    "  UNION ALL"
    "    SELECT 8, pg_catalog.format('the foreign key %I of %s points at %s', x.conname, x.conrelid" 
    "::pg_catalog.regclass, tab.print),"
    "           pg_catalog.format('ALTER TABLE %s DROP CONSTRAINT %I', x.conrelid::pg_catalog.regclass,"
    "               x.conname), NULL"
    "    FROM " OF_TABLE("pg_constraint", "confrelid") " WHERE x.contype" EQ "'f'"
    "  UNION ALL"
    "    SELECT 9, pg_catalog.format('there is an index by an expression, %s, on %s',"
    "               x.indexrelid::pg_catalog.regclass, tab.print),"
    "           pg_catalog.format('DROP INDEX %s', x.indexrelid::pg_catalog.regclass), NULL"
    "    FROM " OF_TABLE("pg_index", "indrelid") " WHERE x.indexprs IS NOT NULL OR x.indpred IS NOT NULL"
    "  UNION ALL"
    "    SELECT 10, pg_catalog.format('%s inherits from %s', x.inhrelid::pg_catalog.regclass, tab.print),"
    "           pg_catalog.format('ALTER TABLE %s NO INHERIT %s', x.inhrelid::pg_catalog.regclass, tab.print),"
    "           NULL"
    "    FROM " OF_TABLE("pg_inherits", "inhparent")
    "  UNION ALL"
    "    SELECT 11, pg_catalog.format('%s.%I is of a type that is not built in', tab.print, x.attname),"
    "           'drop what is not lapse''s own and run lapse install, or set own_schema', NULL"
    "    FROM " OF_TABLE("pg_attribute", "attrelid")
    "    JOIN pg_catalog.pg_type t ON t.oid" EQ "x.atttypid"
    "    WHERE x.attnum OPERATOR(pg_catalog.>) 0 AND t.typnamespace" NE
    "'pg_catalog'::pg_catalog.regnamespace"
    "  UNION ALL"
    "    SELECT 12, pg_catalog.format('%s is no ordinary table', tab.print),"
    "           'drop what is not lapse''s own and run lapse install, or set own_schema', NULL"
    "    FROM tab WHERE tab.relkind" NE "'r'"
    ") AS found ORDER BY found.place, found.what LIMIT 20";
/* clang-format on */
