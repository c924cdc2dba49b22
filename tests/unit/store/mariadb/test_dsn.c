/* store_mariadb_dsn: what a connection string says, and what is said of one that is wrong. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/mariadb/store.h"

static void add_hosts(struct text *t, const struct mariadb_dsn *d)
{
    for (size_t i = 0; i < d->n_hosts; i++)
        text_addf(t, " %s:%u", d->hosts[i].name ? d->hosts[i].name : "-", d->hosts[i].port);
}

static const char *or_none(const char *text)
{
    return text ? text : "-";
}

/* Everything that was read, in one line. */
static void read_as(const char *dsn, const char *expected)
{
    struct err e = ERR_INIT;
    AUTO(mariadb_dsn_release) struct mariadb_dsn d = {0};
    AUTO(text_release) struct text t = {0};
    if (mariadb_dsn_parse(dsn, &d, &e) < 0) {
        text_addf(&t, "! %s", e.text);
    } else {
        text_addf(&t, "%s %s %s", or_none(d.user), or_none(d.password), d.database);
        add_hosts(&t, &d);
        text_addf(&t, " %s %d %s,%s,%s %d", or_none(d.socket), (int)d.tls, or_none(d.ca), or_none(d.cert),
                  or_none(d.key), d.connect_timeout_s);
    }
    assert_string_equal(text_str(&t), expected);
}

static void strings_are_read(void **state)
{
    (void)state;
    unsetenv("MYSQL_PWD");
    read_as("mariadb://u@h/db", "u - db h:3306 - 0 -,-,- 10");
    read_as("mysql://u:p@h:3307/db", "u p db h:3307 - 0 -,-,- 10");
    read_as("mariadb:///db", "- - db -:3306 /run/mysqld/mysqld.sock 0 -,-,- 10");
    read_as("mariadb://u:@h/db", "u  db h:3306 - 0 -,-,- 10");
    read_as("mariadb://a%40b:p%3A%2f%3f@h/d%20b", "a@b p:/? d b h:3306 - 0 -,-,- 10");
    read_as("mariadb://u:a:b@h/db", "u a:b db h:3306 - 0 -,-,- 10");
    read_as("mariadb://u@[::1]:3307/db", "u - db ::1:3307 - 0 -,-,- 10");
    read_as("mariadb://u@[fe80::1]/db", "u - db fe80::1:3306 - 0 -,-,- 10");
    read_as("mariadb://u@a:1,b,[::1]:2/db", "u - db a:1 b:3306 ::1:2 - 0 -,-,- 10");
    read_as("mariadb://u@/db?socket=/tmp/s", "u - db -:3306 /tmp/s 0 -,-,- 10");
    read_as("mariadb://u@localhost/db?socket=/tmp/a%26b&connect_timeout=3",
            "u - db localhost:3306 /tmp/a&b 0 -,-,- 3");
    read_as("mariadb://u@h/db?ssl_mode=disabled", "u - db h:3306 - 1 -,-,- 10");
    read_as("mariadb://u@h/db?ssl_mode=required&ssl_ca=/ca&ssl_cert=/c&ssl_key=/k",
            "u - db h:3306 - 2 /ca,/c,/k 10");
    read_as("mariadb://u@h/db?ssl_mode=verify_ca", "u - db h:3306 - 3 -,-,- 10");
    read_as("mariadb://u@h/db?ssl_mode=verify_identity", "u - db h:3306 - 3 -,-,- 10");
    read_as("mariadb://u@h/db?ssl_ca=/ca", "u - db h:3306 - 3 /ca,-,- 10");
    read_as("mariadb://u@h/db?ssl_ca=/ca&ssl_mode=preferred", "u - db h:3306 - 0 /ca,-,- 10");
    read_as("mariadb://u@h/db?", "u - db h:3306 - 0 -,-,- 10");
}

#define INVALID "! mariadb: the connection string is not valid: "

