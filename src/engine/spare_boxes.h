/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes made ahead: all of one shape, launched, warmed and waiting, so that taking one costs microseconds.
 * Filling happens when and where the caller says.
 * Threads: any; nobody else is in a call on it while it is freed.
 */
#pragma once
#include "engine/box.h"

struct spare_boxes;

/* A process that is started in each box before it waits, under the id SPARE_RESIDENT, and stays: whoever takes the box may use it. A box without one is good too. */
#define SPARE_RESIDENT 1
struct spare_resident {
    const char *const *argv, *const *env; // NULL-terminated
    const char *input;                    // all of its standard input: 64 KiB at most
    size_t input_length;
};

struct spare_boxes_options {
    const struct box_spec *spec; // copied; its limits are those of a waiting box
    unsigned count;              // to keep waiting
    const char *scratch_prefix; // scratches to keep, named '<prefix>-<random id>'; NULL: fresh ones
    const char *const
        *warm_up;          // a command run once in each before it waits (fills caches); NULL: none
    const char *directory; // where it runs, made when missing; NULL: "/"
    uint32_t uid, gid;     // whose the directory becomes, as the box numbers them; 0: root
    const struct spare_resident *resident; // copied, but for its input; NULL: none
};

int spare_boxes_new(struct engine *engine, const struct spare_boxes_options *options,
                    struct spare_boxes **out, struct error *err);

/*
 * Launches until `count` wait or are being launched, at most `at_most` now; *made tells how many it were. is_hurried: they are
 * not warmed up, which costs as much as running a command, and have no resident.
 */
int spare_boxes_fill(struct spare_boxes *spares, unsigned at_most, bool is_hurried, unsigned *made,
                     struct error *err);

/*
 * Gives a waiting box, limited as asked, and shown to programs inside as such; NULL when none waits or it cannot be limited so (then
 * launch one): it never waits for a launch. Dead ones are thrown away on the way.
 */
struct box *spare_boxes_take(struct spare_boxes *spares, const struct limits *limits);

unsigned spare_boxes_count(struct spare_boxes *spares);

/* Memory that those who wait hold together, as their control groups counted it when each had been made; a little where there is none to ask. */
uint64_t spare_boxes_bytes(struct spare_boxes *spares);
/* What the next one is going to hold: as much as the last; a guess where there was none. */
uint64_t spare_boxes_next_bytes(struct spare_boxes *spares);

/* Measures those again that have a resident, which grows for a while after it was started; a few times each. One thread at a time. */
void spare_boxes_measure(struct spare_boxes *spares);

/* Ends one that waits; false: none does. */
bool spare_boxes_drop(struct spare_boxes *spares);

/* Ends all that wait; their scratches go too. */
void spare_boxes_free(struct spare_boxes *spares);
DEFINE_AUTOPTR(spare_boxes)
