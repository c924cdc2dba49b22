/* watch: whether a file is another than the one that was read. What the file is says its inode and its
 * times, looked at whenever the loop turns; inotify only makes it turn soon. So a file that is replaced by a
 * rename, through a link or behind a mount is noticed like one that is written in place. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/internal.h"

#define SETTLE_US (200 * US_PER_MS) /* a file that is being written is left alone */

static int64_t ns(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct fingerprint look_at(const char *file)
{
    struct stat st;
    if (stat(file, &st) < 0 || !S_ISREG(st.st_mode))
        return (struct fingerprint){0};
    return (struct fingerprint){.there = true,
                                .device = (uint64_t)st.st_dev,
                                .inode = (uint64_t)st.st_ino,
                                .size = (uint64_t)st.st_size,
                                .changed_ns = ns(st.st_ctim),
                                .modified_ns = ns(st.st_mtim)};
}

static bool same_file(const struct fingerprint *a, const struct fingerprint *b)
{
    return a->there == b->there && a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed_ns == b->changed_ns && a->modified_ns == b->modified_ns;
}

static void watch_folder(int fd, const char *file)
{
    AUTO(mem_free_p) char *copy = mem_strdup(file);
    char *slash = strrchr(copy, '/');
    if (slash)
        slash[slash == copy] = 0;
    inotify_add_watch(fd, slash ? copy : ".",
                      IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ATTRIB | IN_MODIFY | IN_ONLYDIR);
}

/* The folder of the name, and that of the file it leads to. Adding what is watched already does nothing; a
 * failure (no watches left) only means that a change is noticed later. */
static void watch_folders(struct watch *w, const char *file)
{
    char target[PATH_MAX];
    if (w->fd < 0)
        return;
    watch_folder(w->fd, file);
    if (realpath(file, target))
        watch_folder(w->fd, target);
}

void watch_open(struct watch *w, const char *file)
{
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    watch_folders(w, file);
}

void watch_close(struct watch *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

void watch_loaded(struct watch *w, const char *file)
{
    w->loaded = w->seen = look_at(file);
    w->settles_us = 0;
}

static void drain(int fd)
{
    char events[4096];
    while (fd >= 0 && read(fd, events, sizeof(events)) > 0) {
    }
}

bool watch_changed(struct watch *w, const char *file, int64_t *ret_wait_us)
{
    drain(w->fd);
    watch_folders(w, file);
    struct fingerprint now = look_at(file);
    if (!now.there || same_file(&now, &w->loaded)) { /* one that vanished comes back, or does not */
        w->settles_us = 0;
        return false;
    }
    int64_t at = when_monotonic_us();
    if (!w->settles_us || !same_file(&now, &w->seen)) {
        w->seen = now;
        w->settles_us = at + SETTLE_US;
    }
    if (at >= w->settles_us)
        return true;
    if (*ret_wait_us > w->settles_us - at)
        *ret_wait_us = w->settles_us - at;
    return false;
}
