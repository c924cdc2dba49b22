/* http_guard: who may ask what over HTTP. Pure: texts in, a verdict out; nothing here opens or reads
 * anything.
 *
 * The address that is LISTENED on decides, not the one that asks: a proxy on this machine asks from loopback
 * for anybody.
 *
 *                     on loopback                          elsewhere (never without a token)
 *   Host              an address of loopback or localhost, with a right token: any well-formed one; without
 *                     with the port, exactly               (health): an IP address or the name listened on
 *   /healthz /readyz  free                                 free
 *   everything else   free                                 needs the token
 *
 * A page in a browser can make its own name point at this machine (DNS rebinding) and then read what is free;
 * but its requests carry that name as their Host. An IP address in Host is no such name. A request of
 * HTTP/1.0 may have no Host (load balancers probe like this); no browser sends one. */
#ifndef HTTP_GUARD_H
#define HTTP_GUARD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* host:port, as serve.listen and the Host header write it. */
struct endpoint {
    char host[256]; /* without brackets, in lower case; an IP address in its shortest form */
    bool is_address;
    unsigned port;
};
/* False when malformed. port_if_none: what a missing port means; 0: it must be there. */
bool endpoint_read(const char *s, unsigned port_if_none, struct endpoint *ret);
/* "[::1]:9933"; returns buffer. */
enum { ENDPOINT_SIZE = 256 + 10 };
const char *endpoint_write(const char *host, unsigned port, char buffer[ENDPOINT_SIZE]);

/* 127.0.0.0/8, ::1, and the former written as IPv6. */
bool address_is_loopback(const struct sockaddr *address);

struct guard {
    struct endpoint listen; /* with the real port */
    bool loopback;          /* what it is bound to, whatever it is called */
    const char *token;      /* NULL: none is set */
};

/* What a request says of itself. */
struct credentials {
    const char *const *hosts; /* every Host header */
    size_t n_hosts;
    const char *const *authorizations; /* every Authorization header */
    size_t n_authorizations;
    bool old;    /* HTTP/1.0 */
    bool health; /* asks for what is always free */
};

/* 0: may pass. Else a status of HTTP, and why, on one line. */
struct verdict {
    int status;
    char why[400];
};
void guard_judge(const struct guard *g, const struct credentials *c, struct verdict *ret);

/* Trims a token as read from a file; NULL when it cannot be one: empty, or with blanks or control characters
 * inside, which no header could carry. */
char *token_trim(char *text);
/* Takes as long for a wrong token as for the right one. */
bool token_equal(const char *given, const char *token);

/* A value out of a URI's query, with + and %XX decoded; NULL on a bad escape, a control character or when it
 * does not fit. */
char *query_decode(const char *s, size_t len, char *buffer, size_t size);

#endif
