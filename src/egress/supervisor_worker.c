/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of the worker: starting it, and what it may ask for; see supervisor.h. */
#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"
#include "egress/supervisor.h"
#include "egress/worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_PIN_SECONDS 86400

static struct kept *find_box(struct supervisor *supervisor, unsigned slot)
{
    for (struct kept *kept = supervisor->boxes; kept; kept = kept->next) {
        if (kept->slot == slot)
            return kept;
    }
    return NULL;
}

// ---- starting ----

/* In the child: its descriptors at their places, in the gateway's network; then the program again. */
static void become_worker(struct supervisor *supervisor, int link)
{
    const int from[] = {link, supervisor->sockets[0], supervisor->sockets[1],
                        supervisor->sockets[2], supervisor->sockets[3]};
    const char *roots = getenv(EGRESS_ROOTS);
    char gateway[16], first[16], named[4200];
    int high[ARRAY_SIZE(from)];

    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0 || setns(gateway_namespace(supervisor->gateway), CLONE_NEWNET) < 0)
        _exit(1);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        (void)dup2(nothing, fd);
    for (size_t i = 0; i < ARRAY_SIZE(from); i++)
        high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 64);
    for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
        if (high[i] < 0 || dup2(high[i], WORKER_LINK + (int)i) < 0)
            _exit(1);
    }
    (void)snprintf(gateway, sizeof gateway, "%u", gateway_address(supervisor->gateway));
    (void)snprintf(first, sizeof first, "%u", gateway_box_address(supervisor->gateway, 0));
    char *argv[] = {(char *)"burrow-egress",
                    (char *)"--worker",
                    gateway,
                    first,
                    (char *)(supervisor->proxy.sin6_family ? "proxy" : "direct"),
                    NULL};
    (void)snprintf(named, sizeof named, EGRESS_ROOTS "=%s", roots ? roots : "");
    char *const env[] = {roots ? named : NULL, NULL};
    (void)execve("/proc/self/exe", argv, env);
    _exit(1);
}

static void tell_boxes(struct supervisor *supervisor)
{
    for (struct kept *kept = supervisor->boxes; kept; kept = kept->next)
        (void)exchange_send(&supervisor->worker, EGRESS_SET, 0, kept->message.data,
                            kept->message.length, -1);
}

int supervisor_start_worker(struct supervisor *supervisor, struct error *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make a socket for the worker");
    autofd theirs = pair[1];
    pid_t pid = fork();
    if (pid == 0)
        become_worker(supervisor, theirs);
    if (pid < 0) {
        (void)close(pair[0]);
        return error_sys(err, "start the worker");
    }
    exchange_init(&supervisor->worker, pair[0]);
    supervisor->worker.is_quiet = true;
    supervisor->worker_pid = pid;
    supervisor->worker_started_ms = clock_monotonic_ms();
    supervisor_look_for_resolvers(supervisor, true);
    tell_boxes(supervisor);
    return 0;
}

void supervisor_look_for_resolvers(struct supervisor *supervisor, bool is_new_worker)
{
    struct sockaddr_in6 found[EGRESS_RESOLVERS];
    size_t count = supervisor_read_resolvers(supervisor->resolvers_setting, found);

    if (!is_new_worker && count == supervisor->n_resolvers &&
        memcmp(found, supervisor->resolvers, sizeof found) == 0)
        return;
    memcpy(supervisor->resolvers, found, sizeof found);
    supervisor->n_resolvers = count;
    for (uint32_t i = 0; i < count && supervisor->worker.sock >= 0; i++) {
        autofd fd = supervisor_connect(&found[i], SOCK_DGRAM);
        if (fd >= 0)
            (void)exchange_send(&supervisor->worker, EGRESS_RESOLVER, 0, &i, sizeof i, fd);
    }
}

// ---- what it asks for ----

