/* SPDX-License-Identifier: Apache-2.0 */
/* The client's reader of WebSocket frames. */
#include "client/frame_reader.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_reader reader;
    struct error err = {0};
    size_t at = 1, piece = size ? data[0] % 64 + 1u : 1;

    frame_reader_init(&reader);
    while (at < size) {
        size_t length = size - at < piece ? size - at : piece, used = 0;
        const struct buffer *message = NULL;
        enum frame_kind kind = FRAME_PONG;
        int whole = frame_reader_take(&reader, data + at, length, &used, &kind, &message, &err);
        if (whole < 0)
            break;
        assert(used > 0 && used <= length);
        assert(whole == 0 || message->length <= size);
        at += used;
    }
    frame_reader_clear(&reader);
    return 0;
}
