/* http_guard: the listen address, the Host header, the token: decisions without a socket. */
#include "http_guard.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- addresses --- */

static bool read_port(const char *s, unsigned *ret)
{
    size_t digits = strspn(s, "0123456789");
    if (digits == 0 || digits > 5 || s[digits])
        return false;
    unsigned long port = strtoul(s, NULL, 10);
    *ret = (unsigned)port;
    return port <= 65535;
}

/* Addresses are kept in one spelling, so that they can be compared as texts. */
static bool normal_address(int family, char *host, size_t size)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(family, host, bytes) == 1 && inet_ntop(family, bytes, host, (socklen_t)size) != NULL;
}

static bool is_name(const char *host)
{
    for (const char *c = host; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-._", *c))
            return false;
    return *host != '\0';
}

bool endpoint_read(const char *s, unsigned port_if_none, struct endpoint *ret)
{
    struct endpoint e = {.port = port_if_none};
    bool bracketed = s[0] == '[';
    size_t len = strcspn(s + bracketed, bracketed ? "]" : ":");
    const char *rest = s + bracketed + len;
    if (len >= sizeof(e.host) || (bracketed && *rest++ != ']'))
        return false;
    for (size_t i = 0; i < len; i++)
        e.host[i] = (char)tolower((unsigned char)s[bracketed + i]);
    if (*rest == '\0' && port_if_none == 0)
        return false;
    if (*rest && (*rest != ':' || !read_port(rest + 1, &e.port)))
        return false;
    e.is_address = normal_address(bracketed ? AF_INET6 : AF_INET, e.host, sizeof(e.host));
    if (!e.is_address && (bracketed || !is_name(e.host)))
        return false;
    *ret = e;
    return true;
}

const char *endpoint_write(const char *host, unsigned port, char buffer[ENDPOINT_SIZE])
{
    bool six = strchr(host, ':') != NULL;
    snprintf(buffer, ENDPOINT_SIZE, "%s%s%s:%u", six ? "[" : "", host, six ? "]" : "", port);
    return buffer;
}

bool address_is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const void *)address;
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

/* --- the token --- */

char *token_trim(char *text)
{
    static const char blanks[] = " \t\r\n\v\f";
    text += strspn(text, blanks);
    size_t len = strlen(text);
    while (len > 0 && strchr(blanks, text[len - 1]))
        text[--len] = '\0';
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return NULL;
    return len ? text : NULL;
}

bool token_equal(const char *given, const char *token)
{
    size_t n_given = strlen(given), n = strlen(token);
    if (n == 0)
        return false;
    volatile unsigned char differ = n_given != n;
    for (size_t i = 0; i < n_given; i++)
        differ |= (unsigned char)(given[i] ^ token[i % n]);
    return differ == 0;
}

/* Whether the one Authorization header is `Bearer TOKEN`. Of two, a proxy may have judged the other. */
static bool is_authorized(const struct guard *g, const struct credentials *c)
{
    static const char scheme[] = "Bearer ";
    if (!g->token || c->n_authorizations != 1 ||
        strncasecmp(c->authorizations[0], scheme, strlen(scheme)) != 0)
        return false;
    const char *given = c->authorizations[0] + strlen(scheme);
    return token_equal(given + strspn(given, " "), g->token);
}

/* --- the Host header --- */

static const char *const loopback_hosts[] = {"127.0.0.1", "localhost", "::1"};
enum { N_LOOPBACK_HOSTS = sizeof(loopback_hosts) / sizeof(loopback_hosts[0]) };

static bool names_loopback(const struct guard *g, const struct endpoint *host)
{
    bool known = strcmp(host->host, g->listen.host) == 0;
    for (size_t i = 0; i < N_LOOPBACK_HOSTS; i++)
        known = known || strcmp(host->host, loopback_hosts[i]) == 0;
    return known && host->port == g->listen.port;
}

static void refuse(struct verdict *v, int status, const char *why)
{
    v->status = status;
    snprintf(v->why, sizeof(v->why), "%s", why);
}

static void refuse_on_loopback(const struct guard *g, struct verdict *v)
{
    char one[ENDPOINT_SIZE];
    int at = snprintf(v->why, sizeof(v->why), "this Host is not served here; allowed: %s",
                      endpoint_write(g->listen.host, g->listen.port, one));
    for (size_t i = 0; i < N_LOOPBACK_HOSTS && at >= 0 && (size_t)at < sizeof(v->why); i++)
        if (strcmp(loopback_hosts[i], g->listen.host) != 0)
            at += snprintf(v->why + at, sizeof(v->why) - (size_t)at, ", %s",
                           endpoint_write(loopback_hosts[i], g->listen.port, one));
    v->status = 421;
}

static void judge_elsewhere(const struct guard *g, const struct credentials *c, const struct endpoint *host,
                            struct verdict *v)
{
    if (is_authorized(g, c))
        return;
    if (!c->health) {
        refuse(v, 401, "this needs the token of serve.token_file: Authorization: Bearer TOKEN");
        return;
    }
    if (host && !host->is_address && strcmp(host->host, g->listen.host) != 0)
        refuse(v, 421,
               "this Host is not served without a token; allowed: an IP address, or the name that "
               "serve.listen has");
}

void guard_judge(const struct guard *g, const struct credentials *c, struct verdict *v)
{
    *v = (struct verdict){0};
    struct endpoint host;
    bool none = c->n_hosts == 0 && c->old;
    if (!none && c->n_hosts != 1)
        refuse(v, 400, c->n_hosts ? "more than one Host header" : "no Host header");
    else if (!none && !endpoint_read(c->hosts[0], 80, &host))
        refuse(v, 400, "the Host header is not host:port");
    else if (!g->loopback)
        judge_elsewhere(g, c, none ? NULL : &host, v);
    else if (!none && !names_loopback(g, &host))
        refuse_on_loopback(g, v);
}

/* --- the query of a URI --- */

static int hex(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

char *query_decode(const char *s, size_t len, char *buffer, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        int c = s[i] == '+' ? ' ' : (unsigned char)s[i];
        if (c == '%') {
            int high = i + 2 < len ? hex(s[i + 1]) : -1, low = i + 2 < len ? hex(s[i + 2]) : -1;
            if (high < 0 || low < 0)
                return NULL;
            c = high * 16 + low;
            i += 2;
        }
        if (c < ' ' || c == 0x7f || n + 1 >= size)
            return NULL;
        buffer[n++] = (char)c;
    }
    buffer[n] = '\0';
    return buffer;
}
