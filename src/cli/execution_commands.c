/* SPDX-License-Identifier: Apache-2.0 */
/* burrow exec: a command in a sandbox of a server, as if it ran here. */
#include "cli/commands.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/exit.h"
#include "cli/invocation.h"
#include "cli/remote_run.h"
#include "cli/sandbox_options.h"
#include "cli/say.h"

#include <stdlib.h>
#include <string.h>

static int exec(struct invocation *invocation, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    say_put_text(&json, "sandbox", invocation->operands[0]);
    remote_write_words(&json, invocation->words);
    say_put_text(&json, "directory", invocation->workdir);
    say_put_text(&json, "user", invocation->user);
    if (invocation->timeout_ms != OPTION_UNSET) {
        json_key(&json, "timeoutMs");
        json_integer(&json, (int64_t)invocation->timeout_ms);
    }
    if (remote_write_env(&json, &invocation->env, err) < 0)
        return -1;
    json_map_end(&json);
    if (say_finish(&json, err) < 0)
        return -1;
    text.data[--text.length] = '\0'; // its input is still to come
    const struct remote_run run = {
        .body = text.data,
        .is_quiet = invocation->is_quiet,
        .is_json = invocation->is_json,
        .has_timestamps = invocation->has_timestamps,
        .has_no_stdin = invocation->has_no_stdin,
    };
    return remote_run(invocation->client, &run, err);
}

static const struct option_row exec_rows[] = {
    OPTION("timeout", 0, OPTION_DURATION, timeout_ms, "DURATION",
           "end it after so long: 30s, 5m (default: the sandbox's)"),
    OPTION("env", 'e', OPTION_LIST, env, "KEY=VALUE",
           "set a variable; KEY alone takes yours (repeatable)"),
    OPTION("workdir", 'w', OPTION_TEXT, workdir, "PATH", "where it runs (default: the sandbox's)"),
    OPTION("user", 'u', OPTION_TEXT, user, "USER", "run as this user of the sandbox"),
    OPTION("no-stdin", 'n', OPTION_FLAG, has_no_stdin, NULL, "give it no input, instead of yours"),
    OPTION("quiet", 'q', OPTION_FLAG, is_quiet, NULL, "show no output"),
    OPTION("timestamps", 0, OPTION_FLAG, has_timestamps, NULL, "begin each line with its time"),
    {0},
};
static const char *const exec_examples[] = {
    "$ burrow exec work -- npm install zod", "$ burrow exec work --timeout 5m -- make test",
    "$ tar c src | burrow exec work tar x", "$ burrow exec work --json -- uname -a", NULL};

#define TERMINAL                                                                                   \
    "'burrow attach SANDBOX -- COMMAND' runs it on a terminal; input is streamed anyway"
#define IN_BACKGROUND "'burrow job create' starts it in the background"
static const struct option_hint exec_hints[] = {
    {"i", TERMINAL},
    {"t", TERMINAL},
    {"tty", TERMINAL},
    {"interactive", TERMINAL},
    {"d", IN_BACKGROUND},
    {"detach", IN_BACKGROUND},
    {0},
};

const struct cli_command execution_commands[] = {
    {"", "exec", "SANDBOX", "run a command in a sandbox, as if it ran here",
     "Its exit code becomes burrow's: 124 when the time limit ended it, 125 when burrow itself "
     "failed,\n"
     "126 and 127 when it could not be executed or found, 128+n when signal n ended it. Ctrl-C is\n"
     "handed on to it; the second one kills it. On a terminal: burrow attach SANDBOX -- COMMAND.",
     exec_rows, exec_examples, COMMAND_SERVER | COMMAND_WORDS | COMMAND_RUNNING, exec,
     .hints = exec_hints},
    {0},
};
