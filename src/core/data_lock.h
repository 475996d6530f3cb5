/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One server, or one repair, at a time in a data directory: the lock on <data>/server.lock, whose text is its holder's process number, with
 * " stand-in" behind it for a server that a command started in the background and that gives way to any other.
 * Threads: any but loops.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>

/*
 * The lock is held while the descriptor is open. A holder that is dying is waited for, up to ten seconds, and the log says so. A stand-in is
 * asked to stop, unless the caller is one too, and waited for. Another that lives is ERROR_CONFLICT at once, with its number.
 */
int data_lock_take(const char *data_dir, bool is_stand_in, int *out_fd, struct error *err);
