/* dsn: mariadb://user:password@host:port,host:port/database?options -> its parts. See
 * store.h.
 *
 * Nothing of what may be a password is ever repeated: of what is wrong the words name the part, and quote
 * only names of options and values that a list of words allows. */
#include "store/mariadb/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/mistake.h"

#define FORM "mariadb://user@host:3306/database"
static const char invalid[] = "mariadb: the connection string is not valid";
static const char default_socket[] = "/run/mysqld/mysqld.sock";
enum { DEFAULT_PORT = 3306, CONNECT_TIMEOUT_S = 10, SECRET_SIZE = 4096 };

void mariadb_dsn_release(struct mariadb_dsn *d)
{
    arena_free(d->arena);
    *d = (struct mariadb_dsn){0};
}

/* --- parts ------------------------------------------------------------------------------------------- */

static int hex(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* NULL: a % is not followed by two digits, or stands for a NUL. */
static const char *decode(struct arena *a, const char *from, size_t len)
{
    char *text = arena_alloc(a, len + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        text[n++] = from[i];
        if (from[i] != '%')
            continue;
        int high = i + 2 < len ? hex(from[i + 1]) : -1, low = high >= 0 ? hex(from[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0)
            return NULL;
        text[n - 1] = (char)(high * 16 + low);
        i += 2;
    }
    return text;
}

static int decode_into(struct arena *a, const char *from, size_t len, const char *what, const char **ret,
                       struct err *e)
{
    const char *text = decode(a, from, len);
    if (!text)
        return err_set(e, ERR_UNREACHABLE,
                       "%s: in the %s a %% is not followed by two hexadecimal digits (a %% itself is %%25)",
                       invalid, what);
    *ret = text;
    return 0;
}

/* A whole number; -1: it is none, or beyond `most`. */
static long number(const char *text, size_t len, long most)
{
    long n = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || (n = n * 10 + (text[i] - '0')) > most)
            return -1;
    }
    return len ? n : -1;
}

static int parse_user(struct mariadb_dsn *d, const char *from, size_t len, struct err *e)
{
    const char *colon = memchr(from, ':', len);
    size_t user = colon ? (size_t)(colon - from) : len;
    if (user && decode_into(d->arena, from, user, "user", &d->user, e) < 0)
        return -1;
    return colon ? decode_into(d->arena, colon + 1, len - user - 1, "password", &d->password, e) : 0;
}

/* host, host:port, [::1], [::1]:port */
static int parse_host(struct mariadb_dsn *d, const char *from, size_t len, struct err *e)
{
    const char *end = from + len, *name = from, *after;
    if (len && *from == '[') {
        name = from + 1;
        after = memchr(from, ']', len);
        if (!after)
            return err_set(e, ERR_UNREACHABLE, "%s: a [ before an IPv6 address has no ]", invalid);
    } else {
        after = memchr(from, ':', len);
        after = after ? after : end;
    }
    struct mariadb_host host = {NULL, DEFAULT_PORT};
    const char *text;
    if (decode_into(d->arena, name, (size_t)(after - name), "host", &text, e) < 0)
        return -1;
    host.name = *text ? text : NULL;
    const char *port = after < end && *after == ']' ? after + 1 : after;
    if (port < end) {
        long n = *port == ':' ? number(port + 1, (size_t)(end - port - 1), 65535) : 0;
        if (n < 1)
            return err_set(e, ERR_UNREACHABLE,
                           "%s: the port is not a number from 1 to 65535 (an IPv6 address is written in [])",
                           invalid);
        host.port = (unsigned)n;
    }
    d->hosts = arena_push(d->arena, d->hosts, d->n_hosts, sizeof(*d->hosts));
    d->hosts[d->n_hosts++] = host;
    return 0;
}

static int parse_hosts(struct mariadb_dsn *d, const char *from, size_t len, struct err *e)
{
    for (const char *end = from + len;;) {
        const char *comma = memchr(from, ',', (size_t)(end - from));
        if (parse_host(d, from, (size_t)((comma ? comma : end) - from), e) < 0)
            return -1;
        if (!comma)
            return 0;
        from = comma + 1;
    }
}

