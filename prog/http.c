/* http: libmicrohttpd in a loop of our own, which also cuts whoever takes too long.
 *
 * The library's own timeout is one of silence, which a client that sends a byte now and then never meets. So
 * each connection is watched here: from its opening, or from the end of the answer before, it has ASKING_MS
 * to ask, and then ANSWERING_MS to take the answer. When there is no room left, those that have been silent
 * the longest give way: a thousand that idle never keep a real question out. */
#include "http.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "http_pages.h"
#include "http_site.h"
#include "http_work.h"

enum {
    ASKING_MS = 10 * 1000,
    ANSWERING_MS = 30 * 1000,
    LOOK_MS = 1000,          /* how often the watches are looked at, while anybody is there */
    MOST_CONNECTIONS = 2048, /* and no more than half of what the process may open: databases come first */
    WANTED_FILES = 8192,
    MEMORY_OF_ONE = 16 * 1024, /* of a connection, with the head of its request */
    MOST_URI = 2048,
    MOST_HEADERS = 8, /* of one name that are looked at */
};

/* A connection. */
struct visitor {
    struct visitor *newer, *older;
    int fd;
    int64_t since_ms;
    enum doing { ASKING, ANSWERING, WORKING, CUT } doing;
};

struct http {
    struct lapse_daemon *daemon;
    struct site site;
    unsigned long generation;
    struct MHD_Daemon *server;       /* NULL: serves nowhere */
    struct visitor *newest, *oldest; /* by since_ms */
    unsigned n_visitors, most_visitors;
    struct work *work;
    pthread_t thread;
    int wake; /* eventfd: stop or follow was asked */
    atomic_bool stop, follow;
};

/* What is being asked, from the first line of a request to the end of its answer. */
struct request {
    struct job job; /* first: they are the same address */
    struct http *http;
    struct MHD_Connection *connection;
    const struct page *page;
    struct ask ask;
    struct answer answer;
    bool begun, made, too_long;
    char uri[MOST_URI + 1];
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- who is there --- */

static void unlink_visitor(struct http *h, struct visitor *v)
{
    *(v->newer ? &v->newer->older : &h->newest) = v->older;
    *(v->older ? &v->older->newer : &h->oldest) = v->newer;
}

static void link_visitor(struct http *h, struct visitor *v)
{
    v->newer = NULL;
    v->older = h->newest;
    *(v->older ? &v->older->newer : &h->oldest) = v;
    h->newest = v;
}

/* The clock of a visitor starts anew. */
static void begins(struct http *h, struct visitor *v, enum doing doing)
{
    unlink_visitor(h, v);
    link_visitor(h, v);
    v->doing = doing;
    v->since_ms = now_ms();
}

static void visitor_comes(struct http *h, struct MHD_Connection *connection, void **context)
{
    struct visitor *v = calloc(1, sizeof(*v));
    if (!v)
        abort();
    v->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    link_visitor(h, v);
    begins(h, v, ASKING);
    h->n_visitors++;
    *context = v;
}

static void visitor_goes(struct http *h, struct visitor *v)
{
    unlink_visitor(h, v);
    h->n_visitors--;
    free(v);
}

static void on_connection(void *http, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        visitor_comes(http, connection, context);
    else if (*context)
        visitor_goes(http, *context);
}

static struct visitor *visitor_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* The library sees the end of the connection and closes it. Until it says so, the descriptor is its own. */
static void cut(struct visitor *v)
{
    shutdown(v->fd, SHUT_RDWR);
    v->doing = CUT;
}

static bool is_full(const struct http *h)
{
    return h->n_visitors >= h->most_visitors;
}

/* An eighth at once: whoever waits at the door may stand behind many who only idle. */
static void make_room(struct http *h)
{
    unsigned wanted = h->most_visitors / 8 + 1;
    for (struct visitor *v = h->oldest; v && wanted; v = v->newer)
        if (v->doing == ASKING) {
            cut(v);
            wanted--;
        }
}

static void cut_the_late(struct http *h)
{
    int64_t now = now_ms();
    for (struct visitor *v = h->oldest; v && now - v->since_ms > ASKING_MS; v = v->newer)
        if (v->doing == ASKING || (v->doing == ANSWERING && now - v->since_ms > ANSWERING_MS))
            cut(v);
}

/* --- a request --- */

/* The library tells the whole target, before it takes it apart. */
static void *on_uri(void *http, const char *uri, struct MHD_Connection *connection)
{
    struct request *r = calloc(1, sizeof(*r));
    if (!r)
        abort();
    r->http = http;
    r->connection = connection;
    r->ask.daemon = r->http->daemon;
    size_t len = strlen(uri);
    r->too_long = len > MOST_URI;
    memcpy(r->uri, uri, r->too_long ? MOST_URI : len);
    return r;
}

static void on_completed(void *http, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    (void)code;
    struct request *r = *context;
    if (r)
        free(r->answer.body);
    free(r);
    *context = NULL;
    struct visitor *v = visitor_of(connection);
    if (v && v->doing != CUT)
        begins(http, v, ASKING);
}

/* Every header of one name; more than MOST_HEADERS are as wrong as that many. */
struct values {
    const char *name, *values[MOST_HEADERS];
    size_t n;
};

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct values *v = context;
    if (strcasecmp(name, v->name) == 0 && v->n < MOST_HEADERS)
        v->values[v->n++] = value ? value : "";
    return MHD_YES;
}

