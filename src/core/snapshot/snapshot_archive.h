/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots on their way from one machine to another, each as one file: a tar, compressed with zstd, holding
 *
 *   burrow-snapshot   the first entry, text: a line "burrow-snapshot 1", then one "name: value" a line, values packed as base/strings.h packs an
 *                     item: name, tag, description, message, metadata, runtime, runtime-hash, created, files, bytes, and as often as needed
 *                     env and removed (a path of the runtime that goes before files/ comes)
 *   SHA256SUMS        a line for burrow-snapshot and for each plain file, as sha256sum(1) writes and checks them
 *   files/...         all that lies above the runtime, the layers merged: files, directories, links, hard links; owners, modes and times
 *                     as in the sandbox. Extended attributes do not travel, and of directories that the runtime has too no times
 *
 * So no kernel's way of hiding a file, and nothing that only root can make, is in the archive. The runtime itself does not travel: it
 * must be there on the other machine.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "core/snapshot/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

struct snapshots; // snapshots.h
struct temporary; // core/sandbox/temporary.h

/* How large such a file may be here and now: half of what is free where the server keeps its temporary files. */
uint64_t snapshot_archive_room(struct snapshots *snapshots);

/*
 * The snapshot as such a file: unnamed, of the server's (the caller's to free), the same bytes for the same snapshot. ERROR_NOT_FOUND,
 * noun "snapshot"; ERROR_LIMIT, noun "snapshot", when it or all files in it together would be larger than `maximum`, or the disk is full.
 */
int snapshot_export(struct snapshots *snapshots, const struct actor *actor, const char *id,
                    uint64_t maximum, struct temporary **out, struct error *err);

/*
 * The same as an image, with its runtime: a layout in a tar (what podman and skopeo call oci-archive), each layer of the runtime one of
 * its, and over them one with all that the snapshot changed. ERROR_INVALID, noun "runtime", for one that shows parts of this machine.
 */
int snapshot_export_image(struct snapshots *snapshots, const struct actor *actor, const char *id,
                          uint64_t maximum, struct temporary **out, struct error *err);

struct snapshot_import_request {
    const char *name; // and below: instead of what the archive says; NULL: as it says
    const char *tag;
    bool is_public;
    bool is_forced; // also onto another build of the runtime than the one it was made on
};

/*
 * A new snapshot of the actor's from such a file (seekable, read from its beginning; gzip or no compression at all will do). Nothing is
 * left of one that fails. It takes over a name:tag in use, and has no parent. Noun "archive": ERROR_DAMAGED (no such archive, cut off,
 * or a sum that does not agree), ERROR_REFUSED (an entry that would lead out, a device, what the box cannot have, a format of later times). ERROR_NOT_FOUND, noun "runtime": not
 * on this machine; ERROR_DIFFERS, noun "runtime": another build of it. ERROR_LIMIT, noun "snapshot": more than the
 * largest disk that a sandbox may have and 16 times the archive, or no room. ERROR_QUOTA: more than the key may keep.
 */
int snapshot_import(struct snapshots *snapshots, const struct actor *actor,
                    const struct snapshot_import_request *request, int archive_fd,
                    struct snapshot_info *out, struct error *err);
