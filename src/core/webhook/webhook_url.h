/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a URL can be one of a webhook: what can be said before anything is connected to. Where its name leads to is looked at when it is.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>

/* https://host[:port]/path, or http:// where that is allowed; no user, no fragment, ASCII. ERROR_INVALID says what is wrong. */
int webhook_url_check(const char *url, bool is_http_allowed, struct error *err);
