/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a disk is left for what ends things; see disk.h. */
#include "base/disk.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FLOOR_BYTES ((uint64_t)32 << 20)
#define SMALL_PART 32 // of a small disk

int disk_room(int fd, struct disk_room *out)
{
    struct statvfs info;

    if (fstatvfs(fd, &info) < 0)
        return -1;
    uint64_t total = info.f_blocks * (uint64_t)info.f_frsize;
    *out = (struct disk_room){
        .total_bytes = total,
        .free_bytes = info.f_bfree * (uint64_t)info.f_frsize,
        .avail_bytes = info.f_bavail * (uint64_t)info.f_frsize,
        .floor_bytes = total / SMALL_PART < FLOOR_BYTES ? total / SMALL_PART : FLOOR_BYTES,
        .has_inodes = info.f_files == 0 || info.f_favail > 0, // some file systems count none
    };
    return 0;
}

uint64_t disk_hole_end(int fd, uint64_t size)
{
    struct stat info;

    // Without a hole a file has a block for each of its bytes, but perhaps for its last ones.
    if (size <= DISK_HOLE || fstat(fd, &info) < 0 ||
        (uint64_t)info.st_blocks * 512 + DISK_HOLE / 2 >= size)
        return 0;
    off_t first = lseek(fd, 0, SEEK_DATA); // nobody reads or writes where this leaves it
    return first < 0 ? 0 : (uint64_t)first;
}

bool disk_has_room(int fd)
{
    struct disk_room room;

    return disk_room(fd, &room) < 0 || room.avail_bytes >= room.floor_bytes;
}
