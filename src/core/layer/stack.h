/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen of layers over a runtime, to be read without a box. Private to the core. */
#pragma once
#include "core/runtime/runtimes.h"
#include "core/layer/layers.h"

struct stack {
    struct strings saved;
    struct image *image;
    struct layer_stack full, base; // all of it, and the runtime alone
};

/* `layers` is packed, top first; NULL: none. Blocks for a build where the runtime is not built. */
int stack_open(struct core *core, const char *runtime, const char *layers, struct stack *out,
               struct error *err);
void stack_clear(struct stack *stack);
#define autostack __attribute__((cleanup(stack_clear))) struct stack
