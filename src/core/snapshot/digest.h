/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 digests of contents, as hexadecimal text.
 * Threads: any; digest_file blocks for the disk.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

#define DIGEST_TEXT 65

struct digest {
    void *context;
};

/* A digest starts as {0}; each that was begun is ended or cleared. */
void digest_begin(struct digest *digest);
void digest_add(struct digest *digest, const void *bytes, size_t length);
void digest_end(struct digest *digest, char text[DIGEST_TEXT]);
void digest_clear(struct digest *digest); // not begun is fine

void digest_of(const void *bytes, size_t length, char text[DIGEST_TEXT]);
/* Of a whole file, from its beginning; its position stays. */
int digest_file(int fd, char text[DIGEST_TEXT], struct error *err);
