/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes patterns: the first byte says which kind, then the pattern, a newline, and a text; in pieces it must match as it does whole. */
#include "base/mem.h"
#include "base/pattern.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_text(struct pattern *pattern, const char *text, size_t length)
{
    size_t used = 0, start = 0;
    bool is_match = pattern_matches(pattern, text, length);

    pattern_begin(pattern);
    bool is_again = pattern_feed(pattern, text, length / 2, &used);
    is_again = is_again || pattern_feed(pattern, text + length / 2, length - length / 2, &used) ||
               pattern_end(pattern);
    if (is_match != is_again)
        abort();
    if (pattern_locate(pattern, text, length, &start) && start > length)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autoptr(pattern) pattern = NULL;
    struct error err = {0};

    if (size < 2 || size > 4096)
        return 0;
    autofree char *text = xstrndup((const char *)data + 1, size - 1);
    char *subject = strchr(text, '\n');
    if (!subject)
        return 0;
    *subject++ = '\0';
    if (pattern_new(text, data[0] % 3, data[0] & 4, &pattern, &err) == 0)
        try_text(pattern, subject, strlen(subject));
    return 0;
}
