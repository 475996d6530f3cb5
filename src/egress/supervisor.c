/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's loop, and what the server tells it; see supervisor.h. */
#include "egress/supervisor.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURN_MS 1000
#define IDLE_MS 60000
#define RESTART_MS 500 // between two starts of a worker that ends at once
#define REFUSALS 64
#define MOST_BOXES 65536

static void kept_free(struct kept *kept)
{
    if (kept->message.data)
        explicit_bzero(kept->message.data, kept->message.length);
    buffer_clear(&kept->message);
    policy_clear(&kept->policy);
    free(kept);
}

/* Takes a box off the list; NULL: there is none. */
static struct kept *take_box(struct supervisor *supervisor, unsigned slot)
{
    for (struct kept **at = &supervisor->boxes; *at; at = &(*at)->next) {
        struct kept *kept = *at;
        if (kept->slot != slot)
            continue;
        *at = kept->next;
        return kept;
    }
    return NULL;
}

static void fail(struct supervisor *supervisor, int client, uint64_t serial, const char *text)
{
    (void)exchange_send(&supervisor->clients[client].frames, EGRESS_FAILED, serial, text,
                        strlen(text) + 1, -1);
}

// ---- calls ----

/* Only what a header may have: nothing that would end it, or begin another. */
static bool is_header_text(const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < 32 && c != '\t') || c == 127)
            return false;
    }
    return true;
}

static bool is_header_name(const char *text)
{
    return *text &&
           !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")];
}

/* Host, header, value and placeholder, so many times. */
static const char *check_secrets(const char *at, const char *end, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *strings[4];
        char name[POLICY_NAME_LENGTH];
        for (int text = 0; text < 4; text++) {
            const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
            if (!nul)
                return "the message is cut off";
            strings[text] = at;
            at = nul + 1;
        }
        if (!policy_fold_name(strings[0], strlen(strings[0]), name))
            return "the host of a secret is no name";
        if (!is_header_name(strings[1]) || !is_header_text(strings[2]) ||
            !is_header_text(strings[3]))
            return "a secret is no header";
    }
    return NULL;
}

/* What is wrong with it; NULL: nothing, and `kept` has it. */
static const char *read_box(struct supervisor *supervisor, const struct frame *frame,
                            struct kept *kept, struct error *err)
{
    struct egress_set_message head;

    if (frame->head.length < sizeof head)
        return "the message is cut off";
    memcpy(&head, frame->data, sizeof head);
    const char *text = frame->data + sizeof head, *end = frame->data + frame->head.length;
    if (head.policy_length == 0 || head.policy_length > (size_t)(end - text) ||
        text[head.policy_length - 1] != '\0' || head.n_secrets > EGRESS_MAX_SECRETS)
        return "the message is cut off";
    head.address = gateway_box_address(supervisor->gateway, head.slot);
    if (head.slot >= MOST_BOXES ||
        gateway_slot_of(supervisor->gateway, head.address) != (int)head.slot)
        return "there is no such slot";
    if (policy_read(text, &kept->policy, err) < 0)
        return err->text;
    const char *problem = check_secrets(text + head.policy_length, end, head.n_secrets);
    if (problem)
        return problem;
    kept->slot = head.slot;
    buffer_init(&kept->message, FRAME_MAX);
    if (buffer_add(&kept->message, &head, sizeof head, err) < 0 ||
        buffer_add(&kept->message, text, (size_t)(end - text), err) < 0)
        return err->text;
    return NULL;
}

