/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One server, or one repair, at a time in a data directory: the lock on <data>/server.lock, whose text is its holder's process number.
 * Threads: any but loops.
 */
#pragma once
#include "base/error.h"

/*
 * The lock is held while the descriptor is open. A holder that is dying is waited for, up to ten seconds, and the log says so; one that lives
 * is ERROR_CONFLICT at once, with its number.
 */
int data_lock_take(const char *data_dir, int *out_fd, struct error *err);
