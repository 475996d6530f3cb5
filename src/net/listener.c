/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets and the patience of accept. */
#include "net/listener.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define BACKLOG 4096       // the kernel cuts it to net.core.somaxconn
#define ACCEPTS_A_TURN 64  // then others have their turn
#define WAIT_FOR_FDS_MS 50 // after EMFILE and its like, or when there is no room

struct listener {
    struct loop *loop;
    const struct listener_events *events;
    void *owner;
    int fd;
    struct loop_watch *watch;
    struct loop_timer retry;
    char *address;
    dev_t device; // of a Unix socket's path, with inode: whether it is still ours
    ino_t inode;
};

static bool is_shortage(int code)
{
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

/* Whether there is a descriptor now for somebody who waits: the kernel tells of the shortage also when nobody does. */
static bool ask_for_room(struct listener *listener)
{
    struct pollfd waiting = {.fd = listener->fd, .events = POLLIN};

    if (!listener->events->on_shortage || poll(&waiting, 1, 0) <= 0)
        return false;
    return listener->events->on_shortage(listener->owner);
}

/* Until it is told to go on, or for a while. */
static void pause_listening(struct listener *listener)
{
    loop_watch_set(listener->watch, 0);
    loop_timer_set(&listener->retry, WAIT_FOR_FDS_MS);
}

static void on_connection(void *data, unsigned events)
{
    struct listener *listener = data;

    (void)events; // readable, or broken: accept tells which
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        if (listener->events->may_accept && !listener->events->may_accept(listener->owner)) {
            pause_listening(listener);
            return;
        }
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && is_shortage(errno) && ask_for_room(listener))
            fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            listener->events->on_accept(listener->owner, fd);
        } else if (is_shortage(errno)) {
            pause_listening(listener);
            return;
        } else if (errno == EAGAIN) {
            return;
        } // else that one connection failed before it was taken
    }
}

void listener_look(struct listener *listener)
{
    on_connection(listener, 0);
}

static void on_retry(void *data)
{
    listener_resume(data);
}

void listener_resume(struct listener *listener)
{
    loop_timer_clear(&listener->retry);
    loop_watch_set(listener->watch, LOOP_READABLE);
}

const char *listener_address(const struct listener *listener)
{
    return listener->address;
}

/* "ADDRESS:PORT" with numbers only, so that nothing has to be looked up. */
static int parse_address(const char *text, struct sockaddr_storage *out, socklen_t *length,
                         struct error *err)
{
    char host[INET6_ADDRSTRLEN + 2] = "";
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    unsigned long port = colon && colon[1] ? strtoul(colon + 1, &end, 10) : 65536;

    if (!colon || (size_t)(colon - text) >= sizeof host || port > 65535 || *end ||
        !(colon[1] >= '0' && colon[1] <= '9'))
        return error_set(err, ERROR_INVALID,
                         "listen address '%s' is not ADDRESS:PORT, such as 127.0.0.1:4747", text);
    memcpy(host, text, (size_t)(colon - text));
    size_t last = strlen(host);

    struct sockaddr_in *in4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
    *out = (struct sockaddr_storage){0};
    if (last == 0) {
        *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    } else if (host[0] == '[' && host[last - 1] == ']') {
        host[last - 1] = '\0';
        *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
        if (inet_pton(AF_INET6, host + 1, &in6->sin6_addr) != 1)
            return error_set(err, ERROR_INVALID, "'%s' is not an IPv6 address", host + 1);
    } else {
        *in4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        if (inet_pton(AF_INET, host, &in4->sin_addr) != 1)
            return error_set(
                err, ERROR_INVALID,
                "'%s' is not an IPv4 address; names are not looked up, and IPv6 goes in brackets",
                host);
    }
    *length = out->ss_family == AF_INET6 ? sizeof *in6 : sizeof *in4;
    return 0;
}

/* Inherited by what is accepted: a follower whose machine vanished is found out in about two
 * minutes. */
static void keep_alive(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 60},
        {IPPROTO_TCP, TCP_KEEPINTVL, 15},
        {IPPROTO_TCP, TCP_KEEPCNT, 4},
    };
    for (size_t i = 0; i < ARRAY_SIZE(options); i++)
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static int open_socket(const struct sockaddr_storage *address, socklen_t length, struct error *err)
{
    int on = 1;
    int off = 0;
    autofd fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return error_sys(err, "make a socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->ss_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    keep_alive(fd);
    // Inherited by what is accepted: answers are written whole, so waiting to fill a packet only
    // delays them.
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)address, length) < 0)
        return error_sys(err, "bind");
    return take_fd(fd);
}

