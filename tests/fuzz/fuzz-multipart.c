/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes forms: the same bytes, whole and cut into pieces, must give the same parts or a refusal both times. */
#include "base/auto.h"
#include "web/multipart.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t hash; // of all that was told
    bool is_open;  // a part
};

static void add(struct seen *seen, const void *data, size_t length)
{
    for (size_t i = 0; i < length; i++)
        seen->hash = (seen->hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
}

static int on_part(void *data, const struct multipart_part *part, struct error *err)
{
    struct seen *seen = data;

    (void)err;
    if (seen->is_open)
        abort();
    seen->is_open = true;
    add(seen, part->name, strlen(part->name) + 1);
    if (part->filename)
        add(seen, part->filename, strlen(part->filename) + 1);
    return 0;
}

static int on_bytes(void *data, const void *bytes, size_t length, struct error *err)
{
    struct seen *seen = data;

    (void)err;
    if (!seen->is_open || length == 0)
        abort();
    add(seen, bytes, length);
    return 0;
}

static int on_part_end(void *data, struct error *err)
{
    struct seen *seen = data;

    (void)err;
    if (!seen->is_open)
        abort();
    seen->is_open = false;
    add(seen, "end", 3);
    return 0;
}

static const struct multipart_events events = {on_part, on_bytes, on_part_end};

/* Whether it is a form; in pieces of so many bytes. */
static bool read_form(const uint8_t *data, size_t size, size_t piece, struct seen *seen)
{
    autoptr(multipart) form = NULL;
    struct error err = {0};

    if (multipart_new("multipart/form-data; boundary=\"b-1\"", &events, seen, &form, &err) < 0)
        abort();
    for (size_t at = 0; at < size; at += piece) {
        if (multipart_feed(form, data + at, size - at < piece ? size - at : piece, &err) < 0)
            return false;
    }
    return multipart_finish(form, &err) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = {0}, cut = {0};
    bool is_whole = read_form(data, size, size ? size : 1, &whole);
    bool is_cut = read_form(data, size, 1 + size % 7, &cut);

    if (is_whole != is_cut || (is_whole && whole.hash != cut.hash))
        abort();
    return 0;
}
