/* SPDX-License-Identifier: Apache-2.0 */
/* Starting burrow-egress and speaking with it; see egress.h. */
#include "egress/egress.h"
#include "egress/egress_address.h"

#include "base/address.h"
#include "base/child.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/quote.h"
#include "egress/egress_wire.h"
#include "egress/exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "burrow-egress"
#define START_MS 60000
#define ANSWER_MS 60000

/* What a box was set to, to be told again to a program that was started anew. */
struct told {
    unsigned slot;
    struct buffer message;
    struct told *next;
};

struct egress {
    char *data_dir, *program, *addresses, *resolvers, *proxy;
    struct lock lock;      // guards all below
    struct exchange calls; // one at a time
    struct exchange events;
    struct told *told;
    uint64_t serial;
};

const char *egress_refusal_name(enum egress_refusal_kind kind)
{
    static const char *const names[] = {
        [EGRESS_DNS] = "dns",   [EGRESS_CONNECTION] = "connection",
        [EGRESS_TLS] = "tls",   [EGRESS_HTTP] = "http",
        [EGRESS_HOST] = "host", [EGRESS_SECRET] = "secret",
        [EGRESS_RATE] = "rate",
    };

    return (size_t)kind < ARRAY_SIZE(names) ? names[kind] : "connection";
}

// ---- starting it ----

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

/* It says what is wrong, if anything, and closes its end when it listens. */
static int wait_until_ready(int fd, struct error *err)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    char text[512];
    size_t length = 0;

    while (length < sizeof text - 1) {
        int got = poll(&poll_fd, 1, START_MS);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return error_set(err, ERROR_UNAVAILABLE, PROGRAM " does not get ready");
        ssize_t part = read(fd, text + length, sizeof text - 1 - length);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            break;
        length += (size_t)part;
    }
    text[length] = '\0';
    if (strcmp(text, "ready\n") == 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    quote_scrub(text);
    return error_set(err, ERROR_UNAVAILABLE, "start " PROGRAM ": %s",
                     *text ? text : "it ended at once");
}

