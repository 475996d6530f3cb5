/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Agentuity protocol over the core: what the stock clients of their sandboxes, streams and files speak. One organisation
 * and one region, as a machine of one's own has them.
 * Threads: one thread; at the start and the end of the server.
 */
#pragma once
#include "web/front.h"

#define AGENTUITY_HOME "/home/agentuity" // where commands start

/* Texts are borrowed for as long as the front is used; agentuity_settings_default is where to start from. */
struct agentuity_settings {
    const char *region; // the one region there is; never empty
    const char *region_description;
    const char *organisation_name; // said instead of the stored one; NULL: as stored
    const char *first_name;        // of the person behind every key
    const char *last_name;
};
extern const struct agentuity_settings agentuity_settings_default;

/* `settings` stays the caller's and must live as long as the front. */
void agentuity_front_init(struct front *front, const struct agentuity_settings *settings);
void agentuity_front_clear(struct front *front); // no router may use it any more
