/* SPDX-License-Identifier: Apache-2.0 */
/* A host and an Internet for one test program; see network_world.h. */
#include "network_world.h"

#include "base/auto.h"
#include "base/fd.h"
#include "engine/gateway_wire.h"
#include "engine/network.h"
#include "test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MAX_PEERS 512
#define MAX_HEARD 4096
#define OWN_SOCKETS 3

/* What the server's process has heard, in memory that both see. */
struct heard {
    _Atomic unsigned count;
    char words[MAX_HEARD][16];
};
static struct heard *heard;
static int far_fd = -1; // the namespace behind the host
static pid_t server;

static uint32_t number_of(const char *text)
{
    struct in_addr address;
    CHECK(inet_pton(AF_INET, text, &address) == 1);
    return ntohl(address.s_addr);
}

static int bound(int type, const char *address)
{
    struct sockaddr_in any = {.sin_family = AF_INET,
                              .sin_port = htons(WORLD_PORT),
                              .sin_addr.s_addr = inet_addr(address)};
    const int on = 1;
    int sock = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    (void)setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(sock, (struct sockaddr *)&any, sizeof any) < 0 ||
        (type == SOCK_STREAM && listen(sock, 128) < 0))
        _exit(1);
    return sock;
}

static void answer_datagram(int sock)
{
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    char text[16] = "";
    ssize_t got = recvfrom(sock, text, sizeof text - 1, 0, (struct sockaddr *)&from, &length);

    if (got < 0)
        return;
    unsigned at = heard->count;
    if (at < MAX_HEARD) {
        memcpy(heard->words[at], text, sizeof text);
        heard->count = at + 1;
    }
    (void)sendto(sock, text, (size_t)got, 0, (struct sockaddr *)&from, length);
}

/* Without an end, in a process of its own. */
static void pour(int sock)
{
    static char bytes[65536];
    if (fork() != 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (send(sock, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        ;
    _exit(0);
}

/* Says so by a byte to `ready` once it can be connected to. */
static void serve(int ready)
{
    struct pollfd fds[MAX_PEERS + OWN_SOCKETS] = {
        {bound(SOCK_STREAM, "0.0.0.0"), POLLIN, 0},
        {bound(SOCK_DGRAM, WORLD_SERVER), POLLIN, 0}, // each answers by its own address
        {bound(SOCK_DGRAM, WORLD_OTHER), POLLIN, 0},
    };
    nfds_t count = OWN_SOCKETS;
    char bytes[65536];

    (void)!write(ready, "x", 1);
    (void)close(ready);
    while (poll(fds, count, -1) >= 0) {
        for (nfds_t i = 1; i < OWN_SOCKETS; i++) {
            if (fds[i].revents)
                answer_datagram(fds[i].fd);
        }
        for (nfds_t i = OWN_SOCKETS; i < count; i++) {
            ssize_t got = fds[i].revents ? recv(fds[i].fd, bytes, sizeof bytes, 0) : 1;
            if (got == 4 && memcmp(bytes, "more", 4) == 0)
                pour(fds[i].fd);
            if (fds[i].revents && got > 0)
                got = send(fds[i].fd, bytes, (size_t)got, MSG_NOSIGNAL);
            if (got > 0)
                continue;
            (void)close(fds[i].fd);
            fds[i--] = fds[--count];
        }
        if (fds[0].revents && count < MAX_PEERS + OWN_SOCKETS) {
            int peer = accept(fds[0].fd, NULL, NULL);
            (void)send(peer, "hello\n", 6, MSG_NOSIGNAL);
            fds[count++] = (struct pollfd){peer, POLLIN, 0};
        }
    }
    _exit(0);
}

static void start_server(void)
{
    int ends[2];
    char byte;

    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    server = child;
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[0]);
        if (setns(far_fd, CLONE_NEWNET) < 0)
            _exit(1);
        serve(ends[1]);
    }
    (void)close(ends[1]);
    CHECK(read(ends[0], &byte, 1) == 1);
    (void)close(ends[0]);
}

static void set_addresses(int ns_fd)
{
    static const char *const own[] = {WORLD_OTHER, WORLD_METADATA, WORLD_LAN};
    const struct wire_end here = {.name = "outside", .ns_fd = -1};
    const struct wire_end there = {.name = "outside", .ns_fd = ns_fd};
    uint32_t index = 0;
    automessages host = {0};
    automessages far = {0};

    CHECK_INT(wire_make(-1, &here, &there), 0);
    CHECK_INT(wire_index(-1, "outside", &index), 0);
    message_add_address(&host, index, number_of(WORLD_HOST), 24);
    message_add_route(&host, index, 0, 0, number_of(WORLD_SERVER));
    CHECK_INT(netlink_ask(-1, NETLINK_ROUTE, &host, NULL, NULL), 0);
    CHECK_INT(wire_index(ns_fd, "outside", &index), 0);
    message_add_address(&far, index, number_of(WORLD_SERVER), 24);
    for (unsigned i = 0; i < ARRAY_SIZE(own); i++)
        message_add_address(&far, 1, number_of(own[i]), 32);
    CHECK_INT(netlink_ask(ns_fd, NETLINK_ROUTE, &far, NULL, NULL), 0);
}

static void raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    autofd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(ioctl(sock, SIOCSIFFLAGS, &request) == 0);
}

static void make_world(void)
{
    struct error err = {0};

    heard = mmap(NULL, sizeof *heard, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(heard != MAP_FAILED);
    CHECK(unshare(CLONE_NEWNET) == 0);
    raise_loopback();
    CHECK_OK(fd_write_knob(AT_FDCWD, "/proc/sys/net/ipv4/ip_forward", "0", &err),
             err); // whatever the machine has
    CHECK_OK(network_create(-1, &far_fd, &err), err);
    set_addresses(far_fd);
}

void world_open(void)
{
    if (!heard)
        make_world();
    if (server <= 0 || kill(server, 0) < 0) // ended with the test before
        start_server();
}

unsigned world_heard(const char *word)
{
    unsigned found = 0;
    for (unsigned i = 0; i < heard->count; i++)
        found += strcmp(heard->words[i], word) == 0;
    return found;
}

const char *world_leftovers(void)
{
    static char text[4096];
    FILE *list = popen(
        "ip -o link show | grep -o ' burrow[0-9]*@' | tr -d ' @'; nft list tables | grep burrow; "
        "cat /proc/sys/net/ipv4/conf/outside/forwarding | grep 1",
        "re");
    CHECK(list);
    size_t got = fread(text, 1, sizeof text - 1, list);
    text[got] = '\0';
    (void)pclose(list);
    return text;
}
