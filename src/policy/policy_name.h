/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as people write them in rules.
 * Threads: plain values.
 */
#pragma once
#include "policy/policy.h"

/* As policy_fold_name, and UTF-8 becomes what DNS has for it ("bücher.example" is "xn--bcher-kva.example"). */
bool policy_name_to_ascii(const char *text, size_t length, char out[POLICY_NAME_LENGTH]);
