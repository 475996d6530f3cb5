/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a living sandbox as its box and its files have them. Private to the core.
 * Threads: any but loops; the caller holds the box.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"

/* ERROR_STATE, noun "disk", when more is in use than would be left. */
int sandbox_limits_check_use(struct sandbox *sandbox, const struct limits *before,
                             const struct limits *wanted, struct error *err);
/* Sets them in its box, or where it has none in the files it will get one for. */
int sandbox_limits_apply(struct sandbox *sandbox, const struct limits *limits, struct error *err);
