/* SPDX-License-Identifier: Apache-2.0 */
/* Starting burrow-courier and speaking with it; see courier.h. */
#include "hook/courier.h"

#include "base/child.h"
#include "base/mem.h"
#include "base/quote.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "burrow-courier"
#define ROOM (1 << 20) // bytes of requests on their way

struct courier {
    int sock;
    pid_t pid; // 0: none
};

static int find_program(const char *given, char out[PATH_MAX], struct error *err)
{
    if (given) {
        (void)snprintf(out, PATH_MAX, "%s", given);
        return 0;
    }
    ssize_t length = readlink("/proc/self/exe", out, PATH_MAX - sizeof PROGRAM - 1);
    if (length < 0)
        return error_sys(err, "find " PROGRAM);
    out[length] = '\0';
    char *slash = strrchr(out, '/');
    memcpy(slash ? slash + 1 : out, PROGRAM, sizeof PROGRAM);
    return 0;
}

static int start(struct courier *courier, const struct courier_settings *settings,
                 struct error *err)
{
    int pair[2], room = ROOM;
    char program[PATH_MAX];

    if (find_program(settings->program, program, err) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make a socket for " PROGRAM);
    courier->sock = pair[0];
    autofd theirs = pair[1];
    (void)setsockopt(courier->sock, SOL_SOCKET, SO_SNDBUFFORCE, &room,
                     sizeof room); // else fewer at once
    char *argv[] = {(char *)PROGRAM, (char *)(settings->networks ? settings->networks : ""),
                    (char *)(settings->is_http_allowed ? "http" : "https"), NULL};
    const struct child child = {program, argv, NULL, {theirs, CHILD_NOTHING, CHILD_NOTHING}};
    int code = child_start(&child, &courier->pid);
    if (code) {
        courier->pid = 0;
        (void)error_sys_code(err, code, "start '%s'", program);
        return error_restate(err, ERROR_UNAVAILABLE, NULL);
    }
    return 0;
}

int courier_new(const struct courier_settings *settings, struct courier **out, struct error *err)
{
    autoptr(courier) courier = xnew(struct courier);

    courier->sock = -1;
    if (start(courier, settings, err) < 0)
        return -1;
    *out = take(courier);
    return 0;
}

void courier_free(struct courier *courier)
{
    if (!courier)
        return;
    closep(&courier->sock);
    if (courier->pid > 0) {
        (void)kill(courier->pid, SIGKILL); // what it was doing is done again
        while (waitpid(courier->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    free(courier);
}

int courier_fd(const struct courier *courier)
{
    return courier->sock;
}

int courier_send(struct courier *courier, const struct courier_post *post, struct error *err)
{
    struct courier_request request = {
        .id = post->id,
        .url_length = (uint32_t)strlen(post->url),
        .headers_length = (uint32_t)strlen(post->headers),
        .body_length = (uint32_t)post->length,
    };
    struct iovec parts[] = {
        {&request, sizeof request},
        {(char *)post->url, request.url_length + 1},
        {(char *)post->headers, request.headers_length + 1},
        {(char *)post->body, post->length},
        {(char *)"", 1},
    };
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = ARRAY_SIZE(parts)};

    if (sendmsg(courier->sock, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return 0;
    if (errno == EAGAIN || errno == ENOBUFS)
        return error_set(err, ERROR_BUSY, PROGRAM " has enough to do");
    return error_set(err, ERROR_GONE, PROGRAM " has ended");
}

int courier_receive(struct courier *courier, struct courier_result *out)
{
    ssize_t got;

    do
        got = recv(courier->sock, out, sizeof *out, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got != sizeof *out)
        return -1; // or it says what makes no sense
    out->error[COURIER_ERROR - 1] = '\0';
    quote_scrub(out->error); // a stranger's words may be in it
    return 1;
}
