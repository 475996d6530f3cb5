/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the grammars of sizes and processors: whatever is taken must read the same from its short
 * spelling. */
#include "base/auto.h"
#include "base/mem.h"
#include "base/size.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xstrndup((const char *)data, size);
    struct error err = {0};
    uint64_t bytes = 0;
    uint64_t again = 0;
    uint32_t millis = 0;
    char formatted[SIZE_TEXT];

    (void)cpu_parse(text, "cpu", &millis, &err);
    if (size_parse(text, "memory", &bytes, &err) < 0)
        return 0;
    if (size_parse(size_format(bytes, formatted), "memory", &again, &err) < 0 || again != bytes)
        abort();
    return 0;
}
