/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 sums of contents, as hexadecimal text. Private to the core. */
#pragma once
#include "base/error.h"

#include <stddef.h>

#define DIGEST_TEXT 65

struct digest {
    void *context;
};

/* Each sum that was begun is ended or cleared. */
void digest_begin(struct digest *sum);
void digest_add(struct digest *sum, const void *bytes, size_t length);
void digest_end(struct digest *sum, char text[DIGEST_TEXT]);
void digest_clear(struct digest *sum); // not begun is fine

void digest_of(const void *bytes, size_t length, char text[DIGEST_TEXT]);
/* Of a whole file, from its beginning; its position stays. */
int digest_file(int fd, char text[DIGEST_TEXT], struct error *err);
