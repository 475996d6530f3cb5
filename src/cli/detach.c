/* SPDX-License-Identifier: Apache-2.0 */
/* burrow detach: lets go of what the kernel keeps for a data directory between runs. */
#include "cli/commands.h"

#include "base/options.h"
#include "cli/exit.h"
#include "engine/box.h"

#include <stddef.h>
#include <stdio.h>

struct detach_options {
    const char *data_dir;
};

static const struct option_row rows[] = {
    {"data", 0, OPTION_TEXT, offsetof(struct detach_options, data_dir), "DIR",
     "where burrow keeps things (default " CLI_DEFAULT_DATA ")", "BURROW_DATA", 0, 0},
    {0},
};

static const char *const examples[] = {
    "$ burrow detach",
    "$ burrow detach --data /srv/burrow && rm -r /srv/burrow",
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
        "removed. The next run attaches everything again. Refused while sandboxes run.",
    .rows = rows,
    .examples = examples,
};

int cli_detach(int argc, char **argv)
{
    struct detach_options options = {.data_dir = CLI_DEFAULT_DATA};
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
        parsed = engine_detach(options.data_dir, &err);
    if (parsed < 0) {
        exit_tell(&err);
        return error_exit_code(&err);
    }
    return EXIT_DONE;
}
