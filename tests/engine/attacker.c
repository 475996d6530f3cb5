/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the attack and keeps the score; see attacker.h. */
#include "attacker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
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

static const struct attack *find(const struct attack *list, const char *name)
{
    for (; list->name; list++) {
        if (strcmp(list->name, name) == 0)
            return list;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct attack *const lists[] = {look_attacks, call_attacks, reach_attacks,
                                                 write_attacks, count_attacks};
    const struct attack *attack = NULL;
    for (size_t i = 0; argc > 1 && !attack && i < COUNT(lists); i++)
        attack = find(lists[i], argv[1]);
    if (!attack) {
        (void)printf("no such attack\n");
        return 2;
    }
    attack->run(argc - 2, argv + 2);
    (void)fflush(stdout);
    return n_complaints > 0;
}
