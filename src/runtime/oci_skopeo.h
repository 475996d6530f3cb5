/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skopeo, which speaks with registries: names, tokens, retries, all their dialects (docs/decisions/0015). It is asked for one thing, a copy of
 * an image as a layout in a directory; what it brings is not believed before its digests are compared.
 * Threads: any but loops; it forks (tool.h).
 */
#pragma once
#include "runtime/make.h"

/* Blobs that are in `blobs` already are not fetched again. */
int skopeo_copy(const struct making *making, const char *source, const char *layout,
                const char *blobs, struct error *err);
