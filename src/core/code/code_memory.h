/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory of the server what interpreters send may take until it is read and passed on: of one sandbox, of one organisation, and of all. An interpreter is a guest's, and can
 * send without end to many who ask at once. Private to the code room; others take by code_run_take.
 * Threads: any.
 */
#pragma once
#include "base/lock.h"

#include <stdbool.h>
#include <stdint.h>

#define CODE_MEMORY_SANDBOX                                                                        \
    ((uint64_t)96                                                                                  \
     << 20) // room for one result of the largest size beside the tree that is made of it
#define CODE_MEMORY_ORGANISATION ((uint64_t)256 << 20)
#define CODE_MEMORY_ALL ((uint64_t)512 << 20)

struct sandbox;

struct code_memory {
    struct lock lock; // guards all below, and code_bytes of sandboxes; held for memory work only
    uint64_t bytes;
    struct code_share *shares; // of organisations that have something
};

void code_memory_init(struct code_memory *memory);
void code_memory_clear(struct code_memory *memory);

/* False, and nothing is taken: there is no room. */
bool code_memory_take(struct code_memory *memory, struct sandbox *sandbox, uint64_t bytes);
void code_memory_give(struct code_memory *memory, struct sandbox *sandbox, uint64_t bytes);
