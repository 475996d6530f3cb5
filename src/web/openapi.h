/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI 3.1 document of all routes, made from their tables. The same tables give the same bytes. */
#pragma once
#include "base/buffer.h"
#include "web/route_tree.h"

/* `fronts` ends with NULL; all of them are in the tree. */
int openapi_write(const struct front *const *fronts, const struct route_tree *tree,
                  struct buffer *out, struct error *err);
