/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: the patch between any two texts, applied to the first, gives the second. */
#include "base/buffer.h"
#include "core/snapshot/patch.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
    if (!is_true)
        __builtin_trap();
}

struct cursor {
    const char *at, *end;
};

/* The next line with its newline, if it has one. */
static size_t line_length(const struct cursor *from)
{
    size_t left = (size_t)(from->end - from->at);
    const char *newline = left ? memchr(from->at, '\n', left) : NULL;
    return newline ? (size_t)(newline - from->at) + 1 : left;
}

static void copy_lines(struct cursor *from, size_t count, struct buffer *out)
{
    struct error err = {0};
    for (; count; count--) {
        size_t length = line_length(from);
        require(length > 0 && buffer_add(out, from->at, length, &err) == 0);
        from->at += length;
    }
}

/* One line of a hunk: ' ' and '-' are what the text has, ' ' and '+' what it gets. */
static void apply_line(struct cursor *patch, struct cursor *text, struct buffer *out)
{
    static const char no_newline[] = "\\ No newline at end of file\n";
    struct error err = {0};
    char mark = *patch->at;
    size_t length = line_length(patch) - 1;
    const char *content = patch->at + 1;

    patch->at += length + 1;
    if (patch->at < patch->end && *patch->at == '\\') {
        require((size_t)(patch->end - patch->at) >= sizeof no_newline - 1 &&
                memcmp(patch->at, no_newline, sizeof no_newline - 1) == 0);
        patch->at += sizeof no_newline - 1;
        length--;
    }
    require(mark == ' ' || mark == '-' || mark == '+');
    if (mark != '+') {
        require(line_length(text) == length && memcmp(text->at, content, length) == 0);
        text->at += length;
    }
    if (mark != '-' && length)
        require(buffer_add(out, content, length, &err) == 0);
}

static void apply(struct cursor *patch, const struct patch_text *before, struct buffer *out)
{
    struct cursor text = {before->bytes, before->bytes + before->length};
    size_t line = 0;

    for (unsigned i = 0; i < 2; i++) // its head
        patch->at += line_length(patch);
    while (patch->at < patch->end) {
        size_t old = 0, n_old = 1, new, n_new;
        int used = 0;
        require(sscanf(patch->at, "@@ -%zu,%zu +%zu,%zu @@%n", &old, &n_old, &new, &n_new, &used) ==
                    4 ||
                sscanf(patch->at, "@@ -%zu +%zu,%zu @@%n", &old, &new, &n_new, &used) == 3 ||
                sscanf(patch->at, "@@ -%zu,%zu +%zu @@%n", &old, &n_old, &new, &used) == 3 ||
                sscanf(patch->at, "@@ -%zu +%zu @@%n", &old, &new, &used) == 2);
        require(used > 0 && patch->at[used] == '\n');
        patch->at += used + 1;
        size_t first = n_old ? old - 1 : old;
        require(first >= line);
        copy_lines(&text, first - line, out);
        line = first + n_old;
        while (patch->at < patch->end && *patch->at != '@')
            apply_line(patch, &text, out);
    }
    copy_lines(&text, 0, out);
    struct error err = {0};
    if (text.at < text.end)
        require(buffer_add(out, text.at, (size_t)(text.end - text.at), &err) == 0);
}

/* The first byte says where the second text begins. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autobuffer patch = {.maximum = (size_t)8 << 20};
    autobuffer applied = {0};
    struct error err = {0};

    if (size < 1 || size > 4096 || memchr(data + 1, 0, size - 1))
        return 0;
    size_t cut = (size - 1) * data[0] / 255;
    const struct patch_text before = {(const char *)data + 1, cut, false};
    const struct patch_text after = {(const char *)data + 1 + cut, size - 1 - cut, false};
    require(patch_make("/a b", &before, &after, &patch, &err) == 0);
    if (!patch.length) {
        require(before.length == after.length &&
                (!cut || memcmp(before.bytes, after.bytes, cut) == 0));
        return 0;
    }
    apply(&(struct cursor){patch.data, patch.data + patch.length}, &before, &applied);
    require(applied.length == after.length &&
            (!after.length || memcmp(applied.data, after.bytes, after.length) == 0));
    return 0;
}
