/* SPDX-License-Identifier: Apache-2.0 */
/* A file of a sandbox in a temporary one; see remote_file.h. */
#include "cli/remote_file.h"

#include "base/auto.h"
#include "cli/say.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int remote_file_take(struct burrow_client *client, const char *sandbox, const char *path,
                     uint64_t most, int *out, struct burrow_error *err)
{
    const char *top = getenv("TMPDIR");
    autofd fd = open(top && *top == '/' ? top : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    const struct burrow_transfer what = {
        .sandbox = sandbox, .path = path, .fd = fd, .most_bytes = most ? most : 1};
    uint64_t bytes;

    if (fd < 0)
        return say_fail_sys(err, "make a temporary file");
    if (burrow_file_fetch(client, &what, &bytes, err) < 0) {
        bool is_more = err->kind == BURROW_LIMIT && !err->status;
        return is_more ? say_fail(err, BURROW_LIMIT, "'%.300s' is larger than --limit allows", path)
                       : -1;
    }
    if (bytes > most)
        return say_fail(err, BURROW_LIMIT, "'%.300s' is larger than --limit allows", path);
    if (lseek(fd, 0, SEEK_SET) < 0)
        return say_fail_sys(err, "read a temporary file");
    *out = take_fd(fd);
    return 0;
}

bool remote_file_is_changing(const struct burrow_error *err)
{
    return err->kind == BURROW_CONFLICT && !err->status;
}