static struct values headers(struct MHD_Connection *connection, const char *name)
{
    struct values v = {.name = name};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, &v);
    return v;
}

/* "Content-Length : 5" is no Content-Length to the library, but it is one to some proxies: what the one takes
 * for a body would be the next request of the other. */
static enum MHD_Result on_name(void *odd, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind, (void)value;
    bool *found = odd;
    for (; *name; name++)
        *found = *found || *name <= ' ' || *name > '~' || strchr("\"(),/:;<=>?@[\\]{}", *name);
    return MHD_YES;
}

static bool has_odd_names(struct MHD_Connection *connection)
{
    bool odd = false;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, on_name, &odd);
    return odd;
}

/* A value with a zero byte comes to us cut there, while a proxy may have judged all of it. The library does
 * not say so, but leaves the lines of the head where they were read, one behind the other, with zeros for the
 * line breaks: behind a whole value there are one or two of them, then the next name. */
struct whole {
    const char *end; /* of the value before */
    bool cut;
};

static enum MHD_Result on_whole(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct whole *w = context;
    ptrdiff_t gap = w->end ? (ptrdiff_t)((uintptr_t)name - (uintptr_t)w->end) : 1;
    w->cut = w->cut || (gap > 2 && gap < MEMORY_OF_ONE);
    w->end = value ? value + strlen(value) : NULL;
    return MHD_YES;
}

static bool has_zero_bytes(struct MHD_Connection *connection)
{
    struct whole w = {0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, on_whole, &w);
    return w.cut || (w.end && w.end[1]); /* behind the last is the empty line */
}

static bool has_body(struct MHD_Connection *connection)
{
    struct values length = headers(connection, "Content-Length");
    return headers(connection, "Transfer-Encoding").n > 0 || length.n > 1 ||
           (length.n == 1 && strspn(length.values[0], "0") != strlen(length.values[0]));
}

