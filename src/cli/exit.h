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
    EXIT_USAGE = 2,         // the command line itself is wrong
    EXIT_NO_SUCH = 3,       // what was named is not there, or is no more
    EXIT_DENIED = 4,        // no key, or one that may not do this
    EXIT_NO_SERVER = 5,     // no server answers, or the connection broke
    EXIT_CONFLICT = 6,      // not in this state, or there is one already
    EXIT_LIMIT = 7,         // more than there is room for, or than the key may have
    EXIT_TIMEOUT = 124,     // run: the time limit passed
    EXIT_BURROW = 125,      // run: burrow failed, not the command
    EXIT_NOT_RUN = 126,     // run: the command could not be executed
    EXIT_NOT_FOUND = 127,   // run: there is no such command
    EXIT_INTERRUPTED = 130, // by Ctrl-C
    EXIT_SIGNAL = 128,      // run: plus the number of the signal that ended the command
};

/* Prints "burrow: <sentence>" to stderr. */
void exit_tell(const struct error *err);
/* The same, and with --json one value to stdout. */
void exit_tell_as(const struct error *err, bool is_json);
