/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the grammar of durations: whatever is taken is within bounds and reads the same from its
 * own spelling. */
#include "base/auto.h"
#include "base/duration.h"
#include "base/mem.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xstrndup((const char *)data, size);
    struct error err = {0};
    uint64_t ms = 0;
    uint64_t again = 0;
    char formatted[DURATION_TEXT];

    if (duration_parse(text, "timeout", &ms, &err) < 0)
        return 0;
    if (ms > DURATION_MAX_MS)
        abort();
    if (duration_parse(duration_format(ms, formatted), "timeout", &again, &err) < 0 || again != ms)
        abort();
    return 0;
}