static char *bound_address(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in in4;
        struct sockaddr_in6 in6;
    } bound = {0};
    socklen_t length = sizeof bound;
    char host[INET6_ADDRSTRLEN] = "";

    (void)getsockname(fd, &bound.any, &length);
    if (bound.any.sa_family == AF_INET6) {
        (void)inet_ntop(AF_INET6, &bound.in6.sin6_addr, host, sizeof host);
        return xasprintf("[%s]:%u", host, ntohs(bound.in6.sin6_port));
    }
    (void)inet_ntop(AF_INET, &bound.in4.sin_addr, host, sizeof host);
    return xasprintf("%s:%u", host, ntohs(bound.in4.sin_port));
}

/* Takes fd. NULL: it failed. */
static struct listener *start(struct loop *loop, int bound_fd, const struct listener_events *events,
                              void *owner, struct error *err)
{
    autoptr(listener) listener = xnew(struct listener);

    listener->loop = loop;
    listener->events = events;
    listener->owner = owner;
    listener->fd = bound_fd;
    loop_timer_init(&listener->retry, loop, on_retry, listener);
    if (listen(bound_fd, BACKLOG) < 0) {
        (void)error_sys(err, "listen");
        return NULL;
    }
    if (loop_watch_new(loop, bound_fd, on_connection, listener, &listener->watch, err) < 0)
        return NULL;
    loop_watch_set(listener->watch, LOOP_READABLE);
    return take(listener);
}

int listener_open_tcp(struct loop *loop, const char *address, const struct listener_events *events,
                      void *owner, struct listener **out, struct error *err)
{
    struct sockaddr_storage where = {0};
    socklen_t length = 0;

    if (parse_address(address, &where, &length, err) < 0)
        return -1;
    int fd = open_socket(&where, length, err);
    struct listener *listener = fd < 0 ? NULL : start(loop, fd, events, owner, err);
    if (!listener)
        return error_wrap(err, "listen on '%s'", address);
    listener->address = bound_address(listener->fd);
    *out = listener;
    return 0;
}

/* Is somebody listening at the path? */
static bool is_living(const struct sockaddr_un *where)
{
    autofd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 &&
           (connect(fd, (const struct sockaddr *)where, sizeof *where) == 0 || errno == EAGAIN);
}

static int name_socket(struct sockaddr_un *out, const char *path, const char *ending,
                       struct error *err)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(out->sun_path, sizeof out->sun_path, "%s%s", path, ending);
    if (length < 0 || (size_t)length >= sizeof out->sun_path)
        return error_set(err, ERROR_INVALID, "the path of a socket has at most %zu characters",
                         sizeof out->sun_path - 1 - strlen(ending));
    return 0;
}

/* Listens under another name first, so that the path never leads to a socket that is too open or
 * not yet listening. */
int listener_open_unix(struct loop *loop, const char *path, mode_t mode,
                       const struct listener_events *events, void *owner, struct listener **out,
                       struct error *err)
{
    struct sockaddr_un final;
    struct sockaddr_un first;
    struct stat made;

    if (name_socket(&first, path, ".new", err) < 0 || name_socket(&final, path, "", err) < 0)
        return error_wrap(err, "listen on '%s'", path);
    if (is_living(&final))
        return error_set(err, ERROR_CONFLICT, "listen on '%s': another process listens there",
                         path);
    (void)unlink(first.sun_path); // of one that died here
    int fd = open_socket((struct sockaddr_storage *)&first, sizeof first, err);
    if (fd < 0)
        return error_wrap(err, "listen on '%s'", path);
    (void)chmod(first.sun_path, mode); // nobody can connect yet; looked at below
    autoptr(listener) listener = start(loop, fd, events, owner, err);
    if (!listener) {
        (void)unlink(first.sun_path);
        return error_wrap(err, "listen on '%s'", path);
    }
    if (stat(first.sun_path, &made) < 0 || (made.st_mode & 07777) != mode ||
        rename(first.sun_path, final.sun_path) < 0) {
        (void)error_sys(err, "listen on '%s'", path);
        (void)unlink(first.sun_path);
        return -1;
    }
    listener->address = xstrdup(path);
    listener->device = made.st_dev;
    listener->inode = made.st_ino;
    *out = take(listener);
    return 0;
}

void listener_free(struct listener *listener)
{
    struct stat now;

    if (!listener)
        return;
    loop_watch_free(listener->watch);
    loop_timer_clear(&listener->retry);
    (void)close(listener->fd);
    if (listener->inode && stat(listener->address, &now) == 0 && now.st_dev == listener->device &&
        now.st_ino == listener->inode)
        (void)unlink(listener->address);
    free(listener->address);
    free(listener);
}
