/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of type multipart/form-data (RFC 7578), as they come, cut anywhere: parts with their names, then their bytes. Keeps a part's head and as
 * many bytes as a boundary has, whatever is sent.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stddef.h>

#define MULTIPART_BOUNDARY 70     // characters of a boundary
#define MULTIPART_HEAD (8u << 10) // bytes of a part's head
#define MULTIPART_PARTS 10000

struct multipart;

/* What a part says of itself: texts until the callback returns. */
struct multipart_part {
    const char *name;     // "": none
    const char *filename; // NULL: none. "%22", "%0D" and "%0A" are decoded, as browsers write them
};

/* Each -1 with *err ends it. Parts do not overlap. */
struct multipart_events {
    int (*on_part)(void *data, const struct multipart_part *part, struct error *err);
    int (*on_bytes)(void *data, const void *bytes, size_t length, struct error *err);
    int (*on_part_end)(void *data, struct error *err);
};

/* By the value of Content-Type; `events` must stay. ERROR_INVALID when it has no boundary that can be one. */
int multipart_new(const char *content_type, const struct multipart_events *events, void *data,
                  struct multipart **out, struct error *err);
void multipart_free(struct multipart *multipart);
DEFINE_AUTOPTR(multipart)

/* ERROR_INVALID for what is none, ERROR_LIMIT for more parts or a longer head than are read. Not to be used after a failure. */
int multipart_feed(struct multipart *multipart, const void *bytes, size_t length,
                   struct error *err);
/* The body has ended: ERROR_INVALID unless its last boundary has come. */
int multipart_finish(struct multipart *multipart, struct error *err);
