/* SPDX-License-Identifier: Apache-2.0 */
/* Layers over a runtime; see stack.h. */
#include "core/layer/stack.h"

void stack_clear(struct stack *stack)
{
    strings_clear(&stack->saved);
    image_free(stack->image);
    *stack = (struct stack){0};
}

int stack_open(struct runtimes *runtimes, const char *runtime, const char *additions,
               const char *layers, struct stack *out, struct error *err)
{
    if (image_get_with(runtimes, runtime, additions, NULL, &out->image, err) < 0)
        return -1;
    strings_unpack(layers, &out->saved);
    const struct runtime_image *image = image_runtime(out->image);
    out->base =
        (struct layer_stack){.base = (const char *const *)image->layers, .n_base = image->n_layers};
    out->full = out->base;
    out->full.saved = (const char *const *)out->saved.items;
    out->full.n_saved = out->saved.count;
    return 0;
}
