/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the attack and keeps the score; see attacker.h. */
#include "attack/attacker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static unsigned n_complaints;

void complain(const char *format, ...)
{
    va_list args;
    n_complaints++;
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)printf("\n");
}

void not_applicable(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)printf("\n");
    (void)fflush(stdout);
    _exit(INSIDE_NOT_APPLICABLE);
}

void expect_refused(const char *what, long result, int want)
{
    int got = errno;
    if (result != -1)
        complain("%s worked (%ld)", what, result);
    else if (got != want)
        complain("%s: %s, not %s", what, strerror(got), strerror(want));
}

void expect_either(const char *what, long result, int one, int two)
{
    int got = errno;
    if (result != -1)
        complain("%s worked (%ld)", what, result);
    else if (got != one && got != two)
        complain("%s: %s, neither %s nor %s", what, strerror(got), strerror(one), strerror(two));
}

void expect_works(const char *what, long result)
{
    if (result == -1)
        complain("%s does not work: %s", what, strerror(errno));
}

int in_child(int (*body)(void *data), void *data)
{
    int status = 0;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(body(data));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

const char *read_text(const char *path)
{
    static char text[1 << 16];
    ssize_t used = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t got = 1; fd >= 0 && got > 0 && used < (ssize_t)sizeof text - 1; used += got) {
        got = read(fd, text + used, sizeof text - 1 - (size_t)used);
        if (got < 0)
            break;
    }
    if (fd >= 0)
        (void)close(fd);
    text[used] = '\0';
    return text;
}

bool is_readable(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, &byte, 1);
    (void)close(fd);
    return got > 0;
}

bool is_number(const char *name)
{
    return strspn(name, "0123456789") == strlen(name);
}

void say_and_wait(const char *line)
{
    (void)puts(line);
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

int listen_abstract(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    return bind(sock, (struct sockaddr *)&address, length) == 0 && listen(sock, 1) == 0 ? sock : -1;
}

static const struct inside_attack *find(const struct inside_attack *const *lists, const char *name)
{
    for (; *lists; lists++) {
        for (const struct inside_attack *at = *lists; at->name; at++) {
            if (strcmp(at->name, name) == 0)
                return at;
        }
    }
    return NULL;
}

int inside_main(const struct inside_attack *const *more, int argc, char **argv)
{
    static const struct inside_attack *const lists[] = {
        inside_calls,   inside_kernel, inside_look,   inside_reach,
        inside_network, inside_use,    inside_counts, NULL};
    const struct inside_attack *attack = NULL;
    if (argc > 1 && more)
        attack = find(more, argv[1]);
    if (argc > 1 && !attack)
        attack = find(lists, argv[1]);
    if (!attack) {
        (void)printf("no such attack\n");
        return INSIDE_UNKNOWN;
    }
    attack->run(argc - 2, argv + 2);
    (void)fflush(stdout);
    return n_complaints > 0 ? INSIDE_OPEN : INSIDE_HELD;
}
