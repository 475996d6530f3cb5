/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive as records, ready for files_import: names are plain, links are kept as links, owners are nobody's. Whatever
 * burrow-archive says is checked again. Calls block; no more than one frame of records is in memory.
 * Threads: one per object.
 */
#pragma once
#include "archive/archive.h"
#include "base/auto.h"
#include "base/error.h"
#include "engine/files_wire.h"

#include <stddef.h>
#include <sys/types.h>

struct unpacker;

/*
 * Starts on `archive_fd` (borrowed for the call, seekable, read from its beginning) and reads up to the first entry, so that what
 * is no archive is refused here. Errors have the noun "archive": ERROR_DAMAGED, or ERROR_REFUSED (an
 * entry that would lead out, a device, encryption), ERROR_TOO_LARGE (errno EFBIG where it is all contents
 * together that are more than task->max_bytes). ERROR_UNAVAILABLE when burrow-archive cannot run.
 */
int unpacker_open(const struct archive_task *task, int archive_fd, struct unpacker **out,
                  struct error *err);

/* A files_next_item and a files_fill, whose data is the unpacker. */
int unpacker_next(void *unpacker, struct files_item *item, struct error *err);
ssize_t unpacker_fill(void *unpacker, void *bytes, size_t size, struct error *err);

/* Of the entry that unpacker_next gave last, when the format is ARCHIVE_LAYER; valid until the next one. */
struct unpacker_attribute {
    const char *name;
    const void *value;
    size_t size;
};
const struct unpacker_attribute *unpacker_attributes(const struct unpacker *unpacker,
                                                     size_t *count);
/* What it counted, once unpacker_next has given 0. */
const struct files_total *unpacker_total(const struct unpacker *unpacker);

pid_t unpacker_pid(const struct unpacker *unpacker); // of its burrow-archive
void unpacker_free(struct unpacker *unpacker);
DEFINE_AUTOPTR(unpacker)
