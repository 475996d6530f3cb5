/* SPDX-License-Identifier: Apache-2.0 */
/* Counting descriptors; see descriptors.h. */
#include "base/descriptors.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT_PART 8 // one in so many is kept,
#define KEPT_LEAST 24
#define KEPT_MOST 512 // but no more than that

size_t descriptors_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < SIZE_MAX ? limit.rlim_cur
                                                                              : SIZE_MAX;
}

/* All below the lowest free one are in use; above it there may be more. */
static size_t find_lowest_free(void)
{
    int fd = open("/dev/null", O_PATH | O_CLOEXEC);

    if (fd < 0)
        return SIZE_MAX;
    (void)close(fd);
    return (size_t)fd;
}

size_t descriptors_left(void)
{
    size_t limit = descriptors_limit();
    struct stat info;

    // The size of the directory is their number since Linux 6.2.
    bool is_told = stat("/proc/self/fd", &info) == 0 && info.st_size > 0;
    size_t used = is_told ? (size_t)info.st_size : find_lowest_free();
    return used < limit ? limit - used : 0;
}

int descriptors_check(struct error *err)
{
    size_t limit = descriptors_limit();
    size_t kept = limit / KEPT_PART;

    kept = kept < KEPT_LEAST ? KEPT_LEAST : kept > KEPT_MOST ? KEPT_MOST : kept;
    if (descriptors_left() > kept)
        return 0;
    return error_refuse(err, ERROR_FULL, "descriptor",
                        "the server has opened almost all of the %zu files it may (the rest is "
                        "kept for ending things): end a sandbox, or raise its limit of open files",
                        limit);
}
