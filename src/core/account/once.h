/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that must happen once, however often they are sent; see store/idempotency.h.
 * Threads: any but loops.
 */
#pragma once
#include "base/id.h"
#include "core/account/account.h"

#include <stdbool.h>

struct store;

/* What a client sends along with such a request. */
struct once {
    const char *realm; // what kind of request, by which front
    const char *key;   // the client's
    unsigned char request_hash[32];
};

/*
 * Claims the request's key (once NULL: nothing to claim, *is_new). Not new: `subject` is what the earlier request made. ERROR_PENDING
 * while that one is under way, ERROR_MISMATCH when it asked for something else.
 */
int once_claim(struct accounts *accounts, const struct actor *actor, const struct once *once,
               bool *is_new, char subject[ID_TEXT], struct error *err);
/* The same for a request whose answer is kept: not new: `*answer` is that of the earlier one, to be freed. */
int once_claim_answer(struct accounts *accounts, const struct actor *actor, const struct once *once,
                      bool *is_new, char **answer, struct error *err);
/* Keeps the answer: UTF-8 without NUL. */
int once_finish_answer(struct accounts *accounts, const struct actor *actor,
                       const struct once *once, const char *answer, struct error *err);
/* In the transaction that records what was made. */
int once_finish(struct accounts *accounts, const struct actor *actor, const struct once *once,
                const char *subject, struct error *err);
/* It failed: the key is free again. */
void once_release(struct accounts *accounts, const struct actor *actor, const struct once *once);
