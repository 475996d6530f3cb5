/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes, checks and removes runtimes under <data>/runtimes. A build happens in .building-NAME-TAG,
 * is measured, synced and moved to NAME/.TAG-ID; then the tags (links) point at it: it is there
 * whole or not at all. Package files are kept in <data>/cache/apt, so an interrupted build goes on
 * where it was. Two builds of one runtime wait for each other. What a runtime stands on is made first. Blocks; forks (see tool.h); silent but
 * for the callbacks.
 * Threads: any but loops.
 */
#pragma once
#include "runtime/catalog.h"
#include "runtime/progress.h"

#include <stdbool.h>

#define RUNTIME_IMAGE_TIMEOUT_MS 120000 // some fetch all of a layer themselves before they begin

struct runtime_build_options {
    const char *data_dir;
    const char *mirror;        // for RUNTIME_DEBIAN: instead of the machine's sources; or NULL
    const char *registry;      // for RUNTIME_LAYER: of npm, instead of npm's own; or NULL
    uint64_t image_timeout_ms; // for RUNTIME_OCI: that its registry may send nothing; 0: as above
    bool is_forced; // also when it is ready and its definition unchanged; what it stands on is not
    int cancel_fd;  // readable: stop, clean up, fail with ERROR_GONE; -1: never
    void (*on_progress)(void *data, const struct runtime_progress *progress); // or NULL
    void (*on_wait)(void *data); // once, when another process builds the same; or NULL
    void (*on_note)(void *data, const char *note); // something was left out, in a sentence; or NULL
    void *data;
};

/* *was_ready (may be NULL): nothing had to be done. */
int runtime_build(const struct runtime_definition *definition,
                  const struct runtime_build_options *options, bool *was_ready, struct error *err);

/* Where the output of the last build's programs is kept. The caller frees it. */
char *runtime_log_path(const char *data_dir, const struct runtime_definition *definition);

enum runtime_state {
    RUNTIME_ABSENT,   // not built
    RUNTIME_BUILDING, // likewise, but somebody is at it
    RUNTIME_READY,    //
    RUNTIME_OUTDATED, // usable, but the definition has changed since
    RUNTIME_DAMAGED,  // its manifest cannot be read
};

struct runtime_status {
    enum runtime_state state;
    bool is_used; // by a box right now
    uint64_t files, bytes;
    char made[32];                         // RFC 3339, or ""
    char description[RUNTIME_DESCRIPTION]; // of an image, where its definition has none
};
/* One line for people: the definition's, or that of the image. Lives as long as both. */
const char *runtime_description(const struct runtime_definition *definition,
                                const struct runtime_status *status);
const char *runtime_state_name(enum runtime_state state); // "not built", "ready" …
void runtime_status(const char *data_dir, const struct runtime_definition *definition,
                    struct runtime_status *out);

/* Walks the whole runtime and compares it with what its build counted and hashed. */
int runtime_verify(const char *data_dir, const struct runtime_reference *reference,
                   struct runtime_status *out, struct error *err);

/*
 * Removes builds that no tag points at, and nothing uses or stands on; layers of images that no build has; what came of images that were not added in the end.
 * What is being built or fetched stays. *out: how much that is; a trial only says it.
 */
struct runtime_unused {
    uint64_t count, bytes;
};
int runtime_sweep(const char *data_dir, bool is_trial, struct runtime_unused *out,
                  struct error *err);

/* ERROR_CONFLICT while a box uses it or it is being built. Its other tags go with it. */
int runtime_remove(const char *data_dir, const struct runtime_reference *reference,
                   struct error *err);
