/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of records between the server and burrow-archive: frames of engine/files_wire.h over a socket pair. burrow-archive has the socket as fd 0 and the archive as fd 1.
 *
 *   burrow-archive  READY, once it has given up its rights; before that it touches no input
 *   unpacking       burrow-archive sends RECORDS (small ones, whole), or ITEM and DATA... (item.size bytes), ..., END; of a layer,
 *                   ATTRIBUTE... before the frame whose first record has them
 *   packing         the server sends RECORDS, or ITEM and DATA..., ..., COMMIT; burrow-archive answers END
 *   an ERROR        of burrow-archive's may come at any time and is the last frame
 *
 * Each end checks what it receives with a struct records, so that neither can be led to more than was agreed on.
 *
 * Threads: one per object.
 */
#pragma once
#include "engine/files_wire.h"

#define RECORDS_READY FILES_COMMIT
/* Of a layer's entry, before its ITEM: an extended attribute, as its name, a NUL, and its value. */
#define RECORDS_ATTRIBUTE FILES_EVENT
#define RECORDS_MAX_ATTRIBUTES 65536u // bytes of those of one entry, with their names

/* What may still come. */
struct records {
    uint64_t entries;   // records
    uint64_t bytes;     // of all further records
    uint64_t data_left; // of the file under way
    size_t attributes;  // bytes of those that came before the next record
};

/* Attributes that an image may bring: a user's own, and what a program may do. None of overlay's, which decide what is seen where. */
bool records_is_attribute(const char *name);

/* A plain path; a file, directory, link or hard link, with nothing that its type does not have. */
bool record_is_good(const struct files_item *item);

/* Each takes one frame of its type; false when it is malformed, not in its place, or more than may come. */
bool records_take_item(struct records *records, const struct files_frame *frame,
                       struct files_item *out);
/* The record at *at of a frame of them. */
bool records_take_whole(struct records *records, const struct files_frame *frame, size_t *at,
                        struct files_item *out, const uint8_t **content);
bool records_take_attribute(struct records *records, const struct files_frame *frame,
                            const char **name, const void **value, size_t *size);
bool records_take_data(struct records *records, const struct files_frame *frame);
bool records_take_end(const struct records *records, const struct files_frame *frame);
bool records_take_commit(const struct records *records, const struct files_frame *frame);
