/* SPDX-License-Identifier: Apache-2.0 */
/* Aborting allocators; see mem.h. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *checked(void *p)
{
    if (!p) {
        static const char line[] = "burrow: out of memory\n";
        (void)!write(2, line, sizeof line - 1);
        abort();
    }
    return p;
}

void *xcalloc(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *old, size_t count, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes))
        return checked(NULL);
    return checked(realloc(old, bytes ? bytes : 1));
}

char *xstrdup(const char *text)
{
    return checked(strdup(text));
}

char *xstrndup(const char *text, size_t length)
{
    return checked(strndup(text, length));
}

char *xvasprintf(const char *format, va_list arguments)
{
    va_list again;

    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t size = length < 0 ? 1 : (size_t)length + 1;
    char *text = xcalloc(1, size);
    (void)vsnprintf(text, size, format, arguments);
    return text;
}

char *xasprintf(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    char *text = xvasprintf(format, arguments);
    va_end(arguments);
    return text;
}
