/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of packing; see packer.h. */
#include "archive/packer.h"
#include "archive/writer.h"
#include "base/buffer.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_TEXT_BYTES ((size_t)256 << 20) // of all names together
#define GATHERED_BYTES ((size_t)65536)     // of small contents, for one write of the spool
#define PIECE FILES_MAX_DATA               // of a content on its way out of the spool

struct entry {
    uint64_t size, offset; // of its content in the spool
    int64_t mtime_ns;
    uint32_t mode;
    size_t path; // where it begins in `strings`; its target stands behind it
};

struct packer {
    const struct archive_task *task;
    int spool;
    uint64_t n_bytes; // with what is gathered
    uint64_t kept;    // in the spool, without holes
    uint8_t *gathered;
    size_t n_gathered;
    struct entry *entries;
    size_t count, capacity;
    struct buffer strings;
};

struct packer *packer_new(const struct archive_task *task, int spool_fd)
{
    struct packer *packer = xnew(struct packer);
    packer->task = task;
    packer->spool = spool_fd;
    packer->gathered = xcalloc(1, GATHERED_BYTES);
    buffer_init(&packer->strings, MAX_TEXT_BYTES);
    return packer;
}

static int too_large(struct error *err)
{
    return error_restate(err, ERROR_TOO_LARGE, "archive");
}

static int add_strings(struct packer *packer, const struct files_item *item, struct error *err)
{
    if (buffer_add(&packer->strings, item->path, strlen(item->path) + 1, err) < 0 ||
        buffer_add(&packer->strings, item->target, strlen(item->target) + 1, err) < 0)
        return too_large(err);
    return 0;
}

int packer_item(void *data, const struct files_item *item, struct error *err)
{
    struct packer *packer = data;
    if (packer->count == packer->task->max_entries) {
        (void)error_set(err, ERROR_LIMIT, "more than %llu files for one archive",
                        (unsigned long long)packer->count);
        return too_large(err);
    }
    if (packer->count == packer->capacity) {
        packer->capacity = packer->capacity ? packer->capacity * 2 : 64;
        packer->entries = xrealloc(packer->entries, packer->capacity, sizeof *packer->entries);
    }
    struct entry entry = {
        .size = item->size,
        .offset = packer->n_bytes,
        .mtime_ns = item->mtime_ns,
        .mode = item->mode,
        .path = packer->strings.length,
    };
    if (add_strings(packer, item, err) < 0)
        return -1;
    packer->entries[packer->count++] = entry;
    return 0;
}

static int write_spool(struct packer *packer, const void *bytes, size_t length, uint64_t offset,
                       struct error *err)
{
    ssize_t written = fd_write_sparse(packer->spool, offset, bytes, length);

    if (written < 0)
        return error_sys(err, "keep what goes into an archive");
    packer->kept += (uint64_t)written;
    return 0;
}

int packer_flush(struct packer *packer, struct error *err)
{
    size_t length = packer->n_gathered;

    packer->n_gathered = 0;
    return length ? write_spool(packer, packer->gathered, length, packer->n_bytes - length, err)
                  : 0;
}

int packer_data(void *data, const void *bytes, size_t length, struct error *err)
{
    struct packer *packer = data;

    if (length > GATHERED_BYTES - packer->n_gathered && packer_flush(packer, err) < 0)
        return -1;
    if (length > GATHERED_BYTES / 4) {
        if (packer_flush(packer, err) < 0 ||
            write_spool(packer, bytes, length, packer->n_bytes, err) < 0)
            return -1;
    } else {
        memcpy(packer->gathered + packer->n_gathered, bytes, length);
        packer->n_gathered += length;
    }
    packer->n_bytes += length;
    return 0;
}

uint64_t packer_kept(const struct packer *packer)
{
    return packer->kept;
}

/* Of zeros next to nothing is left, of anything else at most a little more than it was. */
uint64_t packer_estimate(const struct packer *packer)
{
    return packer->kept + packer->n_gathered + packer->n_bytes / 64 + packer->strings.length +
           1024 * packer->count + 65536;
}

/* A slash before all other characters: what is in a directory comes right behind it. */
static int compare_paths(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    int left = *a == '/' ? 1 : *a ? (unsigned char)*a + 1 : 0;
    int right = *b == '/' ? 1 : *b ? (unsigned char)*b + 1 : 0;
    return left - right;
}

static int compare_entries(const void *a, const void *b, void *strings)
{
    const struct entry *left = a, *right = b;
    return compare_paths((char *)strings + left->path, (char *)strings + right->path);
}

static int read_content(const struct packer *packer, uint64_t offset, uint8_t *to, size_t size,
                        struct error *err)
{
    ssize_t got = fd_read_full_at(packer->spool, to, size, (off_t)offset);

    return got == (ssize_t)size
               ? 0
               : error_sys_code(err, got < 0 ? errno : EIO, "read what goes into an archive");
}

static int write_content(const struct packer *packer, struct writer *writer,
                         const struct entry *entry, uint8_t room[PIECE], struct error *err)
{
    for (uint64_t done = 0; done < entry->size;) {
        uint64_t left = entry->size - done;
        size_t piece = left < PIECE ? (size_t)left : PIECE;
        if (read_content(packer, entry->offset + done, room, piece, err) < 0 ||
            writer_data(writer, room, piece, err) < 0)
            return -1;
        done += piece;
    }
    return 0;
}

static int write_entry(const struct packer *packer, struct writer *writer,
                       const struct entry *entry, uint8_t room[PIECE], struct error *err)
{
    const char *path = packer->strings.data + entry->path;
    const struct files_item item = {
        .size = entry->size,
        .mtime_ns = entry->mtime_ns,
        .mode = entry->mode,
        .path = path,
        .target = path + strlen(path) + 1,
    };

    return writer_item(writer, &item, err) < 0 ? -1
                                               : write_content(packer, writer, entry, room, err);
}

static int write_all(const struct packer *packer, int archive_fd, struct error *err)
{
    autofree uint8_t *room = xcalloc(1, PIECE);
    autoptr(writer) writer = NULL;

    if (writer_open(packer->task, archive_fd, &writer, err) < 0)
        return -1;
    for (size_t i = 0; i < packer->count; i++)
        if (write_entry(packer, writer, &packer->entries[i], room, err) < 0)
            return -1;
    return writer_finish(writer, err);
}

int packer_finish(struct packer *packer, int archive_fd, uint64_t *size, struct error *err)
{
    struct stat info;
    if (packer_flush(packer, err) < 0)
        return -1;
    if (ftruncate(packer->spool, (off_t)packer->n_bytes) < 0)
        return error_sys(err, "keep what goes into an archive");
    if (packer->count)
        qsort_r(packer->entries, packer->count, sizeof *packer->entries, compare_entries,
                packer->strings.data);
    if (write_all(packer, archive_fd, err) < 0)
        return -1;
    if (fstat(archive_fd, &info) < 0)
        return error_sys(err, "look at the archive that was made");
    *size = (uint64_t)info.st_size;
    return 0;
}

void packer_free(struct packer *packer)
{
    if (!packer)
        return;
    closep(&packer->spool);
    free(packer->gathered);
    free(packer->entries);
    buffer_clear(&packer->strings);
    free(packer);
}
