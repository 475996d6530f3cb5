/* SPDX-License-Identifier: Apache-2.0 */
/* Failures as JSON; see failure.h. */
#include "data/failure.h"

#include "base/buffer.h"

static const char *code_of(const struct error *err)
{
    switch (error_kind(err)) {
    case ERROR_INVALID:
        return "invalid_request";
    case ERROR_NOT_FOUND:
        return "not_found";
    case ERROR_DENIED:
        return "forbidden";
    case ERROR_CONFLICT:
        return "conflict";
    case ERROR_LIMIT:
        return "limit_reached";
    case ERROR_TIMEOUT:
        return "timeout";
    case ERROR_GONE:
        return "ended";
    case ERROR_UNAVAILABLE:
        return "unavailable";
    default:
        return "local"; // this machine failed
    }
}

void failure_put(struct json_writer *json, const struct error *err)
{
    json_key(json, "error");
    json_map_begin(json);
    json_key(json, "code");
    json_string(json, code_of(err));
    json_key(json, "message");
    json_string(json, err->text);
    json_map_end(json);
}

void failure_print(const struct error *err, FILE *out)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &text);
    json_map_begin(&json);
    failure_put(&json, err);
    json_map_end(&json);
    if (json_writer_finish(&json, &ignored) == 0)
        (void)fprintf(out, "%s\n", text.data);
}
