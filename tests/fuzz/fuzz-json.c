/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the JSON reader and writer against each other. */
#include "base/auto.h"
#include "data/json.h"
#include "data/json_writer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_tree(const struct data_value *root, struct buffer *to)
{
    struct json_writer writer;
    struct error err = {0};

    json_writer_init(&writer, to);
    json_value(&writer, root);
    if (json_writer_finish(&writer, &err) < 0)
        abort();
}

/* What was read is written, read and written again: both texts must be one. */
static void check_round_trip(const char *text, size_t length)
{
    autoptr(data_document) first = NULL;
    autoptr(data_document) second = NULL;
    autobuffer once = {0};
    autobuffer twice = {0};
    struct error err = {0};

    if (json_read("fuzz", text, length, NULL, &first, &err) < 0)
        return;
    write_tree(first->root, &once);
    if (json_read("fuzz", once.data, once.length, NULL, &second, &err) < 0)
        abort();
    write_tree(second->root, &twice);
    if (once.length != twice.length || memcmp(once.data, twice.data, once.length) != 0)
        abort();
}

/* Any bytes as a string, whole and in pieces, are the same valid JSON. */
static void check_string(const char *text, size_t length)
{
    autoptr(data_document) document = NULL;
    autobuffer whole = {0};
    autobuffer pieces = {0};
    struct json_writer writer;
    struct error err = {0};
    size_t step = length ? (unsigned char)text[0] % 7 + 1 : 1;

    json_writer_init(&writer, &whole);
    json_bytes(&writer, text, length);
    if (json_writer_finish(&writer, &err) < 0)
        abort();
    json_writer_init(&writer, &pieces);
    json_string_begin(&writer);
    for (size_t at = 0; at < length; at += step)
        json_string_piece(&writer, text + at, at + step > length ? length - at : step);
    json_string_end(&writer);
    if (json_writer_finish(&writer, &err) < 0 || whole.length != pieces.length ||
        memcmp(whole.data, pieces.data, whole.length) != 0)
        abort();
    if (json_read("fuzz", whole.data, whole.length, NULL, &document, &err) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_round_trip((const char *)data, size);
    check_string((const char *)data, size);
    return 0;
}
