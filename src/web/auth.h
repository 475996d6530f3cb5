/* SPDX-License-Identifier: Apache-2.0 */
/* Who sends a request: by its key, or by being this machine's own over the local socket. */
#pragma once
#include "core/account/actor.h"
#include "core/account/key.h"
#include "net/request.h"

/* Whether it can be anybody at all: it has a key, or comes over the local socket. Does not look at the key. */
bool auth_is_possible(const struct http_request *request);

/* ERROR_DENIED, reason "unauthorized". Blocks as key_check does. */
int auth_check(struct accounts *accounts, const struct http_request *request, struct actor *out,
               struct error *err);

/* The same without blocking: false when it cannot be said that way. */
bool auth_check_quick(struct accounts *accounts, const struct http_request *request,
                      struct actor *out);

/* The failure of a request without any key. Returns -1. */
int auth_missing(struct error *err);
