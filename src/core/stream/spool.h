/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of streams: <data>/spool/<two letters of the id>/<id>, mode 0600. Only ids as id_make spells them are given.
 * docs/internals/streams.md.
 * Threads: any but loops; blocks for the disk.
 */
#pragma once
#include "base/error.h"
#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

#define SPOOL_PATH (ID_TEXT + 3)

/* Opens <data_dir>/spool, and makes it where missing; the directories in it are made as they are needed. */
int spool_open(const char *data_dir, int *out_fd, struct error *err);

/* Relative to the spool. */
const char *spool_path(const char *id, char path[SPOOL_PATH]);

/* For reading and appending. `flags` beside O_RDWR, O_CLOEXEC: O_CREAT, O_EXCL, O_APPEND. */
int spool_open_file(int spool_fd, const char *id, int flags, int *out_fd, struct error *err);
/* Without opening it; 0 for one that is not there. */
uint64_t spool_file_size(int spool_fd, const char *id);
/* Missing is fine. */
int spool_remove_file(int spool_fd, const char *id, struct error *err);

/*
 * Removes files that were last written before `before_ms` and that is_wanted (1, 0, or -1 with an error, which ends it) does
 * not want: of some directories at a time, from *place on, which goes round. At most `limit`; *removed counts on.
 */
struct spool_sweep {
    int64_t before_ms;
    int (*is_wanted)(void *data, const char *id, struct error *err);
    void *data;
    unsigned limit;
};
int spool_sweep(int spool_fd, const struct spool_sweep *sweep, unsigned *place, unsigned *removed,
                struct error *err);