static enum MHD_Result send_answer(struct request *r)
{
    static const char policy[] =
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    struct answer *a = &r->answer;
    struct MHD_Response *response = MHD_create_response_from_buffer(a->len, a->body, MHD_RESPMEM_MUST_FREE);
    if (!response)
        return MHD_NO;
    a->body = NULL;
    MHD_add_response_header(response, "Content-Type", a->type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (strncmp(a->type, "text/html", strlen("text/html")) == 0)
        MHD_add_response_header(response, "Content-Security-Policy", policy);
    if (a->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    if (a->status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"lapse\"");
    if (a->status == MHD_HTTP_SERVICE_UNAVAILABLE && r->page && r->page->slow)
        MHD_add_response_header(response, "Retry-After", "5");
    enum MHD_Result done = MHD_queue_response(r->connection, (unsigned)a->status, response);
    MHD_destroy_response(response);
    return done;
}

static bool wants_json(struct MHD_Connection *connection)
{
    struct values accepted = headers(connection, "Accept");
    bool json = false;
    for (size_t i = 0; i < accepted.n; i++)
        json = json || strcasestr(accepted.values[i], "application/json");
    return json;
}

static void judge(struct request *r, const char *version, struct verdict *v)
{
    struct values hosts = headers(r->connection, "Host");
    struct values authorizations = headers(r->connection, "Authorization");
    struct site *s = &r->http->site;
    guard_judge(&(struct guard){.listen = s->at, .loopback = s->loopback, .token = s->token},
                &(struct credentials){.hosts = hosts.values,
                                      .n_hosts = hosts.n,
                                      .authorizations = authorizations.values,
                                      .n_authorizations = authorizations.n,
                                      .old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0,
                                      .health = r->page && r->page->health},
                v);
}

/* Whether the request may be answered; else r->answer says why not. */
static bool admit(struct request *r, const char *method, const char *version)
{
    struct verdict v;
    const char *query = strchr(r->uri, '?');
    if (!r->too_long)
        r->page = page_find(r->uri, strcspn(r->uri, "?"));
    r->ask.json = wants_json(r->connection);
    judge(r, version, &v);
    if (v.status)
        answer_error(r->uri, v.status, v.why, &r->answer);
    else if (r->too_long)
        answer_error(r->uri, MHD_HTTP_URI_TOO_LONG, "the URI is longer than 2048 bytes", &r->answer);
    else if (has_odd_names(r->connection))
        answer_error(r->uri, MHD_HTTP_BAD_REQUEST, "the name of a header is none", &r->answer);
    else if (has_zero_bytes(r->connection))
        answer_error(r->uri, MHD_HTTP_BAD_REQUEST, "a header holds a zero byte, or goes on in a second line",
                     &r->answer);
    else if (has_body(r->connection))
        answer_error(r->uri, MHD_HTTP_CONTENT_TOO_LARGE, "requests with a body are not taken", &r->answer);
    else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        answer_error(r->uri, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are allowed", &r->answer);
    else if (!r->page)
        answer_error(r->uri, MHD_HTTP_NOT_FOUND, "there is no such path; / lists those there are",
                     &r->answer);
    else
        return page_query(r->page, query ? query + 1 : NULL, &r->ask, &r->answer);
    return false;
}

/* A page that waits for the database is made by the worker. The connection sleeps until then. */
static void make_job(struct job *job)
{
    struct request *r = (struct request *)(void *)job;
    r->page->make(&r->ask, &r->answer);
}

static void job_done(struct job *job)
{
    struct request *r = (struct request *)(void *)job;
    if (job->dropped)
        answer_error(r->uri, MHD_HTTP_SERVICE_UNAVAILABLE, "this address is being closed", &r->answer);
    r->made = true;
    MHD_resume_connection(r->connection);
}

static enum MHD_Result answer_later(struct request *r)
{
    r->job = (struct job){.make = make_job, .done = job_done};
    begins(r->http, visitor_of(r->connection), WORKING);
    MHD_suspend_connection(r->connection);
    work_add(r->http->work, &r->job);
    return MHD_YES;
}

/* Called when the head of a request is there, again when all of it is, and once more after a sleep. What is
 * answered at the first call ends the connection, as it must before a body that nobody will read. */
static enum MHD_Result on_request(void *http, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **context)
{
    (void)http, (void)url, (void)upload, (void)upload_size;
    struct request *r = *context;
    if (!r->begun) {
        r->begun = true;
        if (!has_body(connection) && !has_odd_names(connection))
            return MHD_YES;
    }
    if (!r->made && admit(r, method, version)) {
        if (r->page->slow && !work_full(r->http->work))
            return answer_later(r);
        if (r->page->slow)
            answer_error(r->uri, MHD_HTTP_SERVICE_UNAVAILABLE,
                         "too many wait for the database; try again later", &r->answer);
        else
            r->page->make(&r->ask, &r->answer);
    }
    begins(r->http, visitor_of(connection), ANSWERING);
    return send_answer(r);
}

/* --- opening and closing --- */

/* Room for connections, without taking from databases what they need. */
static unsigned room(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return 64;
    if (files.rlim_cur < WANTED_FILES && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max < WANTED_FILES ? files.rlim_max : WANTED_FILES;
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    return files.rlim_cur / 2 < MOST_CONNECTIONS ? (unsigned)(files.rlim_cur / 2) : MOST_CONNECTIONS;
}

static int open_server(struct http *h, struct site *s, struct sorry *why)
{
    int fd = site_open(s, why);
    if (fd < 0)
        return -1;
    h->most_visitors = room();
    h->server = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, h,
                                 MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, h->most_visitors,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_OF_ONE,
                                 MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_NOTIFY_COMPLETED,
                                 on_completed, h, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_END);
    if (h->server)
        return 0;
    /* Whether the library closed the socket is not known: closing another's would be worse than one lost. */
    *why = (struct sorry){.exit = LAPSE_FAILED};
    snprintf(why->text, sizeof(why->text), "serve.listen: the server on %s cannot start: %s", s->listen,
             strerror(errno));
    return -1;
}

static void close_server(struct http *h)
{
    if (!h->server)
        return;
    work_drain(h->work);
    MHD_stop_daemon(h->server);
    h->server = NULL;
}

static void say_where(struct http *h)
{
    char at[ENDPOINT_SIZE], line[ENDPOINT_SIZE + 100];
    if (!h->site.listen)
        return;
    endpoint_write(h->site.at.host, h->site.at.port, at);
    snprintf(line, sizeof(line), "serving on http://%s/%s", at,
             h->site.loopback ? "" : "; all but health needs the token");
    lapse_daemon_say(h->daemon, LAPSE_INFO, "lapse.serving", line);
}

static void say_open_token(struct http *h)
{
    if (h->site.token_open)
        lapse_daemon_say(h->daemon, LAPSE_WARN, "lapse.remark",
                         "serve.token_file: everybody on this machine can read it: chmod o-r");
}

/* --- following the contract --- */

/* Takes a new token where the address stays. */
static void keep_address(struct http *h, struct site *s)
{
    s->at = h->site.at; /* with the port that was picked */
    s->address = h->site.address;
    s->loopback = h->site.loopback;
    site_release(&h->site);
    h->site = *s;
    say_open_token(h);
}

/* The old server goes only when the new one stands; where both want one port (127.0.0.1 to 0.0.0.0), the old
 * one must go first, and comes back if the new one fails. */
static int move(struct http *h, struct site *s, struct sorry *why)
{
    struct MHD_Daemon *old = h->server;
    if (s->listen && open_server(h, s, why) != 0) {
        if (!old || why->error != EADDRINUSE || s->at.port != h->site.at.port)
            return -1;
        close_server(h);
        struct sorry again;
        if (open_server(h, s, why) != 0)
            return open_server(h, &h->site, &again) == 0 ? -1 : -2;
        old = NULL;
    }
    if (old) {
        struct MHD_Daemon *new = s->listen ? h->server : NULL;
        h->server = old;
        close_server(h);
        h->server = new;
    }
    return 0;
}

static void refuse_change(struct http *h, const struct sorry *why)
{
    char line[sizeof(why->text) + ENDPOINT_SIZE + 100], at[ENDPOINT_SIZE];
    if (h->server)
        snprintf(line, sizeof(line), "%s; still serving on http://%s/", why->text,
                 endpoint_write(h->site.at.host, h->site.at.port, at));
    else
        snprintf(line, sizeof(line), "%s; serving nowhere", why->text);
    lapse_daemon_say(h->daemon, LAPSE_ERROR, "lapse.serving", line);
}

static void change_to(struct http *h, struct site *s)
{
    struct sorry why = {0};
    bool same = h->server && s->listen && strcmp(s->listen, h->site.listen) == 0;
    if (same || (!s->listen && !h->server)) {
        keep_address(h, s);
        return;
    }
    if (move(h, s, &why) != 0) {
        refuse_change(h, &why);
        site_release(s);
        return;
    }
    site_release(&h->site);
    h->site = *s;
    if (!h->server)
        lapse_daemon_say(h->daemon, LAPSE_INFO, "lapse.serving", "serving nowhere: serve is off");
    say_where(h);
    say_open_token(h);
}

static void follow(struct http *h)
{
    struct lapse_serve serve = {0};
    struct sorry why = {0};
    struct site s;
    lapse_daemon_serve(h->daemon, &serve);
    if (serve.generation != h->generation) {
        h->generation = serve.generation;
        if (site_read(&serve, &s, &why) == 0)
            change_to(h, &s);
        else
            refuse_change(h, &why);
    }
    free(serve.listen);
    free(serve.token_file);
}

/* --- the loop --- */

/* How long nothing needs to be done; -1: until something comes. */
static int patience(struct http *h)
{
    MHD_UNSIGNED_LONG_LONG ms;
    if (!h->server)
        return -1;
    if (MHD_get_timeout(h->server, &ms) == MHD_YES && ms < LOOK_MS)
        return (int)ms;
    if (is_full(h))
        return 10;
    return h->oldest ? LOOK_MS : -1;
}

static void wait_for_something(struct http *h)
{
    int epoll = h->server ? MHD_get_daemon_info(h->server, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd : -1;
    struct pollfd on[] = {{.fd = h->wake, .events = POLLIN}, {.fd = epoll, .events = POLLIN}};
    uint64_t count;
    if (poll(on, 2, patience(h)) > 0 && on[0].revents && read(h->wake, &count, sizeof(count)) < 0 &&
        errno != EAGAIN)
        abort();
}

static void serve(struct http *h)
{
    bool was_full = is_full(h);
    MHD_run(h->server);
    if (was_full && !is_full(h))
        MHD_run(h->server); /* it listens again only in its next turn */
    if (is_full(h))
        make_room(h);
}

static void *http_body(void *argument)
{
    struct http *h = argument;
    while (!atomic_load(&h->stop)) {
        wait_for_something(h);
        if (atomic_exchange(&h->follow, false))
            follow(h);
        if (h->server)
            serve(h);
        cut_the_late(h);
    }
    close_server(h);
    return NULL;
}

static void wake(struct http *h)
{
    uint64_t one = 1;
    if (write(h->wake, &one, sizeof(one)) < 0 && errno != EAGAIN)
        abort();
}

void http_follow(struct http *h)
{
    atomic_store(&h->follow, true);
    wake(h);
}

int http_accepts(const struct lapse_serve *wanted, char **ret_why)
{
    struct sorry why = {0};
    struct site s = {0};
    if (site_read(wanted, &s, &why) == 0) {
        site_release(&s);
        return 0;
    }
    *ret_why = strdup(why.text);
    return -1;
}

static void http_free(struct http *h)
{
    if (h->work)
        work_free(h->work);
    site_release(&h->site);
    close(h->wake);
    free(h);
}

void http_stop(struct http *h)
{
    if (!h)
        return;
    atomic_store(&h->stop, true);
    wake(h);
    pthread_join(h->thread, NULL);
    http_free(h);
}

static int open_first(struct http *h, struct sorry *why)
{
    struct lapse_serve serve = {0};
    lapse_daemon_serve(h->daemon, &serve);
    h->generation = serve.generation;
    int done = site_read(&serve, &h->site, why);
    free(serve.listen);
    free(serve.token_file);
    return done == 0 && h->site.listen ? open_server(h, &h->site, why) : done;
}

struct http *http_start(struct lapse_daemon *d, enum lapse_exit *ret_exit)
{
    struct http *h = calloc(1, sizeof(*h));
    if (!h || (h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        abort();
    h->daemon = d;
    struct sorry why = {0};
    if (open_first(h, &why) != 0) {
        lapse_daemon_say(d, LAPSE_ERROR, "lapse.serving", why.text);
        *ret_exit = why.exit;
        http_free(h);
        return NULL;
    }
    h->work = work_new();
    h->thread = thread_start(http_body, h);
    say_where(h);
    say_open_token(h);
    return h;
}
