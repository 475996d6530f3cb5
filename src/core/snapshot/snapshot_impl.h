/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about snapshots share. Private to the core. */
#pragma once
#include "core/core_impl.h"
#include "core/layer/layers.h"
#include "core/snapshot/snapshot.h"
#include "core/snapshot/snapshot_info_impl.h"

int snapshot_check_words(const char *name, const char *tag,
                         struct error *err); // either may be NULL

/* One the actor sees, in any state; public ones of others when ready. */
int snapshot_find(struct core *core, const struct actor *actor, const char *id,
                  struct snapshot_record *out, struct error *err);
int snapshot_find_ready(struct core *core, const struct actor *actor, const char *id,
                        struct snapshot_record *out, struct error *err);
/* One of the actor's own that is not deleted. */
int snapshot_find_own(struct core *core, const struct actor *actor, const char *id,
                      struct snapshot_record *out, struct error *err);

/* Rows of a new one over a new layer, in the caller's transaction. */
int snapshot_put(struct core *core, const struct snapshot_record *record, const char *layer,
                 uint64_t bytes, struct error *err);

/* Where uploads of builds wait; each is called as its snapshot, with a dot and something behind that while it comes. The caller frees it. */
char *snapshot_build_directory(struct core *core);
/* What was uploaded is not needed any more. */
void snapshot_build_forget(struct core *core, const char *id);
/* A build that is not finished by then is over. */
#define SNAPSHOT_BUILD_MS ((int64_t)3600 * 1000)

/* Holds what its files lie in, and sets record->layers to that: merging changes it. ERROR_NOT_FOUND, noun "snapshot": it is gone. */
int snapshot_hold(struct core *core, struct snapshot_record *record, struct layers_hold *hold,
                  struct error *err);

/* What is in it beside its runtime, as layer_diff tells; held as above. The record's layers are not looked at. */
int snapshot_walk(struct core *core, const struct snapshot_record *record,
                  const struct layer_diff_options *options, layer_on_change on_change, void *data,
                  struct error *err);

/* Counts the files of one that has no row yet, if that is quick: else file_count stays SNAPSHOT_NOT_COUNTED. Nobody removes its layers. */
void snapshot_count_quickly(struct core *core, struct snapshot_record *record);
/* Counts its files, and remembers that; record->file_count is set. */
int snapshot_count(struct core *core, struct snapshot_record *record, struct error *err);
void snapshot_count_later(void *core, const char *id); // a background_fn
/* At the start: has the background do what an earlier server left undone. Does not block. */
void snapshot_resume_work(struct core *core);
/* Counts all of an owner's that nobody has counted; as far as it goes. */
void snapshot_count_all(struct core *core, const struct owner *owner);
/* One has come into being: what can wait is done for it in the background. Does not block. */
void snapshot_look_after(struct core *core, const struct snapshot_record *record);

/* At the start: uploads and lists whose snapshot has no use for them any more, or that were not finished, go. */
int snapshot_sweep(struct core *core, struct error *err);
