/* SPDX-License-Identifier: Apache-2.0 */
/* Counting descriptors; see descriptors.h. */
#include "base/descriptors.h"

#include "base/auto.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT_PART 8   // one in so many is kept,
#define KEPT_LEAST 40 // threads open the database when they first need it
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

static size_t count_entries(void)
{
    autodir dir = opendir("/proc/self/fd");
    size_t count = 0;

    while (dir && readdir(dir))
        count++;
    return dir ? count - 3 : SIZE_MAX; // two dots, and the directory itself
}

/* The size of the directory is their number since Linux 6.2. 0: not told. */
static size_t ask_kernel(void)
{
    struct stat info;

    return stat("/proc/self/fd", &info) == 0 ? (size_t)info.st_size : 0;
}

static size_t subtract(size_t limit, size_t used)
{
    return used < limit ? limit - used : 0;
}

size_t descriptors_left(void)
{
    size_t told = ask_kernel();

    return subtract(descriptors_limit(), told ? told : count_entries());
}

/* The same without counting where that would take long and there are plenty: then it may be too high. */
static size_t estimate_left(size_t limit)
{
    size_t told = ask_kernel();
    size_t lowest = told ? 0 : find_lowest_free();

    if (told || lowest >= limit / 2)
        return subtract(limit, told ? told : count_entries());
    return limit - lowest;
}

int descriptors_check(struct error *err)
{
    size_t limit = descriptors_limit();
    size_t kept = limit / KEPT_PART;

    kept = kept < KEPT_LEAST ? KEPT_LEAST : kept > KEPT_MOST ? KEPT_MOST : kept;
    if (estimate_left(limit) > kept)
        return 0;
    return error_refuse(err, ERROR_FULL, "descriptor",
                        "the server has opened almost all of the %zu files it may (the rest is "
                        "kept for ending things): end a sandbox, or raise its limit of open files",
                        limit);
}
