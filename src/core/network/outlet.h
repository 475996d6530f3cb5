/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways out of boxes: the gateway in the kernel and burrow-egress, each told of a box's policy before a packet of it leaves. Both outlive the server. When
 * burrow-egress has died it is started again and told everything anew; until then what it would decide is refused. Private to the core.
 * Threads: any but loops; refusals are heard of on one of its own, "network".
 */
#pragma once
#include "base/auto.h"
#include "base/buffer.h"
#include "core/network/network_wish.h"

struct core_settings;
struct engine;
struct outlets;

/* Nothing is opened before a box needs it. */
struct outlets *outlets_new(const struct core_settings *settings, struct engine *engine);
void outlets_free(struct outlets *outlets); // kernel and program stay as they are
DEFINE_AUTOPTR(outlets)

/* What was refused, or would have been. Strings are borrowed. */
struct outlet_refusal {
    const char *sandbox_id;
    const char *host; // its name, or its address
    int64_t port;     // 0: none
    const char *protocol;
    const char *rule, *tier, *remedy; // "": none
    int64_t attempts;
    bool is_refused; // false: it was let through, since all is observed
};
/* Called on the thread; may block. Before the first box is admitted. */
void outlets_on_refusal(struct outlets *outlets,
                        void (*on_refusal)(void *data, const struct outlet_refusal *refusal),
                        void *data);
/* No more is heard when this returns. */
void outlets_stop(struct outlets *outlets);

/* ERROR_UNAVAILABLE with what is missing where this machine cannot give boxes a network. */
int outlets_ready(struct outlets *outlets, struct error *err);

/*
 * From here on the box of this slot may go where the wish and the operator's rules say, and nowhere else; connections that are no longer allowed are cut. Returns
 * when all of it is in force. On failure nothing is open that was not before, and perhaps nothing at all. Whoever has the box calls.
 */
int outlet_admit(struct outlets *outlets, unsigned slot, const char *sandbox_id,
                 const struct network_wish *wish, int64_t generation, struct error *err);
/* The box goes, or gets nothing any more. */
void outlet_remove(struct outlets *outlets, unsigned slot);
/* Whether the box of this slot was admitted. */
bool outlet_is_there(struct outlets *outlets, unsigned slot);

/* The certificate that hosts with a secret have on their way out, as PEM. */
int outlets_certificate(struct outlets *outlets, struct buffer *out, struct error *err);

/* Bytes that have left the box so far. */
int outlet_bytes(struct outlets *outlets, unsigned slot, int64_t *bytes, struct error *err);
