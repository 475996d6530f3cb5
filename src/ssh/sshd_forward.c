/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where forwards lead to: ports of the sandbox, addresses beyond it, and names, which are asked for here, of the sandbox's own resolver. What that answers is believed
 * no more than a guess: each address is asked for as any other, and the sandbox's rules hold.
 */
#include "ssh/sshd.h"

#include "base/auto.h"
#include "egress/dns_message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Others wait so long; what takes longer is accepted, and closed where it fails.
#define GRACE_MS 100
#define ASK_MS 30000 // the server may have to wake the sandbox
#define LOOKUP_MS 3000
#define LOOKUPS 4 // the resolver tries for eight seconds itself
#define CONNECT_MS 15000
#define ADDRESSES 8 // of a name that are tried

/* ASKED: the server is to answer; LOOKS: the resolver is; CONNECTS: who it leads to is. */
enum outward_state {
    OUTWARD_ASKED,
    OUTWARD_LOOKS,
    OUTWARD_CONNECTS,
    OUTWARD_READY,
    OUTWARD_FAILED
};

struct outward {
    enum outward_state state;
    int64_t until_ms; // for its state
    char name[POLICY_NAME_LENGTH];
    uint32_t port;
    int fd; // of the resolver; then of the connection
    uint16_t id;
    unsigned lookups;
    uint32_t addresses[ADDRESSES];
    size_t count, next;
    char why[1024];
};

static void enter(struct outward *outward, enum outward_state state, int ms)
{
    outward->state = state;
    outward->until_ms = sshd_now_ms() + ms;
}

static void __attribute__((format(printf, 2, 3)))
fail(struct outward *outward, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(outward->why, sizeof outward->why, format, arguments);
    va_end(arguments);
    outward->state = OUTWARD_FAILED;
}

/* Each number is for one question to the server. */
static void ask(struct line *line, const char *host)
{
    struct outward *outward = line->outward;

    if (line->is_asked)
        sshd_tell(SSH_WIRE_CLOSE, line->number, 0, NULL, 0);
    line->number = ++line->sshd->last_number;
    line->is_asked = true;
    enter(outward, OUTWARD_ASKED, ASK_MS);
    sshd_tell(SSH_WIRE_CONNECT, line->number, outward->port, host, strlen(host));
}

/* The next address of a name; the last refusal stands where there is none left. */
static void try_next(struct line *line, const char *why)
{
    struct outward *outward = line->outward;
    char text[INET_ADDRSTRLEN];

    closep(&outward->fd);
    if (outward->next == outward->count) {
        fail(outward, "%s", why);
        return;
    }
    const struct in_addr address = {.s_addr = htonl(outward->addresses[outward->next++])};
    ask(line, inet_ntop(AF_INET, &address, text, sizeof text));
}

// ---- names ----

static void look_up(struct outward *outward)
{
    unsigned char query[DNS_MESSAGE];

    if (outward->lookups++ == LOOKUPS) {
        fail(outward, "nobody answered for the name '%s'", outward->name);
        return;
    }
    size_t length = dns_write_query(outward->id, outward->name, DNS_A, query);
    (void)send(outward->fd, query, length, MSG_NOSIGNAL); // what is lost is sent again
    enter(outward, OUTWARD_LOOKS, LOOKUP_MS);
}

static void begin_lookup(struct outward *outward, int fd)
{
    outward->fd = fd;
    if (!outward->name[0])
        fail(outward, "that is neither an address nor a name");
    else if (ssh_get_random(&outward->id, sizeof outward->id, 0) != 1)
        fail(outward, "there are no random numbers");
    else
        look_up(outward);
}

/* Chains of names are the resolver's affair, which has the end of them first. */
static bool on_name(void *data, const char *name)
{
    (void)data, (void)name;
    return true;
}

static void take_answer(struct line *line, const struct dns_answer *answer)
{
    struct outward *outward = line->outward;

    outward->count = answer->count < ADDRESSES ? answer->count : ADDRESSES;
    memcpy(outward->addresses, answer->addresses, outward->count * sizeof *outward->addresses);
    if (answer->code == DNS_REFUSED)
        fail(outward, "the sandbox's network does not allow '%s'; 'burrow network why' says more",
             outward->name);
    else if (answer->code == DNS_NAME_ERROR)
        fail(outward, "there is no name '%s'", outward->name);
    else if (answer->code != DNS_NO_ERROR)
        fail(outward, "the name '%s' could not be resolved", outward->name);
    else
        try_next(line, "the name has no address that may be reached");
}

static void hear_resolver(struct line *line)
{
    struct outward *outward = line->outward;
    unsigned char message[DNS_MESSAGE];
    struct dns_answer answer;

    for (;;) {
        ssize_t got = recv(outward->fd, message, sizeof message, MSG_DONTWAIT);
        if (got < 0)
            break; // nothing yet, or a refusal of the kernel's: asked again in time
        if (dns_read_answer(message, (size_t)got, outward->id, outward->name, on_name, NULL,
                            &answer)) {
            take_answer(line, &answer);
            return;
        }
    }
    if (sshd_now_ms() >= outward->until_ms)
        look_up(outward);
}

// ---- connections ----

