/* SPDX-License-Identifier: Apache-2.0 */
/* burrow mcp: the Model Context Protocol on standard input and output, and how coding agents are told of it. */
#include "cli/commands.h"

#include "cli/invocation.h"
#include "cli/mcp_bridge.h"
#include "cli/mcp_install.h"
#include "cli/say.h"

#include <string.h>

static int run_mcp(struct invocation *invocation, struct burrow_error *err)
{
    const char *word = invocation_operand(invocation, 0);

    if (!word) {
        if (invocation->is_project || invocation->is_written)
            return say_fail(err, BURROW_INVALID,
                            "--project and --write are for 'burrow mcp install CLIENT'");
        return mcp_bridge_run(invocation, err);
    }
    if (strcmp(word, "install") != 0)
        return say_fail(err, BURROW_INVALID,
                        "burrow mcp has no command '%s'; 'burrow mcp install CLIENT' is one", word);
    return mcp_install(invocation, err);
}

static const struct option_row rows[] = {
    OPTION("project", 0, OPTION_FLAG, is_project, NULL,
           "install: for the project in this directory instead of the user"),
    OPTION("write", 0, OPTION_FLAG, is_written, NULL,
           "install: write it into the client's file instead of printing it; what else is there "
           "stays"),
    OPTION("url", 0, OPTION_TEXT, url, "URL",
           "the server's address (default: BURROW_URL, else 'burrow context')"),
    OPTION("context", 0, OPTION_TEXT, context, "NAME", "a server that 'burrow context' knows"),
    OPTION("api-key", 0, OPTION_TEXT, api_key, "KEY",
           "for it (default: BURROW_API_KEY; an option is seen by others on the machine)"),
    OPTION("data", 0, OPTION_TEXT, data_dir, "DIR",
           "data directory of the local server (default: BURROW_DATA)"),
    {0},
};

static const char *const examples[] = {
    "$ burrow mcp install claude --write", "$ burrow mcp install codex",
    "$ burrow mcp install vscode --project --write --url https://burrow.example.com", NULL};

const struct cli_command mcp_commands[] = {
    {"", "mcp", "[install] [CLIENT]", "give a coding agent tools to use sandboxes with (MCP)",
     "Without operands it speaks the Model Context Protocol on standard input and output, as "
     "clients start it, and ends with them: each message goes to the server's /mcp. Where no "
     "server is configured or runs, one is started in the background.\n"
     "'install' prints the configuration of CLIENT, which is claude, cursor, vscode or codex. "
     "Keys are never written: BURROW_API_KEY of the environment is named instead.",
     rows, examples, COMMAND_NO_JSON, run_mcp},
    {0},
};
