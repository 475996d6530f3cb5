/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 with the standard alphabet and padding (RFC 4648, section 4). Strict: no blanks, nothing left over.
 * Threads: plain values.
 */
#pragma once
#include <stddef.h>
#include <sys/types.h>

/* How many characters `length` bytes take, without a NUL. */
size_t base64_length(size_t length);

/* Writes base64_length(length) characters and a NUL. */
void base64_encode(const void *data, size_t length, char *text);

/* At most how many bytes a text of this length stands for. */
size_t base64_room(size_t length);

/*
 * Writes what the text stands for to `out` (base64_room bytes; may be the text itself) and returns how much that is. -1: the text
 * is not base64; `*bad` is then where it goes wrong, or its end when its length or its padding is wrong.
 */
ssize_t base64_decode(const char *text, size_t length, void *out, size_t *bad);
