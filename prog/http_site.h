/* http_site: where to listen and with which token, from what the contract says: resolved, read, judged. */
#ifndef HTTP_SITE_H
#define HTTP_SITE_H

#include "http_guard.h"
#include "lapse.h"

/* listen NULL: nowhere. */
struct site {
    char *listen; /* as the contract writes it */
    struct endpoint at;
    struct sockaddr_storage address;
    socklen_t address_len;
    bool loopback;
    char *token;     /* NULL: none */
    bool token_open; /* everybody on this machine may read its file */
};

/* Why not, and what a process that only starts should end with. */
struct sorry {
    enum lapse_exit exit;
    int error; /* errno, where a system call said no */
    char text[600];
};

/* 0, or -1: *ret_sorry says why, *ret is untouched. */
int site_read(const struct lapse_serve *serve, struct site *ret, struct sorry *ret_sorry);
/* A listening socket; the real port goes into s->at. -1: *ret_sorry says why. */
int site_open(struct site *s, struct sorry *ret_sorry);
void site_release(struct site *s);

#endif