static uint32_t pin_all(struct supervisor *supervisor, const struct frame *frame)
{
    struct egress_pin_message head;
    struct error err = {0};

    if (frame->head.length < sizeof head)
        return 0;
    memcpy(&head, frame->data, sizeof head);
    if (head.count > EGRESS_MAX_PINS || !find_box(supervisor, head.slot) ||
        frame->head.length != sizeof head + head.count * sizeof(struct egress_pin))
        return 0;
    uint32_t seconds = head.seconds > MOST_PIN_SECONDS ? MOST_PIN_SECONDS : head.seconds;
    for (uint32_t i = 0; i < head.count; i++) {
        struct egress_pin pin;
        memcpy(&pin, frame->data + sizeof head + i * sizeof pin, sizeof pin);
        if (gateway_pin(supervisor->gateway, head.slot, pin.address, pin.protocols, pin.port,
                        seconds, &err) < 0)
            return 0;
    }
    return 1;
}

static void unpin(struct supervisor *supervisor, const struct frame *frame)
{
    struct error err = {0};
    uint32_t slot;

    if (frame->head.length != sizeof slot)
        return;
    memcpy(&slot, frame->data, sizeof slot);
    if (find_box(supervisor, slot))
        (void)gateway_unpin_all(supervisor->gateway, slot, &err);
}

/* A worker that was taken over could ask for any port: only what a policy allows is dialled. */
static int dial_host(struct supervisor *supervisor, const struct egress_dial_message *dial)
{
    const struct kept *kept = find_box(supervisor, dial->slot);
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)dial->port)};
    struct policy_verdict verdict;

    if (!kept || dial->port == 0 || dial->port > 65535)
        return -1;
    policy_decide(&kept->policy,
                  &(struct policy_question){
                      .name = "host", .port = (uint16_t)dial->port, .protocol = POLICY_TCP},
                  &verdict);
    if (!verdict.is_allowed)
        return -1;
    to.sin6_addr.s6_addr[10] = to.sin6_addr.s6_addr[11] = 0xff;
    to.sin6_addr.s6_addr[12] = 127;
    to.sin6_addr.s6_addr[15] = 1;
    return supervisor_connect(&to, SOCK_STREAM);
}

static void dial(struct supervisor *supervisor, const struct frame *frame)
{
    struct egress_dial_message message;
    autofd fd = -1;

    if (frame->head.length != sizeof message)
        return;
    memcpy(&message, frame->data, sizeof message);
    if (frame->head.kind == EGRESS_DIAL_HOST)
        fd = dial_host(supervisor, &message);
    else if (frame->head.kind == EGRESS_DIAL_DNS && message.port < supervisor->n_resolvers)
        fd = supervisor_connect(&supervisor->resolvers[message.port], SOCK_STREAM);
    else if (frame->head.kind == EGRESS_DIAL_PROXY && supervisor->proxy.sin6_family)
        fd = supervisor_connect(&supervisor->proxy, SOCK_STREAM);
    (void)exchange_send(&supervisor->worker, frame->head.kind, frame->head.serial, NULL, 0, fd);
}

/* Whether a secret is for this host: no other gets a certificate. */
static bool has_secret(const struct supervisor *supervisor, const char *host)
{
    for (const struct kept *kept = supervisor->boxes; kept; kept = kept->next) {
        struct egress_set_message head;
        memcpy(&head, kept->message.data, sizeof head);
        const char *at = kept->message.data + sizeof head + head.policy_length;
        for (uint32_t i = 0; i < head.n_secrets; i++) {
            char name[POLICY_NAME_LENGTH];
            if (policy_fold_name(at, strlen(at), name) && strcmp(name, host) == 0)
                return true;
            for (int text = 0; text < 4; text++)
                at += strlen(at) + 1;
        }
    }
    return false;
}

static void sign(struct supervisor *supervisor, const struct frame *frame)
{
    autobuffer pem = {0};
    struct error err = {0};
    size_t length = frame->head.length;

    if (length && length <= POLICY_NAME_LENGTH && frame->data[length - 1] == '\0' &&
        has_secret(supervisor, frame->data) &&
        (supervisor->authority ||
         authority_open(supervisor->data_dir, &supervisor->authority, &err) == 0))
        (void)authority_sign(supervisor->authority, frame->data, &pem, &err);
    (void)exchange_send(&supervisor->worker, EGRESS_LEAF, frame->head.serial, pem.data, pem.length,
                        -1);
    if (pem.data)
        explicit_bzero(pem.data, pem.length);
}

