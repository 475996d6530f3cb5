/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command that runs on a server as if it ran here: output as it comes, standard input streamed, signals handed on, its exit code ours.
 * One request starts it and brings its output; input goes beside it.
 * Threads: one thread.
 */
#pragma once
#include "cli/invocation.h"

/* Of signals that are handed on, to commands here and there. */
#define RUN_PATIENCE 2     // as many end a command that ignores them
#define RUN_GRACE_MS 10000 // between SIGTERM and the end

struct remote_run {
    const char *body; // JSON of POST /run but for its input, without the brace at its end
    bool is_quiet, is_json, has_timestamps;
    bool has_no_stdin;
    bool has_runtime; // is told as JSON what its sandbox started from
};

/* The exit code, or -1. */
int remote_run(struct burrow_client *client, const struct remote_run *run,
               struct burrow_error *err);

/* A terminal in a sandbox, with invocation->words or a shell, on the caller's; or, by an id of it, one that is there. The exit code, or -1. */
int attach_terminal(struct invocation *invocation, const char *what, bool can_leave,
                    struct burrow_error *err);

/* Writes the options of `run`, `create` and `exec` that bodies have in common: env, files, limits. A map must be begun. */
int remote_write_env(struct json_writer *json, const struct option_list *env,
                     struct burrow_error *err);
int remote_write_files(struct json_writer *json, const struct option_list *files,
                       struct burrow_error *err);
void remote_write_strings(struct json_writer *json, const char *key,
                          const struct option_list *list);
void remote_write_words(struct json_writer *json, char **words);
