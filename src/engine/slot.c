/* SPDX-License-Identifier: Apache-2.0 */
/* Locked files as slots; see slot.h. */
#include "engine/slot.h"

#include "base/auto.h"
#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define SLOTS_DIR "/run/burrow/slots"

/* The mark is a bit of the file's mode: PID 1, which holds the file too, may not change it. */
#define CLEAN 0600
#define DIRTY 0601

int slots_open(int *dir_fd, struct error *err)
{
    int fd = open(SLOTS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        if (fd_make_dirs(SLOTS_DIR, 0700, err) < 0)
            return -1;
        fd = open(SLOTS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (fd < 0)
        return error_sys(err, "open '%s'", SLOTS_DIR);
    *dir_fd = fd;
    return 0;
}

static int open_slot(int dir_fd, unsigned slot, int flags)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%u", slot);
    return openat(dir_fd, name, flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW, CLEAN);
}

int slot_try(int dir_fd, unsigned slot)
{
    autofd fd = open_slot(dir_fd, slot, O_CREAT);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -1;
    return take_fd(fd);
}

static bool mark_dirty(int fd)
{
    struct stat info;
    bool was_dirty = fstat(fd, &info) < 0 || (info.st_mode & 07777) == DIRTY;
    if (!was_dirty)
        (void)fchmod(fd, DIRTY);
    return was_dirty;
}

void slot_is_clean(int lock_fd)
{
    if (lock_fd >= 0)
        (void)fchmod(lock_fd, CLEAN);
}

static uint64_t bit_of(unsigned slot)
{
    return UINT64_C(1) << slot % 64;
}

void slot_add(struct slot_set *own, unsigned slot)
{
    (void)atomic_fetch_or(&own->held[slot / 64], bit_of(slot));
}

/* -1 when none that was left is free. */
static int take_left(int dir_fd, struct slot_set *own, unsigned *slot)
{
    for (unsigned i = 0; i < SLOT_COUNT / 64; i++) {
        for (uint64_t left = 0; (left = atomic_load(&own->left[i]));) {
            unsigned at = i * 64 + (unsigned)__builtin_ctzll(left);
            if (!(atomic_fetch_and(&own->left[i], ~bit_of(at)) & bit_of(at)))
                continue; // another thread was faster
            int fd = slot_try(dir_fd, at);
            if (fd < 0)
                continue;
            *slot = at;
            return fd;
        }
    }
    return -1;
}

static int take_lowest(int dir_fd, struct slot_set *own, unsigned *slot, struct error *err)
{
    for (unsigned i = 0; i < SLOT_COUNT; i++) {
        if (atomic_load(&own->held[i / 64]) & bit_of(i))
            continue;
        int fd = slot_try(dir_fd, i);
        if (fd >= 0) {
            *slot = i;
            return fd;
        }
        if (errno != EWOULDBLOCK)
            return error_sys(err, "lock slot %u in '%s'", i, SLOTS_DIR);
    }
    return error_set(err, ERROR_LIMIT, "all %u places for boxes on this machine are taken",
                     SLOT_COUNT);
}

int slot_take(int dir_fd, struct slot_set *own, unsigned *slot, int *lock_fd, bool *is_dirty,
              struct error *err)
{
    unsigned taken = 0;
    int fd = take_left(dir_fd, own, &taken);
    if (fd < 0)
        fd = take_lowest(dir_fd, own, &taken, err);
    if (fd < 0)
        return -1;
    slot_add(own, taken);
    *slot = taken;
    *lock_fd = fd;
    *is_dirty = mark_dirty(fd);
    return 0;
}

void slot_drop(struct slot_set *own, unsigned slot, int *lock_fd)
{
    if (*lock_fd < 0)
        return;
    (void)atomic_fetch_and(&own->held[slot / 64], ~bit_of(slot));
    closep(lock_fd);
    (void)atomic_fetch_or(&own->left[slot / 64], bit_of(slot));
}

bool slot_parse(const char *name, unsigned *slot)
{
    char *end = NULL;
    if (*name < '0' || *name > '9' || strlen(name) > 4)
        return false;
    unsigned long number = strtoul(name, &end, 10);
    if (*end || number >= SLOT_COUNT)
        return false;
    *slot = (unsigned)number;
    return true;
}
