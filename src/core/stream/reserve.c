/* SPDX-License-Identifier: Apache-2.0 */
/* Room that is kept back; see reserve.h. */
#include "core/stream/reserve.h"

#include "base/disk.h"
#include "base/log.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NAME "reserve"

struct reserve {
    int dir_fd;
    atomic_flag is_looked_at; // by one at a time
    bool has_file;
    _Atomic(const char *) fault;
};

static const char FULL[] =
    "the disk of the data directory is full: output of commands is not kept, make room on it";
static const char NO_INODES[] = "the disk of the data directory has no inodes left: remove files";
static const char READ_ONLY[] = "the volume of the data directory cannot be written any more: see "
                                "the kernel's log, stop the server, 'burrow detach', start it";

/* Whole, or not there. */
static bool make_file(struct reserve *reserve, uint64_t bytes)
{
    autofd fd = openat(reserve->dir_fd, NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return false;
    if (posix_fallocate(fd, 0, (off_t)bytes) == 0 && ftruncate(fd, (off_t)bytes) == 0)
        return true;
    (void)ftruncate(fd, 0);
    return false;
}

/* Removing may need room itself where files are copied on write; giving up blocks does not need a name. */
static void give_up_file(struct reserve *reserve)
{
    autofd fd = openat(reserve->dir_fd, NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (fd >= 0)
        (void)ftruncate(fd, 0);
    reserve->has_file = false;
}

static bool is_volume_stuck(const struct reserve *reserve)
{
    struct statvfs info;
    autofd fd = openat(reserve->dir_fd, "volume", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && fstatvfs(fd, &info) == 0 && info.f_flag & ST_RDONLY;
}

/* What is wrong now, after what could be done about it. */
static const char *look(struct reserve *reserve)
{
    struct disk_room room;

    if (disk_room(reserve->dir_fd, &room) < 0)
        return NULL;
    if (reserve->has_file && room.free_bytes < room.floor_bytes / 2)
        give_up_file(reserve);
    else if (!reserve->has_file && room.free_bytes >= 2 * room.floor_bytes)
        reserve->has_file = make_file(reserve, room.floor_bytes);
    if (!reserve->has_file || room.avail_bytes < room.floor_bytes)
        return FULL;
    if (!room.has_inodes)
        return NO_INODES;
    return is_volume_stuck(reserve) ? READ_ONLY : NULL;
}

void reserve_check(struct reserve *reserve)
{
    if (atomic_flag_test_and_set(&reserve->is_looked_at))
        return;
    const char *fault = look(reserve);
    const char *before = atomic_exchange(&reserve->fault, fault);

    if (fault && fault != before)
        log_error("the server cannot keep everything", F("reason", fault));
    if (!fault && before)
        log_info("there is room on the disk again");
    atomic_flag_clear(&reserve->is_looked_at);
}

const char *reserve_fault(struct reserve *reserve)
{
    return atomic_load(&reserve->fault);
}

int reserve_open(const char *data_dir, struct reserve **out, struct error *err)
{
    autofd fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "open the data directory '%s'", data_dir);
    struct reserve *reserve = xnew(struct reserve);
    reserve->dir_fd = take_fd(fd);
    atomic_flag_clear(&reserve->is_looked_at);
    reserve_check(reserve);
    *out = reserve;
    return 0;
}

void reserve_free(struct reserve *reserve)
{
    if (!reserve)
        return;
    (void)close(reserve->dir_fd);
    free(reserve);
}
