/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to a server; see wire.h. */
#include "client/wire.h"

#include "base/auto.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/mem.h"
#include "client/client_fail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define LOOK_EVERY 8

// ---- where ----

static int bad_url(const char *url, struct burrow_error *err)
{
    return client_fail(err, BURROW_INVALID,
                       "'%.200s' is no address of a server: use http://HOST:PORT, https://HOST or "
                       "unix:/PATH",
                       url);
}

/* "host:port", "[::1]:port". */
static int split_authority(const char *text, size_t length, struct wire_target *out)
{
    const char *end = text + length, *host = text, *host_end, *port = NULL;

    if (length && *text == '[') {
        host++;
        host_end = memchr(text, ']', length);
        if (!host_end)
            return -1;
        if (host_end + 1 < end)
            port = host_end + 1;
    } else {
        port = memchr(text, ':', length);
        host_end = port ? port : end;
    }
    if (host_end == host)
        return -1;
    (void)snprintf(out->port, sizeof out->port, "%s", out->is_tls ? "443" : "80");
    if (port) {
        size_t digits = (size_t)(end - port) - 1;
        if (*port != ':' || digits == 0 || digits > 5 || strspn(port + 1, "0123456789") < digits)
            return -1;
        (void)snprintf(out->port, sizeof out->port, "%.*s", (int)digits, port + 1);
    }
    out->host = xstrndup(host, (size_t)(host_end - host));
    out->authority = xstrndup(text, length);
    return 0;
}

int wire_target_parse(const char *url, struct wire_target *out, struct burrow_error *err)
{
    struct wire_target target = {0};
    const char *rest = url;

    if (strpbrk(url, " \t\r\n"))
        return bad_url(url, err);
    if (strncmp(url, "unix:", 5) == 0 || *url == '/') {
        rest += *url == '/' ? 0 : 5;
        rest += strncmp(rest, "///", 3) == 0 ? 2 : 0;
        if (*rest != '/')
            return bad_url(url, err);
        *out = (struct wire_target){.is_unix = true,
                                    .host = xstrdup(rest),
                                    .base = xstrdup(""),
                                    .authority = xstrdup("localhost")};
        return 0;
    }
    target.is_tls = strncmp(url, "https://", 8) == 0;
    if (!target.is_tls && strncmp(url, "http://", 7) != 0)
        return bad_url(url, err);
    rest += target.is_tls ? 8 : 7;
    size_t length = strcspn(rest, "/?#");
    if (memchr(rest, '@', length) || split_authority(rest, length, &target) < 0) {
        wire_target_clear(&target);
        return bad_url(url, err);
    }
    rest += length;
    length = strcspn(rest, "?#");
    while (length && rest[length - 1] == '/')
        length--;
    if (length >= 7 && strncmp(rest + length - 7, "/api/v1", 7) == 0)
        length -= 7;
    target.base = xstrndup(rest, length);
    *out = target;
    return 0;
}

void wire_target_clear(struct wire_target *target)
{
    free(target->host);
    free(target->base);
    free(target->authority);
    *target = (struct wire_target){0};
}

// ---- waiting ----

/* 1 when ready, 0 when the time is over. */
static int wait_for(int fd, short events, int wait_ms, int cancel_fd, struct burrow_error *err)
{
    struct pollfd fds[] = {{.fd = fd, .events = events}, {.fd = cancel_fd, .events = POLLIN}};
    int rest = wait_ms < 0 ? -1 : wait_ms;
    uint64_t until =
        0; // from the first interruption on: hardly any wait has one, and no clock is read for the others

    for (;;) {
        int ready = poll(fds, cancel_fd >= 0 ? 2 : 1, rest);
        if (ready < 0 && errno == EINTR && rest < 0)
            continue;
        if (ready < 0 && errno == EINTR) {
            uint64_t now = clock_monotonic_ms();
            until = until ? until : now + (uint64_t)rest;
            rest = now < until ? (int)(until - now) : 0;
            continue;
        }
        if (ready < 0)
            return client_fail_sys(err, BURROW_LOCAL, "wait for the server");
        if (fds[1].revents && cancel_fd >= 0)
            return client_fail(err, BURROW_CANCELLED, "interrupted");
        return ready > 0;
    }
}

/* Whoever always has something to send or room to take more is never waited for: this is how a cancel is seen then. */
static int look_for_cancel(struct wire *wire, const struct wire_patience *patience,
                           struct burrow_error *err)
{
    struct pollfd cancel = {.fd = patience->cancel_fd, .events = POLLIN};

    if (++wire->n_busy % LOOK_EVERY != 0 || patience->cancel_fd < 0 || poll(&cancel, 1, 0) <= 0)
        return 0;
    return client_fail(err, BURROW_CANCELLED, "interrupted");
}

// ---- connecting ----

