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

struct runtimes;
struct image; // an open runtime; shared, counted

/* `default_runtime` ("name:tag") is what a sandbox starts from that asks for nothing. Both are copied. */
int runtimes_open(const char *data_dir, const char *default_runtime, struct runtimes **out,
                  struct error *err);
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
struct image *image_ref(struct image *image);
void image_free(struct image *image); // gives up one reference
DEFINE_AUTOPTR(image)

/* Lives as long as the image. */
const struct runtime_image *image_runtime(const struct image *image);

/* Starts opening, and building where needed; does not wait. A failure is logged, and tried again by whoever asks next. */
void runtimes_prefetch(struct runtimes *runtimes, const char *reference);
/* Whether image_get would answer without building. */
bool runtimes_is_ready(struct runtimes *runtimes, const char *reference);

const char *runtimes_data_dir(const struct runtimes *runtimes);
const char *runtimes_default(const struct runtimes *runtimes);
