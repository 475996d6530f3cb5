/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far something is: a line on the terminal of standard error with rate and time left, for what takes longer than a second. Nothing where
 * there is no terminal.
 * Threads: one thread.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *what;
    uint64_t total; // 0: not known
    uint64_t done;
    uint64_t since_ms, drawn_ms;
    bool is_shown, is_off;
    bool has_looked; // for its total, where that takes looking
};

void progress_init(struct progress *progress, const char *what, uint64_t total, bool is_off);
void progress_set(struct progress *progress, uint64_t done);
/* Once, when the line is about to be shown and `total` is not known: somebody may look for it now, and set it. */
bool progress_wants_total(struct progress *progress);
/* Takes the line away. */
void progress_end(struct progress *progress);

/* Of what is known in thousandths alone, and came from `from` to `permille` in that time: " 42%  2.1%/s  27s left". The caller frees it. */
char *progress_pace(unsigned from, unsigned permille, uint64_t taken_ms);