static void tell_followers(struct supervisor *supervisor, const struct frame *frame)
{
    for (size_t i = 0; i < SUPERVISOR_CLIENTS; i++) {
        struct supervisor_client *client = &supervisor->clients[i];
        if (client->frames.sock >= 0 && client->is_following &&
            client->frames.out.length < FRAME_MAX) // one that does not read misses some
            (void)exchange_send(&client->frames, EGRESS_REFUSAL, 0, frame->data, frame->head.length,
                                -1);
    }
}

static void finish(struct supervisor *supervisor, const struct frame *frame)
{
    for (struct pending **at = &supervisor->pending; *at; at = &(*at)->next) {
        struct pending *pending = *at;
        if (pending->serial != frame->head.serial)
            continue;
        *at = pending->next;
        struct exchange *client = &supervisor->clients[pending->client].frames;
        if (client->sock >= 0)
            (void)exchange_send(client, frame->head.kind, pending->client_serial, frame->data,
                                frame->head.length, -1);
        free(pending);
        return;
    }
}

void supervisor_forward(struct supervisor *supervisor, int client, const struct frame *frame)
{
    struct pending *pending = xnew(struct pending);
    struct error err;

    if (supervisor->worker.sock < 0)
        (void)supervisor_start_worker(supervisor,
                                      &err); // or the call fails when the next has ended
    pending->serial = ++supervisor->serial;
    pending->client = client;
    pending->client_serial = frame->head.serial;
    pending->next = supervisor->pending;
    supervisor->pending = pending;
    (void)exchange_send(&supervisor->worker, frame->head.kind, pending->serial, frame->data,
                        frame->head.length, -1);
}

static void take_frame(struct supervisor *supervisor, struct frame *frame)
{
    uint32_t is_done;

    switch (frame->head.kind) {
    case EGRESS_DONE:
        finish(supervisor, frame);
        break;
    case EGRESS_REFUSAL:
        tell_followers(supervisor, frame);
        break;
    case EGRESS_UNPIN:
        unpin(supervisor, frame);
        break;
    case EGRESS_PIN:
        is_done = pin_all(supervisor, frame);
        (void)exchange_send(&supervisor->worker, EGRESS_PIN, frame->head.serial, &is_done,
                            sizeof is_done, -1);
        break;
    case EGRESS_DIAL_HOST:
    case EGRESS_DIAL_DNS:
    case EGRESS_DIAL_PROXY:
        dial(supervisor, frame);
        break;
    case EGRESS_LEAF:
        sign(supervisor, frame);
        break;
    default:
        break;
    }
    closep(&frame->fd);
}

/* Calls that it would have answered fail: nobody knows whether they hold. */
static void forget_worker(struct supervisor *supervisor)
{
    static const char text[] = "its worker ended; try again";

    closep(&supervisor->worker.sock);
    exchange_clear(&supervisor->worker);
    while (supervisor->worker_pid > 0 && waitpid(supervisor->worker_pid, NULL, 0) < 0 &&
           errno == EINTR)
        continue;
    supervisor->worker_pid = 0;
    while (supervisor->pending) {
        const struct frame frame = {.head = {.kind = EGRESS_FAILED,
                                             .serial = supervisor->pending->serial,
                                             .length = sizeof text},
                                    .data = text};
        finish(supervisor, &frame);
    }
}

void supervisor_hear_worker(struct supervisor *supervisor)
{
    struct frame frame;

    if (exchange_flush(&supervisor->worker) < 0 || exchange_read(&supervisor->worker, false) < 0) {
        forget_worker(supervisor);
        return;
    }
    while (exchange_next(&supervisor->worker, &frame))
        take_frame(supervisor, &frame);
}
