/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes and parts of files on their way to a socket, in order.
 * Threads: one per object.
 */
#pragma once
#include "net/response.h"

struct segment;

struct output {
    struct segment *first, *last;
    size_t bytes;    // waiting in memory
    unsigned ranges; // parts of files that wait
    uint64_t sent;   // so far, of all kinds
};

/* A segment of `length` bytes to be filled in before it is added. */
struct segment *segment_new(size_t length);
char *segment_data(struct segment *segment);
void segment_trim(struct segment *segment, size_t length);       // fewer than were asked for
void output_add(struct output *output, struct segment *segment); // takes it

void output_add_copy(struct output *output, const void *data, size_t length);
void output_add_range(struct output *output, const struct file_range *range);
void output_move(struct output *to, struct output *from); // all of it, to the end
void output_clear(struct output *output);

/* Adds all of it to `to`, parts of files as well, which blocks. False: not all was there, or more than its maximum. */
bool output_gather(const struct output *output, struct buffer *to);

enum output_result { OUTPUT_DONE, OUTPUT_BLOCKED, OUTPUT_BROKEN };

/* Sends what the socket takes, but not more than a fair share in one call. */
enum output_result output_write(struct output *output, int fd);
