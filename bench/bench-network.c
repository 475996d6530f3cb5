/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of bench/network's measurements: servers of bytes and names, and who asks them. Each end
 * runs in the namespace that bench/network started it in; figures are lines on stdout. */
#include "base/auto.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 30, WINDOW = 32, BACKLOG = 1024 };

static char piece[1 << 18];

static _Noreturn void fail(const char *what)
{
    (void)fprintf(stderr, "bench-network: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct sockaddr_in place(const char *address, const char *port)
{
    struct sockaddr_in out = {.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
    if (inet_pton(AF_INET, address, &out.sin_addr) != 1)
        fail(address);
    return out;
}

static int bound(int type, const char *address, const char *port)
{
    struct sockaddr_in at = place(address, port);
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    int one = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        bind(fd, (struct sockaddr *)&at, sizeof at) < 0)
        fail("bind");
    return fd;
}

/* A connection: a byte for the first flight, then whatever comes is dropped, to the end. */
static void drop_all(int fd)
{
    if (recv(fd, piece, sizeof piece, 0) > 0 && send(fd, "k", 1, MSG_NOSIGNAL) == 1) {
        while (recv(fd, piece, sizeof piece, MSG_TRUNC) > 0)
            continue;
    }
    (void)close(fd);
}

/* bytes ADDRESS PORT WORKERS: processes that accept on one socket. */
static int serve_bytes(char **argv)
{
    int fd = bound(SOCK_STREAM, argv[0], argv[1]);
    if (listen(fd, BACKLOG) < 0)
        fail("listen");
    for (unsigned long i = strtoul(argv[2], NULL, 10); i > 1; i--) {
        if (fork() == 0)
            break;
    }
    printf("ready\n");
    for (;;) {
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (peer >= 0)
            drop_all(peer);
        else if (errno != ECONNABORTED && errno != EINTR)
            fail("accept");
    }
}

/* names ADDRESS PORT ANSWER: every name is there. */
static int serve_names(char **argv)
{
    int fd = bound(SOCK_DGRAM, argv[0], argv[1]);
    struct sockaddr_in answer = place(argv[2], "0");
    unsigned char message[2048];

    printf("ready\n");
    for (;;) {
        struct sockaddr_in peer;
        socklen_t size = sizeof peer;
        ssize_t got = recvfrom(fd, message, 512, 0, (struct sockaddr *)&peer, &size);
        ssize_t end = 12;
        if (got < 17)
            continue;
        while (end < got && message[end])
            end += 1 + message[end];
        end += 5;
        if (end > got)
            continue;
        bool is_address = message[end - 3] == 1;
        const unsigned char head[] = {0x81, 0x80, 0, 1, 0, is_address, 0, 0, 0, 0};
        const unsigned char record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4};
        memcpy(message + 2, head, sizeof head);
        if (is_address) {
            memcpy(message + end, record, sizeof record);
            memcpy(message + end + sizeof record, &answer.sin_addr, 4);
            end += (ssize_t)sizeof record + 4;
        }
        (void)sendto(fd, message, (size_t)end, 0, (struct sockaddr *)&peer, size);
    }
    return 0;
}

/* The first flight: a ClientHello with this name, which is all that whoever relays 443 reads. */
static size_t make_hello(const char *name, unsigned char *out)
{
    size_t length = strlen(name);
    size_t list = length + 9; // the extension
    size_t body = 2 + 32 + 1 + 4 + 2 + 2 + list;
    unsigned char *at = out;
    const unsigned char head[] = {
        22, 3, 1, 0, (unsigned char)(body + 4), 1, 0, 0, (unsigned char)body, 3, 3};
    const unsigned char suites[] = {0, 0, 2, 0x13, 1, 1, 0, 0, (unsigned char)list};
    const unsigned char extension[] = {0,
                                       0,
                                       0,
                                       (unsigned char)(length + 5),
                                       0,
                                       (unsigned char)(length + 3),
                                       0,
                                       0,
                                       (unsigned char)length};

    memcpy(at, head, sizeof head);
    at += sizeof head;
    memset(at, 7, 32);
    at += 32;
    memcpy(at, suites, sizeof suites);
    at += sizeof suites;
    memcpy(at, extension, sizeof extension);
    at += sizeof extension;
    memcpy(at, name, length);
    return (size_t)(at - out) + length;
}

/* Connects, sends the first flight and waits for the server's byte. */
static int begin(const struct sockaddr_in *at, const char *name)
{
    unsigned char hello[512];
    size_t size = make_hello(name, hello);
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char byte;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (const struct sockaddr *)at, sizeof *at) < 0)
        fail("connect");
    if (send(fd, hello, size, MSG_NOSIGNAL) != (ssize_t)size || recv(fd, &byte, 1, 0) != 1 ||
        byte != 'k')
        fail("the first answer");
    return fd;
}

