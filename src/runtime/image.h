/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime as a box needs it: layers, binds, environment, and a lock that keeps it there.
 * Opening one that is built costs a handful of system calls and reads no catalog.
 * Threads: any; an image does not change once it is open.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* A host directory shown read-only (nosuid, nodev, not idmapped) in the box: what is not for
 * everybody stays closed. */
struct runtime_bind {
    char *host;
    char *box;
};

struct runtime_image {
    char *name;
    char *tag;
    char **layers; // host directories, top first
    size_t n_layers;
    struct runtime_bind *binds; // over the root the layers make
    size_t n_binds;
    char **env;       // KEY=VALUE, NULL-terminated
    char **command;   // what runs where nothing was asked for, NULL-terminated; empty: nothing
    const char *user; // whose it is and where it starts; or NULL
    const char *directory;
    const char *build; // "node/.latest-12ab": which build it is
    int lock_fd;       // the runtime stays while this, or a copy of it, is open
    void *memory;      // owns the strings
};

/*
 * `reference` is name or name:tag. A runtime of kind host is made when it is missing or the machine
 * has changed. Others must be built: ERROR_NOT_BUILT says how. Unknown ones:
 * ERROR_NOT_FOUND with the known ones.
 */
int runtime_image_open(const char *data_dir, const char *reference, struct runtime_image **out,
                       struct error *err);
void runtime_image_free(struct runtime_image *image);

/* Whether opening `reference` again would give the same: it was not rebuilt and the machine is as it was. A few system calls. */
bool runtime_image_is_current(const char *data_dir, const char *reference,
                              const struct runtime_image *image);
DEFINE_AUTOPTR(runtime_image)

/* The kind of a layer of packages over a runtime, in its manifest. */
#define RUNTIME_PACKAGES "packages"

/* A build or layer by its place below <data>/runtimes, such as ".layers/dep-12ab". ERROR_NOT_FOUND. */
int runtime_image_open_at(const char *data_dir, const char *build, struct runtime_image **out,
                          struct error *err);
