/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a disk is left for what ends things. Below the floor nobody appends output of commands or takes uploads: the rest is the
 * database's, so that a sandbox can still be ended and its end be recorded. PID 1 and the server ask the same.
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct disk_room {
    uint64_t total_bytes;
    uint64_t free_bytes;  // also for root
    uint64_t avail_bytes; // for everybody
    uint64_t floor_bytes; // 32 MiB, less on a small disk
    bool has_inodes;
};

/* Of the file system that `fd` is on. -1 with errno. Fit for PID 1. */
int disk_room(int fd, struct disk_room *out);

/*
 * Of a terminal's output the oldest goes, in holes that end at multiples of this; readers keep as far away from one again, so that
 * what they begin to read is not taken away under them.
 */
#define DISK_HOLE (1u << 20)
/* Where the hole at the beginning of a file of this size ends; 0: it has none. */
uint64_t disk_hole_end(int fd, uint64_t size);

/* Whether output may be appended to a file: also where nobody can tell. */
bool disk_has_room(int fd);
