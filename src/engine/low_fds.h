/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the engine: descriptors with low numbers, for launches by a process that has many open.
 * A child gets a copy of its parent's whole table of descriptors, which takes the longer the more a server has open. So the child of a launch shares
 * the table at first, and then leaves it with a copy of its low end only (close_range with CLOSE_RANGE_UNSHARE). What it needs has low
 * numbers while it is started.
 * Threads: any; a block is its taker's.
 */
#pragma once
#include "base/error.h"

#include <stdatomic.h>

#define LOW_BLOCKS 8
#define LOW_BLOCK_FDS 28
#define LOW_FDS_FROM 4096 // open files that a process may have, for it to set these aside

struct low_fds {
    int unused_fd; // /dev/null: holds the numbers that are not used just now
    int numbers[LOW_BLOCKS][LOW_BLOCK_FDS]; // rising
    int end;                                // the first number above all of them
    _Atomic unsigned taken;                 // a bit for each block
};

/* Takes the lowest free numbers of the process. */
int low_fds_new(struct low_fds **out, struct error *err);
void low_fds_free(struct low_fds *low);

/* What is moved into a block for a moment. */
struct low_move {
    struct low_fds *low; // NULL: nothing is moved
    unsigned block;
    unsigned count;
    int *fds[LOW_BLOCK_FDS]; // the caller's variables
    int before[LOW_BLOCK_FDS];
};

/*
 * Gives each of the descriptors (-1: none) a copy with a low number, and its variable that number. When there is no free block, or not room
 * enough in one, nothing is moved.
 */
void low_fds_move(struct low_fds *low, int *const *fds, unsigned count, struct low_move *move);
/* Everything as it was. */
void low_fds_move_back(struct low_move *move);
