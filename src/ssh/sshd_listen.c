/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports and agents' sockets in the sandbox that the client answers for. Whoever is in the sandbox may connect as often as it likes: so many wait in the kernel, and half of a
 * connection's channels are for them, no more.
 */
#include "ssh/sshd.h"

#include "base/auto.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTEN_MS 30000 // the sandbox may have to be woken
#define ACCEPTED (SSH_WIRE_CHANNELS / 2)
#define OFF "is off on this server; its operator may allow it by --ssh-allow"

static struct listener *listener_new(struct sshd *sshd, uint32_t number, int fd)
{
    struct listener *listener = calloc(1, sizeof *listener);

    if (!listener)
        _exit(1);
    *listener = (struct listener){.next = sshd->listeners, .number = number, .fd = fd, .leash = -1};
    sshd->listeners = listener;
    return listener;
}

/* Who came by it stays connected, unless the caller ends them. */
static void listener_free(struct sshd *sshd, struct listener *listener)
{
    struct listener **at = &sshd->listeners;

    while (*at != listener)
        at = &(*at)->next;
    *at = listener->next;
    for (struct line *line = sshd->lines; line; line = line->next) {
        if (line->from == listener)
            line->from = NULL;
    }
    closep(&listener->fd);
    closep(&listener->leash);
    free(listener->address);
    free(listener);
}

// ---- what clients ask for ----

static const char *refusal(const struct sshd *sshd, const char *address)
{
    if (!sshd->is_in)
        return "log in first";
    if (!(sshd->allows & SSH_WIRE_ALLOWS_LISTEN))
        return "remote forwarding (-R) " OFF " remote-forward";
    return strlen(address) > 255 ? "that address is too long" : NULL;
}

static int listen_on(struct sshd *sshd, ssh_message message, const char *address)
{
    uint32_t number = ++sshd->last_number;
    int port = ssh_message_global_request_port(message);

    sshd_tell(SSH_WIRE_LISTEN, number, (uint32_t)port, NULL, 0);
    if (!sshd_await(sshd, number, SSH_WIRE_LISTENING, SSH_WIRE_REFUSED, LISTEN_MS)) {
        sshd_tell(SSH_WIRE_CLOSE, number, 0, NULL, 0);
        return 1;
    }
    if (sshd->message->header.type == SSH_WIRE_REFUSED) {
        sshd_explain(sshd, sshd->message->payload);
        return 1;
    }
    struct listener *listener = listener_new(sshd, number, ssh_wire_take(sshd->message, 0));
    listener->address = strdup(address);
    listener->port = (uint16_t)sshd->message->header.value;
    ssh_wire_message_clear(sshd->message);
    (void)ssh_message_global_request_reply_success(message, listener->port);
    return 0;
}

static int cancel(struct sshd *sshd, ssh_message message, const char *address)
{
    int port = ssh_message_global_request_port(message);

    for (struct listener *listener = sshd->listeners; listener; listener = listener->next) {
        if (!listener->address || listener->port != port || strcmp(listener->address, address) != 0)
            continue;
        sshd_tell(SSH_WIRE_CLOSE, listener->number, 0, NULL, 0);
        listener_free(sshd, listener);
        (void)ssh_message_global_request_reply_success(message, 0);
        return 0;
    }
    return 1;
}

int listen_ask(struct sshd *sshd, ssh_message message)
{
    const char *address = ssh_message_global_request_address(message);
    const char *why = refusal(sshd, address ? address : "");

    if (why) {
        sshd_explain(sshd, why);
        return 1;
    }
    switch (ssh_message_subtype(message)) {
    case SSH_GLOBAL_REQUEST_TCPIP_FORWARD:
        return listen_on(sshd, message, address ? address : "");
    case SSH_GLOBAL_REQUEST_CANCEL_TCPIP_FORWARD:
        return cancel(sshd, message, address ? address : "");
    default:
        return 1;
    }
}

