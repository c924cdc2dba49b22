/* http_guard: who may ask what, as tables of cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "http_guard.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- host:port --- */

static void endpoints_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        unsigned port;
        bool is_address;
    } good[] = {
        {"127.0.0.1:9933", "127.0.0.1", 9933, true},
        {"LocalHost:1", "localhost", 1, false},
        {"[::1]:65535", "::1", 65535, true},
        {"[0:0:0:0:0:0:0:1]:80", "::1", 80, true},
        {"a-b.example_1", "a-b.example_1", 80, false},
        {"[::FFFF:1.2.3.4]", "::ffff:1.2.3.4", 80, true},
        {"127.1:5", "127.1", 5, false},
        {"localhost.:5", "localhost.", 5, false},
        {"h:0", "h", 0, false},
    };
    static const char *const bad[] = {
        "",
        ":",
        ":80",
        "a:",
        "a:x",
        "a:65536",
        "a:000080",
        "a:-1",
        "a:+1",
        "a: 80",
        "a b",
        "a:80 ",
        "[::1",
        "[::1]x",
        "[]",
        "[]:80",
        "[1.2.3.4]:80",
        "::1",
        "::1:80",
        "[::1%lo]:1",
        "a/b",
        "u@a",
        "a,b",
        "a?",
        "a#",
        "[localhost]:80",
        "\xc3\xa9",
        "a:80:80",
        "[::1]:",
        "http://a",
        "a\t",
        "*",
        "a%41",
        "[::1]]:80",
    };
    struct endpoint e;
    for (size_t i = 0; i < COUNT(good); i++) {
        if (!endpoint_read(good[i].text, 80, &e))
            fail_msg("refused: %s", good[i].text);
        assert_string_equal(e.host, good[i].host);
        assert_int_equal(e.port, good[i].port);
        assert_int_equal(e.is_address, good[i].is_address);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (endpoint_read(bad[i], 80, &e))
            fail_msg("taken: %s", bad[i]);
    assert_false(endpoint_read("localhost", 0, &e));

    char longest[300];
    memset(longest, 'a', sizeof(longest));
    longest[255] = '\0';
    assert_true(endpoint_read(longest, 80, &e));
    longest[255] = 'a', longest[256] = '\0';
    assert_false(endpoint_read(longest, 80, &e));
}

static void endpoints_are_written(void **state)
{
    (void)state;
    char text[ENDPOINT_SIZE];
    assert_string_equal(endpoint_write("::1", 1, text), "[::1]:1");
    assert_string_equal(endpoint_write("localhost", 65535, text), "localhost:65535");
}

static void loopback_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        bool loopback;
    } cases[] = {
        {"127.0.0.1", true},
        {"127.255.255.254", true},
        {"126.255.255.255", false},
        {"128.0.0.1", false},
        {"0.0.0.0", false},
        {"192.168.0.127", false},
        {"::1", true},
        {"::", false},
        {"::2", false},
        {"::ffff:127.0.0.1", true},
        {"::ffff:10.0.0.1", false},
        {"fe80::1", false},
        {"::127.0.0.1", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct sockaddr_storage s = {0};
        bool six = strchr(cases[i].address, ':') != NULL;
        s.ss_family = six ? AF_INET6 : AF_INET;
        void *at =
            six ? (void *)&((struct sockaddr_in6 *)&s)->sin6_addr : &((struct sockaddr_in *)&s)->sin_addr;
        assert_int_equal(inet_pton(s.ss_family, cases[i].address, at), 1);
        if (address_is_loopback((struct sockaddr *)&s) != cases[i].loopback)
            fail_msg("%s", cases[i].address);
    }
    assert_false(address_is_loopback(&(struct sockaddr){.sa_family = AF_UNIX}));
}

/* --- the token --- */

static void tokens_are_trimmed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *token;
    } cases[] = {
        {"secret", "secret"},
        {" \t secret\r\n\n", "secret"},
        {"", NULL},
        {" \n\t\r", NULL},
        {"two words", NULL},
        {"two\nlines", NULL},
        {"a\x7f", NULL},
        {"caf\xc3\xa9", NULL},
        {"!~", "!~"},
        {"a\x01"
         "b",
         NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s", cases[i].text);
        char *token = token_trim(text);
        assert_int_equal(token == NULL, cases[i].token == NULL);
        if (token)
            assert_string_equal(token, cases[i].token);
    }
}

