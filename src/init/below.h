/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain paths (files_path_is_plain) below a directory, of any length, walked without following a link: whatever a guest plants,
 * nothing outside is reached.
 * Threads: any.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* The directory at the first `length` bytes of the path (O_PATH); with `is_made`, what is missing is made. -1 with errno. */
int below_open(int root, const char *path, size_t length, bool is_made);

/* How long the part before the last name is, without its slash; and that name. */
size_t below_parent_length(const char *path);
const char *below_name(const char *path);