void listen_agent(struct line *session, int fd, int leash)
{
    listener_new(session->sshd, session->number, fd)->leash = leash;
}

void listen_end(struct sshd *sshd, uint32_t number)
{
    struct listener *next;

    for (struct listener *listener = sshd->listeners; listener; listener = next) {
        next = listener->next;
        if (listener->address || listener->number != number)
            continue;
        for (struct line *line = sshd->lines; line; line = line->next)
            line->is_unwanted |= line->from == listener;
        listener_free(sshd, listener);
    }
}

// ---- who comes ----

static bool has_room(const struct sshd *sshd)
{
    unsigned count = 0;

    for (const struct line *line = sshd->lines; line; line = line->next)
        count += line->is_answered;
    return count < ACCEPTED && sshd->n_lines < SSH_WIRE_CHANNELS;
}

unsigned listen_poll(const struct sshd *sshd, struct pollfd *out)
{
    unsigned count = 0;

    if (!sshd->listeners || !has_room(sshd))
        return 0;
    for (const struct listener *listener = sshd->listeners; listener; listener = listener->next)
        out[count++] = (struct pollfd){.fd = listener->fd, .events = POLLIN};
    return count;
}

void listen_end_broken(struct sshd *sshd, const struct pollfd *fds, unsigned count)
{
    struct listener *listener = sshd->listeners;

    for (unsigned i = 0; i < count; i++, listener = listener->next) {
        if (fds[i].revents & (POLLERR | POLLHUP | POLLNVAL))
            closep(&listener->fd);
    }
}

static void ask_client(struct line *line, const struct listener *listener,
                       const struct sockaddr_in *who)
{
    char source[INET_ADDRSTRLEN] = "127.0.0.1";
    int result;

    if (!listener->address) {
        result = ssh_channel_open_auth_agent(line->channel);
    } else {
        (void)inet_ntop(AF_INET, &who->sin_addr, source, sizeof source);
        result = ssh_channel_open_reverse_forward(line->channel, listener->address, listener->port,
                                                  source, ntohs(who->sin_port));
    }
    line->is_opening = true;
    line->is_closed |= result == SSH_ERROR;
}

/* False: nobody else is there now. Where somebody is, the client is heard, and may give back any listener: this one may be gone then. */
static bool accept_one(struct sshd *sshd, const struct listener *listener)
{
    struct sockaddr_in who = {0};
    socklen_t length = sizeof who;
    int fd = accept4(listener->fd, (struct sockaddr *)&who, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return false;
    struct line *line = line_new(sshd);
    if (!line || !(line->channel = ssh_channel_new(sshd->session))) {
        (void)close(fd);
        if (line)
            line->is_closed = true;
        return false;
    }
    line->is_forward = line->is_answered = true;
    line->from = listener;
    line->in_fd = fd;
    line_set_callbacks(line);
    ask_client(line, listener, &who);
    return true;
}

static bool accept_any(struct sshd *sshd)
{
    for (const struct listener *listener = sshd->listeners; listener; listener = listener->next) {
        if (listener->fd >= 0 && accept_one(sshd, listener))
            return true;
    }
    return false;
}

void listen_accept(struct sshd *sshd)
{
    while (has_room(sshd) && accept_any(sshd))
        ;
}

/* A channel that the client has not answered for cannot be given up: libssh would forget it, and the client keep it open. */
static void await_client(struct line *line)
{
    // What it was asked with counts at the first call alone.
    int result = ssh_channel_open_auth_agent(line->channel);

    if (result == SSH_AGAIN)
        return;
    line->is_opening = false;
    if (result == SSH_OK)
        line_connect(line, line->in_fd);
    else
        line->is_closed = true;
}

void listen_move(struct line *line)
{
    if (line->is_opening)
        await_client(line);
    if (line->is_unwanted && !line->is_opening && !line->is_closed) {
        (void)ssh_channel_close(line->channel);
        line->is_closed = true;
    }
}
