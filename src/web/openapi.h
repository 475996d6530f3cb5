/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenAPI 3.1 document of all routes, made from their tables. The same tables give the same bytes.
 * Threads: plain values.
 */
#pragma once
#include "base/buffer.h"
#include "web/route_tree.h"

/* Of `only` this front; NULL: of all that have no document of their own. `fronts` ends with NULL. Those with hosts of their own are left out (their paths may be others' too); the rest are in the tree.
 * `public_url` may be NULL: wherever the document came from. */
int openapi_write(const struct front *const *fronts, const struct front *only,
                  const struct route_tree *tree, const char *public_url, struct buffer *out,
                  struct error *err);
