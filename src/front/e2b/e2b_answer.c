/* SPDX-License-Identifier: Apache-2.0 */
/* How failures are told, and small pieces of answers; see e2b_impl.h. */
#include "base/clock.h"
#include "front/e2b/connect_rpc.h"
#include "front/e2b/e2b_impl.h"

#include <string.h>

void e2b_member_text(struct json_writer *json, const char *name, const char *text)
{
    json_key(json, name);
    json_string(json, text);
}

void e2b_member_number(struct json_writer *json, const char *name, int64_t number)
{
    json_key(json, name);
    json_integer(json, number);
}

void e2b_member_bool(struct json_writer *json, const char *name, bool truth)
{
    json_key(json, name);
    json_bool(json, truth);
}

void e2b_member_time(struct json_writer *json, const char *name, int64_t ms)
{
    char text[CLOCK_TEXT];

    e2b_member_text(json, name, clock_format((uint64_t)(ms > 0 ? ms : 0), text));
}

int e2b_answer(struct call *call, struct reply *reply, int status)
{
    reply_send(reply, call->response, status);
    return 0;
}

int e2b_answer_empty(struct call *call, int status)
{
    (void)response_send(call->response, status, NULL, NULL, 0);
    return 0;
}

void e2b_answer_error(struct call *call, int status, const char *message)
{
    autoreply reply = {0};

    reply_init(&reply);
    json_map_begin(&reply.json);
    e2b_member_number(&reply.json, "code", status);
    e2b_member_text(&reply.json, "message", message);
    json_map_end(&reply.json);
    reply_send(&reply, call->response, status);
}

static const char *text_of(const struct error *err)
{
    return err->text[0] ? err->text : "something went wrong in the server";
}

/* Where their status is not ours. */
static int status_of(const struct error *err)
{
    if (error_is(err, ERROR_DISK_FULL) || error_is(err, ERROR_NO_SPACE))
        return 507;
    if (error_is(err, ERROR_ENDED) && error_is_about(err, "sandbox"))
        return 404;
    if (error_is_about(err, "file") && error_is(err, ERROR_CONFLICT))
        return 400; // a directory where a file is needed
    return error_status(err);
}

void e2b_on_error(struct call *call, const struct error *err)
{
    e2b_answer_error(call, status_of(err), text_of(err));
}

/* The sandbox is not there, or not awake. */
static bool is_absent(const struct error *err)
{
    return error_is_about(err, "sandbox") &&
           (error_is(err, ERROR_ENDED) || error_is(err, ERROR_NOT_FOUND));
}

static void answer_absent(struct call *call, const struct error *err)
{
    struct e2b_target target = {0};
    autoreply reply = {0};

    if (call->request)
        e2b_target_read(call->request, &target);
    reply_init(&reply);
    json_map_begin(&reply.json);
    e2b_member_text(&reply.json, "sandboxId", target.id);
    e2b_member_text(&reply.json, "message", text_of(err));
    if (target.port != E2B_ENVD_PORT)
        e2b_member_number(&reply.json, "port", target.port);
    e2b_member_number(&reply.json, "code", 502);
    json_map_end(&reply.json);
    reply_send(&reply, call->response, 502);
}

/* Whatever has no row is asked of a port in which nothing listens. */
static bool is_closed_port(const struct call *call, const struct error *err)
{
    struct e2b_target target;

    if (call->route || !call->request || !error_is_about(err, "route"))
        return false;
    e2b_target_read(call->request, &target);
    return target.port != E2B_ENVD_PORT;
}

/* Of a path that is nobody's, too. */
static bool is_wrong_target(const struct call *call, const struct error *err)
{
    struct e2b_target target;

    if (!call->request || !error_is_about(err, "route"))
        return false;
    e2b_target_read(call->request, &target);
    return target.is_wrong;
}

void envd_on_error(struct call *call, const struct error *err)
{
    if (is_wrong_target(call, err))
        e2b_answer_error(call, 400,
                         "send both E2b-Sandbox-Id and E2b-Sandbox-Port, the port as a number");
    else if (is_absent(err) || is_closed_port(call, err))
        answer_absent(call, err);
    else if (rpc_is_service(call))
        rpc_on_error(call, err);
    else
        e2b_on_error(call, err);
}
