/* SPDX-License-Identifier: Apache-2.0 */
/* Events as the core makes them: a type, a reason, a few facts. Private to the core. */
#pragma once
#include "core/event/event.h"
#include "core/sandbox/sandbox_object.h"
#include "base/strings.h"

#define EVENT_FACTS 6
#define EVENT_FACT 160

struct event {
    const char *type;   // of event.h
    const char *reason; // a literal, or NULL
    int64_t now;
    char facts[EVENT_FACTS][EVENT_FACT]; // NAME=VALUE
    unsigned n_facts;
};

void event_fact(struct event *event, const char *name, const char *value);
void event_number(struct event *event, const char *name, int64_t value);

/* Writes it, in the caller's transaction. */
int event_put(struct sandbox *sandbox, const struct event *event, struct error *err);
/* The same for a sandbox that is not in memory. */
int event_put_record(struct core *core, const struct sandbox_record *owner,
                     const struct event *event, struct error *err);