static void set_box(struct supervisor *supervisor, int client, const struct frame *frame)
{
    struct kept *kept = xnew(struct kept);
    struct error err = {0};

    const char *problem = read_box(supervisor, frame, kept, &err);
    if (problem) {
        fail(supervisor, client, frame->head.serial, problem);
        kept_free(kept);
        return;
    }
    struct kept *old = take_box(supervisor, kept->slot);
    bool is_same = old && supervisor->worker.sock >= 0 &&
                   old->message.length == kept->message.length &&
                   memcmp(old->message.data, kept->message.data, kept->message.length) == 0;
    if (old)
        kept_free(old);
    kept->next = supervisor->boxes;
    supervisor->boxes = kept;
    if (is_same) {
        (void)exchange_send(&supervisor->clients[client].frames, EGRESS_DONE, frame->head.serial,
                            NULL, 0, -1);
        return;
    }
    struct frame told = *frame;
    told.data = kept->message.data;
    told.head.length = (uint32_t)kept->message.length;
    supervisor_forward(supervisor, client, &told);
}

static void remove_box(struct supervisor *supervisor, int client, const struct frame *frame)
{
    uint32_t slot = UINT32_MAX;

    if (frame->head.length == sizeof slot)
        memcpy(&slot, frame->data, sizeof slot);
    struct kept *kept = take_box(supervisor, slot);
    if (kept)
        kept_free(kept);
    supervisor_forward(supervisor, client, frame);
}

static void tell_authority(struct supervisor *supervisor, int client, const struct frame *frame)
{
    autobuffer pem = {0};
    struct error err = {0};

    if ((!supervisor->authority &&
         authority_open(supervisor->data_dir, &supervisor->authority, &err) < 0) ||
        authority_certificate(supervisor->authority, &pem, &err) < 0)
        fail(supervisor, client, frame->head.serial, err.text);
    else
        (void)exchange_send(&supervisor->clients[client].frames, EGRESS_DONE, frame->head.serial,
                            pem.data, pem.length, -1);
}

static void take_call(struct supervisor *supervisor, int client, const struct frame *frame)
{
    switch (frame->head.kind) {
    case EGRESS_SET:
        set_box(supervisor, client, frame);
        break;
    case EGRESS_REMOVE:
        remove_box(supervisor, client, frame);
        break;
    case EGRESS_COUNT:
        supervisor_forward(supervisor, client, frame);
        break;
    case EGRESS_AUTHORITY:
        tell_authority(supervisor, client, frame);
        break;
    case EGRESS_FOLLOW:
        supervisor->clients[client].is_following = true;
        (void)exchange_send(&supervisor->clients[client].frames, EGRESS_DONE, frame->head.serial,
                            NULL, 0, -1);
        break;
    case EGRESS_STOP:
        supervisor->is_ending = true;
        break;
    default:
        fail(supervisor, client, frame->head.serial, "this is not understood");
        break;
    }
}

// ---- clients ----

static void accept_client(struct supervisor *supervisor)
{
    struct ucred who;
    socklen_t size = sizeof who;
    autofd fd = accept4(supervisor->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 || who.uid != geteuid())
        return;
    for (size_t i = 0; i < SUPERVISOR_CLIENTS; i++) {
        struct supervisor_client *client = &supervisor->clients[i];
        if (client->frames.sock >= 0)
            continue;
        exchange_init(&client->frames, take_fd(fd));
        client->frames.is_quiet = true;
        client->is_following = false;
        return;
    }
}

static void drop_client(struct supervisor *supervisor, int index)
{
    struct supervisor_client *client = &supervisor->clients[index];

    closep(&client->frames.sock);
    exchange_clear(&client->frames);
    client->frames.sock = -1;
    for (struct pending *pending = supervisor->pending; pending; pending = pending->next) {
        if (pending->client == index)
            pending->client_serial = 0; // whoever has the place next does not know this number
    }
}

static void hear_client(struct supervisor *supervisor, int index)
{
    struct exchange *frames = &supervisor->clients[index].frames;
    struct frame frame;

    if (exchange_flush(frames) < 0 || exchange_read(frames, false) < 0) {
        drop_client(supervisor, index);
        return;
    }
    while (frames->sock >= 0 && exchange_next(frames, &frame)) {
        take_call(supervisor, index, &frame);
        closep(&frame.fd);
    }
}

// ---- what the kernel refused ----

