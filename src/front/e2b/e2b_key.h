/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys as E2B's clients want them: "e2b_" and hexadecimal digits, which say the same bits as "brw_" and letters.
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>

#define E2B_KEY_TEXT 70 // "e2b_", 65 digits and a NUL

/* False: it is no key that was made here. */
bool e2b_key_spell(const char *key, char out[E2B_KEY_TEXT]);
/* Back: `out` is of 57 bytes or more. False: it is not spelled so. */
bool e2b_key_read(const char *text, char out[E2B_KEY_TEXT]);
/* The same for the beginning of one: as many letters as its digits say. */
bool e2b_key_read_beginning(const char *text, char out[E2B_KEY_TEXT]);
