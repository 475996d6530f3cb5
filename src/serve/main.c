/* SPDX-License-Identifier: Apache-2.0 */
/* Program burrow-server: what of burrow needs libraries. People call it as 'burrow serve', 'burrow key' and 'burrow repair'. */
#include "serve/serve.h"

#include "core/findings.h"
#include "data/failure.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"serve", serve_command},   {"key", key_command},     {"repair", repair_command},
    {"probes", probes_command}, {"users", users_command},
};

int probes_command(int argc, char **argv)
{
    return argc == 2 ? findings_print(argv[1], STDOUT_FILENO) : 2;
}

int serve_exit_code(const struct error *err)
{
    return error_exit_code(err);
}

int serve_fail(const struct error *err)
{
    (void)fprintf(stderr, "burrow: %s\n", err->text);
    return serve_exit_code(err);
}

int serve_fail_as(const struct error *err, bool is_json)
{
    if (is_json)
        failure_print(err, stdout);
    return serve_fail(err);
}

/* Nothing else may come to be fd 0, 1 or 2. */
static void fill_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", O_RDWR);
}

int main(int argc, char **argv)
{
    fill_standard_fds();
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        (void)printf("burrow %s\n", BURROW_VERSION);
        return 0;
    }
    (void)fputs(
        "burrow-server is part of burrow: use 'burrow serve', 'burrow key' and 'burrow repair'\n",
        stderr);
    return 2;
}
