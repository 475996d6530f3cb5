/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many descriptors the process may still open. Whatever grows leaves some to what must always work: accepting, ending, the
 * database.
 * Threads: any.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

/* Of the limit of open files. */
size_t descriptors_limit(void);
/* Before Linux 6.2 they are counted one by one, which takes a millisecond for some thousands. */
size_t descriptors_left(void);

/* ERROR_FULL when no more are left than are kept. */
int descriptors_check(struct error *err);
