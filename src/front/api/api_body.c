/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of bodies; see api_body.h. */
#include "front/api/api_body.h"

#include "base/buffer.h"
#include "data/json_writer.h"

#include <string.h>

#define KEPT_MAX ((size_t)64 << 10)

int api_env(struct call *call, const char *path, const struct field_list *pairs,
            const char *const **out, struct error *err)
{
    const struct text_pair *pair = pairs->items;
    const char **env;

    *out = NULL;
    if (!pairs->count)
        return 0;
    env = call_alloc(call, (pairs->count + 1) * sizeof *env);
    for (size_t i = 0; i < pairs->count; i++) {
        if (!pair[i].name[0] || strchr(pair[i].name, '=')) {
            (void)error_set(err, ERROR_INVALID,
                            "%s: '%s' cannot be the name of a variable: it must not be empty or "
                            "contain '='",
                            path, pair[i].name);
            return error_field(err, path);
        }
        env[i] = call_print(call, "%s=%s", pair[i].name, pair[i].value);
    }
    *out = env;
    return 0;
}

int api_json_text(struct call *call, const char *path, const struct data_value *value,
                  const char **out, struct error *err)
{
    autobuffer text = {.maximum = KEPT_MAX};
    struct json_writer json;

    *out = NULL;
    if (!value)
        return 0;
    json_writer_init(&json, &text);
    json_value(&json, value);
    if (json_writer_finish(&json, err) < 0) {
        (void)error_set(err, ERROR_TOO_LARGE, "%s: may be at most 64 KiB", path);
        return error_field(err, path);
    }
    *out = call_print(call, "%s", text.data);
    return 0;
}
