/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between build.c and the ways to make a runtime: one function a kind fills an empty root.
 * Threads: one per object.
 */
#pragma once
#include "base/strings.h"
#include "runtime/build.h"
#include "runtime/manifest.h"

struct making {
    const struct runtime_definition *definition;
    const struct runtime_build_options *options;
    const char *root; // the directory to fill, and its fd
    int root_fd;
    int log_fd;
    struct manifest *manifest; // makers add binds and watches; strings there must be literals
    struct below *below;       // packages.c: what it stands on, kept there until all is done
    struct strings env;        // owns what a maker put into the manifest
    struct oci_store *layers;  // of an image, held until the build is in its place
};
void making_clear(struct making *making);

int make_debian(struct making *making, struct error *err);
int make_host(struct making *making, struct error *err);
int make_layer(struct making *making, struct error *err);
int make_oci(struct making *making, struct error *err);

/* Tells the caller's callback, if there is one. */
void making_tell(const struct making *making, const char *phase, unsigned permille);

void making_tell_detail(const struct making *making, const char *phase, const char *detail,
                        unsigned permille);

/* A word about what the runtime is not: told to who builds it, and kept in its log. */
void making_note(const struct making *making, const char *note);

void making_bind(struct making *making, const char *host, const char *box);
void making_watch(struct making *making, const char *path);

/* Waits for an exclusive lock on `path`, telling once; ERROR_GONE when cancelled. */
int making_lock(const struct runtime_build_options *options, const char *path, int *out_fd,
                struct error *err);
