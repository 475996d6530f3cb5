/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What events are called where all kinds of things are told together: "sandbox.created", "execution.ended". The part before the dot is the thing it
 * happened to.
 * Threads: plain values.
 */
#pragma once
#include "core/event/event_info.h"

#include <stdbool.h>

/* Never NULL: what is in no row of the table is "sandbox.<type>"; `spare` is where that is written. */
#define EVENT_KIND 64
const char *event_kind(const struct event_info *info, char spare[EVENT_KIND]);

/* All of them, ended by NULL. */
extern const char *const event_kinds[];

/* A pattern is a kind, "sandbox.*" for all of a thing, or "*". Whether any kind can ever match it. */
bool event_pattern_is_known(const char *pattern);
bool event_pattern_matches(const char *pattern, const char *kind);
/* NULL or no patterns at all match everything. */
bool event_patterns_match(const char *const *patterns, const char *kind);
