/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of burrow-archive share. Everything it reads is a stranger's.
 * Threads: one thread; the whole program.
 */
#pragma once
#include "archive/archive.h"
#include "base/error.h"
#include "engine/files_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROGRAM_CONVERSATION = 0, // fds
    PROGRAM_ARCHIVE = 1,
};

struct program {
    bool is_unpacking;
    enum archive_format format;
    uint64_t max_bytes, max_entries;
    struct files_total total;
    uint8_t in[FILES_MAX_FRAME];  // a frame, or a part of the archive
    uint8_t out[FILES_MAX_FRAME]; // what goes into a frame
    uint8_t records[FILES_MAX_FRAME];
    struct files_batch batch; // its room is `records`
};

/* Archive to records, records to archive. */
int program_unpack(struct program *program, struct error *err);
int program_pack(struct program *program, struct error *err);

/* Sends a frame to the server, or ends the process when that is gone. */
void program_send(uint16_t type, const void *data, size_t length);

/* Makes a small archive of each kind in memory and reads it, so that libraries load what they load late. */
int program_warm_up(struct error *err);
