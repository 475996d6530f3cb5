/* SPDX-License-Identifier: Apache-2.0 */
/*
 * E2B's protocol over the core: what its stock clients speak. Three fronts: the control plane (by a key), and two for what is in a sandbox (by the
 * sandbox's own token), envd and the code interpreter, which claim requests by their head. docs/internals/e2b.md.
 * Threads: one thread; at the start and the end of the server.
 */
#pragma once
#include "web/front.h"
#include "web/preview_protocol.h"

#define E2B_HOME "/home/user" // where commands start

/* Texts are borrowed for as long as the fronts are used; e2b_settings_default is where to start from. */
struct e2b_settings {
    const char *runtime; // of the templates that every client expects
    const char *domain;  // below which names of sandboxes are; NULL: as the client calls us
};
extern const struct e2b_settings e2b_settings_default;

/* `settings` stays the caller's and must live as long as the front. */
void e2b_front_init(struct front *front, const struct e2b_settings *settings);
void e2b_envd_front_init(struct front *front, const struct e2b_settings *settings);
void e2b_code_front_init(struct front *front, const struct e2b_settings *settings);
/*
 * What clients in debug mode find on this machine: both of those in one, for one sandbox of this name, and without any token. For a router of
 * its own behind listeners of its own, that nobody but this machine reaches.
 */
#define E2B_DEBUG_NAME "e2b-debug"
void e2b_debug_front_init(struct front *front, const struct e2b_settings *settings);
/* Requests to the other ports of sandboxes, for the preview. */
extern const struct preview_protocol e2b_port_protocol;
void e2b_front_clear(struct front *front); // no router may use it any more
