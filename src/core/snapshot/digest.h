/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 sums of contents, as hexadecimal text. Private to the core. */
#pragma once
#include "base/error.h"

#include <stddef.h>

#define SUM_TEXT 65

struct sum {
    void *context;
};

/* Each sum that was begun is ended or cleared. */
void sum_begin(struct sum *sum);
void sum_add(struct sum *sum, const void *bytes, size_t length);
void sum_end(struct sum *sum, char text[SUM_TEXT]);
void sum_clear(struct sum *sum); // not begun is fine

void sum_of(const void *bytes, size_t length, char text[SUM_TEXT]);
/* Of a whole file, from its beginning; its position stays. */
int sum_file(int fd, char text[SUM_TEXT], struct error *err);
