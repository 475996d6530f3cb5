/* SPDX-License-Identifier: Apache-2.0 */
/* Answers; see reply.h. */
#include "web/reply.h"

#include "base/auto.h"

#include <string.h>

static const int statuses[] = {
    [ERROR_INVALID] = 400,  [ERROR_NOT_FOUND] = 404,   [ERROR_DENIED] = 403,
    [ERROR_CONFLICT] = 409, [ERROR_LIMIT] = 429,       [ERROR_TIMEOUT] = 500,
    [ERROR_GONE] = 404,     [ERROR_UNAVAILABLE] = 500, [ERROR_SYSTEM] = 500,
};

/* Reasons that have a status of their own, and what net's statuses are called here. */
static const struct {
    const char *reason;
    int status;
    enum error_kind kind;
} exceptions[] = {
    {"unauthorized", 401, ERROR_DENIED},
    {"method", 405, ERROR_INVALID},
    {"slow", 408, ERROR_TIMEOUT},
    {"too large", 413, ERROR_LIMIT},
    {"long target", 414, ERROR_INVALID},
    {"expectation", 417, ERROR_INVALID},
    {"full", 429, ERROR_LIMIT},
    {"long head", 431, ERROR_INVALID},
    {"unknown to http", 501, ERROR_INVALID},
    {"restarting", 503, ERROR_UNAVAILABLE},
    {"version", 505, ERROR_INVALID},
};

int reply_status(const struct error *err)
{
    for (unsigned i = 0; err->reason && i < ARRAY_SIZE(exceptions); i++) {
        if (strcmp(exceptions[i].reason, err->reason) == 0)
            return exceptions[i].status;
    }
    return err->kind > ERROR_NONE && err->kind <= ERROR_SYSTEM ? statuses[err->kind] : 500;
}

int reply_error(int status, const char *text, struct error *err)
{
    for (unsigned i = 0; i < ARRAY_SIZE(exceptions); i++) {
        if (exceptions[i].status == status) {
            error_set(err, exceptions[i].kind, "%s", text);
            return error_about(err, "request", exceptions[i].reason);
        }
    }
    return error_set(err, status >= 400 && status < 500 ? ERROR_INVALID : ERROR_SYSTEM, "%s", text);
}

#define REPLY_MAX ((size_t)64 << 20)

void reply_init(struct reply *reply)
{
    buffer_init(&reply->text, REPLY_MAX);
    json_writer_init(&reply->json, &reply->text);
}

void reply_send(struct reply *reply, struct response *response, int status)
{
    static const struct http_header headers[] = {{"Content-Type", "application/json"}, {0}};
    static const char failed[] = "{\"message\":\"the answer is too long\"}";
    struct error err = {0};

    if (json_writer_finish(&reply->json, &err) < 0)
        (void)response_send(response, 500, headers, failed, sizeof failed - 1);
    else
        (void)response_send(response, status, headers, reply->text.data, reply->text.length);
}

void reply_clear(struct reply *reply)
{
    buffer_clear(&reply->text);
}
