/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last lines of what comes, standard output and standard error in the order they came. Memory is bounded: of lines that are too long together the
 * first are forgotten.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

struct last_lines {
    uint64_t most;         // lines
    struct last_line *all; // a ring, from `first` on
    size_t first, count, room;
    size_t bytes;             // of all
    struct buffer unended[2]; // of stdout and stderr: a line whose end has not come
};

void last_lines_clear(struct last_lines *lines);
/* `side`: 0 is standard output, 1 standard error. */
void last_lines_add(struct last_lines *lines, unsigned side, const char *data, size_t length);
/* Gives them away, the first one first, those without an end last; stops at -1, which it returns. Nothing is left then. */
int last_lines_give(struct last_lines *lines,
                    int (*on_line)(void *context, unsigned side, const char *data, size_t length),
                    void *context);
