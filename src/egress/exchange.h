/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over a socket of bytes, with a descriptor now and then: between the server and burrow-egress, and between its two processes.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"
#include "base/error.h"

#include <stdint.h>

#define FRAME_MAX (1u << 20) // bytes of one, at most
#define FRAME_FDS 8          // that wait to be taken

struct frame_head {
    uint32_t length; // of what follows
    uint32_t kind;
    uint64_t serial;
};

struct frame {
    struct frame_head head;
    const char *data; // until the next call of exchange_read
    int fd;           // the caller's; -1: none
};

struct exchange {
    int sock; // the caller's
    struct buffer in;
    size_t taken;
    int fds[FRAME_FDS];
    size_t fd_count;
    struct buffer out; // what the socket did not take
    bool is_quiet;     // waits in `out` rather than blocks
};
void exchange_init(struct exchange *frames, int sock);
void exchange_clear(struct exchange *frames); // leaves the socket

/* Blocks until it is sent, unless frames->is_quiet. Whoever it is for has ended: -1. fd -1: none; it is copied. */
int exchange_send(struct exchange *frames, uint32_t kind, uint64_t serial, const void *data,
                  size_t length, int fd);
/* Sends what waits; -1: nobody is there. */
int exchange_flush(struct exchange *frames);
/* Reads what is there. -1: it has ended, or says what makes no sense. */
int exchange_read(struct exchange *frames, bool blocks);
/* The next that is complete; false: none so far. */
bool exchange_next(struct exchange *frames, struct frame *out);
