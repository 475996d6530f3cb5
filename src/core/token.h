/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens: short-lived secrets that open one sandbox, to be handed to an agent or a browser. One acts for the key that made it, with no more scopes than that,
 * and ends with it, with its sandbox, with its time, or when it is revoked.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/key.h"

struct core;

#define TOKEN_USUAL_MS ((int64_t)3600 * 1000)
#define TOKEN_MOST_MS (24 * TOKEN_USUAL_MS)
#define TOKENS_OF_SANDBOX 100 // at once

struct token_request {
    const char *sandbox_id;
    const char *name; // NULL: none
    unsigned scopes;  // of read, run and manage; 0: read and run, as far as the actor has them
    int64_t ttl_ms;   // 0: TOKEN_USUAL_MS; at most TOKEN_MOST_MS
};

/* `text` (KEY_TEXT bytes) gets it; it is told nowhere else. ERROR_DENIED for scopes that the actor has not, and for another token. */
int token_create(struct core *core, const struct actor *actor, const struct token_request *request,
                 char *text, struct key_info *out, struct error *err);
/* Those that are in use, oldest first. */
int token_list(struct core *core, const struct actor *actor, const char *sandbox_id,
               const struct page *page, struct key_infos *out, struct error *err);
int token_revoke(struct core *core, const struct actor *actor, const char *sandbox_id,
                 const char *token_id, struct error *err);