static unsigned protocol_of(uint8_t number)
{
    return number == IPPROTO_UDP ? POLICY_UDP : number == IPPROTO_ICMP ? POLICY_ICMP : POLICY_TCP;
}

static void hear_kernel(struct supervisor *supervisor)
{
    struct gateway_refusal found[REFUSALS];
    struct error err = {0};
    int count =
        gateway_read_refusals(supervisor->gateway, supervisor->refusals, found, REFUSALS, &err);

    for (int i = 0; i < count && supervisor->worker.sock >= 0; i++) {
        const struct egress_refusal refusal = {
            .slot = found[i].slot,
            .address = found[i].address,
            .port = found[i].port,
            .protocol = (uint16_t)protocol_of(found[i].protocol),
            .would_deny = found[i].would_refuse,
        };
        (void)exchange_send(&supervisor->worker, EGRESS_REFUSAL, 0, &refusal, sizeof refusal, -1);
    }
}

// ---- the loop ----

static bool has_clients(const struct supervisor *supervisor)
{
    for (size_t i = 0; i < SUPERVISOR_CLIENTS; i++) {
        if (supervisor->clients[i].frames.sock >= 0)
            return true;
    }
    return false;
}

/* Once a second, about. */
static void tick(struct supervisor *supervisor)
{
    struct error err = {0};
    uint64_t now = clock_monotonic_ms();

    if (supervisor->worker.sock < 0 && now - supervisor->worker_started_ms >= RESTART_MS)
        (void)supervisor_start_worker(supervisor, &err); // or the next time
    if (supervisor->worker.sock >= 0)
        supervisor_look_for_resolvers(supervisor, false);
    if (supervisor->boxes || has_clients(supervisor))
        supervisor->idle_since_ms = now;
    else if (now - supervisor->idle_since_ms >= IDLE_MS)
        supervisor->is_ending = true;
    autofree char *path = xasprintf("%s/" EGRESS_SOCKET, supervisor->data_dir);
    if (access(path, F_OK) < 0 && errno == ENOENT)
        supervisor->is_ending = true; // the data directory has gone
}

static short wanted(const struct exchange *frames)
{
    return (short)(frames->out.length ? POLLIN | POLLOUT : POLLIN);
}

int supervisor_run(struct supervisor *supervisor, struct error *err)
{
    uint64_t next_tick = 0;

    supervisor->idle_since_ms = clock_monotonic_ms();
    while (!supervisor->is_ending) {
        struct pollfd fds[SUPERVISOR_CLIENTS + 3] = {
            {.fd = supervisor->listener, .events = POLLIN},
            {.fd = supervisor->worker.sock, .events = wanted(&supervisor->worker)},
            {.fd = supervisor->refusals, .events = POLLIN},
        };
        for (size_t i = 0; i < SUPERVISOR_CLIENTS; i++)
            fds[3 + i] = (struct pollfd){.fd = supervisor->clients[i].frames.sock,
                                         .events = wanted(&supervisor->clients[i].frames)};
        int timeout = supervisor->worker.sock < 0 ? RESTART_MS / 4 : TURN_MS;
        if (poll(fds, ARRAY_SIZE(fds), timeout) < 0 && errno != EINTR)
            return error_sys(err, "wait");
        if (fds[1].revents && supervisor->worker.sock >= 0)
            supervisor_hear_worker(supervisor);
        if (fds[2].revents)
            hear_kernel(supervisor);
        for (int i = 0; i < SUPERVISOR_CLIENTS; i++) {
            if (fds[3 + i].revents && supervisor->clients[i].frames.sock >= 0)
                hear_client(supervisor, i);
        }
        if (fds[0].revents)
            accept_client(supervisor);
        uint64_t now = clock_monotonic_ms();
        if (now >= next_tick || supervisor->worker.sock < 0) {
            tick(supervisor);
            next_tick = now + TURN_MS;
        }
    }
    return 0;
}
