/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KEY=VALUE, as options and operands have them: the last one with a name counts.
 * Threads: any.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Whether one of them has the same name as this one; either may be a name alone. */
bool pairs_have(const char *const *pairs, size_t count, const char *pair);
/* Whether one behind the one at `i` has its name, so that this one does not count. */
bool pairs_have_later(const char *const *pairs, size_t count, size_t i);
