/* SPDX-License-Identifier: Apache-2.0 */
/* A file of a sandbox in a temporary one; see remote_file.h. */
#include "cli/remote_file.h"

#include "base/auto.h"
#include "base/fd.h"
#include "cli/say.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int take_bytes(struct burrow_stream *stream, const char *path, uint64_t most, int fd,
                      struct burrow_error *err)
{
    char bytes[65536];
    ssize_t got;

    while ((got = burrow_stream_read(stream, bytes, sizeof bytes, err)) > 0) {
        if ((uint64_t)got > most)
            return say_fail(err, BURROW_LIMIT, "'%.300s' is larger than --limit allows", path);
        if (fd_write_all(fd, bytes, (size_t)got) < 0)
            return say_fail_sys(err, "write a temporary file");
        most -= (uint64_t)got;
    }
    return got < 0 ? -1 : 0;
}

int remote_file_take(struct burrow_client *client, const char *sandbox, const char *path,
                     uint64_t most, int *out, struct burrow_error *err)
{
    autofree char *target = burrow_path("/sandboxes/%s/files?path=%s", sandbox, path, NULL);
    const char *top = getenv("TMPDIR");
    struct burrow_stream *stream = NULL;
    autofd fd = open(top && *top == '/' ? top : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        return say_fail_sys(err, "make a temporary file");
    if (burrow_stream_open(client, "GET", target, NULL, NULL, &stream, err) < 0)
        return -1;
    int result = take_bytes(stream, path, most, fd, err);
    burrow_stream_close(stream);
    if (result == 0 && lseek(fd, 0, SEEK_SET) < 0)
        result = say_fail_sys(err, "read a temporary file");
    if (result == 0)
        *out = take_fd(fd);
    return result;
}
