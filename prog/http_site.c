/* http_site: name resolution, the listening socket, the token's file. */
#include "http_site.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_TOKEN = 4096, BACKLOG = 1024 };

__attribute__((format(printf, 3, 4))) static int sorry(struct sorry *ret, enum lapse_exit exit,
                                                       const char *format, ...)
{
    va_list values;
    ret->exit = exit;
    ret->error = errno;
    va_start(values, format);
    vsnprintf(ret->text, sizeof(ret->text), format, values);
    va_end(values);
    return -1;
}

void site_release(struct site *s)
{
    free(s->listen);
    if (s->token)
        explicit_bzero(s->token, strlen(s->token));
    free(s->token);
    *s = (struct site){0};
}

static char *copy(const char *s)
{
    char *made = strdup(s);
    if (!made)
        abort();
    return made;
}

/* --- the token --- */

/* Reads a whole small file into buffer, as text; -1 with errno. */
static ssize_t read_small(int fd, char *buffer, size_t size)
{
    size_t n = 0;
    for (;;) {
        ssize_t got = read(fd, buffer + n, size - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        n += (size_t)got;
        if (got == 0 || n == size - 1) {
            buffer[n] = '\0';
            return (ssize_t)n;
        }
    }
}

static int read_token_from(int fd, const char *path, struct site *s, struct sorry *why)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0)
        return sorry(why, LAPSE_BAD_INPUT, "serve.token_file: cannot read %s: %s", path, strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return sorry(why, LAPSE_BAD_INPUT, "serve.token_file: %s is not a file", path);

    char buffer[MOST_TOKEN + 2];
    ssize_t n = read_small(fd, buffer, sizeof(buffer));
    char *token = n >= 0 && n <= MOST_TOKEN && strlen(buffer) == (size_t)n ? token_trim(buffer) : NULL;
    if (n < 0)
        sorry(why, LAPSE_BAD_INPUT, "serve.token_file: cannot read %s: %s", path, strerror(errno));
    else if (!token && buffer[strspn(buffer, " \t\r\n\v\f")] == '\0')
        sorry(why, LAPSE_BAD_INPUT, "serve.token_file: %s is empty; it must hold the token", path);
    else if (!token)
        sorry(why, LAPSE_BAD_INPUT,
              "serve.token_file: %s holds no token: it must be one word of printable ASCII, at most %d bytes",
              path, MOST_TOKEN);
    else {
        s->token = copy(token);
        s->token_open = facts.st_mode & S_IROTH;
    }
    explicit_bzero(buffer, sizeof(buffer));
    return token ? 0 : -1;
}

/* Without O_NONBLOCK a pipe in its place would hold up the start for ever. */
static int read_token(const char *path, struct site *s, struct sorry *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return sorry(why, LAPSE_BAD_INPUT, "serve.token_file: cannot read %s: %s", path, strerror(errno));
    int done = read_token_from(fd, path, s, why);
    close(fd);
    return done;
}

/* --- the address --- */

static int resolve(struct site *s, struct sorry *why)
{
    /* localhost may be ::1 and 127.0.0.1; one of them is enough, and the older is there on every machine. */
    const char *host = strcmp(s->at.host, "localhost") == 0 ? "127.0.0.1" : s->at.host;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[12];
    snprintf(port, sizeof(port), "%u", s->at.port);
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed)
        return sorry(why, LAPSE_FAILED, "serve.listen: cannot find the address of '%s': %s", host,
                     gai_strerror(failed));
    memcpy(&s->address, found->ai_addr, found->ai_addrlen);
    s->address_len = found->ai_addrlen;
    s->loopback = address_is_loopback(found->ai_addr);
    freeaddrinfo(found);
    return 0;
}

static int read_all(const struct lapse_serve *serve, struct site *s, struct sorry *why)
{
    if (!serve->listen)
        return 0;
    s->listen = copy(serve->listen);
    if (!endpoint_read(s->listen, 0, &s->at))
        return sorry(why, LAPSE_BAD_INPUT,
                     "serve.listen: '%s' is not host:port, like 127.0.0.1:9933 or [::1]:9933", s->listen);
    if (serve->token_file && read_token(serve->token_file, s, why) != 0)
        return -1;
    if (resolve(s, why) != 0)
        return -1;
    if (!s->loopback && !s->token)
        return sorry(why, LAPSE_BAD_INPUT,
                     "serve.listen: %s can be reached from other machines, which is refused without a token: "
                     "set serve.token_file, or listen on 127.0.0.1",
                     s->listen);
    return 0;
}

int site_read(const struct lapse_serve *serve, struct site *ret, struct sorry *ret_sorry)
{
    struct site s = {0};
    if (read_all(serve, &s, ret_sorry) != 0) {
        site_release(&s);
        return -1;
    }
    *ret = s;
    return 0;
}

/* --- the socket --- */

static int bind_and_listen(int fd, struct site *s)
{
    int yes = 1, no = 0;
    /* A port whose last connections are still closing may be taken again; one that is listened on may not. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0)
        return -1;
    if (s->address.ss_family == AF_INET6) /* [::] is every address, of both kinds */
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof(bound);
    if (bind(fd, (const struct sockaddr *)&s->address, s->address_len) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &len) != 0)
        return -1;
    s->address = bound; /* should it have to be opened again, then with the port that was picked */
    s->at.port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&bound)->sin6_port
                                                   : ((struct sockaddr_in *)(void *)&bound)->sin_port);
    return 0;
}

int site_open(struct site *s, struct sorry *ret_sorry)
{
    int fd = socket(s->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind_and_listen(fd, s) == 0)
        return fd;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return sorry(
        ret_sorry, LAPSE_FAILED, "serve.listen: cannot listen on %s: %s%s", s->listen, strerror(error),
        error == EADDRINUSE
            ? "; another program has this port: choose another (port 0 picks a free one), or serve: off"
            : "");
}
