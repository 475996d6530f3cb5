/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of the Aionis front: burrow's own names, for the file and the environment, and the vendor's, for the environment of those who
 * come from there.
 * Threads: one thread; the main one.
 */
#pragma once
#include "base/options.h"

struct config;

/* Variables BURROW_AIONIS_…; there are no options of these names. */
extern const struct option_set aionis_options;

/* What the environment says in the vendor's words. */
int aionis_config_read_vendor(struct config *config, struct error *err);
