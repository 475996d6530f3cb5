/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every answer of this front has in common, whatever the route: which pages may read it (CORS), how many requests its key has left,
 * its ETag and coding, and that a POST with an Idempotency-Key is answered once.
 * Threads: any.
 */
#pragma once
#include "front/api/api.h"

/* Texts are borrowed for as long as the front is used. */
struct api_settings {
    const char *origins; // of pages that may call, with commas between; "*": all; NULL or "": none
    int64_t rate;        // requests a second of one key; 0: any number
    int64_t burst;       // that may come at once; 0: ten seconds' worth
    const struct api_ssh *ssh; // api_ssh.h; NULL: there is none
};

struct api_manners; // of one front
struct api_manners *api_manners_new(const struct api_settings *settings);
void api_manners_free(struct api_manners *manners);
bool api_manners_has_origins(const struct api_manners *manners);
/* As the settings name them; NULL: none. */
const char *api_manners_origins(const struct api_manners *manners);
const struct api_ssh *api_manners_ssh(const struct api_manners *manners);

/* Callbacks of struct front; call->settings is the front's struct api_manners. */
int api_manners_on_call(struct call *call, struct error *err);
int api_manners_on_actor(struct call *call, struct error *err);
int api_manners_on_post(struct call *call, struct error *err);

/* Before a call is refused for which there was no route, and so no on_call: pages may read that too. */
void api_manners_on_refusal(struct call *call);

/* OPTIONS: where another page's script asks first whether it may. */
int api_manners_preflight(struct call *call, struct error *err);
