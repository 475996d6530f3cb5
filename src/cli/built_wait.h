/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patience with a server that has to make a runtime, or install packages over it, before it can do what was asked: the request is sent
 * again until that is done or has failed.
 * Threads: one thread.
 */
#pragma once
#include "burrow.h"

struct built_wait {
    bool is_quiet; // say nothing meanwhile
    bool was_said;
    bool has_line;          // there is a line on the terminal that is written over
    unsigned first_percent; // how far it was when it was looked at first
    uint64_t since_ms;      // and when
};

/* Whether to send it again, after a while: err then says nothing any more. */
bool built_wait_again(struct built_wait *wait, struct burrow_error *err);