/* bulk ADDRESS PORT NAME SECONDS: bytes a second that the other end has taken. */
static int ask_bulk(char **argv)
{
    struct sockaddr_in at = place(argv[0], argv[1]);
    int fd = begin(&at, argv[2]);
    double start = now_s();
    double end = start + strtod(argv[3], NULL);
    uint64_t sent = 0;

    while (now_s() < end) {
        ssize_t part = send(fd, piece, sizeof piece, MSG_NOSIGNAL);
        if (part < 0)
            fail("send");
        sent += (uint64_t)part;
    }
    if (shutdown(fd, SHUT_WR) < 0 || recv(fd, piece, 1, 0) != 0)
        fail("the end");
    printf("%.0f\n", (double)sent / (now_s() - start));
    return 0;
}

/* connects ADDRESS PORT NAME SECONDS: whole connections a second, one after the other. */
static int ask_connects(char **argv)
{
    struct sockaddr_in at = place(argv[0], argv[1]);
    struct linger reset = {.l_onoff = 1};
    double start = now_s();
    double end = start + strtod(argv[3], NULL);
    unsigned long made = 0;

    for (; now_s() < end; made++) {
        int fd = begin(&at, argv[2]);
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset); // leaves the port free
        (void)close(fd);
    }
    printf("%.1f\n", (double)made / (now_s() - start));
    return 0;
}

static size_t make_query(const char *name, uint16_t number, unsigned char *out)
{
    const unsigned char head[] = {
        (unsigned char)(number >> 8), (unsigned char)number, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    unsigned char *at = out + sizeof head;

    memcpy(out, head, sizeof head);
    for (const char *part = name; *part;) {
        size_t length = strcspn(part, ".");
        *at++ = (unsigned char)length;
        memcpy(at, part, length);
        at += length;
        part += length + (part[length] == '.');
    }
    const unsigned char tail[] = {0, 0, 1, 0, 1};
    memcpy(at, tail, sizeof tail);
    return (size_t)(at - out) + sizeof tail;
}

/* lookups ADDRESS PORT NAME COUNT: seconds for so many, a few under way at a time; answers with an
 * address among them. */
static int ask_names(char **argv)
{
    struct sockaddr_in at = place(argv[0], argv[1]);
    unsigned long count = strtoul(argv[3], NULL, 10);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    unsigned char message[2048];
    unsigned long sent = 0;
    unsigned long answered = 0;
    unsigned long good = 0;

    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        fail("connect");
    double start = now_s();
    while (answered < count) {
        while (sent < count && sent < answered + WINDOW) {
            size_t size = make_query(argv[2], (uint16_t)sent++, message);
            if (send(fd, message, size, 0) < 0)
                fail("send");
        }
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, 1000) == 0)
            break; // lost
        ssize_t got = recv(fd, message, sizeof message, 0);
        if (got < 12)
            fail("an answer");
        answered++;
        good += (message[3] & 15) == 0 && message[7] > 0;
    }
    printf("%.6f %lu\n", now_s() - start, good);
    return 0;
}

static const struct {
    const char *name;
    int n_words;
    int (*run)(char **argv);
} commands[] = {
    {"bytes", 3, serve_bytes},     {"names", 3, serve_names}, {"bulk", 4, ask_bulk},
    {"connects", 4, ask_connects}, {"lookups", 4, ask_names},
};

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0 && argc == 2 + commands[i].n_words)
            return commands[i].run(argv + 2);
    }
    (void)fprintf(stderr, "usage: bench-network COMMAND ADDRESS PORT ..., see bench/network\n");
    return 2;
}
