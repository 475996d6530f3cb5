/* SPDX-License-Identifier: Apache-2.0 */
/* Program burrow: finds the command and runs it. */
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/exit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", cli_run, "run one command in a fresh sandbox, then remove it"},
    {"serve", cli_serve, "serve sandboxes over HTTP, to the SDKs of others"},
    {"key", cli_key, "make, list and revoke the keys of a server"},
    {"runtime", cli_runtime, "list, build, check and remove what sandboxes start from"},
    {"detach", cli_detach, "unmount the volume and let go of the rest; files stay"},
    {"repair", cli_repair, "mend a server's data whose database is missing or damaged"},
    {"doctor", cli_doctor, "say what this machine can do, and how to mend the rest"},
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void print_help(FILE *out)
{
    (void)fputs("burrow runs untrusted code in isolated Linux sandboxes on this machine.\n\n"
                "Usage: burrow COMMAND [options]\n\nCommands:\n",
                out);
    for (unsigned i = 0; i < COMMAND_COUNT; i++)
        (void)fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    (void)fputs("\nOptions:\n"
                "  --version  say which version this is\n"
                "  --help     say this; 'burrow COMMAND --help' tells more\n\n"
                "Examples:\n"
                "  $ burrow run --runtime host:latest -- echo hello\n"
                "  $ burrow run --memory 256Mi --timeout 10s -- python3 -c 'print(6 * 7)'\n"
                "  $ burrow doctor\n",
                out);
}

static const struct subcommand *find_command(const char *name)
{
    for (unsigned i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int refuse(const char *name)
{
    struct suggestion suggestion = {.wanted = name};
    for (unsigned i = 0; i < COMMAND_COUNT; i++)
        suggestion_consider(&suggestion, commands[i].name);
    if (suggestion.nearest)
        (void)fprintf(stderr, "burrow: unknown command '%s'; did you mean '%s'?\n", name,
                      suggestion.nearest);
    else
        (void)fprintf(stderr, "burrow: unknown command '%s'; 'burrow --help' lists them\n", name);
    return EXIT_USAGE;
}

/* "burrow help run" is "burrow run --help". */
static int help_about(const char *name)
{
    const struct subcommand *command = find_command(name);
    char *argv[] = {(char *)name, (char *)"--help", NULL};
    return command ? command->run(2, argv) : refuse(name);
}

/* A caller may have closed stdin, stdout or stderr; nothing else may come to be fd 0, 1 or 2. */
static void fill_standard_fds(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", O_RDWR); // the lowest free one is this one
    }
}

int main(int argc, char **argv)
{
    fill_standard_fds();
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const struct subcommand *command = find_command(argv[1]);
    if (command)
        return command->run(argc - 1, argv + 1);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (strcmp(argv[1], "help") == 0 && argc == 2)) {
        print_help(stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "help") == 0)
        return help_about(argv[2]);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
        (void)printf("burrow %s\n", BURROW_VERSION);
        return EXIT_DONE;
    }
    return refuse(argv[1]);
}
