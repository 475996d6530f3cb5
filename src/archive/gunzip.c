/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an archive that may be compressed; see gunzip.h. */
#include "archive/gunzip.h"
#include "base/fd.h"
#include "base/mem.h"

#include <string.h>
#include <zlib.h>

#define ROOM 65536
#define MAGIC 4
#define ZIP_END 22 // bytes of a zip without entries

struct gunzip {
    int fd;
    bool is_compressed, is_zip, is_empty_zip;
    bool is_over;
    z_stream stream;
    uint8_t in[ROOM], out[ROOM];
};

static bool is_gzip(const uint8_t *bytes, size_t length)
{
    return length >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

int gunzip_open(int fd, struct gunzip **out, struct error *err)
{
    autoptr(gunzip) gunzip = xnew(struct gunzip);
    gunzip->fd = fd;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_sys(err, "begin with the archive");
    ssize_t got = fd_read_full(fd, gunzip->in, ZIP_END + 1);
    if (got < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return error_sys(err, "read the archive");
    gunzip->is_empty_zip = got == ZIP_END && memcmp(gunzip->in, "PK\5\6", MAGIC) == 0;
    gunzip->is_zip =
        gunzip->is_empty_zip || (got > MAGIC && memcmp(gunzip->in, "PK\3\4", MAGIC) == 0);
    gunzip->is_compressed = is_gzip(gunzip->in, (size_t)got);
    if (gunzip->is_compressed && inflateInit2(&gunzip->stream, 16 + MAX_WBITS) != Z_OK)
        return error_set(err, ERROR_LIMIT, "not enough memory to read the archive");
    *out = take(gunzip);
    return 0;
}

bool gunzip_is_compressed(const struct gunzip *gunzip)
{
    return gunzip->is_compressed;
}

bool gunzip_is_zip(const struct gunzip *gunzip)
{
    return gunzip->is_zip;
}

bool gunzip_is_empty_zip(const struct gunzip *gunzip)
{
    return gunzip->is_empty_zip;
}

static ssize_t read_some(struct gunzip *gunzip, struct error *err)
{
    for (;;) {
        ssize_t got = read(gunzip->fd, gunzip->in, sizeof gunzip->in);
        if (got >= 0 || errno != EINTR)
            return got < 0 ? error_sys(err, "read the archive") : got;
    }
}

static int refill(struct gunzip *gunzip, struct error *err)
{
    if (gunzip->stream.avail_in)
        return 1;
    ssize_t got = read_some(gunzip, err);
    if (got <= 0)
        return (int)got;
    gunzip->stream.next_in = gunzip->in;
    gunzip->stream.avail_in = (unsigned)got;
    return 1;
}

/* Files of several members are one; what else stands behind the last is nobody's, as gzip(1) has it. */
static int next_member(struct gunzip *gunzip, struct error *err)
{
    int more = refill(gunzip, err);
    if (more < 0)
        return -1;
    gunzip->is_over = more == 0 || gunzip->stream.next_in[0] != 0x1f;
    if (!gunzip->is_over && inflateReset(&gunzip->stream) != Z_OK)
        return error_set(err, ERROR_DAMAGED, "the archive is damaged");
    return 0;
}

/* One call of zlib's. 0, or -1. */
static int inflate_some(struct gunzip *gunzip, struct error *err)
{
    int more = refill(gunzip, err);
    if (more < 0)
        return -1;
    if (more == 0)
        return error_set(err, ERROR_DAMAGED,
                         "the archive is cut off: its compressed data has no end");
    int result = inflate(&gunzip->stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
        return next_member(gunzip, err);
    if (result == Z_MEM_ERROR)
        return error_set(err, ERROR_LIMIT, "not enough memory to read the archive");
    if (result != Z_OK && result != Z_BUF_ERROR)
        return error_set(err, ERROR_DAMAGED, "the archive is damaged: %s",
                         gunzip->stream.msg ? gunzip->stream.msg : "its compressed data is not");
    return 0;
}

ssize_t gunzip_next(struct gunzip *gunzip, const void **bytes, struct error *err)
{
    if (!gunzip->is_compressed) {
        *bytes = gunzip->in;
        return read_some(gunzip, err);
    }
    *bytes = gunzip->out;
    gunzip->stream.next_out = gunzip->out;
    gunzip->stream.avail_out = sizeof gunzip->out;
    while (gunzip->stream.avail_out && !gunzip->is_over)
        if (inflate_some(gunzip, err) < 0)
            return -1;
    return (ssize_t)(sizeof gunzip->out - gunzip->stream.avail_out);
}

int64_t gunzip_seek(struct gunzip *gunzip, int64_t offset, int whence)
{
    return gunzip->is_compressed ? -1 : (int64_t)lseek(gunzip->fd, offset, whence);
}

void gunzip_free(struct gunzip *gunzip)
{
    if (gunzip && gunzip->is_compressed)
        (void)inflateEnd(&gunzip->stream);
    free(gunzip);
}
