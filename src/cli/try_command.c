/* SPDX-License-Identifier: Apache-2.0 */
/* burrow try: a command in a copy of a local directory, or in a fork of a sandbox; what it changed is shown, then applied or discarded. */
#include "cli/commands.h"

#include "base/mem.h"
#include "cli/exit.h"
#include "cli/sandbox_options.h"
#include "cli/say.h"
#include "cli/try_local.h"
#include "cli/try_run.h"
#include "cli/try_sandbox.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define END_MS 10000 // for the server to take the copy's end

/* Whether it is to be applied; asked where nobody said. */
static bool decide(const struct invocation *invocation, size_t n_changes)
{
    if (n_changes == 0 || invocation->is_discarded)
        return false;
    if (invocation->is_applied)
        return true;
    if (invocation->is_json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        if (!invocation->is_json)
            say_note("nothing was applied: say --apply or --discard where there is no terminal");
        return false;
    }
    return say_confirm(false, "Apply %zu change%s?", n_changes, n_changes == 1 ? "" : "s");
}

static int tell(const struct invocation *invocation, const struct trial *trial,
                struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    if (!invocation->is_json)
        return trial_say_end(trial);
    json_writer_init(&json, &text);
    trial_write(trial, &json);
    return say_written(&json, &text, err) < 0 ? -1 : trial->exit_code;
}

/* Of a sandbox that is made for it. */
static bool has_copy_options(const struct invocation *invocation)
{
    return invocation->memory_bytes != OPTION_UNSET || invocation->cpu_millicores >= 0 ||
           invocation->disk_bytes != OPTION_UNSET || invocation->has_network ||
           invocation->allow.count || invocation->runtime || invocation->env.count;
}

static int try_it(struct invocation *invocation, struct burrow_error *err)
{
    autoclear(trial) trial = {.invocation = invocation, .root = -1, .staged = -1};
    const struct trial_kind *kind = invocation->sandbox ? &trial_of_sandbox : &trial_of_directory;

    if (invocation->is_applied && invocation->is_discarded)
        return say_fail(err, BURROW_INVALID, "--apply and --discard: leave one out");
    if (invocation->sandbox && has_copy_options(invocation))
        return say_fail(err, BURROW_INVALID,
                        "a fork has what its sandbox has: leave out --memory, --cpu, --disk, "
                        "--network, --allow, --runtime and --env");
    if (invocation->sandbox && invocation->path)
        return say_fail(err, BURROW_INVALID,
                        "--sandbox tries in a fork of a sandbox, --dir in a copy of a directory: "
                        "leave one out");
    int result =
        kind->begin(&trial, err) < 0 || trial_run(&trial, err) < 0 || kind->compare(&trial, err) < 0
            ? -1
            : 0;
    if (result == 0 && !invocation->is_json) {
        kind->show(&trial);
        trial_say_shown(&trial);
    }
    if (result == 0 && decide(invocation, trial.n_changes)) {
        trial.is_applied = true;
        result = kind->apply(&trial, err);
    }
    // after a Ctrl-C too; the next one ends us
    burrow_set_cancel_fd(invocation->client, -1);
    burrow_set_timeout(invocation->client, END_MS);
    kind->end(&trial);
    return result < 0 ? -1 : tell(invocation, &trial, err);
}

static const struct option_row try_rows[] = {
    OPTION("dir", 'd', OPTION_TEXT, path, "DIR",
           "the local directory to try it in a copy of (default: the current one)"),
    OPTION("sandbox", 0, OPTION_TEXT, sandbox, "SANDBOX", "try it in a fork of this one instead"),
    OPTION("apply", 0, OPTION_FLAG, is_applied, NULL, "apply what it changed without asking"),
    OPTION("discard", 0, OPTION_FLAG, is_discarded, NULL, "show what it changed and forget it"),
    OPTION("force", 0, OPTION_FLAG, is_forced, NULL,
           "apply also where the same was changed here meanwhile"),
    OPTION("limit", 0, OPTION_SIZE, most_bytes, "SIZE",
           "the most that is taken back from the copy (default 4Gi)"),
    OPTION("no-stdin", 'n', OPTION_FLAG, has_no_stdin, NULL, "give it no input, instead of yours"),
    OPTION("quiet", 'q', OPTION_FLAG, is_quiet, NULL, "show no output of the command"),
    OPTION("timeout", 0, OPTION_DURATION, timeout_ms, "DURATION", "end it after so long: 30s, 5m"),
    OPTION("user", 'u', OPTION_TEXT, user, "USER", "run as this user of the sandbox"),
    OPTION("memory", 'm', OPTION_SIZE, memory_bytes, "SIZE", "memory of the copy: 512Mi, 1Gi"),
    OPTION("cpu", 0, OPTION_CPU, cpu_millicores, "CPU", "its processors: 500m, 1000m, 2"),
    OPTION("disk", 0, OPTION_SIZE, disk_bytes, "SIZE", "how much it may write"),
    OPTION("network", 0, OPTION_FLAG, has_network, NULL, "let it connect outwards"),
    OPTION("allow", 0, OPTION_LIST, allow, "RULE",
           "a network with this and no more: *.example.com:443 (repeatable)"),
    OPTION("runtime", 'r', OPTION_TEXT, runtime, "NAME",
           "what it starts from ('burrow runtime list')"),
    OPTION("env", 'e', OPTION_LIST, env, "KEY=VALUE",
           "set a variable; KEY alone takes yours (repeatable)"),
    {0},
};
static const char *const try_examples[] = {
    "$ burrow try -- npm update",
    "$ burrow try --dir ./site --network -- sh -c 'npm ci && npm run format'",
    "$ burrow try --sandbox work --discard -- rm -rf /etc",
    "$ burrow try --apply --json -- make generate", NULL};

const struct cli_command try_commands[] = {
    {"", "try", "", "run a command on a copy, see what it changed, then apply or discard it",
     "The copy is of the current directory (in a sandbox of its own, at /workspace), or with\n"
     "--sandbox a fork of one. On a terminal you are asked; elsewhere --apply or --discard says "
     "it,\n"
     "and without either nothing is applied. Nothing is written outside the directory, links that\n"
     "lead out of it and devices are left out, and so is all in '.git', which programs of yours\n"
     "trust. What was changed here meanwhile is told and left alone without --force. The exit "
     "code\n"
     "is the command's.",
     try_rows, try_examples, COMMAND_SERVER | COMMAND_WORDS | COMMAND_RUNNING, try_it},
    {0},
};
