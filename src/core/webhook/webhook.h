/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Webhooks: who is told of events over HTTP. This room knows whom, of what, and how far that is; src/hook sends. A webhook is told of what
 * its maker could see when it was made and its key may see now, and ends with that key.
 * Threads: any but loops.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "core/account/actor.h"
#include "core/webhook/webhook_info.h"

struct accounts;
struct core_settings;
struct event_channel;
struct store;
struct webhooks;

#define WEBHOOKS_OF_OWNER 8
#define WEBHOOKS_OF_ORGANISATION 32
#define WEBHOOKS_OF_ALL 1000
#define WEBHOOK_KINDS 32
#define WEBHOOK_NAME 128    // bytes
#define WEBHOOK_URL 2048    //
#define DELIVERIES_KEPT 100 // of each
#define WEBHOOK_SECRET_PREFIX "whsec_"
#define WEBHOOK_SECRET_LETTERS 52 // 260 random bits

struct webhooks *webhooks_new(const struct core_settings *settings, struct store *store,
                              struct accounts *accounts, struct event_channel *events);
void webhooks_free(struct webhooks *webhooks);

/* What is wanted; NULL: as it is, or none. */
struct webhook_request {
    const char *name;
    const char *url;
    const char *const *kinds; // ended by NULL; no members: all
    const char *sandbox_id;   // "": of all
    const bool *is_enabled;
    bool is_secret_new; // of webhook_change
};

/* From now on. *out has the secret. ERROR_FULL, noun "webhook": there are too many. */
int webhook_create(struct webhooks *webhooks, const struct actor *actor,
                   const struct webhook_request *request, struct webhook_info *out,
                   struct error *err);
int webhook_list(struct webhooks *webhooks, const struct actor *actor, const struct page *page,
                 struct webhook_infos *out, struct error *err);
int webhook_get(struct webhooks *webhooks, const struct actor *actor, const char *id,
                struct webhook_info *out, struct error *err);
/* What was given is different then; it is tried at once where it was failing. Enabled again, it goes on where it was, and is the key's that enabled it. */
int webhook_change(struct webhooks *webhooks, const struct actor *actor, const char *id,
                   const struct webhook_request *request, struct webhook_info *out,
                   struct error *err);
int webhook_remove(struct webhooks *webhooks, const struct actor *actor, const char *id,
                   struct error *err);
/* Makes an event that this one is told of, whatever kinds it wants. ERROR_STATE: it is not enabled. */
int webhook_test(struct webhooks *webhooks, const struct actor *actor, const char *id,
                 int64_t *event_number, struct error *err);
/* The newest first. */
int delivery_list(struct webhooks *webhooks, const struct actor *actor, const char *id,
                  const struct page *page, struct delivery_infos *out, struct error *err);
