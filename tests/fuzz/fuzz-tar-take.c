/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's unpacking of archives. An odd first byte: the rest is an archive as it is. Else it is a list of entries, TYPE NAME LINK, a line each,
 * which become one with right sums. Whatever it says, a file beside the directory stays, and no link leads out of it.
 */
#include "base/auto.h"
#include "base/buffer.h"
#include "cli/tar_take.h"
#include "engine/kernel.h"
#include "place.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK 512
#define ROOT "above/root"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_entry(struct buffer *to, const char *line)
{
    char block[BLOCK] = {0}, name[101] = "", link[101] = "";
    struct error ignored;
    unsigned sum = 8 * ' ';

    (void)sscanf(line + 1, " %100s %100s", name, link);
    memcpy(block, name, strnlen(name, 100));
    memcpy(block + 100, "0006755", 8);
    memcpy(block + 124, "00000000003", 12);
    block[156] = *line;
    memcpy(block + 157, link, strnlen(link, 100));
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)block[i];
    (void)snprintf(block + 148, 8, "%06o", sum);
    (void)buffer_add(to, block, BLOCK, &ignored);
    if (*line == '0') {
        static const char content[BLOCK] = "xyz";
        (void)buffer_add(to, content, BLOCK, &ignored);
    }
}

static void write_archive(struct buffer *to, const uint8_t *data, size_t size)
{
    autobuffer text = {0};
    struct error ignored;
    char *rest = NULL;

    (void)buffer_add(&text, data, size, &ignored);
    (void)buffer_add(&text, "", 1, &ignored);
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        add_entry(to, line);
}

/* Links that lead nowhere are nobody's harm; those that lead out are. */
static void check(int root, int fd, const char *path)
{
    DIR *directory = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    const struct dirent *item;
    struct stat info;

    while (directory && (item = readdir(directory))) {
        char whole[8192];
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        (void)snprintf(whole, sizeof whole, "%s%s%s", path, *path ? "/" : "", item->d_name);
        assert(fstatat(fd, item->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0);
        assert(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISLNK(info.st_mode));
        assert(S_ISLNK(info.st_mode) || !(info.st_mode & 06000));
        if (S_ISLNK(info.st_mode)) {
            autofd end = sys_openat2(root, whole, O_PATH | O_CLOEXEC, 0, RESOLVE_BENEATH);
            assert(end >= 0 || errno != EXDEV);
        } else if (S_ISDIR(info.st_mode)) {
            autofd below =
                openat(fd, item->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            check(root, below, whole);
        }
    }
    if (directory)
        (void)closedir(directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct burrow_error err = {0};
    struct error ignored;
    autobuffer archive = {0};
    size_t piece = size > 1 ? data[1] + 1u : 1;

    if (size < 2 || size > 65536)
        return 0;
    if (data[0] & 1)
        (void)buffer_add(&archive, data + 2, size - 2, &ignored);
    else
        write_archive(&archive, data + 2, size - 2);
    int top = place_open();
    assert(mkdirat(top, "above", 0700) == 0 && mkdirat(top, ROOT, 0700) == 0);
    place_put("above/kept", "kept", 4);
    autofd root = openat(top, ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct entry_maker *maker = entry_maker_new(root);
    struct tar_take *tar = tar_take_new(maker);
    for (size_t at = 0; at < archive.length; at += piece) {
        size_t rest = archive.length - at;
        if (tar_take_bytes(tar, archive.data + at, rest < piece ? rest : piece, &err) < 0)
            break;
    }
    (void)tar_take_end(tar, &err);
    tar_take_free(tar);
    entry_maker_free(maker);
    check(root, root, "");
    struct stat kept;
    assert(fstatat(top, "above/kept", &kept, AT_SYMLINK_NOFOLLOW) == 0 && kept.st_size == 4 &&
           kept.st_nlink == 1);
    autofd above = openat(top, "above", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat counted;
    assert(fstat(above, &counted) == 0 && counted.st_nlink == 3); // the root alone is in it
    closep(&root);
    assert(fd_remove_tree(top, "above", &ignored) == 0);
    return 0;
}
