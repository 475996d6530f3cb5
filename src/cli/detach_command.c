/* SPDX-License-Identifier: Apache-2.0 */
/* burrow detach: lets go of what the kernel keeps for a data directory between runs. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/options.h"
#include "cli/exit.h"
#include "egress/egress.h"
#include "engine/box.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

struct detach_options {
    const char *data_dir;
    bool ends_sandboxes;
};

static const struct option_row rows[] = {
    {"end-sandboxes", 0, OPTION_FLAG, offsetof(struct detach_options, ends_sandboxes), NULL,
     "end sandboxes that are still running first; files of those that are kept stay", NULL, 0, 0},
    {"data", 0, OPTION_TEXT, offsetof(struct detach_options, data_dir), "DIR",
     "where burrow keeps things (default " CLI_DEFAULT_DATA ")", "BURROW_DATA", 0, 0},
    {0},
};

static const char *const examples[] = {
    "$ burrow detach",
    "$ burrow detach --data /srv/burrow && rm -r /srv/burrow",
    "$ burrow detach --end-sandboxes",
    NULL,
};

static const struct option_set option_set = {
    .command = "burrow detach",
    .usage = "[options]",
    .summary = "unmount the volume and let go of the rest; files stay",
    .description =
        "Between runs burrow keeps its volume mounted and a few empty control groups, so that the\n"
        "next run is fast. This gives them back, for example before the data directory is moved "
        "or\n"
        "removed. The next run attaches everything again. Refused while sandboxes run, unless they "
        "are to be\n"
        "ended; refused while a server runs in any case.",
    .rows = rows,
    .examples = examples,
};

/* One that runs has this lock, with its number in it; held, it keeps the next one out for as long as this takes. */
static int keep_server_out(const char *data_dir, int *out_fd, struct error *err)
{
    char path[PATH_MAX], pid[32] = "";

    (void)snprintf(path, sizeof path, "%s/server.lock", data_dir);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : error_sys(err, "open '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        ssize_t length = pread(fd, pid, sizeof pid - 1, 0);
        pid[length > 0 ? strspn(pid, "0123456789") : 0] = '\0';
        return error_set(err, ERROR_CONFLICT,
                         "a server has the data directory '%s' (process %s): stop it first",
                         data_dir, *pid ? pid : "unknown");
    }
    *out_fd = take_fd(fd);
    return 0;
}

static int detach(const struct detach_options *options, struct error *err)
{
    autofd lock = -1;

    if (engine_need_root(err) < 0 || keep_server_out(options->data_dir, &lock, err) < 0 ||
        (options->ends_sandboxes && engine_end_boxes(options->data_dir, err) < 0))
        return -1;
    if (engine_detach(options->data_dir, err) == 0)
        return egress_stop(options->data_dir, err); // no box is left that it could be for
    if (error_is(err, ERROR_BUSY) && error_is_about(err, "sandbox")) {
        struct error why = *err;
        error_refuse(err, why.reason, why.noun, "%.700s; --end-sandboxes ends them", why.text);
    }
    return -1;
}

int cli_detach(int argc, char **argv)
{
    struct detach_options options = {.data_dir = CLI_DEFAULT_DATA};
    char room[PATH_MAX];
    struct error err = {0};
    int operands = 0;

    int parsed = options_parse(&option_set, argc, argv, &options, &operands, &err);
    if (parsed == OPTIONS_HELP) {
        options_help(&option_set, stdout);
        return EXIT_DONE;
    }
    if (parsed == 0 && operands < argc)
        parsed = error_set(&err, ERROR_INVALID, "detach takes no '%s'", argv[operands]);
    if (parsed == 0)
        parsed = data_dir_resolve(&options.data_dir, room, &err);
    if (parsed == 0)
        parsed = detach(&options, &err);
    if (parsed < 0) {
        exit_tell(&err);
        return error_exit_code(&err);
    }
    return EXIT_DONE;
}
