/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation that cannot fail: for small things of our own. Sizes a stranger chooses go into a buffer.
 * Threads: any.
 */
#pragma once
#include <stdarg.h>
#include <stddef.h>

void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *old, size_t count, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t length) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));
char *xvasprintf(const char *format, va_list arguments)
    __attribute__((format(printf, 1, 0), returns_nonnull));

#define xnew(T) ((T *)xcalloc(1, sizeof(T)))
