/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command line on its way: what was asked, and the server it is asked of. All options of all commands are fields of one struct, so that a
 * table's rows name them; a command looks at those of its own rows.
 * Threads: one thread.
 */
#pragma once
#include "base/buffer.h"
#include "cli/command_tree.h"
#include "data/json_writer.h"

#include <stdbool.h>
#include <stdint.h>

#define OPERANDS_MAX 64

struct invocation {
    const struct cli_command *command;
    struct burrow_client *client; // of a command that talks to a server
    const char *operands[OPERANDS_MAX];
    unsigned n_operands;
    char **words; // the command to run, NULL at the end; NULL: none

    // where
    const char *url, *context, *api_key, *data_dir;
    // for all
    bool is_json, is_quiet, is_confirmed, is_forced, is_recursive, is_all, is_following, has_git;
    const char *org_id, *project_id;
    // sandboxes
    const char *name, *description, *runtime, *runtime_id, *snapshot, *metadata, *on_idle;
    const char *workdir, *user, *detach_keys;
    uint64_t memory_bytes, disk_bytes, idle_timeout_ms, timeout_ms; // OPTION_UNSET where not given
    int64_t cpu_millicores, max_processes, port;
    bool has_network, has_timestamps, has_no_stdin, is_public, is_private, is_detached;
    struct option_list env, files, mounts, ignore, dependencies, packages, scopes, labels,
        metadata_pairs, deletes, allow, deny;
    // lists
    const char *status, *mode, *sort, *direction, *selector, *sandbox, *state, *since;
    int64_t limit, offset, tail; // a tail below 0: not given
    bool is_reverse;
    // files
    bool is_strict, is_long, has_parents;
    const char *path, *format, *output;
    // coding agents
    bool is_project, is_written;
    // snapshots and the rest
    const char *tag, *file, *from, *to, *start, *end, *by, *signal, *stream;
    bool is_cleared, has_patch, is_dry_run, is_applied, is_discarded;
    uint64_t most_bytes; // OPTION_UNSET where not given
    // SSH
    bool is_shown, has_tty, has_no_command;
    struct option_list local_forwards, dynamic_forwards;
};

#define OPTION_UNSET UINT64_MAX

/* As before anything was said. */
void invocation_init(struct invocation *invocation, const struct cli_command *command);
void invocation_clear(struct invocation *invocation);
/* Reads the words behind the command's name: 0, OPTIONS_HELP, -1. */
int invocation_read(struct invocation *invocation, int argc, char **argv, struct burrow_error *err);
/* The operand, or NULL. */
const char *invocation_operand(const struct invocation *invocation, unsigned index);

/* Rows of tables: OPTION("name", 0, OPTION_TEXT, name, "NAME", "help") */
#define OPTION(long_name, letter, type, field, argument, help)                                     \
    {                                                                                              \
        long_name, letter, type, offsetof(struct invocation, field), argument, help, NULL, 0, 0    \
    }
/* A number that has to be in this range. */
#define OPTION_IN(long_name, type, field, argument, help, least, most)                             \
    {                                                                                              \
        long_name, 0, type, offsetof(struct invocation, field), argument, help, NULL, least, most  \
    }
