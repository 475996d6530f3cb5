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
#define MAX_NOTES 65536

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
    return openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, CLEAN);
}

int slot_try(int dir_fd, unsigned slot)
{
    autofd fd = open_slot(dir_fd, slot, O_RDONLY | O_CREAT);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -1;
    return take_fd(fd);
}

static bool mark_dirty(int dir_fd, unsigned slot, int fd)
{
    struct stat info = {0};
    bool was_dirty = fstat(fd, &info) < 0 || (info.st_mode & 07777) == DIRTY;
    if (info.st_size > 0) { // notes of the one before
        autofd old = open_slot(dir_fd, slot, O_WRONLY | O_TRUNC);
    }
    if (!was_dirty)
        (void)fchmod(fd, DIRTY);
    return was_dirty;
}

void slot_is_clean(int lock_fd)
{
    struct stat info;
    char path[32];

    if (lock_fd < 0)
        return;
    if (fstat(lock_fd, &info) == 0 && info.st_size > 0) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", lock_fd);
        autofd notes = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    }
    (void)fchmod(lock_fd, CLEAN);
}

int slot_take(int dir_fd, unsigned *slot, int *lock_fd, bool *is_dirty, struct error *err)
{
    for (unsigned i = 0; i < SLOT_COUNT; i++) {
        int fd = slot_try(dir_fd, i);
        if (fd >= 0) {
            *slot = i;
            *lock_fd = fd;
            *is_dirty = mark_dirty(dir_fd, i, fd);
            return 0;
        }
        if (errno != EWOULDBLOCK)
            return error_sys(err, "lock slot %u in '%s'", i, SLOTS_DIR);
    }
    return error_set(err, ERROR_LIMIT, "all %u places for boxes on this machine are taken",
                     SLOT_COUNT);
}

int slot_note(int dir_fd, unsigned slot, const char *prefix, const char *const *names, size_t count,
              struct error *err)
{
    autobuffer text = {.maximum = MAX_NOTES};
    for (size_t i = 0; i < count; i++) {
        if (buffer_addf(&text, err, "%s%s\n", prefix, names[i]) < 0)
            return -1;
    }
    autofd fd = open_slot(dir_fd, slot, O_WRONLY | O_TRUNC);
    if (fd < 0 || fd_write_all(fd, text.data, text.length) < 0)
        return error_sys(err, "write to slot %u in '%s'", slot, SLOTS_DIR);
    return 0;
}

static bool has_line(const char *text, const char *line)
{
    size_t length = strlen(line);
    for (const char *at = text; (at = strstr(at, line)); at += length) {
        if ((at == text || at[-1] == '\n') && at[length] == '\n')
            return true;
    }
    return false;
}

static int slot_has_note(int dir_fd, unsigned slot, const char *name, struct error *err)
{
    struct stat info;
    autobuffer text = {.maximum = MAX_NOTES + 1};
    autofd fd = open_slot(dir_fd, slot, O_RDONLY);

    if (fd < 0 || fstat(fd, &info) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "read slot %u in '%s'", slot, SLOTS_DIR);
    if (info.st_size == 0)
        return 0;
    if (fd_read_buffer(fd, &text, err) < 0)
        return -1;
    if (!text.data || !has_line(text.data, name))
        return 0;
    return flock(fd, LOCK_SH | LOCK_NB) < 0; // else it is a note of one that is gone
}

int slots_have_note(int dir_fd, const char *name, struct error *err)
{
    struct dirent *entry;
    unsigned slot;
    int found = 0;
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        error_sys(err, "list '%s'", SLOTS_DIR);
        closep(&fd);
        return -1;
    }
    while (found == 0 && (entry = readdir(dir))) {
        if (slot_parse(entry->d_name, &slot))
            found = slot_has_note(dir_fd, slot, name, err);
    }
    return found;
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
