/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of program burrow-server: each takes its own argv (argv[0] is its name) and returns the exit code.
 * Threads: one thread; the main one.
 */
#pragma once
#include "base/error.h"

int serve_command(int argc, char **argv);
int key_command(int argc, char **argv);
int repair_command(int argc, char **argv);
int probes_command(int argc, char **argv); // for the server itself: core/findings.h
int users_command(int argc, char **argv);  // for 'burrow runtime remove': who has the runtime

/* Prints "burrow: <sentence>" to stderr; the exit code: 2 for a wrong command line or settings, 3 for what is not there, else 1. */
int serve_fail(const struct error *err);
/* The same, and with --json one value to stdout. */
int serve_fail_as(const struct error *err, bool is_json);
int serve_exit_code(const struct error *err);
