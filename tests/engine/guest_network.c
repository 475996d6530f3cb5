/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest does on the network; see guest.h. Addresses and ports are arguments; what came of it is one line. */
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE_MS 30000

static struct sockaddr_in address_of(const char *text, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
        say("bad address %s", text);
    return address;
}

static int tell(const char *what)
{
    say("%s %s", what, strerror(errno));
    return 1;
}

static int open_to(char **argv, int type, int *out)
{
    struct sockaddr_in address = address_of(argv[1], argv[2]);
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    int sock = socket(AF_INET, type, 0);

    if (sock < 0)
        return tell("socket:");
    (void)setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(sock, (struct sockaddr *)&address, sizeof address) < 0)
        return tell("connect:");
    *out = sock;
    return 0;
}

/* Says the first line that the server says. */
static int run_connect(int argc, char **argv)
{
    char line[128] = "";
    int sock = -1;

    (void)argc;
    if (open_to(argv, SOCK_STREAM, &sock) != 0)
        return 1;
    ssize_t got = recv(sock, line, sizeof line - 1, 0);
    if (got < 0)
        return tell("recv:");
    line[strcspn(line, "\n")] = '\0';
    say("%s", line);
    return 0;
}

/* Sends a word, says what comes back. */
static int run_datagram(int argc, char **argv)
{
    char text[128] = "";
    int sock = -1;

    (void)argc;
    if (open_to(argv, SOCK_DGRAM, &sock) != 0)
        return 1;
    if (send(sock, argv[3], strlen(argv[3]), 0) < 0)
        return tell("send:");
    if (recv(sock, text, sizeof text - 1, 0) < 0)
        return tell("recv:");
    say("%s", text);
    return 0;
}

/* Many at once, without an answer. */
static int run_flood(int argc, char **argv)
{
    char text[1200] = "flood";
    int sock = -1;

    (void)argc;
    if (open_to(argv, SOCK_DGRAM, &sock) != 0)
        return 1;
    for (int left = atoi(argv[3]); left > 0; left--)
        (void)send(sock, text, sizeof text, MSG_DONTWAIT);
    return 0;
}

/* Sends and gets back a byte for as long as it can; says when that ends. */
static int run_hold(int argc, char **argv)
{
    char bytes[256];
    int sock = -1;

    (void)argc;
    if (open_to(argv, SOCK_STREAM, &sock) != 0 || recv(sock, bytes, sizeof bytes, 0) <= 0)
        return 1;
    say("ready");
    for (;;) {
        if (send(sock, "x", 1, MSG_NOSIGNAL) < 0 || recv(sock, bytes, sizeof bytes, 0) <= 0) {
            say("cut");
            return 0;
        }
        (void)poll(NULL, 0, 5);
    }
}

/* Asks for much, and then only reads; says when that ends. */
static int run_read(int argc, char **argv)
{
    static char bytes[65536];
    int sock = -1;

    (void)argc;
    if (open_to(argv, SOCK_STREAM, &sock) != 0 || recv(sock, bytes, sizeof bytes, 0) <= 0 ||
        send(sock, "more", 4, 0) != 4)
        return 1;
    bool is_begun = false;
    for (ssize_t got; (got = recv(sock, bytes, sizeof bytes, 0)) > 0; is_begun = true) {
        if (!is_begun)
            say("ready");
    }
    say("cut");
    return 0;
}

/* Says hello to whoever connects. */
static int run_serve(int argc, char **argv)
{
    struct sockaddr_in address = address_of("0.0.0.0", argv[1]);
    int sock = socket(AF_INET, SOCK_STREAM, 0);

    (void)argc;
    if (bind(sock, (struct sockaddr *)&address, sizeof address) < 0 || listen(sock, 16) < 0)
        return tell("listen:");
    say("ready");
    for (;;) {
        int peer = accept(sock, NULL, NULL);
        (void)!write(peer, "neighbour\n", 10);
        (void)close(peer);
    }
}

static int run_ping(int argc, char **argv)
{
    struct sockaddr_in address = address_of(argv[1], "0");
    struct icmphdr request = {.type = ICMP_ECHO};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    char answer[128];
    int sock = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);

    (void)argc;
    if (sock < 0)
        return tell("socket:");
    (void)setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(sock, (struct sockaddr *)&address, sizeof address) < 0 ||
        send(sock, &request, sizeof request, 0) < 0)
        return tell("send:");
    if (recv(sock, answer, sizeof answer, 0) < 0)
        return tell("recv:");
    say("pong");
    return 0;
}

/* What would let it forge or hear packets; says each that it got. */
static int run_forge(int argc, char **argv)
{
    const int on = 1;
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in other = address_of(argv[1], "4444");

    (void)argc;
    if (socket(AF_INET, SOCK_RAW, IPPROTO_RAW) >= 0 || socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0)
        say("a raw socket");
    if (socket(AF_PACKET, SOCK_RAW, 0) >= 0 || socket(AF_PACKET, SOCK_DGRAM, 0) >= 0)
        say("a packet socket");
    if (setsockopt(sock, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof on) == 0)
        say("a transparent socket");
    if (setsockopt(sock, IPPROTO_IP, IP_FREEBIND, &on, sizeof on) == 0 &&
        bind(sock, (struct sockaddr *)&other, sizeof other) == 0) {
        struct sockaddr_in to = address_of(argv[2], argv[3]);
        (void)sendto(sock, "forged", 6, 0, (struct sockaddr *)&to, sizeof to);
    }
    say("done");
    return 0;
}

const struct command network_commands[] = {
    {"connect", run_connect, "ADDRESS PORT"},
    {"datagram", run_datagram, "ADDRESS PORT WORD"},
    {"flood", run_flood, "ADDRESS PORT COUNT"},
    {"hold", run_hold, "ADDRESS PORT"},
    {"read", run_read, "ADDRESS PORT"},
    {"serve", run_serve, "PORT"},
    {"ping", run_ping, "ADDRESS"},
    {"forge", run_forge, "SOURCE ADDRESS PORT"},
    {0},
};
