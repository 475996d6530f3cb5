/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwards of SSH as the server has them: connections to ports of the sandbox, out of it by its own network, and from it to the client. Names are asked for by burrow-ssh, of the
 * sandbox's own resolver, by a socket that is made here: root parses no answer.
 */
#include "base/mem.h"
#include "base/strings.h"
#include "ssh/ssh_server_impl.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Names that every sandbox has for itself. */
static bool is_own(const char *host)
{
    static const char *const names[] = {"localhost",    "localhost.", "burrow",  "ip6-localhost",
                                        "ip6-loopback", "::1",        "0.0.0.0", "::",
                                        "[::1]",        "*",          ""};
    struct in_addr four;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcasecmp(host, names[i]) == 0)
            return true;
    }
    return inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

static bool read_address(const char *host, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;

    *out = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        return true;
    }
    if (inet_pton(AF_INET6, host, &six->sin6_addr) != 1)
        return false;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    return true;
}

static const char *explain(enum port_result result, const struct error *err)
{
    if (result == PORT_REFUSED)
        return "nobody listens there";
    return result == PORT_OVER || !err->text[0] ? "the sandbox has ended" : err->text;
}

static void conclude(struct ssh_channel *channel, enum port_result result, int fd,
                     const struct error *err)
{
    const struct ssh_wire_header header = {.type = SSH_WIRE_CONNECTED, .channel = channel->number};

    if (result != PORT_CONNECTED) {
        ssh_channel_refuse(channel, explain(result, err));
        return;
    }
    if (!ssh_connection_tell(channel->connection, &header, NULL, &fd, 1))
        ssh_channel_refuse(channel, "its process does not listen");
    (void)close(fd);
}

static void work_connect(struct ssh_errand *errand)
{
    errand->result = (int)port_connect(errand->server->settings.core->ports, errand->sandbox_id,
                                       (uint16_t)errand->value, &errand->fds[0], &errand->err);
}

static void work_connect_out(struct ssh_errand *errand)
{
    errand->result = (int)port_connect_out(errand->server->settings.core->ports, errand->sandbox_id,
                                           (const struct sockaddr *)&errand->address,
                                           &errand->fds[0], &errand->err);
}

static void end_connect(struct ssh_errand *errand)
{
    struct ssh_channel *channel = ssh_channel_of(errand);

    if (channel)
        conclude(channel, (enum port_result)errand->result, take_fd(errand->fds[0]), &errand->err);
}

// ---- names ----

static void work_resolver(struct ssh_errand *errand)
{
    errand->result = (int)port_open_resolver(errand->server->settings.core->ports,
                                             errand->sandbox_id, &errand->fds[0], &errand->err);
}

/* burrow-ssh asks for the name there, and then for what it was answered by another number: this one has done its part. */
static void end_resolver(struct ssh_errand *errand)
{
    struct ssh_channel *channel = ssh_channel_of(errand);
    const struct ssh_wire_header header = {.type = SSH_WIRE_RESOLVER, .channel = errand->channel};

    if (!channel)
        return;
    if (errand->result != PORT_CONNECTED) {
        ssh_channel_refuse(channel, explain((enum port_result)errand->result, &errand->err));
        return;
    }
    (void)ssh_connection_tell(channel->connection, &header, NULL, errand->fds, 1);
    ssh_channel_close(channel);
}

// ---- what is asked for ----

static void connect_out(struct ssh_channel *channel, const char *host, uint16_t port)
{
    struct sockaddr_storage address;
    bool is_name = !read_address(host, port, &address);
    struct ssh_errand *errand = ssh_errand_new(channel->connection, channel->number,
                                               is_name ? work_resolver : work_connect_out,
                                               is_name ? end_resolver : end_connect);

    errand->address = address;
    if (!ssh_errand_send(errand, WORKERS_SLOW))
        ssh_channel_refuse(channel, SSH_TOO_MUCH);
}

void ssh_forward_connect(struct ssh_connection *connection, struct ssh_wire_message *message)
{
    struct ssh_channel *channel = ssh_channel_new(connection, message->header.channel);
    uint32_t port = message->header.value;
    struct error err = {0};
    int fd = -1;

    if (port == 0 || port > UINT16_MAX) {
        ssh_channel_refuse(channel, "there is no such port");
        return;
    }
    if (!is_own(message->payload)) {
        connect_out(channel, message->payload, (uint16_t)port);
        return;
    }
    enum port_result result = port_connect_now(connection->server->settings.core->ports,
                                               connection->sandbox_id, (uint16_t)port, &fd, &err);
    if (result != PORT_WAITS) {
        conclude(channel, result, fd, &err);
        return;
    }
    struct ssh_errand *errand =
        ssh_errand_new(connection, channel->number, work_connect, end_connect);
    errand->value = port;
    if (!ssh_errand_send(errand, WORKERS_SLOW))
        ssh_channel_refuse(channel, SSH_TOO_MUCH);
}

// ---- ports that the client answers for ----

static void work_listen(struct ssh_errand *errand)
{
    uint16_t port = (uint16_t)errand->value;

    errand->result = (int)port_listen(errand->server->settings.core->ports, errand->sandbox_id,
                                      &port, &errand->fds[0], &errand->err);
    errand->value = port;
}

static void end_listen(struct ssh_errand *errand)
{
    struct ssh_channel *channel = ssh_channel_of(errand);
    const struct ssh_wire_header header = {
        .type = SSH_WIRE_LISTENING, .channel = errand->channel, .value = errand->value};

    if (!channel)
        return;
    if (errand->result != PORT_CONNECTED)
        ssh_channel_refuse(channel, explain((enum port_result)errand->result, &errand->err));
    else if (!ssh_connection_tell(channel->connection, &header, NULL, errand->fds, 1))
        ssh_channel_close(channel);
}

static const char *why_not_listen(const struct ssh_connection *connection, uint32_t port)
{
    unsigned count = 0;

    if (!(connection->server->settings.allows & SSH_WIRE_ALLOWS_LISTEN))
        return "remote forwards are not allowed on this server";
    if (port > UINT16_MAX || (port && port < PORT_LEAST))
        return "ports of a sandbox that can be listened on are 1024 to 65535";
    for (const struct ssh_channel *at = connection->channels; at; at = at->next)
        count += at->is_listener;
    return count < SSH_WIRE_LISTENERS ? NULL : "this connection listens on too many ports";
}

void ssh_forward_listen(struct ssh_connection *connection, struct ssh_wire_message *message)
{
    const char *why_not = why_not_listen(connection, message->header.value);
    struct ssh_channel *channel = ssh_channel_new(connection, message->header.channel);

    channel->is_listener = true;
    if (why_not) {
        ssh_channel_refuse(channel, why_not);
        return;
    }
    struct ssh_errand *errand =
        ssh_errand_new(connection, channel->number, work_listen, end_listen);
    errand->value = message->header.value;
    if (!ssh_errand_send(errand, WORKERS_SLOW))
        ssh_channel_refuse(channel, SSH_TOO_MUCH);
}
