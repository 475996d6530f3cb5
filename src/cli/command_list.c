/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all tables of commands, and the groups they are in: where a new one is added. */
#include "cli/commands.h"

static const char *const own_examples[] = {NULL};

/* Commands with tables of their own. */
static const struct cli_command own_commands[] = {
    {"", "run", "", "run one command in a fresh sandbox, then remove it", .examples = own_examples,
     .own = cli_run},
    {0},
};
static const struct cli_command machine_commands[] = {
    {"", "serve", "", "serve sandboxes over HTTP, to this command line and to SDKs",
     .own = cli_serve},
    {"", "key", "", "make, list and revoke the keys of a server", .own = cli_key},
    {"", "detach", "", "unmount the volume and let go of the rest; files stay", .own = cli_detach},
    {"", "repair", "", "mend a server's data whose database is missing or damaged",
     .own = cli_repair},
    {"", "doctor", "", "say what this machine can do, and how to mend the rest", .own = cli_doctor},
    {0},
};

const struct cli_command *const command_tables[] = {
    own_commands,     sandbox_commands,  execution_commands,
    file_commands,    snapshot_commands, build_commands,
    job_commands,     attach_commands,   code_commands,
    mcp_commands,     top_commands,      server_commands,
    context_commands, machine_commands,  completion_commands,
    network_commands, ssh_commands,      ssh_key_commands,
    try_commands,     watch_commands,    NULL,
};

const struct command_group command_groups[] = {
    {"runtime rt", "what sandboxes start from", cli_runtime},
    {"fs files file", "files in a sandbox"},
    {"snapshot", "files of a sandbox to start others from"},
    {"checkpoint ckpt", "files of a sandbox to go back to"},
    {"execution", "what ran in sandboxes"},
    {"job", "commands in the background"},
    {"network", "where sandboxes may connect to"},
    {"port", "what of a sandbox is reached from outside"},
    {"ssh-key ssh-keys", "public SSH keys that open sandboxes"},
    {"system", "the server itself"},
    {"context", "the servers you know, by name"},
    {0},
};
