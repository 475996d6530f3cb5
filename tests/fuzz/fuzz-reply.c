/* SPDX-License-Identifier: Apache-2.0 */
/* The client's reader of HTTP answers: whatever comes, in whatever pieces, it ends, and bodies are within what came. */
#include "client/reply_reader.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reply_reader reader;
    struct error err = {0};
    size_t at = 1, piece = size ? data[0] % 64 + 1u : 1;
    char text[64];

    reply_reader_init(&reader, false);
    reader.may_switch = size % 2;
    while (at < size) {
        size_t length = size - at < piece ? size - at : piece, used = 0, body_length = 0;
        const char *body = NULL;
        if (reply_reader_take(&reader, (const char *)data + at, length, &used, &body, &body_length,
                              &err) < 0)
            break;
        assert(used <= length && body_length <= used);
        if (used == 0)
            break;
        at += used;
    }
    (void)reply_reader_header(&reader, "content-type", text, sizeof text);
    (void)reply_reader_end(&reader, false, &err);
    reply_reader_clear(&reader);
    return 0;
}