/* --- options ----------------------------------------------------------------------------------------- */

/* The first line of the file. */
static int read_password(struct mariadb_dsn *d, const char *path, struct err *e)
{
    char line[SECRET_SIZE];
    FILE *f = fopen(path, "re");
    bool read = f && fgets(line, sizeof(line), f);
    bool empty = f && !read && !ferror(f);
    if (f)
        fclose(f);
    if (!read)
        return err_set(e, ERR_UNREACHABLE, "mariadb: password_file %s %s", path,
                       empty ? "is empty" : "cannot be read");
    line[strcspn(line, "\r\n")] = '\0';
    d->password = arena_strdup(d->arena, line);
    return 0;
}

static const char *const modes[] = {"disabled", "preferred", "required", "verify_ca", "verify_identity"};

static int set_mode(struct mariadb_dsn *d, const char *value, struct err *e)
{
    /* The client library verifies the name of a server with its certificate, or nothing. */
    static const enum mariadb_tls means[] = {TLS_DISABLED, TLS_PREFERRED, TLS_REQUIRED, TLS_VERIFIED,
                                             TLS_VERIFIED};
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        if (strcmp(value, modes[i]) != 0)
            continue;
        d->tls = means[i];
        return 0;
    }
    return err_set(e, ERR_UNREACHABLE,
                   "%s: ssl_mode is one of disabled, preferred, required, verify_ca and verify_identity",
                   invalid);
}

static int set_timeout(struct mariadb_dsn *d, const char *value, struct err *e)
{
    long n = number(value, strlen(value), 3600);
    if (n < 1)
        return err_set(e, ERR_UNREACHABLE, "%s: connect_timeout is a number of seconds from 1 to 3600",
                       invalid);
    d->connect_timeout_s = (int)n;
    return 0;
}

enum option { OPT_SOCKET, OPT_PASSWORD_FILE, OPT_MODE, OPT_CA, OPT_CERT, OPT_KEY, OPT_TIMEOUT };
static const char *const options[] = {
    [OPT_SOCKET] = "socket",           [OPT_PASSWORD_FILE] = "password_file",
    [OPT_MODE] = "ssl_mode",           [OPT_CA] = "ssl_ca",
    [OPT_CERT] = "ssl_cert",           [OPT_KEY] = "ssl_key",
    [OPT_TIMEOUT] = "connect_timeout",
};

static int no_such_option(const char *name, struct err *e)
{
    AUTO(text_release) struct text all = {0};
    const char *near = nearest_word(name, options, COUNT_OF(options));
    for (size_t i = 0; i < COUNT_OF(options); i++)
        text_addf(&all, "%s%s", i ? ", " : "", options[i]);
    return near ? err_set(e, ERR_UNREACHABLE, "%s: there is no option '%s', did you mean %s? There are %s",
                          invalid, name, near, text_str(&all))
                : err_set(e, ERR_UNREACHABLE, "%s: there is no such option; there are %s", invalid,
                          text_str(&all));
}

static int set_option(struct mariadb_dsn *d, const char *name, const char *value, struct err *e)
{
    const char **texts[] = {
        [OPT_SOCKET] = &d->socket, [OPT_CA] = &d->ca, [OPT_CERT] = &d->cert, [OPT_KEY] = &d->key};
    size_t i = 0;
    while (i < COUNT_OF(options) && strcmp(options[i], name) != 0)
        i++;
    if (i == COUNT_OF(options))
        return no_such_option(name, e);
    if (!*value)
        return err_set(e, ERR_UNREACHABLE, "%s: option %s has no value", invalid, name);
    if (i == OPT_PASSWORD_FILE)
        return read_password(d, value, e);
    if (i == OPT_MODE)
        return set_mode(d, value, e);
    if (i == OPT_TIMEOUT)
        return set_timeout(d, value, e);
    *texts[i] = value;
    return 0;
}

