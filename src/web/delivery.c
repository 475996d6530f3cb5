/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the answer to a create was delivered; see delivery.h. */
#include "web/delivery.h"

#include "base/mem.h"
#include "core/sandbox/sandbox.h"

#include <stdlib.h>

struct delivery {
    struct core *core;
    char *id;
};

static void on_answer_end(void *data, bool is_delivered)
{
    struct delivery *delivery = data;

    if (!is_delivered)
        sandbox_abandon(delivery->core->sandboxes, delivery->id);
    free(delivery->id);
    free(delivery);
}

static const struct response_events delivery_events = {.on_end = on_answer_end};

void delivery_watch(struct call *call, const char *sandbox_id)
{
    struct delivery *delivery = xnew(struct delivery);

    *delivery = (struct delivery){.core = call->core, .id = xstrdup(sandbox_id)};
    response_watch(call->response, &delivery_events, delivery);
}
