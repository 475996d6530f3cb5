/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unnamed files in the data directory: what is on its way into a sandbox or out of it. Their room is bounded, in all and for each
 * key: what would go beyond is refused. Stretches of zeros become holes, which take no room.
 * Threads: any; a file: one per object.
 */
#pragma once
#include "core/account/actor.h"
#include "core/settings.h"

#include <stddef.h>
#include <stdint.h>

struct temporaries; // all of a data directory

/* The settings are borrowed. Where they say no limit, one follows from what is free in the data directory whenever a file is made. */
struct temporaries *temporaries_new(const struct core_settings *settings);
void temporaries_free(struct temporaries *temporaries); // after all files
DEFINE_AUTOPTR(temporaries)

struct temporary {
    int fd; // ours; -1 with the last of it
    uint64_t size;
    uint64_t charged; // of the room
    struct temporaries *all;
    struct temporary_key *key;
};

/* Empty. */
int temporary_new(struct temporaries *temporaries, const struct actor *actor,
                  struct temporary **out, struct error *err);
void temporary_free(struct temporary *file);
DEFINE_AUTOPTR(temporary)

/* Appends. ERROR_FULL when there is no room now, ERROR_TOO_LARGE when there never is; both noun "file". */
int temporary_write(struct temporary *file, const void *bytes, size_t length, struct error *err);

/* For what others write to the descriptor: takes room ahead; and once they are done, as much as the file takes. */
int temporary_reserve(struct temporary *file, uint64_t bytes, struct error *err);
int temporary_settle(struct temporary *file, struct error *err);

/* All has been written: gives it its length, and goes back to its beginning. */
int temporary_finish(struct temporary *file, struct error *err);
