/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of what comes; see last_lines.h. */
#include "cli/last_lines.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)32 << 20)
#define LINE_BYTES ((size_t)1 << 20) // then it counts as one

struct last_line {
    char *data;
    size_t length;
    unsigned side;
};

static struct last_line *at(struct last_lines *lines, size_t number)
{
    return &lines->all[(lines->first + number) % lines->room];
}

static void forget_first(struct last_lines *lines)
{
    struct last_line *line = at(lines, 0);

    lines->bytes -= line->length;
    free(line->data);
    lines->first = (lines->first + 1) % lines->room;
    lines->count--;
}

static void grow(struct last_lines *lines)
{
    size_t room = lines->room ? 2 * lines->room : 64;
    struct last_line *all = xcalloc(room, sizeof *all);

    for (size_t i = 0; i < lines->count; i++)
        all[i] = *at(lines, i);
    free(lines->all);
    lines->all = all;
    lines->room = room;
    lines->first = 0;
}

static char *copy_of(const struct buffer *line)
{
    char *data = xcalloc(1, line->length);

    memcpy(data, line->data, line->length);
    return data;
}

/* Takes the line that is gathered. */
static void keep(struct last_lines *lines, unsigned side)
{
    struct buffer *line = &lines->unended[side];

    if (!line->length || !lines->most) {
        line->length = 0;
        return;
    }
    while (lines->count &&
           (lines->count == lines->most || lines->bytes + line->length > MOST_BYTES))
        forget_first(lines);
    if (lines->count == lines->room)
        grow(lines);
    *at(lines, lines->count++) = (struct last_line){copy_of(line), line->length, side};
    lines->bytes += line->length;
    line->length = 0;
}

void last_lines_add(struct last_lines *lines, unsigned side, const char *data, size_t length)
{
    struct error ignored; // the buffer has no maximum of its own

    while (length) {
        const char *end = memchr(data, '\n', length);
        size_t part = end ? (size_t)(end + 1 - data) : length;
        size_t left = LINE_BYTES - lines->unended[side].length;
        bool is_cut = part > left;
        part = is_cut ? left : part;
        (void)buffer_add(&lines->unended[side], data, part, &ignored);
        if (is_cut || end)
            keep(lines, side);
        data += part;
        length -= part;
    }
}

int last_lines_give(struct last_lines *lines,
                    int (*on_line)(void *context, unsigned side, const char *data, size_t length),
                    void *context)
{
    int result = 0;

    for (unsigned side = 0; side < 2; side++)
        keep(lines, side);
    while (lines->count) {
        const struct last_line *line = at(lines, 0);
        if (result == 0)
            result = on_line(context, line->side, line->data, line->length);
        forget_first(lines);
    }
    return result;
}

void last_lines_clear(struct last_lines *lines)
{
    while (lines->count)
        forget_first(lines);
    free(lines->all);
    for (unsigned side = 0; side < 2; side++)
        buffer_clear(&lines->unended[side]);
    *lines = (struct last_lines){0};
}
