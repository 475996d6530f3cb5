/* SPDX-License-Identifier: Apache-2.0 */
/* Events as the core makes them: a type, a reason, a few facts. Private to the core. */
#pragma once
#include "core/event/event.h"
#include "core/sandbox/live.h"
#include "base/strings.h"

#define NOTE_FACTS 6
#define NOTE_FACT 160

struct note {
    const char *type;   // of event.h
    const char *reason; // a literal, or NULL
    int64_t now;
    char facts[NOTE_FACTS][NOTE_FACT]; // NAME=VALUE
    unsigned n_facts;
};

void note_fact(struct note *note, const char *name, const char *value);
void note_number(struct note *note, const char *name, int64_t value);

/* Writes it, in the caller's transaction. */
int note_put(struct live *live, const struct note *note, struct error *err);
/* The same for a sandbox that is not in memory. */
int note_put_record(struct core *core, const struct sandbox_record *sandbox,
                    const struct note *note, struct error *err);