static void tokens_are_compared_whole(void **state)
{
    (void)state;
    assert_true(token_equal("secret", "secret"));
    static const char *const wrong[] = {
        "", "s", "secre", "secrets", "Secret", "secreT", "secretsecret", " secret", "secret "};
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_false(token_equal(wrong[i], "secret"));
    assert_false(token_equal("", ""));
    assert_false(token_equal("x", ""));
}

/* --- verdicts --- */

static const struct guard on_loopback = {.listen = {"127.0.0.2", true, 9933}, .loopback = true};
static const struct guard on_name = {.listen = {"box", false, 9933}, .loopback = true, .token = "secret"};
static const struct guard on_port_80 = {.listen = {"127.0.0.1", true, 80}, .loopback = true};
static const struct guard elsewhere = {.listen = {"db.example", false, 9933}, .token = "secret"};
static const struct guard without = {.listen = {"0.0.0.0", true, 9933}}; /* never opened; still shut */

enum { OLD = 1, HEALTH = 2, TWO_HOSTS = 4, TWO_TOKENS = 8 };
struct judged {
    const struct guard *guard;
    const char *host, *authorization; /* NULL: no such header */
    unsigned flags;
    int status;
};

static const struct judged judged[] = {
    /* on loopback: exactly these */
    {&on_loopback, "127.0.0.2:9933", NULL, 0, 0},
    {&on_loopback, "127.0.0.1:9933", NULL, 0, 0},
    {&on_loopback, "localhost:9933", NULL, 0, 0},
    {&on_loopback, "LOCALHOST:9933", NULL, 0, 0},
    {&on_loopback, "[::1]:9933", NULL, 0, 0},
    {&on_loopback, "127.0.0.3:9933", NULL, 0, 421},
    {&on_loopback, "localhost", NULL, 0, 421},
    {&on_loopback, "localhost:9934", NULL, 0, 421},
    {&on_loopback, "localhost.:9933", NULL, 0, 421},
    {&on_loopback, "localhost.evil.example:9933", NULL, 0, 421},
    {&on_loopback, "evil.example:9933", NULL, 0, 421},
    {&on_loopback, "evil.example:9933", NULL, HEALTH, 421},
    {&on_loopback, "127.1:9933", NULL, 0, 421},
    {&on_loopback, "2130706433:9933", NULL, 0, 421},
    {&on_loopback, "evil.example:9933", NULL, OLD, 421},
    {&on_name, "box:9933", NULL, 0, 0},
    {&on_name, "box.example:9933", "Bearer secret", 0, 421},
    {&on_name, "localhost:9933", "Bearer wrong", 0, 0},
    {&on_port_80, "localhost", NULL, 0, 0},
    {&on_port_80, "localhost:80", NULL, 0, 0},
    /* the header itself */
    {&on_loopback, NULL, NULL, 0, 400},
    {&on_loopback, NULL, NULL, OLD, 0},
    {&on_loopback, "", NULL, 0, 400},
    {&on_loopback, "", NULL, OLD, 400},
    {&on_loopback, "localhost:", NULL, 0, 400},
    {&on_loopback, "localhost:9933, localhost:9933", NULL, 0, 400},
    {&on_loopback, "localhost:9933", NULL, TWO_HOSTS, 400},
    {&on_loopback, "localhost:9933", NULL, TWO_HOSTS | OLD, 400},
    {&elsewhere, NULL, "Bearer secret", 0, 400},
    {&elsewhere, "a b", "Bearer secret", HEALTH, 400},
    /* elsewhere: the token */
    {&elsewhere, "db.example:9933", "Bearer secret", 0, 0},
    {&elsewhere, "other.example", "bearer  secret", 0, 0},
    {&elsewhere, "other.example", "Bearer secret", HEALTH, 0},
    {&elsewhere, NULL, "Bearer secret", OLD, 0},
    {&elsewhere, "db.example:9933", NULL, 0, 401},
    {&elsewhere, NULL, NULL, OLD, 401},
    {&elsewhere, "db.example:9933", "Bearer", 0, 401},
    {&elsewhere, "db.example:9933", "Bearer ", 0, 401},
    {&elsewhere, "db.example:9933", "Bearer Secret", 0, 401},
    {&elsewhere, "db.example:9933", "Bearer secret2", 0, 401},
    {&elsewhere, "db.example:9933", "Bearer secre", 0, 401},
    {&elsewhere, "db.example:9933", "Bearersecret", 0, 401},
    {&elsewhere, "db.example:9933", "Basic secret", 0, 401},
    {&elsewhere, "db.example:9933", "secret", 0, 401},
    {&elsewhere, "db.example:9933", "", 0, 401},
    {&elsewhere, "db.example:9933", "Bearer secret", TWO_TOKENS, 401},
    {&elsewhere, "localhost:9933", NULL, 0, 401},
    /* elsewhere: health */
    {&elsewhere, "db.example:9933", NULL, HEALTH, 0},
    {&elsewhere, "10.0.0.7:30000", NULL, HEALTH, 0},
    {&elsewhere, "[fd00::1]", NULL, HEALTH, 0},
    {&elsewhere, "evil.example:9933", NULL, HEALTH, 421},
    {&elsewhere, "evil.example:9933", "Bearer wrong", HEALTH, 421},
    {&elsewhere, NULL, NULL, HEALTH | OLD, 0},
    /* no token, no entry */
    {&without, "0.0.0.0:9933", NULL, 0, 401},
    {&without, "0.0.0.0:9933", "Bearer ", 0, 401},
};

