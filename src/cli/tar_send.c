/* SPDX-License-Identifier: Apache-2.0 */
/* A directory as a tar archive; see tar_send.h. Format: ustar, with GNU's long names. */
#include "cli/tar_send.h"

#include "base/auto.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK 512
#define DEPTH 256

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[8], uname[32], gname[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a block of tar has 512 bytes");

struct level {
    DIR *dir;
    size_t length; // of the path up to here
};

struct tar_send {
    struct level levels[DEPTH];
    unsigned depth;
    char path[4096]; // below the directory; "" is itself
    bool (*wants)(void *context, const char *path, bool is_directory);
    void *context;
    uint64_t large_bytes; // files with more are told
    void (*on_large)(void *context, const char *path);
    void *large_context;
    struct buffer pending; // headers and padding, from `at` on
    size_t at;
    int fd; // of the file that is being sent
    uint64_t left, files, bytes, skipped;
    unsigned padding;
    bool is_ended;
    uint64_t part_bytes; // after so many this archive ends; 0: with the last entry
    uint64_t part_sent;
};

int tar_send_new(const char *directory,
                 bool (*wants)(void *context, const char *path, bool is_directory), void *context,
                 struct tar_send **out, struct burrow_error *err)
{
    DIR *dir = opendir(directory);

    if (!dir)
        return say_fail_sys(err, "read the directory '%s'", directory);
    struct tar_send *tar = xnew(struct tar_send);
    tar->fd = -1;
    tar->wants = wants;
    tar->context = context;
    tar->levels[tar->depth++].dir = dir;
    *out = tar;
    return 0;
}

void tar_send_leave_out(struct tar_send *tar, uint64_t bytes,
                        void (*on_large)(void *context, const char *path), void *context)
{
    tar->large_bytes = bytes;
    tar->on_large = on_large;
    tar->large_context = context;
}

void tar_send_free(struct tar_send *tar)
{
    if (!tar)
        return;
    while (tar->depth)
        (void)closedir(tar->levels[--tar->depth].dir);
    closep(&tar->fd);
    buffer_clear(&tar->pending);
    free(tar);
}

uint64_t tar_send_files(const struct tar_send *tar)
{
    return tar->files;
}

uint64_t tar_send_bytes(const struct tar_send *tar)
{
    return tar->bytes;
}

uint64_t tar_send_skipped(const struct tar_send *tar)
{
    return tar->skipped;
}

const char *tar_send_path(const struct tar_send *tar)
{
    return tar->path;
}

static void add(struct tar_send *tar, const void *data, size_t length)
{
    struct error ignored;

    (void)buffer_add(&tar->pending, data, length, &ignored); // has no maximum
}

static void pad(struct tar_send *tar, size_t length)
{
    static const char zeros[BLOCK];

    add(tar, zeros, (BLOCK - length % BLOCK) % BLOCK);
}

static void put_number(char *to, size_t size, uint64_t number)
{
    if (number >> (3 * (size - 1))) { // base 256, as GNU has it
        for (size_t i = size; i-- > 0; number >>= 8)
            to[i] = (char)number;
        to[0] = (char)(to[0] | 0x80);
        return;
    }
    (void)snprintf(to, size, "%0*llo", (int)size - 1, (unsigned long long)number);
}

static void add_header(struct tar_send *tar, const char *name, const char *link, char type,
                       const struct stat *info, uint64_t size)
{
    struct header header = {0};
    unsigned sum = 0;

    memcpy(header.name, name, strnlen(name, sizeof header.name));
    memcpy(header.link, link, strnlen(link, sizeof header.link));
    put_number(header.mode, sizeof header.mode, info->st_mode & 07777);
    put_number(header.uid, sizeof header.uid, 0);
    put_number(header.gid, sizeof header.gid, 0);
    put_number(header.size, sizeof header.size, size);
    put_number(header.mtime, sizeof header.mtime,
               info->st_mtime > 0 ? (uint64_t)info->st_mtime : 0);
    memcpy(header.magic, "ustar\00000", 8);
    header.type = type;
    memset(header.sum, ' ', sizeof header.sum);
    for (size_t i = 0; i < BLOCK; i++)
        sum += ((unsigned char *)&header)[i];
    (void)snprintf(header.sum, sizeof header.sum, "%06o", sum);
    add(tar, &header, BLOCK);
}

static void add_long(struct tar_send *tar, char type, const char *text)
{
    static const struct stat none = {.st_mode = 0644};

    add_header(tar, "././@LongLink", "", type, &none, strlen(text) + 1);
    add(tar, text, strlen(text) + 1);
    pad(tar, strlen(text) + 1);
}

static void add_entry(struct tar_send *tar, const char *name, const char *link, char type,
                      const struct stat *info, uint64_t size)
{
    if (strlen(link) > 100)
        add_long(tar, 'K', link);
    if (strlen(name) > 100)
        add_long(tar, 'L', name);
    add_header(tar, name, link, type, info, size);
}

static int enter(struct tar_send *tar, int parent, const char *name, const struct stat *info)
{
    if (tar->depth == DEPTH) {
        errno = ELOOP;
        return -1;
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return -1;
    size_t length = strlen(tar->path);
    char slashed[sizeof tar->path + 1];
    (void)snprintf(slashed, sizeof slashed, "%s/", tar->path);
    add_entry(tar, slashed, "", '5', info, 0);
    tar->levels[tar->depth++] = (struct level){dir, length};
    return 0;
}

static int send_file(struct tar_send *tar, int parent, const char *name)
{
    struct stat info;

    tar->fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (tar->fd < 0)
        return errno == ENOENT ? 0 : -1; // gone meanwhile
    if (fstat(tar->fd, &info) < 0)
        return -1;
    if (!S_ISREG(info.st_mode)) { // something else meanwhile
        closep(&tar->fd);
        tar->skipped++;
        return 0;
    }
    if (tar->on_large && (uint64_t)info.st_size > tar->large_bytes) {
        closep(&tar->fd);
        tar->on_large(tar->large_context, tar->path);
        return 0;
    }
    add_entry(tar, tar->path, "", '0', &info, (uint64_t)info.st_size);
    tar->left = (uint64_t)info.st_size;
    tar->padding = (unsigned)((BLOCK - tar->left % BLOCK) % BLOCK);
    tar->files++;
    tar->bytes += tar->left;
    return 0;
}

static int send_link(struct tar_send *tar, int parent, const char *name, const struct stat *info)
{
    char target[4096];
    ssize_t length = readlinkat(parent, name, target, sizeof target - 1);

    if (length < 0)
        return -1;
    target[length] = '\0';
    add_entry(tar, tar->path, target, '2', info, 0);
    tar->files++;
    return 0;
}

/* The next entry of the innermost directory: its header is pending then. */
static int next_entry(struct tar_send *tar)
{
    struct level *level = &tar->levels[tar->depth - 1];
    struct stat info;

    tar->path[level->length] = '\0';
    errno = 0;
    struct dirent *entry = readdir(level->dir);
    if (!entry) {
        if (errno)
            return -1;
        (void)closedir(level->dir);
        tar->depth--;
        return 0;
    }
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    int needed = snprintf(tar->path + level->length, sizeof tar->path - level->length, "%s%s",
                          level->length ? "/" : "", name);
    if (needed < 0 || level->length + (size_t)needed >= sizeof tar->path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int parent = dirfd(level->dir);
    bool is_file = entry->d_type == DT_REG; // its stat comes with its content
    if (!is_file && fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -1; // gone meanwhile
    if (tar->wants && !tar->wants(tar->context, tar->path, !is_file && S_ISDIR(info.st_mode)))
        return 0;
    if (is_file || S_ISREG(info.st_mode))
        return send_file(tar, parent, name);
    if (S_ISDIR(info.st_mode))
        return enter(tar, parent, name, &info);
    if (S_ISLNK(info.st_mode))
        return send_link(tar, parent, name, &info);
    tar->skipped++;
    return 0;
}

static ssize_t read_file(struct tar_send *tar, char *to, size_t size)
{
    ssize_t got = read(tar->fd, to, size < tar->left ? size : (size_t)tar->left);

    if (got < 0)
        return -1;
    if (got == 0) { // it became shorter: zeros, as tar does
        got = (ssize_t)(size < tar->left ? size : (size_t)tar->left);
        memset(to, 0, (size_t)got);
    }
    tar->left -= (uint64_t)got;
    return got;
}

ssize_t tar_send_read(struct tar_send *tar, void *to, size_t size)
{
    static const char zeros[2 * BLOCK];
    size_t filled = 0;

    while (filled < size) {
        if (tar->at < tar->pending.length) {
            size_t rest = tar->pending.length - tar->at;
            size_t part = rest < size - filled ? rest : size - filled;
            memcpy((char *)to + filled, tar->pending.data + tar->at, part);
            tar->at += part;
            filled += part;
            continue;
        }
        tar->pending.length = tar->at = 0;
        if (tar->left) {
            ssize_t got = read_file(tar, (char *)to + filled, size - filled);
            if (got < 0)
                return -1;
            filled += (size_t)got;
            continue;
        }
        if (tar->fd >= 0) {
            add(tar, zeros, tar->padding);
            closep(&tar->fd);
            continue;
        }
        if (tar->is_ended)
            break;
        if (tar->depth && !(tar->part_bytes && tar->part_sent + filled >= tar->part_bytes)) {
            if (next_entry(tar) < 0)
                return -1;
            continue;
        }
        add(tar, zeros, sizeof zeros);
        tar->is_ended = true;
    }
    tar->part_sent += filled;
    return (ssize_t)filled;
}

bool tar_send_part(struct tar_send *tar, uint64_t bytes)
{
    if (tar->is_ended && !tar->depth)
        return false;
    tar->is_ended = false;
    tar->part_bytes = bytes;
    tar->part_sent = 0;
    return true;
}

uint64_t tar_send_total(const char *directory)
{
    struct tar_send *tar = NULL;
    struct burrow_error ignored;
    uint64_t total = 0;
    int result = tar_send_new(directory, NULL, NULL, &tar, &ignored);

    while (result == 0 && tar->depth && (result = next_entry(tar)) == 0) {
        total += tar->pending.length + tar->left + (tar->fd >= 0 ? tar->padding : 0);
        tar->pending.length = tar->left = 0;
        closep(&tar->fd);
    }
    tar_send_free(tar);
    return result < 0 ? 0 : total;
}
