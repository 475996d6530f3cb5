/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox is to be, from options to the body of a request; and small things the commands of a server share.
 * Threads: one thread.
 */
#pragma once
#include "cli/invocation.h"

/* Options that `create` and `run` have in common. */
#define SANDBOX_ROWS                                                                               \
    OPTION("memory", 'm', OPTION_SIZE, memory_bytes, "SIZE", "memory: 512Mi, 1Gi"),                \
        OPTION("cpu", 0, OPTION_CPU, cpu_millicores, "CPU", "processors: 500m, 1000m, 2"),         \
        OPTION("disk", 0, OPTION_SIZE, disk_bytes, "SIZE", "how much it may write"),               \
        OPTION("max-processes", 0, OPTION_INTEGER, max_processes, "N", "processes and threads"),   \
        OPTION("network", 0, OPTION_FLAG, has_network, NULL, "let it connect outwards"),           \
        OPTION("snapshot", 0, OPTION_TEXT, snapshot, "ID-OR-TAG", "start from this snapshot"),     \
        OPTION("runtime", 'r', OPTION_TEXT, runtime, "NAME",                                       \
               "start from this runtime ('burrow runtime list')"),                                 \
        OPTION("runtime-id", 0, OPTION_TEXT, runtime_id, "ID", "the same by its id: srt_…"),       \
        OPTION("dependency", 0, OPTION_LIST, dependencies, "PACKAGE",                              \
               "Debian package to install (repeatable)"),                                          \
        OPTION("package", 0, OPTION_LIST, packages, "PACKAGE",                                     \
               "the same for one of npm, where the runtime has npm or bun (repeatable)"),          \
        OPTION("allow", 0, OPTION_LIST, allow, "RULE",                                             \
               "a network with this and no more: *.example.com:443 (repeatable)"),                 \
        OPTION("deny", 0, OPTION_LIST, deny, "RULE",                                               \
               "a network without this, whatever --allow says (repeatable)"),                      \
        OPTION("env", 'e', OPTION_LIST, env, "KEY=VALUE",                                          \
               "set a variable; KEY alone takes yours (repeatable)"),                              \
        OPTION("file", 'f', OPTION_LIST, files, "PATH:LOCAL",                                      \
               "put the local file LOCAL at PATH in it (repeatable)"),                             \
        OPTION("mount", 0, OPTION_LIST, mounts, "LOCAL:SANDBOX[:ro]",                              \
               "show this directory of the server's machine at SANDBOX, where its operator "       \
               "allows it (repeatable)"),                                                          \
        OPTION("scope", 0, OPTION_LIST, scopes, "SCOPE", "kept with it (repeatable)"),             \
        OPTION("project-id", 0, OPTION_TEXT, project_id, "ID", "which project it belongs to")

/* The body of POST /sandboxes; `words`: a command to start with, or NULL. */
int sandbox_options_write(struct invocation *invocation, char **words, struct buffer *to,
                          struct burrow_error *err);
/* The same limits, project, runtime, snapshot and so on into a map that is begun. */
int sandbox_options_put(struct invocation *invocation, struct json_writer *json,
                        struct burrow_error *err);

/* `fs ls`: files of the sandbox that is the first operand. */
int file_commands_list(struct invocation *invocation, struct burrow_error *err);
/* For people: one item of a difference, with its patch where it has one. */
void change_print(const struct burrow_value *item);

/* Refuses what would put two things on standard output. */
int file_check_output(const struct invocation *invocation, const char *local,
                      struct burrow_error *err);
/* A file of the server's to a local one, and back; with progress. "-" is standard output or input. */
int file_take(struct burrow_client *client, const char *target, const char *local, bool is_quiet,
              uint64_t *bytes, struct burrow_error *err);
int file_send(struct burrow_client *client, const char *method, const char *target,
              const char *local, bool is_quiet, struct burrow_answer **out, uint64_t *bytes,
              struct burrow_error *err);