static int finish_connect(int fd, const struct wire_patience *patience, struct burrow_error *err)
{
    socklen_t size = sizeof(int);
    int failure = 0;
    int ready = wait_for(fd, POLLOUT, patience->connect_ms, patience->cancel_fd, err);

    if (ready < 0)
        return -1;
    if (ready == 0) {
        errno = ETIMEDOUT;
        return 1;
    }
    (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size);
    errno = failure;
    return failure ? 1 : 0;
}

/* 0, 1 with errno when it cannot be reached, -1. */
static int try_connect(int fd, const struct sockaddr *address, socklen_t size,
                       const struct wire_patience *patience, struct burrow_error *err)
{
    if (connect(fd, address, size) == 0)
        return 0;
    if (errno != EINPROGRESS && errno != EAGAIN)
        return 1;
    if (errno == EAGAIN) // of a Unix socket: its queue is full, and nothing tells when it is not
        return client_fail(err, BURROW_UNREACHABLE, "the server is too busy to take connections");
    return finish_connect(fd, patience, err);
}

static int connect_unix(const char *path, const struct wire_patience *patience, int *out,
                        struct burrow_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    autofd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    autofd directory = -1;

    if (fd < 0)
        return client_fail_sys(err, BURROW_LOCAL, "make a socket");
    if (strlen(path) < sizeof address.sun_path) {
        (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    } else { // reached through its directory's descriptor
        const char *slash = strrchr(path, '/');
        autofree char *parent = xstrndup(path, (size_t)(slash - path));
        directory = open(*parent ? parent : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0)
            return client_fail_sys(err, BURROW_UNREACHABLE, "no server at unix:%s", path);
        (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory,
                       slash + 1);
    }
    int result = try_connect(fd, (const struct sockaddr *)&address, sizeof address, patience, err);
    if (result < 0)
        return -1;
    if (result > 0 && (errno == EACCES || errno == EPERM))
        return client_fail_sys(err, BURROW_DENIED, "the server's socket unix:%s is not yours",
                               path);
    if (result > 0)
        return client_fail_sys(err, BURROW_UNREACHABLE, "no server at unix:%s", path);
    *out = take_fd(fd);
    return 0;
}

static int connect_tcp(const struct wire_target *target, const struct wire_patience *patience,
                       int *out, struct burrow_error *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int failure = getaddrinfo(target->host, target->port, &hints, &found);

    if (failure)
        return client_fail(err, BURROW_UNREACHABLE, "the server '%s' is not known: %s",
                           target->host,
                           failure == EAI_SYSTEM ? strerror(errno) : gai_strerror(failure));
    int result = 1, last = ECONNREFUSED;
    for (struct addrinfo *each = found; each && result == 1; each = each->ai_next) {
        autofd fd = socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        result = try_connect(fd, each->ai_addr, each->ai_addrlen, patience, err);
        last = errno;
        if (result == 0) {
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
            *out = take_fd(fd);
        }
    }
    freeaddrinfo(found);
    if (result <= 0)
        return result;
    errno = last;
    return client_fail_sys(err, BURROW_UNREACHABLE, "no server at %s", target->authority);
}

// ---- https ----

#define TLS_PROGRAM "burrow-tls"
#ifndef BURROW_LIBEXEC
#define BURROW_LIBEXEC "/usr/local/libexec/burrow"
#endif

static void find_tls(const char *given, char path[PATH_MAX])
{
    static const char *const places[] = {"", "../libexec/burrow/"};
    char self[PATH_MAX];

    if (given) {
        (void)snprintf(path, PATH_MAX, "%s", given);
        return;
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
        (void)snprintf(path, PATH_MAX, "%.*s%s" TLS_PROGRAM, (int)(slash + 1 - self), self,
                       places[i]);
        if (access(path, X_OK) == 0)
            return;
    }
    (void)snprintf(path, PATH_MAX, BURROW_LIBEXEC "/" TLS_PROGRAM);
}

/* It says "ok" or a sentence first, on a line. */
static int greet_tls(struct wire *wire, const struct wire_patience *patience,
                     struct burrow_error *err)
{
    struct wire_patience first = *patience;

    first.idle_ms = patience->connect_ms + 5000; // it keeps the time by itself
    for (;;) {
        char *end = memchr(wire->in + wire->at, '\n', wire->end - wire->at);
        if (end) {
            *end = '\0';
            const char *line = wire->in + wire->at;
            wire->at = (size_t)(end + 1 - wire->in);
            return strcmp(line, "ok") == 0 ? 0 : client_fail(err, BURROW_UNREACHABLE, "%s", line);
        }
        int got = wire->end - wire->at > 1024 ? 0 : wire_receive(wire, &first, err);
        if (got < 0)
            return -1;
        if (got == 0)
            return client_fail(err, BURROW_LOCAL, "the program " TLS_PROGRAM " ended");
    }
}

static int start_tls(struct wire *wire, const struct wire_target *target,
                     const struct wire_patience *patience, const struct wire_tls *tls,
                     struct burrow_error *err)
{
    char path[PATH_MAX], wait[16];
    int ends[2];

    find_tls(tls->program, path);
    (void)snprintf(wait, sizeof wait, "%d", patience->connect_ms);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
        return client_fail_sys(err, BURROW_LOCAL, "make a socket pair");
    char *argv[] = {(char *)TLS_PROGRAM,  target->host, (char *)target->port, wait,
                    (char *)tls->ca_file, NULL};
    extern char **environ;
    const struct child child = {path, argv, environ, {ends[1], ends[1], STDERR_FILENO}};
    int failure = child_start(&child, &wire->helper);
    (void)close(ends[1]);
    wire->fd = ends[0];
    if (failure) {
        errno = failure;
        wire->helper = 0;
        return client_fail_sys(err, BURROW_LOCAL, "https needs the program '%s'", path);
    }
    return greet_tls(wire, patience, err);
}

// ---- a wire ----

static struct wire *wire_new(void)
{
    struct wire *wire = xnew(struct wire);

    wire->fd = -1;
    wire->in = malloc(WIRE_BUFFER);
    if (!wire->in)
        abort();
    return wire;
}

int wire_open(const struct wire_target *target, const struct wire_patience *patience,
              const struct wire_tls *tls, struct wire **out, struct burrow_error *err)
{
    struct wire *wire = wire_new();
    int result;

    if (target->is_unix)
        result = connect_unix(target->host, patience, &wire->fd, err);
    else if (target->is_tls)
        result = start_tls(wire, target, patience, tls, err);
    else
        result = connect_tcp(target, patience, &wire->fd, err);
    if (result < 0) {
        wire_free(wire);
        return -1;
    }
    *out = wire;
    return 0;
}

void wire_free(struct wire *wire)
{
    if (!wire)
        return;
    closep(&wire->fd);
    if (wire->helper > 0) {
        (void)kill(wire->helper, SIGTERM);
        while (waitpid(wire->helper, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    free(wire->in);
    free(wire);
}

ssize_t wire_send_some(struct wire *wire, const void *data, size_t length, struct burrow_error *err)
{
    for (;;) {
        ssize_t sent = send(wire->fd, data, length, MSG_NOSIGNAL);
        if (sent >= 0)
            return sent;
        if (errno == EAGAIN)
            return 0;
        if (errno != EINTR)
            return client_fail_sys(err, BURROW_BROKEN, "the connection to the server broke");
    }
}

int wire_send(struct wire *wire, const struct wire_patience *patience, const void *data,
              size_t length, struct burrow_error *err)
{
    const char *rest = data;

    while (length) {
        ssize_t sent = wire_send_some(wire, rest, length, err);
        if (sent < 0)
            return -1;
        rest += sent;
        length -= (size_t)sent;
        if (look_for_cancel(wire, patience, err) < 0)
            return -1;
        if (length == 0)
            break;
        int ready = wait_for(wire->fd, POLLOUT, patience->idle_ms, patience->cancel_fd, err);
        if (ready < 0)
            return -1;
        if (ready == 0)
            return client_fail(err, BURROW_TIMEOUT, "the server took nothing for %d seconds",
                               patience->idle_ms / 1000);
    }
    return 0;
}

/* It is over, and closes its end with that. */
static bool was_helper_cut(struct wire *wire)
{
    int status = 0;

    if (wire->helper <= 0)
        return false;
    while (waitpid(wire->helper, &status, 0) < 0 && errno == EINTR)
        continue;
    wire->helper = 0;
    return status != 0;
}

int wire_receive_now(struct wire *wire, struct burrow_error *err)
{
    if (wire->at == wire->end)
        wire->at = wire->end = 0;
    if (wire->end == WIRE_BUFFER) {
        memmove(wire->in, wire->in + wire->at, wire->end - wire->at);
        wire->end -= wire->at;
        wire->at = 0;
    }
    for (;;) {
        ssize_t got = recv(wire->fd, wire->in + wire->end, WIRE_BUFFER - wire->end, 0);
        if (got > 0) {
            wire->end += (size_t)got;
            return 1;
        }
        if (got == 0 || errno == ECONNRESET) {
            wire->is_cut |= got < 0 || was_helper_cut(wire);
            return 0;
        }
        if (errno == EAGAIN)
            return 2;
        if (errno != EINTR)
            return client_fail_sys(err, BURROW_BROKEN, "the connection to the server broke");
    }
}

int wire_receive(struct wire *wire, const struct wire_patience *patience, struct burrow_error *err)
{
    for (;;) {
        int got = wire_receive_now(wire, err);
        if (got == 1 && look_for_cancel(wire, patience, err) < 0)
            return -1;
        if (got != 2)
            return got;
        int ready = wait_for(wire->fd, POLLIN, patience->idle_ms, patience->cancel_fd, err);
        if (ready < 0)
            return -1;
        if (ready == 0)
            return client_fail(err, BURROW_TIMEOUT, "the server said nothing for %d seconds",
                               patience->idle_ms / 1000);
    }
}

bool wire_is_fresh(const struct wire *wire)
{
    char byte;

    return wire->at == wire->end && recv(wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           errno == EAGAIN;
}
