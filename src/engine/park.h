/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes made ahead: all of one shape, launched, warmed and waiting, so that taking one costs microseconds.
 * Filling happens when and where the caller says; one thread per park.
 */
#pragma once
#include "engine/box.h"

struct park;

struct park_options {
    const struct box_spec *spec; // copied; its limits are those of a waiting box
    unsigned count;              // to keep waiting
    const char *const
        *warm_up; // a command run once in each before it waits (fills caches); NULL: none
};

int park_new(struct engine *engine, const struct park_options *options, struct park **out,
             struct error *err);

/* Launches until `count` wait, at most `at_most` now; *made tells how many it were. */
int park_fill(struct park *park, unsigned at_most, unsigned *made, struct error *err);

/* Gives a waiting box, limited as asked (programs inside still see the limits it was made with); NULL when none waits (then launch one). Dead ones are thrown away on the way. */
struct box *park_take(struct park *park, const struct cgroup_limits *limits,
                      const struct volume_limits *disk);

unsigned park_waiting(const struct park *park);

/* Ends all that wait. */
void park_free(struct park *park);
DEFINE_AUTOPTR(park)
