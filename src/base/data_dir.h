/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data directory, where burrow keeps everything.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <limits.h>

#define DATA_DIR_DEFAULT "/var/lib/burrow" // of root, unless told otherwise

/*
 * Makes *dir absolute, as a user may have given it from the current directory: programs that are started here, and mounts, know no such place.
 * The text is then `room`'s. It need not be there.
 */
int data_dir_resolve(const char **dir, char room[PATH_MAX], struct error *err);

/*
 * ERROR_DENIED where somebody besides root and this user may change what is in it: what burrow does there as root, and believes of it, would be theirs
 * to say. One that is not there yet is fine.
 */
int data_dir_check(const char *dir, struct error *err);
