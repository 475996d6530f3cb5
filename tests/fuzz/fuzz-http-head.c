/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes heads and chunks of HTTP/1: whole and piece by piece they must end at the same byte and say the same host. */
#include "egress/http_head.h"
#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_heads(const char *bytes, size_t size)
{
    struct http_head whole, part;
    char again[POLICY_NAME_LENGTH];
    size_t value_length;
    enum http_head_state end = http_head_read(bytes, size, &whole);

    if (*whole.name && (!policy_fold_name(whole.name, strlen(whole.name), again) ||
                        strcmp(again, whole.name) != 0))
        abort();
    for (size_t length = 0; length < size; length += 1 + size / 64) {
        enum http_head_state state = http_head_read(bytes, length, &part);
        if (state == HTTP_HEAD_MORE)
            continue;
        if (state != end || (state == HTTP_HEAD_READ &&
                             (part.length != whole.length || strcmp(part.name, whole.name) != 0)))
            abort();
    }
    if (end != HTTP_HEAD_READ)
        return;
    if (whole.length > size || (whole.is_chunked && whole.content_length))
        abort();
    const char *value = http_header_find(bytes, whole.length, "Host", &value_length);
    if (value && (value < bytes || value + value_length > bytes + whole.length))
        abort();
}

static void read_chunks(const char *bytes, size_t size)
{
    struct http_chunks whole = {0}, parts = {0};
    bool is_end = false, is_part_end = false;
    ptrdiff_t taken = http_chunks_take(&whole, bytes, size, &is_end);
    ptrdiff_t sum = 0;

    for (size_t at = 0; at < size && !is_part_end; at++) {
        ptrdiff_t one = http_chunks_take(&parts, bytes + at, 1, &is_part_end);
        if (one < 0) {
            sum = -1;
            break;
        }
        sum += one;
    }
    if (sum != taken || (taken >= 0 && is_end != is_part_end))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_head head;

    read_heads((const char *)data, size);
    read_chunks((const char *)data, size);
    (void)http_status_read((const char *)data, size, &head);
    return 0;
}
