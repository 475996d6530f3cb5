/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of boxes that stay; see box_listener.h. */
#include "engine/box_listener.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG 8

static void name_of(unsigned slot, char name[16])
{
    (void)snprintf(name, 16, "%u", slot);
}

/* The file is still the one that was made for this socket. */
static bool is_in_place(struct engine *engine, unsigned slot, const struct kept_listener *kept)
{
    struct stat info;
    char name[16];

    name_of(slot, name);
    return fstatat(engine->run_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
           info.st_ino == kept->file && info.st_ctim.tv_sec == kept->made_at.tv_sec &&
           info.st_ctim.tv_nsec == kept->made_at.tv_nsec;
}

static struct kept_listener take_kept(struct engine *engine, unsigned slot)
{
    struct kept_listener none = {.fd = -1};

    autolock(&engine->lock);
    struct kept_listener kept = none;
    for (unsigned i = 0; i < engine->n_listeners && kept.fd < 0; i++) {
        if (engine->listeners[i].slot != slot)
            continue;
        kept = engine->listeners[i];
        engine->listeners[i] = engine->listeners[--engine->n_listeners];
    }
    return kept;
}

static int make(struct engine *engine, unsigned slot, int *out, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[16];
    autofd sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock < 0)
        return error_sys(err, "make a socket");
    name_of(slot, name);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", engine->run_fd,
                   name);
    (void)unlinkat(engine->run_fd, name, 0); // the slot is ours: stale
    if (bind(sock, (struct sockaddr *)&address, sizeof address) < 0 || listen(sock, BACKLOG) < 0)
        return error_sys(err, "listen for sandbox '%s'", name);
    *out = take_fd(sock);
    return 0;
}

int listener_take(struct engine *engine, unsigned slot, int *out, struct error *err)
{
    if (engine_open_run_dir(engine, err) < 0)
        return -1;
    struct kept_listener kept = take_kept(engine, slot);
    if (kept.fd >= 0 && is_in_place(engine, slot, &kept)) {
        *out = kept.fd;
        return 0;
    }
    closep(&kept.fd);
    return make(engine, slot, out, err);
}

void listener_keep(struct engine *engine, unsigned slot, int *fd)
{
    struct stat info;
    char name[16];

    name_of(slot, name);
    if (*fd < 0 || engine->max_recycled == 0 ||
        fstatat(engine->run_fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    struct kept_listener kept = {slot, *fd, info.st_ino, info.st_ctim};
    autolock(&engine->lock);
    if (engine->n_listeners < engine->max_recycled) {
        engine->listeners[engine->n_listeners++] = kept;
        *fd = -1;
    }
}

static bool is_kept(struct engine *engine, unsigned slot)
{
    bool is_so = false;

    autolock(&engine->lock);
    for (unsigned i = 0; i < engine->n_listeners && !is_so; i++)
        is_so = engine->listeners[i].slot == slot;
    return is_so;
}

void listener_drop(struct engine *engine, unsigned slot)
{
    char name[16];

    name_of(slot, name);
    if (!is_kept(engine, slot))
        (void)unlinkat(engine->run_fd, name, 0);
}

void listener_close_all(struct engine *engine)
{
    while (engine->n_listeners > 0)
        closep(&engine->listeners[--engine->n_listeners].fd);
}
