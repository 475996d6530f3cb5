/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What burrow's exit codes mean, as env(1), timeout(1) and the shell have it. The table in
 * base/error.c says which an error ends a command with, other than run.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,       // the command line itself is wrong
    EXIT_TIMEOUT = 124,   // run: the time limit passed
    EXIT_BURROW = 125,    // run: burrow failed, not the command
    EXIT_NOT_RUN = 126,   // run: the command could not be executed
    EXIT_NOT_FOUND = 127, // run: there is no such command
    EXIT_SIGNAL = 128,    // run: plus the number of the signal that ended the command
};

/* Prints "burrow: <sentence>" to stderr. */
void exit_tell(const struct error *err);
