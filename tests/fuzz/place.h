/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For fuzz targets whose parser reads files: a directory in memory that goes when the program ends.
 * Threads: one thread; the whole program.
 */
#pragma once
#include "base/auto.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char place[] = "/dev/shm/burrow-fuzz-XXXXXX";
static int place_fd = -1;

static inline void place_sweep(void)
{
    struct error ignored;
    (void)fd_remove_tree(AT_FDCWD, place, &ignored);
}

/* Its fd; made at the first call. */
static inline int place_open(void)
{
    if (place_fd >= 0)
        return place_fd;
    if (!mkdtemp(place))
        abort();
    (void)atexit(place_sweep);
    place_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place_fd < 0)
        abort();
    return place_fd;
}

static inline void place_put(const char *name, const void *data, size_t size)
{
    autofd fd = openat(place_open(), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_all(fd, data, size) < 0)
        abort();
}