static void check_connection(struct line *line)
{
    struct outward *outward = line->outward;
    struct pollfd there = {.fd = outward->fd, .events = POLLOUT};
    int code = 0;
    socklen_t size = sizeof code;

    if (poll(&there, 1, 0) == 0) {
        if (sshd_now_ms() >= outward->until_ms)
            try_next(line, "nobody answers there");
        return;
    }
    if (getsockopt(outward->fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0 || code == 0)
        outward->state = OUTWARD_READY;
    else
        try_next(line, code == ECONNREFUSED ? "nobody listens there" : "it cannot be reached");
}

void forward_hear(struct line *line, struct ssh_wire_message *message)
{
    struct outward *outward = line->outward;

    if (outward->state != OUTWARD_ASKED)
        return;
    switch (message->header.type) {
    case SSH_WIRE_CONNECTED:
        outward->fd = ssh_wire_take(message, 0);
        enter(outward, OUTWARD_CONNECTS, CONNECT_MS);
        break;
    case SSH_WIRE_RESOLVER:
        line->is_asked = false; // the server knows nothing of it any more
        begin_lookup(outward, ssh_wire_take(message, 0));
        break;
    case SSH_WIRE_REFUSED:
        line->is_asked = false;
        try_next(line, message->payload);
        break;
    default:
        break;
    }
}

static void step(struct line *line)
{
    struct outward *outward = line->outward;

    if (outward->state == OUTWARD_ASKED && sshd_now_ms() >= outward->until_ms)
        fail(outward, "the sandbox did not wake up in time");
    else if (outward->state == OUTWARD_LOOKS)
        hear_resolver(line);
    else if (outward->state == OUTWARD_CONNECTS)
        check_connection(line);
}

unsigned forward_poll(const struct line *line, struct pollfd *out, int64_t *until_ms)
{
    const struct outward *outward = line->outward;

    if (outward->until_ms < *until_ms)
        *until_ms = outward->until_ms;
    if (outward->fd < 0)
        return 0;
    *out = (struct pollfd){.fd = outward->fd,
                           .events = outward->state == OUTWARD_LOOKS ? POLLIN : POLLOUT};
    return 1;
}

void forward_free(struct line *line)
{
    if (line->outward)
        closep(&line->outward->fd);
    free(line->outward);
    line->outward = NULL;
}

/* It leads somewhere. */
static void arrive(struct line *line)
{
    int fd = take_fd(line->outward->fd);

    forward_free(line);
    line_connect(line, fd);
}

void forward_move(struct line *line)
{
    step(line);
    if (line->outward->state == OUTWARD_READY) {
        arrive(line);
    } else if (line->outward->state == OUTWARD_FAILED) {
        sshd_explain(line->sshd, line->outward->why);
        (void)ssh_channel_close(line->channel);
        line->is_closed = true;
    }
}

// ---- what clients ask for ----

static bool is_decided(const struct line *line)
{
    return line->outward->state == OUTWARD_READY || line->outward->state == OUTWARD_FAILED;
}

/* Most are decided in a moment. */
static void wait_for_decision(struct line *line)
{
    struct sshd *sshd = line->sshd;
    int64_t grace_ms = sshd_now_ms() + GRACE_MS;

    while (!is_decided(line)) {
        struct pollfd fds[2] = {{.fd = SSHD_CONTROL, .events = POLLIN}};
        int64_t until_ms = grace_ms;
        unsigned count = 1 + forward_poll(line, fds + 1, &until_ms);
        int64_t left = until_ms - sshd_now_ms();
        if (sshd_now_ms() >= grace_ms)
            return;
        (void)poll(fds, count, left > 0 ? (int)left : 0);
        while (sshd_receive(sshd)) {
            if (sshd->message->header.channel != line->number) {
                sshd_keep(sshd);
                continue;
            }
            forward_hear(line, sshd->message);
            ssh_wire_message_clear(sshd->message);
        }
        step(line);
    }
}

static struct line *forward_new(struct sshd *sshd, const char *host, int port)
{
    struct line *line = line_new(sshd);
    struct outward *outward = line ? calloc(1, sizeof *outward) : NULL;

    if (!outward) {
        if (line)
            line->is_closed = true;
        return NULL;
    }
    *outward = (struct outward){.fd = -1, .port = (uint32_t)port};
    if (!policy_fold_name(host, strlen(host), outward->name))
        outward->name[0] = '\0';
    line->is_forward = true;
    line->outward = outward;
    ask(line, host);
    return line;
}

static const char *check(const struct sshd *sshd, const char *host, int port)
{
    size_t length = host ? strlen(host) : 0;

    if (!sshd->is_in)
        return "log in first";
    if (length == 0 || length > 255)
        return "that is neither an address nor a name";
    return port > 0 && port <= UINT16_MAX ? NULL : "there is no such port";
}

int forward_ask(struct sshd *sshd, ssh_message message)
{
    const char *host = ssh_message_channel_request_open_destination(message);
    int port = ssh_message_channel_request_open_destination_port(message);
    const char *why = check(sshd, host, port);
    struct line *line = why ? NULL : forward_new(sshd, host, port);

    if (!line) {
        sshd_explain(sshd, why ? why : "this connection has too many channels");
        return 1;
    }
    wait_for_decision(line);
    if (line->outward->state == OUTWARD_FAILED) {
        sshd_explain(sshd, line->outward->why);
        line->is_closed = true;
        return 1;
    }
    line->channel = ssh_message_channel_request_open_reply_accept(message);
    if (!line->channel) {
        line->is_closed = true;
        return 0;
    }
    line_set_callbacks(line);
    if (line->outward->state == OUTWARD_READY)
        arrive(line);
    return 0;
}
