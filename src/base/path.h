/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths inside a sandbox, as texts: checked here, walked only by burrow-init inside the
 * box. So ".." and links mean nothing here and are kept as they are.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define PATH_TEXT 4096 // with its NUL, the kernel's own limit
#define PATH_NAME 255  // one name between slashes

/* Not empty, no NUL within `length`, no longer than the kernel takes. The error starts with `what`.
 */
int path_check(const char *path, size_t length, const char *what, struct error *err);

/* The same, and begins with a slash. */
int path_check_absolute(const char *path, size_t length, const char *what, struct error *err);
