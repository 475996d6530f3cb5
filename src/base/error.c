/* SPDX-License-Identifier: Apache-2.0 */
/* Error values, and the one table of what each reason means; see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Exit codes, as cli/exit.h has them.
enum { FAILED = 1, USAGE = 2, NO_SUCH = 3, TIMED_OUT = 124 };

static const struct {
    const char *name;
    enum error_reason kind;
    int status;
    int exit_code;
} reasons[ERROR_REASONS] = {
    [ERROR_NONE] = {"none", ERROR_NONE, 500, 0},

    [ERROR_INVALID] = {"invalid", ERROR_INVALID, 400, USAGE},
    [ERROR_NOT_FOUND] = {"not found", ERROR_NOT_FOUND, 404, NO_SUCH},
    [ERROR_DENIED] = {"denied", ERROR_DENIED, 403, FAILED},
    [ERROR_CONFLICT] = {"conflict", ERROR_CONFLICT, 409, FAILED},
    [ERROR_LIMIT] = {"limit", ERROR_LIMIT, 429, FAILED},
    [ERROR_TIMEOUT] = {"timeout", ERROR_TIMEOUT, 500, TIMED_OUT},
    [ERROR_GONE] = {"gone", ERROR_GONE, 404, FAILED},
    [ERROR_UNAVAILABLE] = {"unavailable", ERROR_UNAVAILABLE, 500, FAILED},
    [ERROR_SYSTEM] = {"system", ERROR_SYSTEM, 500, FAILED},

    [ERROR_REFUSED] = {"refused", ERROR_INVALID, 400, USAGE},
    [ERROR_DAMAGED] = {"damaged", ERROR_INVALID, 400, USAGE},
    [ERROR_METHOD] = {"method not allowed", ERROR_INVALID, 405, USAGE},
    [ERROR_LONG_TARGET] = {"long target", ERROR_INVALID, 414, USAGE},
    [ERROR_EXPECTATION] = {"expectation", ERROR_INVALID, 417, USAGE},
    [ERROR_UPGRADE] = {"upgrade required", ERROR_INVALID, 426, USAGE},
    [ERROR_LONG_HEAD] = {"long head", ERROR_INVALID, 431, USAGE},
    [ERROR_UNKNOWN_HTTP] = {"unknown to http", ERROR_INVALID, 501, USAGE},
    [ERROR_HTTP_VERSION] = {"version", ERROR_INVALID, 505, USAGE},
    [ERROR_UNKNOWN_FIELD] = {"unknown field", ERROR_INVALID, 400, USAGE},
    [ERROR_PRECONDITION] = {"precondition", ERROR_INVALID, 412, FAILED},
    [ERROR_MEDIA_TYPE] = {"media type", ERROR_INVALID, 415, USAGE},
    [ERROR_RANGE] = {"range", ERROR_INVALID, 416, USAGE},

    [ERROR_UNAUTHORIZED] = {"unauthorized", ERROR_DENIED, 401, FAILED},
    [ERROR_SCOPE] = {"scope", ERROR_DENIED, 403, FAILED},

    [ERROR_BUSY] = {"busy", ERROR_CONFLICT, 409, FAILED},
    [ERROR_STATE] = {"state", ERROR_CONFLICT, 409, FAILED},
    [ERROR_EXISTS] = {"exists", ERROR_CONFLICT, 409, FAILED},
    [ERROR_MISMATCH] = {"mismatch", ERROR_CONFLICT, 409, FAILED},
    [ERROR_PENDING] = {"pending", ERROR_CONFLICT, 409, FAILED},
    [ERROR_DIFFERS] = {"differs", ERROR_CONFLICT, 409, FAILED},
    [ERROR_AMBIGUOUS] = {"ambiguous", ERROR_CONFLICT, 409, FAILED},
    [ERROR_COMPLETE] = {"complete", ERROR_CONFLICT, 409, FAILED},

    [ERROR_FULL] = {"full", ERROR_LIMIT, 429, FAILED},
    [ERROR_TOO_LARGE] = {"too large", ERROR_LIMIT, 413, FAILED},
    [ERROR_DISK_FULL] = {"disk full", ERROR_LIMIT, 413, FAILED},
    [ERROR_RATE] = {"rate", ERROR_LIMIT, 429, FAILED},
    [ERROR_QUOTA] = {"quota", ERROR_LIMIT, 429, FAILED},
    [ERROR_NO_SPACE] = {"no space", ERROR_LIMIT, 429, FAILED},

    [ERROR_SLOW] = {"slow", ERROR_TIMEOUT, 408, FAILED},
    [ERROR_SLOW_SANDBOX] = {"slow sandbox", ERROR_TIMEOUT, 504, TIMED_OUT},

    [ERROR_ENDED] = {"ended", ERROR_GONE, 404, FAILED},
    [ERROR_CANCELLED] = {"cancelled", ERROR_GONE, 404, FAILED},
    [ERROR_EXPIRED] = {"expired", ERROR_GONE, 410, FAILED},

    [ERROR_RESTARTING] = {"restarting", ERROR_UNAVAILABLE, 503, FAILED},
    [ERROR_NOT_BUILT] = {"not built", ERROR_UNAVAILABLE, 503, FAILED},
    [ERROR_TOOL] = {"tool", ERROR_UNAVAILABLE, 500, FAILED},
    [ERROR_RETRY] = {"try again", ERROR_UNAVAILABLE, 500, FAILED},

    [ERROR_LOST] = {"lost", ERROR_SYSTEM, 500, FAILED},
};

static unsigned row_of(enum error_reason reason)
{
    return (unsigned)reason < ERROR_REASONS ? reason : ERROR_SYSTEM;
}

// What an errno says about a path that the caller named.
static enum error_reason reason_of_path(int code)
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
        return ERROR_DISK_FULL;
    case E2BIG:
    case EFBIG:
        return ERROR_TOO_LARGE;
    case EEXIST:
    case EBUSY:
    case EISDIR:
    case ENOTEMPTY:
        return ERROR_CONFLICT;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
        return ERROR_INVALID;
    default:
        return ERROR_SYSTEM;
    }
}

static void set_text(struct error *err, const char *format, va_list args)
{
    (void)vsnprintf(err->text, sizeof err->text, format, args);
}

int error_set(struct error *err, enum error_reason reason, const char *format, ...)
{
    va_list args;
    *err = (struct error){.reason = reason};
    va_start(args, format);
    set_text(err, format, args);
    va_end(args);
    return -1;
}

int error_refuse(struct error *err, enum error_reason reason, const char *noun, const char *format,
                 ...)
{
    va_list args;
    *err = (struct error){.reason = reason, .noun = noun};
    va_start(args, format);
    set_text(err, format, args);
    va_end(args);
    return -1;
}

static int set_sys(struct error *err, enum error_reason reason, int code, const char *format,
                   va_list args)
{
    *err = (struct error){.reason = reason, .sys = code};
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
    set_sys(err, ERROR_SYSTEM, code, format, args);
    va_end(args);
    return -1;
}

int error_sys_code(struct error *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_sys(err, ERROR_SYSTEM, code, format, args);
    va_end(args);
    return -1;
}

int error_path(struct error *err, const char *format, ...)
{
    int code = errno;
    va_list args;
    va_start(args, format);
    set_sys(err, reason_of_path(code), code, format, args);
    va_end(args);
    return -1;
}

int error_path_code(struct error *err, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_sys(err, reason_of_path(code), code, format, args);
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

int error_about(struct error *err, const char *noun)
{
    err->noun = noun;
    return -1;
}

int error_field(struct error *err, const char *path)
{
    (void)snprintf(err->field, sizeof err->field, "%s", path);
    return -1;
}

int error_missing(struct error *err, const char *noun, const char *id)
{
    return error_refuse(err, ERROR_NOT_FOUND, noun, "there is no %s '%.40s'", noun, id);
}

int error_restate(struct error *err, enum error_reason reason, const char *noun)
{
    err->reason = reason;
    err->noun = noun;
    return -1;
}

bool error_is(const struct error *err, enum error_reason reason)
{
    return err->reason == reason || error_kind(err) == reason;
}

bool error_is_fault(const struct error *err)
{
    return error_status(err) == 500 || err->reason == ERROR_NO_SPACE;
}

bool error_is_about(const struct error *err, const char *noun)
{
    return err->noun && strcmp(err->noun, noun) == 0;
}

enum error_reason error_kind(const struct error *err)
{
    return reasons[row_of(err->reason)].kind;
}

int error_status(const struct error *err)
{
    return reasons[row_of(err->reason)].status;
}

int error_exit_code(const struct error *err)
{
    return reasons[row_of(err->reason)].exit_code;
}

const char *error_reason_name(enum error_reason reason)
{
    return reasons[row_of(reason)].name;
}

enum error_reason error_reason_of_status(int status)
{
    for (unsigned i = ERROR_INVALID; i < ERROR_REASONS; i++) {
        if (reasons[i].status == status && status != 500)
            return (enum error_reason)i;
    }
    return status >= 400 && status < 500 ? ERROR_INVALID : ERROR_SYSTEM;
}
