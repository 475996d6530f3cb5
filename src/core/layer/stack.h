/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers over a runtime, open so that what they show can be read without a box.
 * Threads: any but loops; blocks.
 */
#pragma once
#include "core/runtime/runtimes.h"
#include "base/strings.h"
#include "engine/layer.h"

struct stack {
    struct strings saved;
    struct image *image;
    struct layer_stack full, base; // all of them, and the runtime alone
};

/* `additions` is what image_get_with takes. `layers` is packed, top first; NULL: none. Blocks for a build where the runtime is not built. */
int stack_open(struct runtimes *runtimes, const char *runtime, const char *additions,
               const char *layers, struct stack *out, struct error *err);
void stack_clear(struct stack *stack);
#define autostack __attribute__((cleanup(stack_clear))) struct stack
