/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes, each opened once and shared by all boxes that start from it. One that is not built yet is built, once for all who
 * ask meanwhile. Any thread. Private to the core; whether a caller may have a runtime is runtime.h's to say.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "runtime/image.h"

#include <stdbool.h>

struct images;
struct image; // an open runtime; shared, counted

int images_open(const char *data_dir, struct images **out, struct error *err);
/* Builds under way are given up; images that are held stay valid. Blocks until the builders have cleaned up. */
void images_free(struct images *images);
DEFINE_AUTOPTR(images)

/*
 * The runtime as it is now: opened again when it was rebuilt or, for host, when the machine has changed. Costs a few system calls
 * where it is open already; blocks as long as a build takes where it is not built. Fails as runtime_image_open and
 * runtime_build do; all who waited for one build get its error.
 */
int image_get(struct images *images, const char *reference, struct image **out, struct error *err);
struct image *image_ref(struct image *image);
void image_free(struct image *image); // gives up one reference
DEFINE_AUTOPTR(image)

/* Lives as long as the image is held. */
const struct runtime_image *image_runtime(const struct image *image);

/* Starts opening, and building where needed; does not wait. A failure is logged, and tried again by whoever asks next. */
void images_prefetch(struct images *images, const char *reference);
/* Whether image_get would answer without building; does not block. */
bool images_is_ready(struct images *images, const char *reference);
