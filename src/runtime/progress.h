/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a build is, told from what mmdebstrap and apt print.
 * Threads: one per object.
 */
#pragma once
#include <stdbool.h>

struct runtime_progress {
    const char *phase;  // "downloading packages"
    const char *detail; // the package at hand, or ""
    unsigned permille;  // of the whole; never goes back
};

struct progress_reader {
    struct runtime_progress now;
    unsigned phase;       // row in the table of phases
    unsigned total, done; // steps in this phase: downloads, unpackings, settings up
    unsigned packages;    // apt said it would install so many
    char name[80];
};

void progress_start(struct progress_reader *reader);

/* True when the line moved something; reader->now says where things are. */
bool progress_read(struct progress_reader *reader, const char *line);