static void wrong_strings_are_refused(void **state)
{
    (void)state;
    read_as("mariadb://u@h", INVALID "it names no database, as in mariadb://user@host:3306/database");
    read_as("mariadb://u@h/", INVALID "it names no database, as in mariadb://user@host:3306/database");
    read_as("mariadb://u@h:x/db",
            INVALID "the port is not a number from 1 to 65535 (an IPv6 address is written in [])");
    read_as("mariadb://u@h:65536/db",
            INVALID "the port is not a number from 1 to 65535 (an IPv6 address is written in [])");
    read_as("mariadb://u@::1/db",
            INVALID "the port is not a number from 1 to 65535 (an IPv6 address is written in [])");
    read_as("mariadb://u@[::1/db", INVALID "a [ before an IPv6 address has no ]");
    read_as("mariadb://u@[::1]x/db",
            INVALID "the port is not a number from 1 to 65535 (an IPv6 address is written in [])");
    read_as("mariadb://u@a,,b/db", INVALID "between two commas there is no host");
    read_as("mariadb://u@h/d%zz",
            INVALID "in the database a % is not followed by two hexadecimal digits (a % "
                    "itself is %25)");
    read_as("mariadb://u@h/d%2", INVALID "in the database a % is not followed by two hexadecimal digits (a % "
                                         "itself is %25)");
    read_as("mariadb://u@h/d%00",
            INVALID "in the database a % is not followed by two hexadecimal digits (a % "
                    "itself is %25)");
    read_as("mariadb://u@h/db?soket=/x", INVALID
            "there is no option 'soket', did you mean socket? There are socket, password_file, ssl_mode, "
            "ssl_ca, ssl_cert, ssl_key, connect_timeout");
    read_as("mariadb://u@h/db?zzzzzz=1", INVALID "there is no such option; there are socket, password_file, "
                                                 "ssl_mode, ssl_ca, ssl_cert, ssl_key, connect_timeout");
    read_as("mariadb://u@h/db?ssl_mode=no",
            INVALID "ssl_mode is one of disabled, preferred, required, verify_ca "
                    "and verify_identity");
    read_as("mariadb://u@h/db?connect_timeout=0",
            INVALID "connect_timeout is a number of seconds from 1 to 3600");
    read_as("mariadb://u@h/db?socket=", INVALID "option socket has no value");
    read_as("mariadb://u@h/db?socket=/s", INVALID "with socket= the host is localhost or left out");
    read_as("mariadb://u@h/db#x", INVALID "a # is written as %23");
}

/* Whatever is wrong with it, and wherever the rest of a password ends up. */
static void a_password_is_never_told(void **state)
{
    (void)state;
    static const char *const strings[] = {
        "mariadb://u:s3cr/et@h/db",         "mariadb://u:s3cr@et@h/db",
        "mariadb://u:s3cr?et@h/db",         "mariadb://u:s3cr#et@h/db",
        "mariadb://u:s3cr%et@h/db",         "mariadb://u:s3cret/db",
        "mariadb://u:s3cret@h:x/db",        "mariadb://u:s3cret@h",
        "mariadb://u:s3cret@h/db?soket=1",  "mariadb://u:s3cret@h,,g/db",
        "mariadb://u@h/db?password=s3cret", "mariadb://u@h/db?s3cret",
    };
    for (size_t i = 0; i < COUNT_OF(strings); i++) {
        struct err e = ERR_INIT;
        struct mariadb_dsn d = {0};
        if (mariadb_dsn_parse(strings[i], &d, &e) == 0)
            fail_msg("%s was taken", strings[i]);
        assert_int_equal(e.kind, ERR_UNREACHABLE);
        if (strstr(e.text, "s3cr") || strstr(e.text, "et@"))
            fail_msg("%s is told: %s", strings[i], e.text);
    }
}

static void passwords_come_from_elsewhere(void **state)
{
    (void)state;
    char path[] = "/tmp/lapse-password-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "from file\r\nmore\n", 16), 16);
    close(fd);
    AUTO(text_release) struct text dsn = {0};
    text_addf(&dsn, "mariadb://u@h/db?password_file=%s", path);
    setenv("MYSQL_PWD", "from env", 1);
    read_as("mariadb://u@h/db", "u from env db h:3306 - 0 -,-,- 10");
    read_as("mariadb://u:p@h/db", "u p db h:3306 - 0 -,-,- 10");
    read_as(text_str(&dsn), "u from file db h:3306 - 0 -,-,- 10");
    unlink(path);
    text_clear(&dsn);
    text_addf(&dsn, "! mariadb: password_file %s cannot be read", "/no/such/file");
    read_as("mariadb://u@h/db?password_file=/no/such/file", text_str(&dsn));
    unsetenv("MYSQL_PWD");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_read),
        cmocka_unit_test(wrong_strings_are_refused),
        cmocka_unit_test(a_password_is_never_told),
        cmocka_unit_test(passwords_come_from_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
