/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: a sandbox's files kept under a name, to start others from. Taking one costs the same however much is on the disk already.
 * It has what was on the disk at that moment, as after a power cut: commands may run meanwhile.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "core/account/once.h"
#include "core/snapshot/snapshot_info.h"

struct snapshots; // snapshots.h

struct snapshot_request {
    const char *name; // NULL: one is made up
    const char *tag;  // NULL: "latest"
    const char *description;
    bool is_public;
    const char *const
        *env; // NAME=VALUE: of sandboxes made from it; NULL: that of the snapshot before
    const struct once *once; // or NULL
    const char *
        step; // instead of a name and a tag: what a build from steps finds it by (snapshot_step.h); NULL: none
};

/* The files are counted when there are few; else `file_count` tells that they are not, and those who get or list it wait for that.
 * Names: letters, digits, '_' and '-'. Tags: up to 128 of those and '.', not starting with '.' or '-'. A tag in use is taken over. */
int snapshot_create(struct snapshots *snapshots, const struct actor *actor, const char *sandbox_id,
                    const struct snapshot_request *request, struct snapshot_info *out,
                    struct error *err);

/* ERROR_NOT_FOUND, noun "snapshot"; deleted ones too. Waits for the files to be counted. Actor NULL: of the public ones. */
int snapshot_get(struct snapshots *snapshots, const struct actor *actor, const char *id,
                 struct snapshot_info *out, struct error *err);

/* What is remembered of it, deleted or not, counted or not: for telling what a sandbox was made from. ERROR_NOT_FOUND, noun "snapshot". */
int snapshot_look(struct snapshots *snapshots, const struct actor *actor, const char *id,
                  struct snapshot_info *out, struct error *err);

/*
 * By id, name:tag, @organisation/name:tag, tag (the newest), name (the newest); in this order. Public ones of others by id or with their
 * organisation only.
 */
int snapshot_resolve(struct snapshots *snapshots, const struct actor *actor, const char *reference,
                     struct snapshot_info *out, struct error *err);
/* The same among the public ones, for whoever asks. */
int snapshot_resolve_public(struct snapshots *snapshots, const char *reference,
                            struct snapshot_info *out, struct error *err);

/* filter->owner is filled in from the actor (NULL: only public ones). Waits for the files of those it lists to be counted, which is done soon
 * after each was made; sorted by size or files, of all of the actor's. */
int snapshot_list(struct snapshots *snapshots, const struct actor *actor,
                  const struct snapshot_filter *filter, struct snapshot_infos *out,
                  struct error *err);

/* tag NULL: none from now on. */
int snapshot_set_tag(struct snapshots *snapshots, const struct actor *actor, const char *id,
                     const char *tag, struct snapshot_info *out, struct error *err);

/* Sandboxes made from it live on. */
int snapshot_delete(struct snapshots *snapshots, const struct actor *actor, const char *id,
                    struct error *err);

/* From the given one up to its root, deleted ones too; at most `limit`. */
int snapshot_lineage(struct snapshots *snapshots, const struct actor *actor, const char *id,
                     size_t limit, struct snapshot_infos *out, struct error *err);

/* What is in it, as its sandbox left it (not what lies below). Paths are sorted. */
struct snapshot_file {
    const char *path;
    uint64_t size;
    uint32_t mode;   // permissions
    char sha256[65]; // "": of a file with more holes than can be hashed in time
};
#define SNAPSHOT_FILES_MAX ((size_t)1000000)
struct snapshot_files {
    struct snapshot_file *files;
    size_t count;
    bool is_cut; // there are more, too many for an answer
};
/* ERROR_NOT_FOUND, noun "snapshot": it was deleted meanwhile. ERROR_FULL, noun "snapshot": too many ask for such lists. */
int snapshot_files(struct snapshots *snapshots, const struct snapshot_info *info,
                   struct snapshot_files *out, struct error *err);
void snapshot_files_clear(struct snapshot_files *files);

/* Builds: announced, uploaded as an archive, finished. */
struct snapshot_build {
    const char *runtime;
    const char *name, *tag, *description, *message;
    const char *content_hash; // NULL: always built
    const char *git;          // JSON, not read here
    const char *metadata;     // likewise, until it is finished
    bool is_forced;
    bool is_public;
};
/* *is_unchanged: one of this name with the same hash exists; *out is that one. Else *out is a new one, with an upload_secret. */
int snapshot_build_begin(struct snapshots *snapshots, const struct actor *actor,
                         const struct snapshot_build *build, bool *is_unchanged,
                         struct snapshot_info *out, struct error *err);
/* Whether snapshot_build_upload would take an archive, before one is received; somebody goes on with the build from then on: one that nobody does is gone after a quarter of an hour. ERROR_NOT_FOUND, noun "snapshot": there is none, or the
 * secret is not its own; ERROR_STATE, noun "snapshot": it is not being built any more, or was announced more than an hour ago. */
int snapshot_build_check(struct snapshots *snapshots, const struct actor *actor, const char *id,
                         const char *secret, struct error *err);
/* The same from who uploads files for the actor's own builds of this name. */
int snapshot_build_go_on(struct snapshots *snapshots, const struct actor *actor, const char *name,
                         struct error *err);
/* By the actor (secret NULL), or by whoever knows the secret (actor NULL). `archive_fd` is a tar.gz. */
int snapshot_build_upload(struct snapshots *snapshots, const struct actor *actor, const char *id,
                          const char *secret, int archive_fd, struct error *err);
struct snapshot_content {
    const char *directory;           // where the archive's files go
    const char *const *env;          // NAME=VALUE; or NULL
    const char *metadata;            // JSON
    const char *const *dependencies; // apt packages over its runtime, NULL-terminated; NULL: none
    const char *const *packages;     // likewise of npm
};
/* ERROR_STATE, noun "snapshot": nothing was uploaded, or it is finished. ERROR_INVALID, noun "archive": what was
 * uploaded is none, or damaged, or
 * refused (ERROR_DENIED where a link is in the way); another can be uploaded. */
int snapshot_build_finish(struct snapshots *snapshots, const struct actor *actor, const char *id,
                          const struct snapshot_content *content, struct snapshot_info *out,
                          struct error *err);
