/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on what the kernel counts by user or for the whole machine: taking all there is of it. */
#include "attacker.h"

#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/inotify.h>

#define ENOUGH 200000

static int take_inotify(int count)
{
    (void)count;
    return inotify_init1(IN_CLOEXEC);
}

static int take_signal(int count)
{
    union sigval value = {.sival_int = count};
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGRTMIN);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return sigqueue(getpid(), SIGRTMIN, value);
}

static int take_queue(int count)
{
    struct mq_attr attributes = {.mq_maxmsg = 10, .mq_msgsize = 8192};
    char name[64];
    (void)snprintf(name, sizeof name, "/queue-%u-%d-%d", getuid(), (int)getpid(), count);
    return mq_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600, &attributes);
}

static int take_terminal(int count)
{
    (void)count;
    return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static int take_aio(int count)
{
    unsigned long context = 0;
    (void)count;
    return (int)syscall(SYS_io_setup, 1024, &context);
}

static const struct kind {
    const char *name;
    int (*take)(int count);
} kinds[] = {
    {"inotify", take_inotify},    {"signals", take_signal}, {"queues", take_queue},
    {"terminals", take_terminal}, {"aio", take_aio},
};

static const struct kind *kind_of(int argc, char **argv)
{
    for (size_t i = 0; argc > 0 && i < COUNT(kinds); i++) {
        if (strcmp(kinds[i].name, argv[0]) == 0)
            return &kinds[i];
    }
    complain("no such kind");
    return NULL;
}

/* argv: a kind, and how many are enough. Takes as many as it gets, says how many and why no more, and keeps them. */
static void hold(int argc, char **argv)
{
    const struct kind *kind = kind_of(argc, argv);
    int enough = argc > 1 ? atoi(argv[1]) : ENOUGH;
    int count = 0;
    errno = 0;
    while (kind && count < enough && kind->take(count) >= 0)
        count++;
    (void)printf("%d %d\n", count, errno);
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

/* argv: a kind. One is to be had. */
static void take(int argc, char **argv)
{
    const struct kind *kind = kind_of(argc, argv);
    if (kind && kind->take(0) < 0)
        complain("%s: %s", kind->name, strerror(errno));
}

const struct attack count_attacks[] = {
    {"hold", hold},
    {"take", take},
    {0},
};
