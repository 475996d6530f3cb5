/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of burrow. Those with arguments of their own take their own argv (argv[0] is its name) and return the exit code; all others are rows
 * of tables (command_tree.h).
 * Threads: one thread.
 */
#pragma once
#include "base/error.h"
#include "base/data_dir.h"
#include "cli/command_tree.h"

int cli_run(int argc, char **argv);
int cli_runtime(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_detach(int argc, char **argv);
int cli_serve(int argc, char **argv);
int cli_key(int argc, char **argv);
int cli_repair(int argc, char **argv);
/* Becomes burrow-server with these words behind its name. Returns only when it cannot: -1. */
int become_server(int argc, char **argv, struct error *err);

/* Each ended by an empty row; command_list.c lists them. */
extern const struct cli_command sandbox_commands[];
extern const struct cli_command execution_commands[];
extern const struct cli_command context_commands[];
extern const struct cli_command file_commands[];
extern const struct cli_command snapshot_commands[];
extern const struct cli_command build_commands[];
extern const struct cli_command job_commands[];
extern const struct cli_command attach_commands[];
extern const struct cli_command code_commands[];
extern const struct cli_command mcp_commands[];
extern const struct cli_command top_commands[];
extern const struct cli_command try_commands[];
extern const struct cli_command watch_commands[];
extern const struct cli_command server_commands[];
extern const struct cli_command completion_commands[];
extern const struct cli_command network_commands[];
extern const struct cli_command ssh_commands[];
extern const struct cli_command ssh_key_commands[];

/* Where everything is kept unless --data or BURROW_DATA says otherwise. */
#define CLI_DEFAULT_DATA DATA_DIR_DEFAULT
