/* SPDX-License-Identifier: Apache-2.0 */
/* Peer credentials and addresses. */
#include "net/peer.h"

#include "base/decimal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void map_address(struct peer *peer, const struct sockaddr_storage *from)
{
    if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
        peer->address = in6->sin6_addr;
        peer->port = ntohs(in6->sin6_port);
    } else if (from->ss_family == AF_INET) {
        const struct sockaddr_in *in4 = (const struct sockaddr_in *)from;
        peer->address.s6_addr[10] = peer->address.s6_addr[11] = 0xff;
        memcpy(&peer->address.s6_addr[12], &in4->sin_addr, 4);
        peer->port = ntohs(in4->sin_port);
    }
}

void peer_init(struct peer *peer, int fd)
{
    struct sockaddr_storage from = {0};
    socklen_t length = sizeof from;

    *peer = (struct peer){.uid = (uid_t)-1};
    if (getpeername(fd, (struct sockaddr *)&from, &length) < 0)
        return;
    if (from.ss_family != AF_UNIX) {
        map_address(peer, &from);
        return;
    }
    struct ucred who;
    length = sizeof who;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
        return;
    peer->is_local = true;
    peer->uid = who.uid;
    peer->pid = who.pid;
}

uint64_t peer_group(const struct peer *peer)
{
    const uint8_t *bytes = peer->address.s6_addr;
    bool is_v4 = IN6_IS_ADDR_V4MAPPED(&peer->address);
    uint64_t group = 0;

    if (peer->is_local)
        return (uint64_t)1 << 63 | peer->uid;
    for (int i = 0; i < 8; i++)
        group = group << 8 | bytes[is_v4 ? i + 8 : i];
    return group;
}

bool peer_is_own(const struct peer *peer)
{
    const struct in6_addr *address = &peer->address;

    return peer->is_local || IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

/* Without printf: most requests come from here, and each is in the log. */
static const char *format_v4(const struct peer *peer, char *text)
{
    const uint8_t *bytes = &peer->address.s6_addr[12];
    char *at = text;

    for (int i = 0; i < 4; i++) {
        at += decimal_format_natural(bytes[i], at);
        *at++ = i < 3 ? '.' : ':';
    }
    (void)decimal_format_natural(peer->port, at);
    return text;
}

const char *peer_format(const struct peer *peer, char text[PEER_TEXT])
{
    char address[INET6_ADDRSTRLEN] = "?";

    if (peer->is_local) {
        (void)snprintf(text, PEER_TEXT, "uid %u pid %d", peer->uid, peer->pid);
        return text;
    }
    if (IN6_IS_ADDR_V4MAPPED(&peer->address))
        return format_v4(peer, text);
    (void)inet_ntop(AF_INET6, &peer->address, address, sizeof address);
    (void)snprintf(text, PEER_TEXT, "[%s]:%u", address, peer->port);
    return text;
}
