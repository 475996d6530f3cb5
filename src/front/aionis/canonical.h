/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON as JavaScript would write it again after reading it: numbers in its shortest form, keys that are array indexes first. What clients
 * hash.
 * Threads: plain values.
 */
#pragma once
#include "base/buffer.h"
#include "data/value.h"

/* The tree has been read with takes_last. ERROR_LIMIT past the buffer's maximum. */
int canonical_write(const struct data_value *value, struct buffer *out, struct error *err);

/* A number as JavaScript writes it: "1e+21", "2.5", "0"; "null" for what it cannot hold. */
#define CANONICAL_NUMBER 32
const char *canonical_number(const char *text, char out[CANONICAL_NUMBER]);
