/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts that the bodies of several routes share, as the core wants them. Memory is the call's.
 * Threads: plain values.
 */
#pragma once
#include "web/call.h"
#include "web/fields.h"

#define API_DIRECTORY "/workspace" // where commands start that are not told otherwise

/* Variables of FIELD_TEXT_MAP as NAME=VALUE; *out is NULL when there is none. `path` is what the client calls them. */
int api_env(struct call *call, const char *path, const struct field_list *pairs,
            const char *const **out, struct error *err);

/* A value that is kept as it is and given back: at most 64 KiB as text. NULL stays NULL. */
int api_json_text(struct call *call, const char *path, const struct data_value *value,
                  const char **out, struct error *err);
