/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes below one local directory what comes from a sandbox, so from a stranger: no name leads out of it, no link is followed on the way or made
 * where it leads outside, no set-id bit is kept, and a file that was there is replaced once all of the new one has come. Small files are there when
 * entry_maker_settle has succeeded, and may come later than what stands behind them; of two small ones of one name either stays (file_maker.h).
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "burrow.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENTRY_NAME 4096 // room of a name

struct entry_maker;

/*
 * Whether a link at `name` with this target stays below the directory, whatever links there are besides: others are not made. So '..' stands at the
 * beginning of the target or nowhere.
 */
bool entry_link_stays(const char *name, const char *target);

/* `directory` is borrowed, an open one. */
struct entry_maker *entry_maker_new(int directory);
/* A file that was not ended is taken away; small ones that were are made. */
void entry_maker_free(struct entry_maker *maker);
DEFINE_AUTOPTR(entry_maker)

/* All names from here on are below this one, which may be any; false where it leads outside or is too long. "" is the directory itself. */
bool entry_maker_enter(struct entry_maker *maker, const char *name);

/* A directory's owner can write to it in any case. Directories above are made where missing. What is refused is counted, and no failure. */
int entry_make_directory(struct entry_maker *maker, const char *name, unsigned mode,
                         struct burrow_error *err);
int entry_make_link(struct entry_maker *maker, const char *name, const char *target,
                    struct burrow_error *err);
/* A second name of a file that came before; `first` is as other names. */
int entry_make_hard_link(struct entry_maker *maker, const char *name, const char *first,
                         struct burrow_error *err);
void entry_refuse(struct entry_maker *maker);

/* Its content comes next, exactly `size` bytes, then entry_end_file. *is_taken false: it was refused, or is the directory itself, and none of that follows. */
int entry_begin_file(struct entry_maker *maker, const char *name, unsigned mode, uint64_t size,
                     bool *is_taken, struct burrow_error *err);
int entry_add_bytes(struct entry_maker *maker, const void *data, size_t length,
                    struct burrow_error *err);
int entry_end_file(struct entry_maker *maker, struct burrow_error *err);
/* For content that somebody else writes: begin it with this size, and tell how much it was before it is ended, or drop it. */
#define ENTRY_BY_DESCRIPTOR UINT64_MAX
int entry_file_descriptor(const struct entry_maker *maker);
void entry_wrote(struct entry_maker *maker, uint64_t bytes);
void entry_drop_file(struct entry_maker *maker);

/* All that was made is there. */
int entry_maker_settle(struct entry_maker *maker, struct burrow_error *err);

uint64_t entry_maker_files(const struct entry_maker *maker); // links are files
uint64_t
entry_maker_entries(const struct entry_maker *maker); // with the directories that were made
uint64_t entry_maker_bytes(const struct entry_maker *maker);
uint64_t
entry_maker_refused(const struct entry_maker *maker); // names and links that lead outside, devices
