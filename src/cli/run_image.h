/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime of `burrow run`: opened, made first where it is not there yet, with packages over it where they were asked for.
 * Threads: one per object.
 */
#pragma once
#include "cli/run_report.h"
#include "engine/box.h"
#include "runtime/image.h"

/* What the runtime needs, as a server sees to it: ERROR_INVALID where less is asked for; what nothing was said about is at least that. */
int run_image_check(struct run_options *options, struct error *err);

/* Tells on standard error what takes long. ERROR_GONE and *signal where one ended it. */
int run_image_open(const struct run_options *options, struct runtime_image **out, int *signal,
                   struct error *err);

/* The image with the packages that were asked for; *image is replaced. Nothing where none were. */
int run_image_install(const struct run_options *options, struct engine *engine,
                      struct runtime_image **image, struct error *err);
