/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A damaged database made whole again from what can be read of it, row by row. For `burrow repair`, with no server at work in the data
 * directory.
 * Threads: one thread; blocks.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum salvage_state {
    SALVAGE_WHOLE,   // there is nothing to do
    SALVAGE_MISSING, // there is no database
    SALVAGE_DAMAGED, // and made anew
};

#define SALVAGE_TABLES 32
struct salvage {
    enum salvage_state state;
    char fault[256];   // what SQLite says is wrong, of a damaged one
    char kept_as[128]; // the name of the damaged file in the data directory; "": a trial
    struct salvage_table {
        char name[40];
        int64_t kept; // rows
        bool is_cut;  // some could not be read, or no longer fit
    } tables[SALVAGE_TABLES];
    unsigned n_tables;
};

/* Looks, and unless `is_trial` puts a new database into the place of a damaged one, which stays under another name. */
int salvage_run(const char *directory, bool is_trial, struct salvage *out, struct error *err);
