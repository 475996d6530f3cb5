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