static int start_program(struct egress *egress, struct error *err)
{
    char program[PATH_MAX];
    int pair[2];
    pid_t pid;

    if (find_program(egress->program, program, err) < 0)
        return -1;
    if (pipe2(pair, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe for " PROGRAM);
    autofd ours = pair[0];
    autofd theirs = pair[1];
    char *argv[] = {(char *)PROGRAM,
                    egress->data_dir,
                    (char *)(egress->addresses ? egress->addresses : ""),
                    (char *)(egress->resolvers ? egress->resolvers : ""),
                    (char *)(egress->proxy ? egress->proxy : ""),
                    NULL};
    const char *roots = getenv(EGRESS_ROOTS);
    autofree char *named = roots ? xasprintf(EGRESS_ROOTS "=%s", roots) : NULL;
    char *const env[] = {named, NULL};
    const struct child child = {program, argv, env, {CHILD_NOTHING, theirs, CHILD_NOTHING}};
    int code = child_start(&child, &pid);
    if (code) {
        (void)error_sys_code(err, code, "start '%s'", program);
        return error_restate(err, ERROR_UNAVAILABLE, NULL);
    }
    closep(&theirs);
    int result = wait_until_ready(ours, err);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) // it goes on as nobody's child
        continue;
    return result;
}

static int connect_once(const char *data_dir, int *out, struct error *err)
{
    struct sockaddr_un name;
    autofd sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (sock < 0)
        return error_sys(err, "make a socket for " PROGRAM);
    autofd directory = egress_address(data_dir, &name, err);
    if (directory < 0)
        return -1;
    if (connect(sock, (const struct sockaddr *)&name, sizeof name) < 0)
        return error_sys(err, "connect to '%s/" EGRESS_SOCKET "'", data_dir);
    *out = take_fd(sock);
    return 0;
}

static void disconnect(struct egress *egress)
{
    exchange_clear(&egress->calls);
    exchange_clear(&egress->events);
    closep(&egress->calls.sock);
    closep(&egress->events.sock);
}

static int wait_for_frame(struct exchange *frames, struct frame *out, struct error *err)
{
    struct pollfd poll_fd = {.fd = frames->sock, .events = POLLIN};

    while (!exchange_next(frames, out)) {
        int got = poll(&poll_fd, 1, ANSWER_MS);
        if (got == 0)
            return error_set(err, ERROR_UNAVAILABLE, PROGRAM " does not answer");
        if (got > 0 && exchange_read(frames, false) < 0)
            return error_set(err, ERROR_GONE, PROGRAM " has ended");
    }
    return 0;
}

/* One call and its answer; ERROR_GONE where the program has ended meanwhile. */
static int call(struct egress *egress, struct exchange *frames, uint32_t kind, const void *data,
                size_t length, struct frame *answer, struct error *err)
{
    uint64_t serial = ++egress->serial;

    if (frames->sock < 0 || exchange_send(frames, kind, serial, data, length, -1) < 0)
        return error_set(err, ERROR_GONE, PROGRAM " has ended");
    do {
        if (wait_for_frame(frames, answer, err) < 0)
            return -1;
    } while (answer->head.serial != serial);
    if (answer->head.kind == EGRESS_DONE)
        return 0;
    char text[512] = "";
    memcpy(text, answer->data,
           answer->head.length < sizeof text ? answer->head.length : sizeof text - 1);
    return error_set(err, ERROR_UNAVAILABLE, PROGRAM ": %s", text);
}

static int connect_both(struct egress *egress, struct error *err)
{
    int first = -1, second = -1;
    struct frame answer;

    disconnect(egress);
    if (connect_once(egress->data_dir, &first, err) < 0) {
        if (err->reason == ERROR_INVALID || start_program(egress, err) < 0 ||
            connect_once(egress->data_dir, &first, err) < 0)
            return -1;
    }
    exchange_init(&egress->calls, first);
    if (connect_once(egress->data_dir, &second, err) < 0)
        return -1;
    exchange_init(&egress->events, second);
    return call(egress, &egress->events, EGRESS_FOLLOW, NULL, 0, &answer, err);
}

static int tell_all(struct egress *egress, struct error *err)
{
    struct frame answer;

    for (struct told *told = egress->told; told; told = told->next) {
        if (call(egress, &egress->calls, EGRESS_SET, told->message.data, told->message.length,
                 &answer, err) < 0)
            return -1;
    }
    return 0;
}

/* The same call once more where the program had ended: it is started again, and knows all boxes then. */
static int call_again(struct egress *egress, uint32_t kind, const void *data, size_t length,
                      struct frame *answer, struct error *err)
{
    if (call(egress, &egress->calls, kind, data, length, answer, err) == 0)
        return 0;
    if (err->reason != ERROR_GONE)
        return -1;
    if (connect_both(egress, err) < 0 || tell_all(egress, err) < 0)
        return -1;
    return call(egress, &egress->calls, kind, data, length, answer, err);
}

// ---- the face ----

static char *copy(const char *text)
{
    return text && *text ? xstrdup(text) : NULL;
}

int egress_check_resolvers(const char *resolvers, struct error *err)
{
    struct sockaddr_in6 found[EGRESS_RESOLVERS];
    size_t count = 0;

    if (!resolvers || !*resolvers)
        return 0;
    if (addresses_read(resolvers, EGRESS_DNS_PORT, found, ARRAY_SIZE(found), &count, err) < 0)
        return error_wrap(err, "network-dns");
    return count ? 0 : error_set(err, ERROR_INVALID, "network-dns names no address");
}

int egress_open(const struct egress_settings *settings, struct egress **out, struct error *err)
{
    autoptr(egress) egress = xnew(struct egress);

    lock_init(&egress->lock, LOCK_EGRESS);
    egress->calls.sock = egress->events.sock = -1;
    egress->data_dir = xstrdup(settings->data_dir);
    egress->program = copy(settings->program);
    egress->addresses = copy(settings->addresses);
    egress->resolvers = copy(settings->resolvers);
    egress->proxy = copy(settings->proxy);
    if (connect_both(egress, err) < 0)
        return -1;
    *out = take(egress);
    return 0;
}

static void told_free(struct told *told)
{
    if (told->message.data)
        explicit_bzero(told->message.data, told->message.length); // secrets are in it
    buffer_clear(&told->message);
    free(told);
}

void egress_free(struct egress *egress)
{
    if (!egress)
        return;
    disconnect(egress);
    while (egress->told) {
        struct told *told = egress->told;
        egress->told = told->next;
        told_free(told);
    }
    lock_clear(&egress->lock);
    free(egress->data_dir);
    free(egress->program);
    free(egress->addresses);
    free(egress->resolvers);
    free(egress->proxy);
    free(egress);
}

static void forget(struct egress *egress, unsigned slot)
{
    for (struct told **at = &egress->told; *at; at = &(*at)->next) {
        if ((*at)->slot != slot)
            continue;
        struct told *told = *at;
        *at = told->next;
        told_free(told);
        return;
    }
}

static int add_string(struct buffer *out, const char *text, struct error *err)
{
    return buffer_add(out, text ? text : "", strlen(text ? text : "") + 1, err);
}

static int write_box(const struct egress_box *box, struct buffer *out, struct error *err)
{
    const struct egress_set_message head = {
        .slot = box->slot,
        .generation = box->generation,
        .policy_length = (uint32_t)strlen(box->policy) + 1,
        .n_secrets = (uint32_t)box->n_secrets,
    };

    if (box->n_secrets > EGRESS_MAX_SECRETS)
        return error_set(err, ERROR_LIMIT, "a sandbox has at most %d secrets", EGRESS_MAX_SECRETS);
    if (buffer_add(out, &head, sizeof head, err) < 0 || add_string(out, box->policy, err) < 0)
        return -1;
    for (size_t i = 0; i < box->n_secrets; i++) {
        const struct egress_secret *secret = &box->secrets[i];
        if (add_string(out, secret->host, err) < 0 || add_string(out, secret->header, err) < 0 ||
            add_string(out, secret->value, err) < 0 ||
            add_string(out, secret->placeholder, err) < 0)
            return -1;
    }
    return 0;
}

int egress_set(struct egress *egress, const struct egress_box *box, struct error *err)
{
    struct told *told = xnew(struct told);
    struct frame answer;

    told->slot = box->slot;
    buffer_init(&told->message, FRAME_MAX);
    autolock(&egress->lock);
    if (write_box(box, &told->message, err) < 0 ||
        call_again(egress, EGRESS_SET, told->message.data, told->message.length, &answer, err) <
            0) {
        told_free(told);
        return error_wrap(err, "set the network policy");
    }
    forget(egress, box->slot);
    told->next = egress->told;
    egress->told = told;
    return 0;
}

int egress_remove(struct egress *egress, unsigned slot, struct error *err)
{
    const uint32_t number = slot;
    struct frame answer;

    autolock(&egress->lock);
    forget(egress, slot);
    return call_again(egress, EGRESS_REMOVE, &number, sizeof number, &answer, err);
}

int egress_fd(const struct egress *egress)
{
    return egress->events.sock;
}

int egress_next_refusal(struct egress *egress, struct egress_refusal *out)
{
    struct frame frame;

    autolock(&egress->lock);
    if (egress->events.sock < 0)
        return -1;
    for (;;) {
        while (exchange_next(&egress->events, &frame)) {
            if (frame.head.kind != EGRESS_REFUSAL || frame.head.length != sizeof *out)
                continue;
            memcpy(out, frame.data, sizeof *out);
            out->name[sizeof out->name - 1] = out->rule[sizeof out->rule - 1] = '\0';
            out->reason[sizeof out->reason - 1] = out->remedy[sizeof out->remedy - 1] = '\0';
            return 1;
        }
        int got = exchange_read(&egress->events, false);
        if (got <= 0)
            return got;
    }
}

int egress_restore(struct egress *egress, struct error *err)
{
    autolock(&egress->lock);
    if (connect_both(egress, err) < 0)
        return -1;
    return tell_all(egress, err);
}

int egress_counters(struct egress *egress, unsigned slot, struct egress_counters *out,
                    struct error *err)
{
    const uint32_t number = slot;
    struct frame answer;

    *out = (struct egress_counters){0};
    autolock(&egress->lock);
    if (call_again(egress, EGRESS_COUNT, &number, sizeof number, &answer, err) < 0)
        return -1;
    if (answer.head.length == sizeof *out)
        memcpy(out, answer.data, sizeof *out);
    return 0;
}

int egress_certificate(struct egress *egress, struct buffer *out, struct error *err)
{
    struct frame answer;

    autolock(&egress->lock);
    if (call_again(egress, EGRESS_AUTHORITY, NULL, 0, &answer, err) < 0)
        return -1;
    return buffer_add(out, answer.data, answer.head.length, err);
}

int egress_stop(const char *data_dir, struct error *err)
{
    struct exchange frames;
    struct frame frame;
    int sock = -1;

    if (connect_once(data_dir, &sock, err) < 0) {
        if (err->sys == ENOENT || err->sys == ECONNREFUSED)
            return 0;
        return -1;
    }
    autofd ours = sock;
    exchange_init(&frames, ours);
    (void)exchange_send(&frames, EGRESS_STOP, 1, NULL, 0, -1);
    int result = wait_for_frame(&frames, &frame, err); // it hangs up when it is done
    exchange_clear(&frames);
    return result < 0 && err->reason != ERROR_GONE ? -1 : 0;
}
