/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on what the kernel counts for a user or for the whole machine rather than for a box: taken until refused, and
 * looked for from another box meanwhile. And memory that hides in sockets.
 */
#include "attack/attacker.h"

#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/socket.h>

#define AIO_EVENTS 256 // a context takes this much of the machine's count

static int take_signal(long i)
{
    return sigqueue(getpid(), SIGRTMIN, (union sigval){0});
}

static int take_inotify(long i)
{
    return inotify_init1(IN_CLOEXEC);
}

static int take_queue(long i)
{
    char name[32];
    struct mq_attr size = {.mq_maxmsg = 10, .mq_msgsize = 1024};
    (void)snprintf(name, sizeof name, "/burrow-%ld", i);
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &size);
    if (queue == (mqd_t)-1)
        return -1;
    (void)mq_unlink(name); // counted while it is open
    return 0;
}

static int take_aio(long i)
{
    unsigned long context = 0;
    return (int)syscall(SYS_io_setup, AIO_EVENTS, &context);
}

static int take_terminal(long i)
{
    return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static const struct count {
    const char *name;
    int (*take)(long i);
    long weight; // how much of the count one takes
} counts[] = {
    {"signals", take_signal, 1},   {"inotify", take_inotify, 1},    {"queues", take_queue, 1},
    {"aio", take_aio, AIO_EVENTS}, {"terminals", take_terminal, 1},
};

static const struct count *find_count(const char *name)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGRTMIN);
    (void)sigprocmask(SIG_BLOCK, &set, NULL); // so that signals stay queued
    for (size_t i = 0; i < COUNT(counts); i++) {
        if (strcmp(counts[i].name, name) == 0)
            return &counts[i];
    }
    not_applicable("nothing counts '%s'", name);
}

/* argv: of what, and how much at most. Says how much it got, keeps it and waits. */
static void fill(int argc, char **argv)
{
    const struct count *count = find_count(argc > 0 ? argv[0] : "");
    long most = argc > 1 ? atol(argv[1]) : 1, got = 0;
    char line[32];
    for (long i = 0; got < most; i++, got += count->weight) {
        if (count->take(i) < 0)
            break;
    }
    (void)snprintf(line, sizeof line, "%ld", got);
    say_and_wait(line);
}

/* argv: of what. One of it is still to be had. */
static void take_one(int argc, char **argv)
{
    const struct count *count = find_count(argc > 0 ? argv[0] : "");
    if (count->take(0) < 0)
        complain("%s: %s", count->name, strerror(errno));
}

/* Sends until the receiver takes no more; what it really holds, since the rest is dropped without a word. */
static long fill_datagrams(int receiver, const struct sockaddr *to, socklen_t length)
{
    static char bytes[32 << 10];
    uint32_t memory[9] = {0};
    int most = 1 << 30;
    int sender = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)setsockopt(receiver, SOL_SOCKET, SO_RCVBUF, &most, sizeof most);
    for (uint32_t before = 0;; before = memory[0]) {
        socklen_t size = sizeof memory;
        if (sendto(sender, bytes, sizeof bytes, 0, to, length) < 0 ||
            getsockopt(receiver, SOL_SOCKET, 55 /* SO_MEMINFO */, memory, &size) < 0 ||
            memory[0] <= before)
            break;
    }
    (void)close(sender);
    return memory[0];
}

static long hold_udp(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sock < 0 || bind(sock, (struct sockaddr *)&address, sizeof address) < 0 ||
        getsockname(sock, (struct sockaddr *)&address, &length) < 0)
        return -1;
    return fill_datagrams(sock, (struct sockaddr *)&address, length);
}

static long fill_stream(int sender)
{
    static char bytes[64 << 10];
    long held = 0;
    int most = 1 << 30;
    (void)setsockopt(sender, SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
    (void)fcntl(sender, F_SETFL, O_NONBLOCK);
    for (ssize_t sent; (sent = send(sender, bytes, sizeof bytes, MSG_NOSIGNAL)) > 0;)
        held += sent;
    return held;
}

static long hold_tcp(void)
{
    static int listener = -1;
    static struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    if (listener < 0) {
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 ||
            listen(listener, 16) < 0 ||
            getsockname(listener, (struct sockaddr *)&address, &length) < 0)
            return -1;
    }
    int sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sender < 0 || connect(sender, (struct sockaddr *)&address, sizeof address) < 0 ||
        accept(listener, NULL, NULL) < 0)
        return -1;
    return fill_stream(sender);
}

static long hold_unix(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    return fill_stream(pair[0]);
}

/* argv: of which kind of sockets, and how many bytes it must not get. Nobody reads them. */
static void socket_memory(int argc, char **argv)
{
    const char *kind = argc > 0 ? argv[0] : "udp";
    long most = argc > 1 ? atol(argv[1]) : 1 << 30, held = 0, more = 1;
    long too_much = most + most / 2; // a socket's own count and the limit's differ a little
    for (int empty = 0; held <= too_much && empty < 64; held += more) {
        if (strcmp(kind, "udp") == 0)
            more = hold_udp();
        else
            more = strcmp(kind, "tcp") == 0 ? hold_tcp() : hold_unix();
        if (more < 0)
            return; // refused
        empty = more == 0 ? empty + 1 : 0;
    }
    if (held > too_much)
        complain("%ld MiB wait in its %s sockets, and its memory limit is %ld MiB", held >> 20,
                 kind, most >> 20);
}

const struct inside_attack inside_counts[] = {
    {"fill", fill},
    {"take-one", take_one},
    {"socket-memory", socket_memory},
    {0},
};
