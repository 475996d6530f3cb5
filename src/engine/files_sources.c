/* SPDX-License-Identifier: Apache-2.0 */
/* What files are written from: bytes in memory, a descriptor; see files.h. */
#include "engine/files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct bytes {
    const char *at;
    size_t left;
};

static ssize_t fill_from_bytes(void *data, void *bytes, size_t size, struct error *err)
{
    struct bytes *from = data;
    size_t take = from->left < size ? from->left : size;
    memcpy(bytes, from->at, take);
    from->at += take;
    from->left -= take;
    return (ssize_t)take;
}

int files_write_buffer(int conv, const char *path, uint32_t mode, unsigned flags, const void *bytes,
                       size_t length, struct error *err)
{
    struct bytes from = {bytes, length};
    return files_write(conv, path, mode, flags, fill_from_bytes, &from, err);
}

static ssize_t fill_from_fd(void *data, void *bytes, size_t size, struct error *err)
{
    const int *fd = data;
    for (;;) {
        ssize_t got = read(*fd, bytes, size);
        if (got >= 0 || errno != EINTR)
            return got < 0 ? error_sys(err, "read what goes into the sandbox") : got;
    }
}

int files_write_from_fd(int conv, const char *path, uint32_t mode, unsigned flags, int fd,
                        struct error *err)
{
    return files_write(conv, path, mode, flags, fill_from_fd, &fd, err);
}
