/* SPDX-License-Identifier: Apache-2.0 */
/* Lists with commas between; see tokens.h. */
#include "web/tokens.h"

#include <string.h>
#include <strings.h>

static const char blanks[] = " \t";

const char *tokens_next(const char **at, size_t *length)
{
    while (*at && **at) {
        const char *start = *at + strspn(*at, blanks);
        size_t size = strcspn(start, ",");
        *at = start[size] ? start + size + 1 : start + size;
        while (size && strchr(blanks, start[size - 1]))
            size--;
        *length = size;
        if (size)
            return start;
    }
    return NULL;
}

bool tokens_have(const char *list, const char *word)
{
    size_t length, wanted = strlen(word);

    for (const char *at = list, *token; (token = tokens_next(&at, &length));) {
        if (length == wanted && strncasecmp(token, word, length) == 0)
            return true;
    }
    return false;
}
