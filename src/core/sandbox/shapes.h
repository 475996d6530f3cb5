/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes of boxes that were asked for lately, and how many of each should wait. A small table: when it is full, the shape that was
 * asked for longest ago goes. It makes and ends no boxes itself, but with the last reference to a shape those end that wait of it. Private
 * to the pool.
 * Threads: any; boxes of a shape are set by one.
 */
#pragma once
#include "base/lock.h"
#include "core/runtime/runtimes.h"
#include "engine/spare_boxes.h"

#include <stdatomic.h>

#define SHAPES_MOST 16

/* Boxes of one key are all alike. */
struct shape_key {
    struct image *image;
    bool is_one_shot, has_network;
    const char *directory; // made in it; NULL: none
    uint32_t uid, gid;     // whose that is
};

struct shape {
    _Atomic unsigned refs;
    struct shape_key key;                // image and directory are the shape's
    _Atomic(struct spare_boxes *) boxes; // the shape's; NULL: none were made yet
    // Under the table's lock:
    unsigned wanted, most; // that should wait; never more than these
    uint64_t asked_ms;     // when somebody last did
    bool is_usual;         // waits also when nobody asks
    bool is_held_back;     // as long as nobody asks for any: there is no memory for more of it
};

struct shapes {
    struct lock lock; // guards all below; held for memory work only
    struct shape *rows[SHAPES_MOST];
    unsigned count;
    struct shape *leaving[SHAPES_MOST]; // had to make room: the next to fill ends them
    unsigned n_leaving;
};

void shapes_init(struct shapes *shapes);
void shapes_clear(struct shapes *shapes);

/*
 * Somebody asks for one: a reference, to a shape that is new where none was. NULL: there is no room, as too many are leaving. Of the
 * usual image all `most` are to wait from now on; of another one at first, and more each time none was left.
 */
struct shape *shapes_ask(struct shapes *shapes, const struct shape_key *key, unsigned most,
                         uint64_t now_ms);
/* The one with this key, without asking for it: a reference, or NULL. */
struct shape *shapes_find(struct shapes *shapes, const struct shape_key *key);
/* Makes this one usual: made where there is none, and all `most` are to wait. */
void shapes_set_usual(struct shapes *shapes, const struct shape_key *key, unsigned most);
/* Whether this is the image of usual ones. */
bool shapes_is_usual(struct shapes *shapes, const struct image *image);
bool shapes_is_empty(struct shapes *shapes);
struct shape *shape_ref(struct shape *shape);
void shape_free(struct shape *shape); // gives up one reference
DEFINE_AUTOPTR(shape)

/* All, the usual ones first, then the one that was asked for last: references. */
unsigned shapes_list(struct shapes *shapes, struct shape *out[SHAPES_MOST]);

/* Takes the first out for which `is_over` says so, under the lock: the caller's reference. NULL: none. */
struct shape *shapes_remove(struct shapes *shapes,
                            bool (*is_over)(const struct shape *shape, const void *data),
                            const void *data);
/* One of those that had to make room; NULL: none. */
struct shape *shapes_next_leaving(struct shapes *shapes);

/* What waits, and what does not yet. */
struct shapes_tally {
    unsigned waiting, wanted;
    uint64_t bytes;
    bool has_usual;
    bool is_short; // of something there is memory for
    bool is_over;  // some are leaving, or were not asked for since `since_ms`
};
struct shapes_tally shapes_tally(struct shapes *shapes, uint64_t since_ms);

/* How many more of it should wait; 0 also when it is held back. */
unsigned shapes_missing(struct shapes *shapes, const struct shape *shape);
void shapes_hold_back(struct shapes *shapes, struct shape *shape);
