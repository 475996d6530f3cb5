/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which apt packages there are for a runtime: asked of its mirror in a box, and kept for some hours in <data>/runtimes/.names.
 * Threads: any but loops; calls block, for a minute. No logging.
 */
#pragma once
#include "install/install.h"

/*
 * is_there[i] says whether names[i] ("git", "git=1.2", "git:amd64") can be found; a version is not looked at. ERROR_UNAVAILABLE: that cannot be told now, because
 * the mirror does not answer, or another call is just asking it.
 */
int install_names_find(struct engine *engine, const struct runtime_image *image,
                       const struct install_options *options, const char *const *names,
                       bool *is_there, struct error *err);

/* Whether it could be the name of an apt package at all. */
bool install_is_name(const char *name);

/* Removes kept lists that are too old to answer from: those of builds that are gone would stay for ever. */
void install_names_sweep(const char *data_dir);
