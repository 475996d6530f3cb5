/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of burrow: each takes its own argv (argv[0] is its name) and returns the exit code.
 * Threads: one thread.
 */
#pragma once
#include "base/data_dir.h"

int cli_run(int argc, char **argv);
int cli_runtime(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_detach(int argc, char **argv);
int cli_serve(int argc, char **argv);
int cli_key(int argc, char **argv);
int cli_repair(int argc, char **argv);

/* Where everything is kept unless --data or BURROW_DATA says otherwise. */
#define CLI_DEFAULT_DATA DATA_DIR_DEFAULT
