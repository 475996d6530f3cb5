/* SPDX-License-Identifier: Apache-2.0 */
/* The ways out of boxes; see outlet.h. */
#include "core/network/outlet.h"

#include "base/mem.h"

#include <stdlib.h>

struct outlets {
    const struct core_settings *settings;
    struct engine *engine;
    void (*on_refusal)(void *data, const struct outlet_refusal *refusal);
    void *data;
};

struct outlets *outlets_new(const struct core_settings *settings, struct engine *engine)
{
    struct outlets *outlets = xnew(struct outlets);

    outlets->settings = settings;
    outlets->engine = engine;
    return outlets;
}

void outlets_free(struct outlets *outlets)
{
    free(outlets);
}

void outlets_on_refusal(struct outlets *outlets,
                        void (*on_refusal)(void *data, const struct outlet_refusal *refusal),
                        void *data)
{
    outlets->on_refusal = on_refusal;
    outlets->data = data;
}

void outlets_stop(struct outlets *outlets)
{
    outlets->on_refusal = NULL;
}

int outlets_ready(struct outlets *outlets, struct error *err)
{
    (void)outlets;
    return error_refuse(err, ERROR_INVALID, "network.enabled",
                        "network.enabled: outbound network is not available yet");
}

int outlet_admit(struct outlets *outlets, unsigned slot, const char *sandbox_id,
                 const struct network_wish *wish, int64_t generation, struct error *err)
{
    (void)slot;
    (void)sandbox_id;
    (void)wish;
    (void)generation;
    return outlets_ready(outlets, err);
}

void outlet_remove(struct outlets *outlets, unsigned slot)
{
    (void)outlets;
    (void)slot;
}

bool outlet_is_there(struct outlets *outlets, unsigned slot)
{
    (void)outlets;
    (void)slot;
    return false;
}

int outlet_bytes(struct outlets *outlets, unsigned slot, int64_t *bytes, struct error *err)
{
    (void)slot;
    (void)bytes;
    return outlets_ready(outlets, err);
}
