/* SPDX-License-Identifier: Apache-2.0 */
/* What the vendor's Lite edition says of its other editions' administration: that it is not here. */
#include "front/aionis/answer.h"

/* Any method on /v1/admin/control and below */
static int refuse_control(struct call *call, struct error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    put_text(&json, "contract", "lite_error_v1");
    put_text(&json, "edition", "lite");
    put_bool(&json, "supported_in_lite", false);
    put_text(&json, "route", call->request->path);
    put_text(&json, "surface", "admin_control");
    put_text(&json, "route_group", "/v1/admin/control");
    put_text(&json, "reason", "server_only");
    put_bool(&json, "unsupported", true);
    put_bool(&json, "fallback_applied", false);
    json_map_end(&json);
    const struct refusal refusal = {
        .status = 501, .code = "server_only_in_lite", .details = keep_json(call, &json, &text)};
    return refuse(call, &refusal, err, "this is not part of the Lite edition");
}

#define ROW(method, below)                                                                         \
    {                                                                                              \
        method, "/v1/admin/control" below, ROUTE_QUICK, ACCESS_KEY, BODY_NONE, refuse_control,     \
            "not available", .answers = aionis_empty_answers                                       \
    }
#define ROWS(below)                                                                                \
    ROW("GET", below), ROW("POST", below), ROW("PUT", below), ROW("PATCH", below),                 \
        ROW("DELETE", below)

const struct route aionis_control_routes[] = {
    ROWS(""),
    ROWS("/{group}"),
    ROWS("/{group}/{name}"),
    ROWS("/{group}/{name}/{part}"),
    ROWS("/{group}/{name}/{part}/{more}"),
    {0},
};
