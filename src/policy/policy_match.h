/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a rule is about something.
 * Threads: plain values.
 */
#pragma once
#include "policy/policy.h"

/* "a.example.com" is below "example.com"; "example.com" and "evilexample.com" are not. */
bool policy_is_below(const char *name, const char *zone);
/* Whether a rule for a name is about this one. */
bool policy_rule_has_name(const struct policy_rule *rule, const char *name);
/* Whether it decides what is asked. */
bool policy_rule_matches(const struct policy_rule *rule, const struct policy_question *question);
