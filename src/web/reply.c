/* SPDX-License-Identifier: Apache-2.0 */
/* Answers; see reply.h. */
#include "web/reply.h"

int reply_error(int status, const char *text, struct error *err)
{
    enum error_reason reason = error_reason_of_status(status);
    bool is_plain = reason == ERROR_INVALID || reason == ERROR_SYSTEM;

    return error_refuse(err, reason, is_plain ? NULL : "request", "%s", text);
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
