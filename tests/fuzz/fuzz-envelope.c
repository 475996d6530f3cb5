/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the envelopes of the Connect protocol: what is read was all there, and is written again as it was. */
#include "front/e2b/connect_rpc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text;
    size_t length;
    struct error err = {0};
    autobuffer again = {0};

    if (rpc_envelope_read((const char *)data, size, &text, &length, &err) < 0) {
        if (!err.text[0])
            abort();
        return 0;
    }
    if (length + 5 != size || text != (const char *)data + 5)
        abort();
    size_t begun = rpc_envelope_begin(&again);
    if (buffer_add(&again, text, length, &err) < 0)
        abort();
    rpc_envelope_end(&again, begun, 0);
    if (again.length != size || memcmp(again.data, data, size) != 0)
        abort();
    return 0;
}
