/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes an archive of records in the order in which they are given, without keeping any: for what is too large to be gathered first
 * (packer.h), and comes in a good order by itself, or need not be. Calls block.
 * Threads: one per object.
 */
#pragma once
#include "archive/archive.h"
#include "base/auto.h"
#include "base/error.h"
#include "engine/files_wire.h"

#include <stddef.h>

struct writer;

/* `archive_fd` (borrowed for the call) is an empty file. ERROR_UNAVAILABLE when burrow-archive cannot run: from here or from what comes
 * after it, because burrow-archive gives up its rights while the first records come. */
int writer_open(const struct archive_task *task, int archive_fd, struct writer **out,
                struct error *err);

/*
 * A record, then item->size bytes for a file. Small ones are sent together, so a failure may be told later. ERROR_LIMIT, noun "archive", when it
 * gets larger than task->max_bytes or the disk is full.
 */
int writer_item(struct writer *writer, const struct files_item *item, struct error *err);
int writer_data(struct writer *writer, const void *bytes, size_t length, struct error *err);

/* The archive is whole when this has succeeded. */
int writer_finish(struct writer *writer, struct error *err);

void writer_free(struct writer *writer);
DEFINE_AUTOPTR(writer)
