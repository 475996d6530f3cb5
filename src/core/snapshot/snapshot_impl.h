/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the snapshot room share, and the root of the core uses.
 * Threads: any but loops; a call that does not block says so: any.
 */
#pragma once
#include "core/layer/layers.h"
#include "core/snapshot/snapshots.h"
#include "core/snapshot/snapshot.h"
#include "core/snapshot/snapshot_info_impl.h"

int snapshot_check_words(const char *name, const char *tag,
                         struct error *err); // either may be NULL

/* ERROR_FULL when the organisation, or all, have as many as there may be. */
int snapshot_check_count(struct snapshots *snapshots, const struct actor *actor, struct error *err);

int snapshot_find_ready(struct snapshots *snapshots, const struct actor *actor, const char *id,
                        struct snapshot_record *out, struct error *err);

/* Rows of a new one over a new layer, in the caller's transaction. */
int snapshot_put(struct snapshots *snapshots, const struct snapshot_record *record,
                 const char *layer, uint64_t bytes, struct error *err);

/* That there is a new one, of no sandbox: in the same transaction. */
int snapshot_tell_made(struct snapshots *snapshots, const struct snapshot_record *record,
                       struct error *err);

/* Where the uploads of builds are. Each file is named by its snapshot's id; while it arrives, a dot and more follow. The caller frees it. */
char *snapshot_build_directory(struct snapshots *snapshots);
/* Removes what was uploaded. */
void snapshot_build_forget(struct snapshots *snapshots, const char *id);
/* Builds that were announced too long ago are over: whoever finishes one is told so. Those that nobody went on with are gone. */
int snapshot_build_expire(struct snapshots *snapshots, struct error *err);
/* Removes uploads of builds that cannot be finished any more (is_trial: only counts them). Adds up what they take. */
int snapshot_build_sweep(struct snapshots *snapshots, bool is_trial, uint64_t *count,
                         uint64_t *bytes, struct error *err);

/* Pins its layers, and sets record->layers to them: merging changes it. ERROR_NOT_FOUND, noun "snapshot": it is gone. */
int snapshot_pin(struct snapshots *snapshots, struct snapshot_record *record,
                 struct layers_pin *pin, struct error *err);

/* What is in it beside its runtime, as layer_diff tells; pinned as above. The record's layers are not looked at. */
int snapshot_walk(struct snapshots *snapshots, const struct snapshot_record *record,
                  const struct layer_diff_options *options, layer_on_change on_change, void *data,
                  struct error *err);

/* Counts the files of one that has no row yet, if that is quick: else file_count stays SNAPSHOT_NOT_COUNTED. Nobody removes its layers. */
void snapshot_count_quickly(struct snapshots *snapshots, struct snapshot_record *record);
/* Counts its files, and records the count; record->file_count is set. */
int snapshot_count(struct snapshots *snapshots, struct snapshot_record *record, struct error *err);
/* At the start: has done in the background what an earlier server left undone. Does not block. */
void snapshot_resume_work(struct snapshots *snapshots);
/* Counts all of an owner's that are not counted yet, and skips those that fail. */
void snapshot_count_all(struct snapshots *snapshots, const struct owner *owner);
/* For a new one: counts its files and merges its layers in the background, where needed. Does not block. */
void snapshot_finish_later(struct snapshots *snapshots, const struct snapshot_record *record);

/* At the start: removes uploads and lists of files that are half written, or that no snapshot needs any more. */
int snapshot_sweep(struct snapshots *snapshots, struct error *err);
