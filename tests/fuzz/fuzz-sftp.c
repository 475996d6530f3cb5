/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes packets of SFTP: lengths, requests, and answers made of what they say. Nothing is done for real. */
#include "sftp/sftp_packet.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct sftp_text *text, const uint8_t *data, size_t size)
{
    const uint8_t *at = (const uint8_t *)text->at;

    if (text->length && (at < data || at + text->length > data + size))
        abort();
}

static void check(const struct sftp_request *request, const uint8_t *data, size_t size)
{
    check_text(&request->handle, data, size);
    check_text(&request->data, data, size);
    if (memchr(request->path, 0, SFTP_PATH_MAX) == NULL ||
        memchr(request->other, 0, SFTP_PATH_MAX) == NULL)
        abort();
}

// What a request says is said back, and has the length that is told in front.
static void echo(const struct sftp_request *request)
{
    static unsigned char memory[SFTP_PACKET_MAX + 4];
    struct sftp_answer answer;

    sftp_answer_begin(&answer, memory, SFTP_STATUS, request->id);
    sftp_put_text(&answer, request->path, strlen(request->path));
    sftp_put_attributes(&answer, &request->attributes);
    sftp_put_large(&answer, request->offset);
    size_t length = sftp_answer_end(&answer);
    if (sftp_packet_length(memory) + 4 != length)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sftp_request request;

    while (size >= 4) {
        uint32_t length = sftp_packet_length(data);
        if (!length || length > size - 4)
            break;
        enum sftp_read result = sftp_request_read(data + 4, length, &request);
        check(&request, data + 4, length);
        if (result == SFTP_IS_READ && request.type == SFTP_EXTENDED &&
            request.extension >= SFTP_EXTENSIONS)
            abort();
        if (result == SFTP_IS_READ)
            echo(&request);
        data += length + 4;
        size -= length + 4;
    }
    return 0;
}
