/* SPDX-License-Identifier: Apache-2.0 */
/* KEY=VALUE, more than once; see pairs.h. */
#include "cli/pairs.h"

#include <string.h>

bool pairs_have(const char *const *pairs, size_t count, const char *pair)
{
    size_t length = strcspn(pair, "=");

    for (size_t i = 0; i < count; i++) {
        if (strcspn(pairs[i], "=") == length && memcmp(pairs[i], pair, length) == 0)
            return true;
    }
    return false;
}

bool pairs_have_later(const char *const *pairs, size_t count, size_t i)
{
    return pairs_have(pairs + i + 1, count - i - 1, pairs[i]);
}
