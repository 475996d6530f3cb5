/* SPDX-License-Identifier: Apache-2.0 */
/* Builds error sentences; see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum error_kind kind_of(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return ERROR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERROR_DENIED;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case E2BIG:
    case EFBIG:
        return ERROR_LIMIT;
    case EEXIST:
    case EBUSY:
    case EISDIR:
    case ENOTEMPTY:
        return ERROR_CONFLICT;
    case ETIMEDOUT:
        return ERROR_TIMEOUT;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
        return ERROR_INVALID;
    default:
        return ERROR_SYSTEM;
    }
}

int error_set(struct error *err, enum error_kind kind, const char *format, ...)
{
    va_list args;
    *err = (struct error){.kind = kind};
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return -1;
}

static int set_sys(struct error *err, int code, const char *format, va_list args)
{
    *err = (struct error){.kind = kind_of(code), .sys = code};
    int used = vsnprintf(err->text, sizeof err->text, format, args);
    if (used >= 0 && (size_t)used < sizeof err->text)
        (void)snprintf(err->text + used, sizeof err->text - used, ": %s", strerror(code));
    return -1;
}

int error_sys(struct error *err, const char *format, ...)
{
    int code = errno;
    va_list args;
    va_start(args, format);
    set_sys(err, code, format, args);
    va_end(args);
    return -1;
}

int error_sys_code(struct error *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_sys(err, code, format, args);
    va_end(args);
    return -1;
}

int error_wrap(struct error *err, const char *format, ...)
{
    char inner[sizeof err->text];
    va_list args;

    memcpy(inner, err->text, sizeof inner);
    va_start(args, format);
    int used = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof err->text)
        (void)snprintf(err->text + used, sizeof err->text - used, ": %s", inner);
    return -1;
}

int error_about(struct error *err, const char *noun, const char *reason)
{
    err->noun = noun;
    err->reason = reason;
    return -1;
}

int error_missing(struct error *err, const char *noun, const char *id)
{
    (void)error_set(err, ERROR_NOT_FOUND, "there is no %s '%.40s'", noun, id);
    return error_about(err, noun, NULL);
}

const char *error_kind_name(enum error_kind kind)
{
    static const char *const names[] = {
        [ERROR_NONE] = "none",
        [ERROR_INVALID] = "invalid",
        [ERROR_NOT_FOUND] = "not found",
        [ERROR_DENIED] = "denied",
        [ERROR_CONFLICT] = "conflict",
        [ERROR_LIMIT] = "limit",
        [ERROR_TIMEOUT] = "timeout",
        [ERROR_GONE] = "gone",
        [ERROR_UNAVAILABLE] = "unavailable",
        [ERROR_SYSTEM] = "system",
    };
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}
