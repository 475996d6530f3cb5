/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One side of what is passed on: a socket, what waits to be written to it, and what the loop is asked of it.
 * Threads: the loop.
 */
#pragma once
#include "loop/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PROXY_END_FULL (256u << 10) // with so much waiting, nothing more is read for it

struct proxy_end {
    int fd; // -1: none
    struct loop_watch *watch;
    char *data; // waits, from start to end
    size_t start, end, capacity;
    uint64_t moved_ms; // when bytes passed last, either way
    bool is_over;      // it sends no more
    bool is_shut;      // it is sent no more
    bool is_broken;    // writing failed, with
    int code;          // this errno
};

/* Takes fd. */
int proxy_end_open(struct proxy_end *end, struct loop *loop, int fd, on_ready fn, void *data,
                   struct error *err);
void proxy_end_close(struct proxy_end *end); // also one that was never opened
/* Gives the socket to the caller; what waits is forgotten. */
int proxy_end_release(struct proxy_end *end);

size_t proxy_end_waiting(const struct proxy_end *end);
static inline bool proxy_end_is_full(const struct proxy_end *end)
{
    return end->end - end->start >= PROXY_END_FULL;
}

/* Goes out behind what waits, at the next flush or before. */
void proxy_end_add(struct proxy_end *end, const char *data, size_t length);
void proxy_end_add_text(struct proxy_end *end, const char *text);
/* The same, at once where it is much. */
void proxy_end_write(struct proxy_end *end, const char *data, size_t length);
void proxy_end_flush(struct proxy_end *end);
/* As recv: 0 is the end, -1 with errno. */
ssize_t proxy_end_read(struct proxy_end *end, char *scratch, size_t size);
/* No more is written behind what waits; takes effect when that is out. */
void proxy_end_shut(struct proxy_end *end);
/* Cut so that the other side cannot take what it has for the whole. */
void proxy_end_reset(struct proxy_end *end);
