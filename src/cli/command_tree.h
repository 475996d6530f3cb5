/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of commands: tables of rows, one a command. Names, aliases, groups, operands, options, help and examples are in the row, and all
 * else (dispatch, --help, completions, manual pages) is derived from it. `burrow cloud sandbox X`, `burrow sandbox X`, `burrow sb X` and
 * `burrow X` are the same.
 * Threads: one thread.
 */
#pragma once
#include "base/options.h"
#include "burrow.h"

struct invocation;

enum command_flags {
    COMMAND_SERVER = 1,          // talks to a server, which is started if there is none
    COMMAND_WORDS = 2,           // behind its operands, or "--", comes a command
    COMMAND_HIDDEN = 4,          // not in the list of commands
    COMMAND_NO_JSON = 8,         // has no --json of its own
    COMMAND_WORDS_OPTIONAL = 32, // with COMMAND_WORDS: it need not come
    COMMAND_RUNNING = 16,        // its own failures end with 125, as those of a command do not
};

struct cli_command {
    const char *group; // "fs"; "" for commands that are in none
    const char *names; // "delete rm del": the name, then aliases
    const char *
        operands; // "SANDBOX [PATH]": those in brackets may be missing, "..." may come again; "" for none
    const char *summary;           // one line, lower case
    const char *description;       // paragraphs, or NULL
    const struct option_row *rows; // beside those that all have; or NULL
    const char *const *examples;   // "$ burrow …", NULL at the end
    unsigned flags;
    /* The exit code, or -1 with err. */
    int (*run)(struct invocation *invocation, struct burrow_error *err);
    /* Instead: a command with a table and arguments of its own. argv[0] is its name. */
    int (*own)(int argc, char **argv);
    const struct option_hint *hints; // of options that other tools have; or NULL
};

struct command_group {
    const char *names; // "fs files file"
    const char *summary;
    int (*own)(int argc, char **argv); // a group that finds its commands by itself; or NULL
};

/* All tables, each ended by an empty row; NULL at the end. */
extern const struct cli_command *const command_tables[];
extern const struct command_group command_groups[];

/* Finds the command and runs it: the exit code. argv[0] is burrow's own. */
int tree_run(int argc, char **argv);

/* By one of its names; NULL: there is none. Commands that are in no group: "". */
const struct command_group *command_find_group(const char *name);
const struct cli_command *command_find(const char *group, const char *name);
/* Whether `name` is one of the names. */
bool command_has_name(const char *names, const char *name);
/* The first of the names. */
const char *command_name(const char *names, char text[32]);
/* For each command: its option set, with the options all have. Valid until the next call. */
const struct option_set *command_options(const struct cli_command *command);
