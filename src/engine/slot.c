/* SPDX-License-Identifier: Apache-2.0 */
/* Locked files as slots; see slot.h. */
#include "engine/slot.h"

#include "base/auto.h"
#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define SLOTS_DIR "/run/burrow/slots"
#define MAX_NOTES 65536

/* The marks are the file's mode and group: PID 1, which holds the file too, may not change them. */
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

/* A lock on the slot's byte of the directory. It can be only a shared one there: who has the slot's file locked is alone. */
static struct flock byte_of(unsigned slot, short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)slot, .l_len = 1};
}

static bool is_kept(int dir_fd, unsigned slot)
{
    struct flock lock = byte_of(slot, F_WRLCK);
    return fcntl(dir_fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

int slot_try(int dir_fd, unsigned slot)
{
    autofd fd = open_slot(dir_fd, slot, O_RDONLY | O_CREAT);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -1;
    if (is_kept(dir_fd, slot)) {
        errno = EWOULDBLOCK;
        return -1;
    }
    return take_fd(fd);
}

void slot_keep(int holder_fd, unsigned slot, int *lock_fd)
{
    struct flock lock = byte_of(slot, F_RDLCK);
    if (holder_fd >= 0 && fcntl(holder_fd, F_OFD_SETLK, &lock) == 0)
        closep(lock_fd);
}

/* The lock's own fd cannot write: PID 1 has it too. */
static void clear_notes(int lock_fd)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", lock_fd);
    autofd notes = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
}

void slot_is_clean(int lock_fd)
{
    struct stat info;

    if (lock_fd < 0)
        return;
    if (fstat(lock_fd, &info) == 0 && info.st_size > 0)
        clear_notes(lock_fd);
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

bool slot_is_own(const struct slot_set *own, unsigned slot)
{
    return atomic_load(&own->held[slot / 64]) & bit_of(slot);
}

/*
 * Makes a slot that is locked the owner's, unless another data directory has something to sweep there and it is not
 * needed. *is_dirty as for slot_take.
 */
static bool make_own(int fd, uint32_t owner, bool is_needed, bool *is_dirty)
{
    struct stat info = {0};
    bool is_known = fstat(fd, &info) == 0;
    bool was_dirty = !is_known || (info.st_mode & 07777) == DIRTY;

    if (was_dirty && !is_needed && info.st_gid != 0 && info.st_gid != owner)
        return false;
    if (!is_known || info.st_gid != owner)
        (void)fchown(fd, (uid_t)-1, owner); // at worst it is taken for another's
    if (info.st_size > 0)
        clear_notes(fd);
    (void)fchmod(fd, DIRTY); // also when it is: that dates it
    *is_dirty = was_dirty;
    return true;
}

bool slot_is_others(int dir_fd, unsigned slot, uint32_t owner)
{
    struct stat info;
    char name[16];

    (void)snprintf(name, sizeof name, "%u", slot);
    return fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_gid != 0 &&
           info.st_gid != owner;
}

/* A slot that is being looked for, and what is known of it when it is found. */
struct find {
    int dir_fd;
    struct slot_set *own;
    unsigned slot;
    int fd;
    bool is_dirty;
};

static bool try_one(struct find *find, unsigned slot, bool is_needed)
{
    autofd fd = slot_try(find->dir_fd, slot);
    if (fd < 0 || !make_own(fd, find->own->owner, is_needed, &find->is_dirty))
        return false;
    find->slot = slot;
    find->fd = take_fd(fd);
    return true;
}

/*
 * A child of another thread's launch may hold a copy of a lock that was let go, until it executes; so who is not to be had stays
 * in the set for the next time.
 */
static bool take_left_of(struct find *find, unsigned word)
{
    _Atomic uint64_t *left = &find->own->left[word];
    uint64_t tried = 0;
    bool is_taken = false;

    for (uint64_t rest = 0; !is_taken && (rest = atomic_load(left) & ~tried);) {
        unsigned at = word * 64 + (unsigned)__builtin_ctzll(rest);
        tried |= bit_of(at);
        if (!(atomic_fetch_and(left, ~bit_of(at)) & bit_of(at)))
            continue; // another thread was faster
        is_taken = try_one(find, at, false);
        if (!is_taken)
            (void)atomic_fetch_or(left, bit_of(at));
    }
    return is_taken;
}

static bool take_left(struct find *find)
{
    for (unsigned i = 0; i < SLOT_COUNT / 64; i++) {
        if (take_left_of(find, i))
            return true;
    }
    return false;
}

/* What is looked at: nothing that was not to be had before; everything, but what others have to sweep; that too. */
enum effort { EFFORT_LITTLE, EFFORT_MORE, EFFORT_ALL, EFFORTS };

/* Slots of this word that are not worth a look. */
static uint64_t passed_by(const struct slot_set *own, unsigned word, enum effort effort)
{
    uint64_t passed = atomic_load(&own->held[word]);
    if (effort == EFFORT_LITTLE)
        passed |= atomic_load(&own->left[word]) | atomic_load(&own->others[word]);
    return passed;
}

/* 1; 0: there is none. */
static int take_lowest_of(struct find *find, unsigned word, enum effort effort, struct error *err)
{
    for (uint64_t rest = ~passed_by(find->own, word, effort); rest; rest &= rest - 1) {
        unsigned slot = word * 64 + (unsigned)__builtin_ctzll(rest);
        errno = EWOULDBLOCK;
        if (try_one(find, slot, effort == EFFORT_ALL))
            return 1;
        if (errno != EWOULDBLOCK)
            return error_sys(err, "lock slot %u in '%s'", slot, SLOTS_DIR);
        (void)atomic_fetch_or(&find->own->others[word], bit_of(slot));
    }
    return 0;
}

static int take_lowest(struct find *find, enum effort effort, struct error *err)
{
    int taken = 0;
    for (unsigned i = 0; taken == 0 && i < SLOT_COUNT / 64; i++)
        taken = take_lowest_of(find, i, effort, err);
    return taken;
}

int slot_take(int dir_fd, struct slot_set *own, unsigned *slot, int *lock_fd, bool *is_dirty,
              struct error *err)
{
    struct find find = {.dir_fd = dir_fd, .own = own, .fd = -1};
    int taken = take_left(&find);
    for (enum effort effort = EFFORT_LITTLE; taken == 0 && effort < EFFORTS; effort++)
        taken = take_lowest(&find, effort, err);
    if (taken == 0)
        return error_set(err, ERROR_LIMIT, "all %u places for sandboxes on this machine are taken",
                         SLOT_COUNT);
    if (taken < 0)
        return -1;
    slot_add(own, find.slot);
    *slot = find.slot;
    *lock_fd = find.fd;
    *is_dirty = find.is_dirty;
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

void slot_release(int holder_fd, struct slot_set *own, unsigned slot, bool is_clean)
{
    struct flock lock = byte_of(slot, F_UNLCK);
    autofd file = is_clean ? open_slot(holder_fd, slot, O_RDONLY) : -1;

    slot_is_clean(file);
    (void)atomic_fetch_and(&own->held[slot / 64], ~bit_of(slot));
    (void)fcntl(holder_fd, F_OFD_SETLK, &lock);
    (void)atomic_fetch_or(&own->left[slot / 64], bit_of(slot));
}

struct timespec slots_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now); // which dates files
    return now;
}

static bool is_dirt_of(const struct stat *info, uint32_t owner, const struct timespec *before)
{
    const struct timespec *at = &info->st_ctim;
    return (info->st_mode & 07777) == DIRTY && info->st_gid == owner &&
           (at->tv_sec < before->tv_sec ||
            (at->tv_sec == before->tv_sec && at->tv_nsec < before->tv_nsec));
}

void slots_are_clean(int dir_fd, const struct slot_set *own, const struct timespec *before)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir dir = fd < 0 ? NULL : fdopendir(fd);
    struct stat info;
    unsigned slot;

    if (!dir)
        closep(&fd);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (!slot_parse(entry->d_name, &slot) || slot_is_own(own, slot) ||
            fstatat(fd, entry->d_name, &info, 0) < 0 || !is_dirt_of(&info, own->owner, before))
            continue;
        autofd held = slot_try(dir_fd, slot);
        if (held >= 0 && fstat(held, &info) == 0 && is_dirt_of(&info, own->owner, before))
            slot_is_clean(held);
    }
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
    autobuffer text = {.maximum = MAX_NOTES + 1};
    autofd fd = open_slot(dir_fd, slot, O_RDONLY);

    if (fd < 0)
        return errno == ENOENT ? 0 : error_sys(err, "read slot %u in '%s'", slot, SLOTS_DIR);
    if (fd_read_buffer(fd, &text, err) < 0)
        return -1;
    if (!text.data || !has_line(text.data, name))
        return 0;
    return flock(fd, LOCK_SH | LOCK_NB) < 0; // else it is a note of one that is gone
}

int slots_have_note(int dir_fd, const char *name, struct error *err)
{
    struct dirent *entry;
    struct stat info;
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
        if (slot_parse(entry->d_name, &slot) && fstatat(fd, entry->d_name, &info, 0) == 0 &&
            info.st_size > 0)
            found = slot_has_note(dir_fd, slot, name, err);
    }
    return found;
}

bool slot_parse(const char *name, unsigned *slot)
{
    char *end = NULL;
    if (*name < '0' || *name > '9' || strlen(name) > 5)
        return false;
    unsigned long number = strtoul(name, &end, 10);
    if (*end || number >= SLOT_COUNT)
        return false;
    *slot = (unsigned)number;
    return true;
}