static int parse_options(struct mariadb_dsn *d, const char *from, struct err *e)
{
    for (size_t len; *from; from += len + (from[len] == '&')) {
        len = strcspn(from, "&");
        const char *sign = memchr(from, '=', len), *name, *value;
        if (!sign)
            return err_set(e, ERR_UNREACHABLE, "%s: options are written as name=value", invalid);
        size_t n = (size_t)(sign - from);
        if (decode_into(d->arena, from, n, "name of an option", &name, e) < 0 ||
            decode_into(d->arena, sign + 1, len - n - 1, "value of an option", &value, e) < 0 ||
            set_option(d, name, value, e) < 0)
            return -1;
    }
    return 0;
}

/* --- the whole ---------------------------------------------------------------------------------------- */

/* A password with a bare @, /, ? or # moves its rest into other parts: an @ behind the host says so. */
static int check_secret(const char *rest, struct err *e)
{
    const char *authority_end = rest + strcspn(rest, "/?#");
    const char *first = memchr(rest, '@', (size_t)(authority_end - rest));
    if (!strchr(first ? first + 1 : rest, '@'))
        return 0;
    return err_set(
        e, ERR_UNREACHABLE,
        "%s: there is an @ behind the host (in a user or password, write @ as %%40, / as %%2F, ? as "
        "%%3F)",
        invalid);
}

static int check_hosts(struct mariadb_dsn *d, struct err *e)
{
    bool named = false;
    for (size_t i = 0; i < d->n_hosts; i++) {
        if (!d->hosts[i].name && d->n_hosts > 1)
            return err_set(e, ERR_UNREACHABLE, "%s: between two commas there is no host", invalid);
        named = named || (d->hosts[i].name && strcmp(d->hosts[i].name, "localhost") != 0);
    }
    if (d->socket && (named || d->n_hosts > 1))
        return err_set(e, ERR_UNREACHABLE, "%s: with socket= the host is localhost or left out", invalid);
    if (!d->socket && !d->hosts[0].name)
        d->socket = default_socket;
    return 0;
}

static int parse(struct mariadb_dsn *d, const char *dsn, struct err *e)
{
    const char *rest = strstr(dsn, "://");
    if (!rest)
        return err_set(e, ERR_UNREACHABLE, "%s: it begins with mariadb:// or mysql://", invalid);
    rest += 3;
    if (check_secret(rest, e) < 0)
        return -1;
    size_t authority = strcspn(rest, "/?#");
    const char *at = memchr(rest, '@', authority), *path = rest + authority;
    const char *hosts = at ? at + 1 : rest;
    size_t path_len = *path == '/' ? strcspn(path + 1, "?#") : 0;
    const char *query = *path == '/' ? path + 1 + path_len : path;
    if ((at && parse_user(d, rest, (size_t)(at - rest), e) < 0) ||
        parse_hosts(d, hosts, (size_t)(path - hosts), e) < 0)
        return -1;
    if (!path_len)
        return err_set(e, ERR_UNREACHABLE, "%s: it names no database, as in " FORM, invalid);
    if (decode_into(d->arena, path + 1, path_len, "database", &d->database, e) < 0)
        return -1;
    if (*query == '#' || strchr(query, '#'))
        return err_set(e, ERR_UNREACHABLE, "%s: a # is written as %%23", invalid);
    if (*query == '?' && parse_options(d, query + 1, e) < 0)
        return -1;
    if (d->tls == TLS_UNSAID) /* who names an authority wants it asked */
        d->tls = d->ca ? TLS_VERIFIED : TLS_PREFERRED;
    return check_hosts(d, e);
}

int mariadb_dsn_parse(const char *dsn, struct mariadb_dsn *ret, struct err *e)
{
    struct mariadb_dsn d = {.arena = arena_new(), .connect_timeout_s = CONNECT_TIMEOUT_S, .tls = TLS_UNSAID};
    if (parse(&d, dsn, e) < 0) {
        mariadb_dsn_release(&d);
        return -1;
    }
    const char *password = getenv("MYSQL_PWD");
    if (!d.password && password)
        d.password = arena_strdup(d.arena, password);
    *ret = d;
    return 0;
}