static void verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(judged); i++) {
        const struct judged *j = &judged[i];
        const char *hosts[] = {j->host, j->host}, *authorizations[] = {j->authorization, j->authorization};
        struct credentials c = {.hosts = hosts,
                                .n_hosts = j->host ? 1 + !!(j->flags & TWO_HOSTS) : 0,
                                .authorizations = authorizations,
                                .n_authorizations = j->authorization ? 1 + !!(j->flags & TWO_TOKENS) : 0,
                                .old = j->flags & OLD,
                                .health = j->flags & HEALTH};
        struct verdict v;
        guard_judge(j->guard, &c, &v);
        if (v.status != j->status)
            fail_msg("case %zu, Host %s: %d (%s), not %d", i, j->host ? j->host : "-", v.status, v.why,
                     j->status);
        assert_int_equal(v.why[0] == '\0', v.status == 0);
        assert_null(strchr(v.why, '\n'));
        assert_null(strstr(v.why, "secret"));
    }
}

static void a_verdict_says_what_is_allowed(void **state)
{
    (void)state;
    struct verdict v;
    guard_judge(&on_loopback, &(struct credentials){.hosts = (const char *[]){"evil"}, .n_hosts = 1}, &v);
    assert_string_equal(v.why, "this Host is not served here; allowed: 127.0.0.2:9933, 127.0.0.1:9933, "
                               "localhost:9933, [::1]:9933");
    struct guard longest = on_name; /* cut, not overrun */
    memset(longest.listen.host, 'a', sizeof(longest.listen.host) - 1);
    guard_judge(&longest, &(struct credentials){.hosts = (const char *[]){"evil"}, .n_hosts = 1}, &v);
    assert_int_equal(v.status, 421);
    assert_true(strlen(v.why) < sizeof(v.why));
}

/* --- queries --- */

static void queries_are_decoded(void **state)
{
    (void)state;
    static const struct {
        const char *text, *value;
    } cases[] = {
        {"", ""},       {"a+b", "a b"}, {"a%20b%2B", "a b+"}, {"%c3%A9", "\xc3\xa9"}, {"1234567", "1234567"},
        {"%", NULL},    {"%4", NULL},   {"%4g", NULL},        {"%00", NULL},          {"%0a", NULL},
        {"a%7f", NULL}, {"%2", NULL},   {"12345678", NULL},   {"%%41", NULL},         {"a\tb", NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char value[8], exact[16];
        size_t len = strlen(cases[i].text);
        memcpy(exact, cases[i].text, len); /* no end: only len counts */
        char *got = query_decode(exact, len, value, sizeof(value));
        if ((got == NULL) != (cases[i].value == NULL))
            fail_msg("'%s'", cases[i].text);
        if (got)
            assert_string_equal(got, cases[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_are_read),
        cmocka_unit_test(endpoints_are_written),
        cmocka_unit_test(loopback_is_known),
        cmocka_unit_test(tokens_are_trimmed),
        cmocka_unit_test(tokens_are_compared_whole),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(a_verdict_says_what_is_allowed),
        cmocka_unit_test(queries_are_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
