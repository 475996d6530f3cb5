/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slot is a number a box owns while it lives: its range of host user ids and the name of everything the kernel
 * holds for it. Owned means: the slot's file is locked. The lock is on an open file that PID 1 of the box
 * inherits, so a slot is free exactly when owner and box are both gone, however they went.
 * An owner of many boxes keeps no file of each: it holds all its slots by locks on bytes of the directory, with one descriptor.
 * Slots are the machine's, not a data directory's.
 * Threads: any.
 */
#pragma once
#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define SLOT_COUNT 16384u
#define SLOT_IDS 65536u
#define SLOT_FIRST_ID                                                                              \
    0x70000000u // above what systemd and subuid files give out; the last is 0xafffffff

/* Opens (makes) the machine's directory of slots. */
int slots_open(int *dir_fd, struct error *err);

/*
 * What this process knows of slots, to open few files of others: those it holds need no try, those it let go are likely
 * free, those that were another's are likely still. Only the locks count. All zero but the owner: nothing is known. Threads share it.
 */
struct slot_set {
    uint32_t owner; // not 0: tells data directories apart
    _Atomic uint64_t held[SLOT_COUNT / 64];
    _Atomic uint64_t left[SLOT_COUNT / 64];
    _Atomic uint64_t others[SLOT_COUNT / 64];
};

/*
 * Takes a free slot, one that was left before or the lowest not known as another's, and adds it to `own`; *lock_fd holds it. ERROR_LIMIT when all are taken. *is_dirty: who
 * had it before did not say slot_is_clean, so something of it, and perhaps of others, may be left. Dirty slots of other owners are
 * left for them to sweep, as long as there are enough.
 */
int slot_take(int dir_fd, struct slot_set *own, unsigned *slot, int *lock_fd, bool *is_dirty,
              struct error *err);

/* Adds a slot whose lock was handed over. */
void slot_add(struct slot_set *own, unsigned slot);
bool slot_is_own(const struct slot_set *own, unsigned slot);

/* Lets go of a slot, in `own` or not; nothing when *lock_fd is -1. PID 1 may still hold it. */
void slot_drop(struct slot_set *own, unsigned slot, int *lock_fd);

/*
 * For owners of many: the slot is held by a lock on the directory from here on, and *lock_fd is closed. `holder_fd` is a descriptor of the
 * directory that only the owner uses (slots_open). On failure, or with a holder_fd of -1, everything is as it was.
 */
void slot_keep(int holder_fd, unsigned slot, int *lock_fd);
/* Lets go of a slot that is kept so, clean or not. */
void slot_release(int holder_fd, struct slot_set *own, unsigned slot, bool is_clean);

/* Says that nothing of a box is left in the slot. Its lock is still held. */
void slot_is_clean(int lock_fd);

/*
 * Says so of all slots of the owner of `own` that nobody holds and that were taken before this moment, since when everything of dead boxes was
 * swept. What cannot be said stays dirty.
 */
void slots_are_clean(int dir_fd, const struct slot_set *own, const struct timespec *before);
struct timespec slots_now(void);

/* Whether the slot was last taken by another owner: then nothing of this one lives there. */
bool slot_is_others(int dir_fd, unsigned slot, uint32_t owner);

/* Takes this slot if nobody holds it: the lock's fd, or -1. */
int slot_try(int dir_fd, unsigned slot);

/*
 * Notes names, each behind the prefix and one a line, in a slot that is held: what its box uses. They are gone when the slot
 * is clean or taken again. Who holds a copy of the lock, as PID 1 does, cannot change them.
 */
int slot_note(int dir_fd, unsigned slot, const char *prefix, const char *const *names, size_t count,
              struct error *err);

/* Whether a slot that somebody holds has this note. Looks at all slots. -1 with *err when it cannot be told. */
int slots_have_note(int dir_fd, const char *name, struct error *err);

static inline uint32_t slot_first_id(unsigned slot)
{
    return SLOT_FIRST_ID + slot * SLOT_IDS;
}

/* "17" → 17; false for any other name. */
bool slot_parse(const char *name, unsigned *slot);
