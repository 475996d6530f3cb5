/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of a test's own, which is gone with the test.
 * Threads: one per object.
 */
#pragma once
#include "base/fd.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>

struct place {
    char path[64];
    int fd; // O_PATH
};

static inline void place_clear(struct place *place)
{
    struct error ignored;
    closep(&place->fd);
    (void)fd_remove_tree(AT_FDCWD, place->path, &ignored);
}
#define autoplace __attribute__((cleanup(place_clear))) struct place

static inline struct place place_make(void)
{
    struct place place = {"/tmp/burrow-test-place.XXXXXX", -1};
    CHECK(mkdtemp(place.path));
    place.fd = open(place.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(place.fd >= 0);
    return place;
}
