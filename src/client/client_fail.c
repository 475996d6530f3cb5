/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of the client library; see client_fail.h. */
#include "client/client_fail.h"

#include "base/quote.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void set(struct burrow_error *err, enum burrow_failure kind, int sys, const char *format,
                va_list arguments)
{
    *err = (struct burrow_error){.kind = kind, .sys = sys};
    (void)vsnprintf(err->text, sizeof err->text, format, arguments);
    quote_scrub(err->text);
}

int client_fail(struct burrow_error *err, enum burrow_failure kind, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    set(err, kind, 0, format, arguments);
    va_end(arguments);
    return -1;
}

int client_fail_sys(struct burrow_error *err, enum burrow_failure kind, const char *format, ...)
{
    int sys = errno;
    va_list arguments;

    va_start(arguments, format);
    set(err, kind, sys, format, arguments);
    va_end(arguments);
    size_t length = strlen(err->text);
    (void)snprintf(err->text + length, sizeof err->text - length, ": %s", strerror(sys));
    return -1;
}

int client_fail_from(struct burrow_error *err, enum burrow_failure kind, const struct error *from)
{
    *err = (struct burrow_error){.kind = kind, .sys = from->sys};
    (void)snprintf(err->text, sizeof err->text, "%s", from->text);
    quote_scrub(err->text);
    return -1;
}

enum burrow_failure client_fail_kind(int status)
{
    switch (status) {
    case 401:
    case 403:
        return BURROW_DENIED;
    case 404:
        return BURROW_NOT_FOUND;
    case 408:
    case 504:
        return BURROW_TIMEOUT;
    case 409:
    case 412:
        return BURROW_CONFLICT;
    case 410:
        return BURROW_GONE;
    case 413:
    case 429:
        return BURROW_LIMIT;
    default:
        return status < 500 ? BURROW_INVALID : BURROW_SERVER;
    }
}
