/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime room: runtimes, each opened once and shared by all boxes that start from it. One that is not built yet is built, once
 * for all who ask meanwhile. Whether a caller may have a runtime is runtime.h's to say.
 * Threads: any but loops; runtimes_is_ready and what only reads a field do not block.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "runtime/image.h"

#include <stdbool.h>
#include <stdint.h>

struct catalog; // runtime/catalog.h
struct runtimes;
struct image; // an open runtime; shared, counted

/* `default_runtime` ("name:tag") is what a sandbox starts from that asks for nothing. Both are copied. */
int runtimes_open(const char *data_dir, const char *default_runtime, struct runtimes **out,
                  struct error *err);
/* Where packages come from: a Debian mirror and an npm registry; NULL: the machine's and npm's own. Copied. How long a registry of images may send nothing; 0: the
 * usual. Set before the first build. */
void runtimes_set_places(struct runtimes *runtimes, const char *mirror, const char *registry,
                         uint64_t image_timeout_ms);
/* Builds under way are given up; an image with references stays valid. Blocks until the builders have cleaned up. */
void runtimes_free(struct runtimes *runtimes);
DEFINE_AUTOPTR(runtimes)

/*
 * The runtime as it is now: opened again when it was rebuilt or, for host, when the machine has changed. Costs a few system calls
 * where it is open already; blocks as long as a build takes where it is not built. Fails as runtime_image_open and
 * runtime_build do; all who waited for one build get its error.
 */
int image_get(struct runtimes *runtimes, const char *reference, struct image **out,
              struct error *err);

/*
 * The same with packages over it, "apt git" or "npm typescript" each, packed (base/strings.h); NULL: none. What was installed for the same build and
 * the same list before is there at once. `watch` (or NULL) hears how far it is.
 */
struct image_watch {
    /* At each step, and a few times a second with `phase` NULL. Not 0: stop waiting, ERROR_CANCELLED; the building goes on. */
    int (*on_progress)(void *data, const char *phase, unsigned percent);
    void *data;
};
int image_get_with(struct runtimes *runtimes, const char *reference, const char *additions,
                   const struct image_watch *watch, struct image **out, struct error *err);

/*
 * Whether image_get_with would answer without building or installing. If not, that is begun, and `state` says how far it is. Fails once with the
 * error of an attempt that has ended badly; whoever asks then begins another.
 */
#define IMAGE_STATE 120
int image_begin(struct runtimes *runtimes, const char *reference, const char *additions,
                bool *is_ready, char state[IMAGE_STATE], struct error *err);

/* Who installs packages over a runtime: gives the image with them. Set before the first call. */
struct image_installer {
    int (*install)(void *data, const struct runtime_image *image, const char *additions,
                   int cancel_fd, const struct image_watch *watch, struct runtime_image **out,
                   struct error *err);
    void *data;
};
void runtimes_set_installer(struct runtimes *runtimes, const struct image_installer *installer);

/* Forgets what is open of this runtime, so that nobody here holds it any more; boxes do by themselves. */
void runtimes_forget(struct runtimes *runtimes, const char *reference);
/* The same for every one that was rebuilt or removed since it was opened. */
void runtimes_forget_old(struct runtimes *runtimes);
/* Whether whoever asks would get this one, as far as is known without looking. */
bool runtimes_has(struct runtimes *runtimes, const struct image *image);
/* The same for packages over any runtime that nobody has asked for since (milliseconds of the wall clock). */
void runtimes_forget_packages(struct runtimes *runtimes, int64_t unused_since_ms);

/* Gives up all that is under way; from here on everything fails. For whoever has waiting threads of its own to end. */
void runtimes_stop(struct runtimes *runtimes);
struct image *image_ref(struct image *image);
void image_free(struct image *image); // gives up one reference
DEFINE_AUTOPTR(image)

/* Lives as long as the image. */
const struct runtime_image *image_runtime(const struct image *image);

/* Starts opening, and building where needed; does not wait. A failure is logged, and tried again by whoever asks next. */
void runtimes_prefetch(struct runtimes *runtimes, const char *reference);
/* Whether image_get would answer without building. */
bool runtimes_is_ready(struct runtimes *runtimes, const char *reference);
/* Whether it stands in the data directory, or takes a moment alone to make. Looks there. */
bool runtimes_is_built(struct runtimes *runtimes, const char *reference);

/* Readable once all is given up. */
int runtimes_cancel_fd(const struct runtimes *runtimes);
/* As its files are now; a reference of the caller's. */
int runtimes_catalog(struct runtimes *runtimes, struct catalog **out, struct error *err);
const char *runtimes_data_dir(const struct runtimes *runtimes);
const char *runtimes_default(const struct runtimes *runtimes);
