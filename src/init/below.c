/* SPDX-License-Identifier: Apache-2.0 */
/* Going down plain paths without leaving a directory; see below.h. */
#include "init/below.h"
#include "base/auto.h"
#include "init/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>

#define BELOW (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
#define CHUNK 4000 // of a path, for one system call

/* The end of the longest beginning of `path` that fits one call and ends at a part. */
static size_t chunk_length(const char *path, size_t length)
{
    if (length <= CHUNK)
        return length;
    size_t end = CHUNK;
    while (path[end] != '/')
        end--;
    return end;
}

/* One step of below_open: makes it when it is missing. */
static int open_made(int at, const char *part)
{
    int fd = inside_openat(at, part, O_PATH | O_DIRECTORY, 0, BELOW);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (inside_is_kernel(at)) {
        errno = EPERM;
        return -1;
    }
    if (mkdirat(at, part, 0755) < 0 && errno != EEXIST)
        return -1;
    return inside_openat(at, part, O_PATH | O_DIRECTORY, 0, BELOW);
}

/* Goes down `length` bytes of path from `at`, part by part, making what is missing. */
static int make_below(int at, const char *path, size_t length)
{
    char part[256];
    autofd fd = inside_openat(at, ".", O_PATH | O_DIRECTORY, 0, 0);
    while (fd >= 0 && length > 0) {
        size_t size = strcspn(path, "/");
        if (size > length)
            size = length;
        memcpy(part, path, size);
        part[size] = '\0';
        int next = open_made(fd, part);
        closep(&fd);
        fd = next;
        size_t used = size < length ? size + 1 : size;
        path += used;
        length -= used;
    }
    return take_fd(fd);
}

int below_open(int root, const char *path, size_t length, bool is_made)
{
    char chunk[CHUNK + 1];
    autofd at = inside_openat(root, ".", O_PATH | O_DIRECTORY, 0, 0);
    while (at >= 0 && length > 0) {
        size_t size = chunk_length(path, length);
        memcpy(chunk, path, size);
        chunk[size] = '\0';
        int next = inside_openat(at, chunk, O_PATH | O_DIRECTORY, 0, BELOW);
        if (next < 0 && errno == ENOENT && is_made)
            return make_below(at, path, length);
        closep(&at);
        at = next;
        size_t used = size < length ? size + 1 : size;
        path += used;
        length -= used;
    }
    return take_fd(at);
}

size_t below_parent_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

const char *below_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
