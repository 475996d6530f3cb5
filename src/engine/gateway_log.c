/* SPDX-License-Identifier: Apache-2.0 */
/* Refused packets as a gateway's kernel tells of them (nflog); see gateway.h. */
#include "engine/gateway_impl.h"

#include <endian.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define LOG_BYTES 16384
#define HEADER_LEAST 20 // of version 4

static int bind_group(int sock, uint16_t group)
{
    const struct nfgenmsg header = {.version = NFNETLINK_V0, .res_id = htobe16(group)};
    const struct nfulnl_msg_config_cmd bind = {.command = NFULNL_CFG_CMD_BIND};
    const struct nfulnl_msg_config_mode mode = {.copy_range = htobe32(64),
                                                .copy_mode = NFULNL_COPY_PACKET};
    automessages messages = {0};

    message_begin(&messages, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG, NLM_F_ACK, &header,
                  sizeof header);
    message_put(&messages, NFULA_CFG_CMD, &bind, sizeof bind);
    message_put(&messages, NFULA_CFG_MODE, &mode, sizeof mode);
    message_put_be32(&messages, NFULA_CFG_QTHRESH, 1); // told at once, not when several wait
    return netlink_talk(sock, &messages, NULL, NULL);
}

int gateway_refusals(struct gateway *gateway, int *fd, struct error *err)
{
    autofd sock = netlink_socket_in(gateway->ns_fd, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
    if (sock < 0)
        return error_sys(err, "make a socket in the network of sandboxes");
    int code = bind_group(sock, GATEWAY_LOG_GROUP);
    if (code == 0)
        code = bind_group(sock, GATEWAY_NOTE_GROUP);
    if (code == EBUSY)
        return error_refuse(err, ERROR_CONFLICT, "network",
                            "another program reads what the network of sandboxes refuses");
    if (code)
        return error_sys_code(err, code, "listen for what the network of sandboxes refuses");
    *fd = take_fd(sock);
    return 0;
}

/* From the packet itself; false when it is none of a box. */
static bool read_packet(const struct gateway *gateway, const uint8_t *packet, size_t length,
                        struct gateway_refusal *out)
{
    uint32_t from;
    uint32_t to;
    uint16_t port = 0;

    if (length < HEADER_LEAST || packet[0] >> 4 != 4)
        return false;
    size_t header = (size_t)(packet[0] & 15) * 4;
    memcpy(&from, packet + 12, sizeof from);
    memcpy(&to, packet + 16, sizeof to);
    int slot = gateway_slot_of(gateway, be32toh(from));
    if (slot < 0 || header < HEADER_LEAST)
        return false;
    bool has_ports = packet[9] == IPPROTO_TCP || packet[9] == IPPROTO_UDP;
    if (has_ports && length >= header + 4)
        memcpy(&port, packet + header + 2, sizeof port);
    *out = (struct gateway_refusal){.slot = (unsigned)slot,
                                    .address = be32toh(to),
                                    .protocol = packet[9],
                                    .port = be16toh(port)};
    return true;
}

static bool read_message(const struct gateway *gateway, const struct nlmsghdr *message,
                         struct gateway_refusal *out)
{
    struct attribute parts[NFULA_PAYLOAD + 1];
    struct nfgenmsg group;
    const size_t header = NLMSG_LENGTH(sizeof group);

    if (message->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) ||
        message->nlmsg_len < header)
        return false;
    memcpy(&group, NLMSG_DATA(message), sizeof group);
    attributes_find((const char *)message + header, message->nlmsg_len - header, parts,
                    NFULA_PAYLOAD + 1);
    if (!read_packet(gateway, parts[NFULA_PAYLOAD].data, parts[NFULA_PAYLOAD].length, out))
        return false;
    out->would_refuse = be16toh(group.res_id) == GATEWAY_NOTE_GROUP;
    return true;
}

int gateway_read_refusals(struct gateway *gateway, int fd, struct gateway_refusal *out,
                          unsigned count, struct error *err)
{
    char buffer[LOG_BYTES] __attribute__((aligned(8)));
    unsigned found = 0;

    while (found == 0) {
        ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (got < 0 && (errno == EINTR || errno == ENOBUFS))
            continue; // some were lost: they are counted all the same
        if (got < 0)
            return error_sys(err, "read what the network of sandboxes refused");
        size_t left = (size_t)got;
        for (const struct nlmsghdr *at = (const void *)buffer; NLMSG_OK(at, left);
             at = NLMSG_NEXT(at, left))
            found += found < count && read_message(gateway, at, &out[found]);
    }
    return (int)found;
}
