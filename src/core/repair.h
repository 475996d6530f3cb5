/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be done for a data directory whose database is missing or damaged: the database is made anew from what can be read
 * (store/sql_salvage.h), and what is on the volume is brought together with it again. With no server at work there.
 * Threads: one thread; blocks.
 */
#pragma once
#include "base/error.h"
#include "store/sql_salvage.h"

#include <stdbool.h>

/* ERROR_CONFLICT, with what to do, where a server has left things and the database that says whose they are is not there. */
int repair_check(const char *data_dir, struct error *err);

struct repair_request {
    const char *data_dir;
    bool is_trial;      // says what is wrong, and changes nothing
    bool drops_orphans; // files without an owner go with the next start; else they become snapshots
    const char *runtime; // that such snapshots are put over
};

struct repair_report {
    struct salvage database;
    unsigned layers_known;                       // on the volume and in the database
    unsigned layers_found;                       // on the volume alone: written down again
    unsigned layers_lost;                        // in the database alone
    unsigned snapshots_failed, checkpoints_lost; // whose layers are lost
    unsigned recovered;                          // snapshots made of files that are nobody's
    unsigned
        orphans; // files that are nobody's: a trial would recover them, drops_orphans leaves them to be removed
};

int repair_run(const struct repair_request *request, struct repair_report *out, struct error *err);
