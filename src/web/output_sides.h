/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both streams of an execution, and how far a reader is with them. An execution may get its streams later than its reader comes,
 * and both may be one.
 * Threads: one per object.
 */
#pragma once
#include "core/event/hub.h"
#include "core/execution/execution_info.h"
#include "core/stream/stream.h"

enum output_side { OUTPUT_STDOUT, OUTPUT_STDERR, OUTPUT_SIDES };
extern const char *const output_side_names[OUTPUT_SIDES];
#define OUTPUT_FROM_NOW UINT64_MAX // as an offset: of the next byte that comes

struct output_sides {
    struct output_place {
        struct stream *stream; // NULL: none, or not yet
        struct watch *watch;
        uint64_t offset;  // of the next byte to tell
        bool is_left_out; // is never opened
    } at[OUTPUT_SIDES];
};

/* Those that it has got since. False: is_quick, and there is one that cannot be opened from memory. Blocks unless is_quick. */
bool output_sides_open(struct output_sides *sides, struct streams *streams,
                       const struct execution_info *info, bool is_quick);
/* Sets where to begin. ERROR_INVALID, noun "output", for an offset past what there is. */
int output_sides_place(struct output_sides *sides, const uint64_t offsets[OUTPUT_SIDES],
                       struct error *err);
/* Watches those that are not watched yet. Whether there is one: it may have grown before. */
bool output_sides_watch(struct output_sides *sides, struct hub *hub, void (*fn)(void *data),
                        void *data);
void output_sides_unwatch(struct output_sides *sides);
/* Whether nothing more will come of those there are, and all of it was told. */
bool output_sides_are_told(const struct output_sides *sides);
/* They are not to be watched any more. */
void output_sides_clear(struct output_sides *sides);
