/* SPDX-License-Identifier: Apache-2.0 */
/* burrow serve, burrow key and burrow repair: become the program burrow-server, which has the libraries that burrow does without. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/contexts.h"
#include "cli/exit.h"
#include "cli/say.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "burrow-server"

// Next to burrow, as it is built; or where it is installed.
static const char *const places[] = {"", "../libexec/burrow/"};

static int find_directory(char directory[PATH_MAX], struct error *err)
{
    ssize_t length = readlink("/proc/self/exe", directory, PATH_MAX - 1);

    if (length < 0)
        return error_sys(err, "find out where burrow is: read '/proc/self/exe'");
    directory[length] = '\0';
    char *slash = strrchr(directory, '/');
    slash[slash == directory] = '\0';
    return 0;
}

int become_server(int argc, char **argv, struct error *err)
{
    autofree char **words = xcalloc((size_t)argc + 2, sizeof *words);
    char directory[PATH_MAX];

    if (find_directory(directory, err) < 0)
        return -1;
    words[0] = (char *)PROGRAM;
    memcpy(words + 1, argv, (size_t)argc * sizeof *words);
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        autofree char *path = xasprintf("%s/%s" PROGRAM, directory, places[i]);
        (void)execv(path, words);
        if (errno != ENOENT && errno != ENOTDIR)
            return error_sys(err, "start '%s'", path);
    }
    return error_set(
        err, ERROR_UNAVAILABLE,
        "the server's program, " PROGRAM
        ", is neither in '%s' nor in '%s/../libexec/burrow'; install burrow as a whole",
        directory, directory);
}

int cli_serve(int argc, char **argv)
{
    struct error err = {0};

    (void)become_server(argc, argv, &err);
    exit_tell(&err);
    return error_exit_code(&err);
}

/* Keys are made where the server's data is, whichever server other commands go to. */
static void tell_which_server(void)
{
    const char *variable = getenv("BURROW_URL");
    autocontext context = {0};
    struct burrow_error ignored;

    if (variable && *variable)
        say_note("keys are those of the server on this machine; commands go to BURROW_URL");
    else if (contexts_find(NULL, &context, &ignored) > 0)
        say_note("keys are those of the server on this machine; commands go to the context '%s'",
                 context.name);
}

int cli_key(int argc, char **argv)
{
    tell_which_server();
    return cli_serve(argc, argv);
}

int cli_repair(int argc, char **argv)
{
    return cli_serve(argc, argv);
}
