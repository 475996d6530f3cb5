/* SPDX-License-Identifier: Apache-2.0 */
/* What the box of `burrow run` may connect to; see run_network.h. */
#include "cli/run_network.h"

#include "engine/gateway.h"

int run_connect(const struct run_options *options, struct engine *engine, struct box *box,
                struct error *err)
{
    const struct policy_kernel open = {.class = POLICY_CLASS_OPEN, .is_default_allow = true};
    struct gateway *gateway = NULL;

    if (engine_gateway(engine, &gateway, err) < 0)
        return -1;
    return gateway_admit(gateway, box_slot(box), &open, 1, err);
}
