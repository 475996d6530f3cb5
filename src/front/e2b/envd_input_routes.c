/* SPDX-License-Identifier: Apache-2.0 */
/* process.Process: what is sent to commands that run: input, its end, signals, the size of a terminal. */
#include "base/cancel.h"
#include "core/execution/execution.h"
#include "front/e2b/connect_rpc.h"
#include "front/e2b/envd_process.h"
#include "web/client_watch.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>

#define AGAIN_MS 20 // while a process does not read

/* One that runs, and was not killed. */
static int find_running(struct call *call, const struct envd_selector *process,
                        struct execution_info *out, struct error *err)
{
    const char *id;

    if (envd_enter(call, &id, err) < 0 || envd_find(call, id, process, out, err) < 0)
        return -1;
    if (execution_info_is_over(out) || out->stop_at)
        return error_refuse(err, ERROR_NOT_FOUND, "execution", "the process has ended");
    return 0;
}

// ---- SendInput ----

struct input_body {
    struct envd_selector process;
    struct {
        struct bytes_field stdin_bytes, pty;
        bool has_stdin, has_pty;
    } input;
};
#define AT(member) offsetof(__typeof__(((struct input_body *)0)->input), member)
static const struct field input_parts[] = {
    {"stdin", FIELD_BYTES, AT(stdin_bytes), .is_nullable = true, .has_offset = AT(has_stdin)},
    {"pty", FIELD_BYTES, AT(pty), .is_nullable = true, .has_offset = AT(has_pty)},
    {0},
};
#undef AT
static const struct field input_fields[] = {
    {"process", FIELD_MAP, offsetof(struct input_body, process), .is_nullable = true,
     .fields = envd_selector_fields},
    {"input", FIELD_MAP, offsetof(struct input_body, input), .is_nullable = true,
     .fields = input_parts},
    {0},
};

/* Input on its way, from one try to the next. */
struct input {
    char id[ID_TEXT];
    char *bytes;
    size_t length, sent;
};

static int keep_input(struct call *call, const struct input_body *body,
                      const struct execution_info *info)
{
    const struct bytes_field *bytes =
        body->input.has_pty ? &body->input.pty : &body->input.stdin_bytes;
    struct input *input = call_alloc(call, sizeof *input);

    memcpy(input->id, info->id, ID_TEXT);
    input->bytes = call_alloc(call, bytes->length + 1);
    if (bytes->length)
        memcpy(input->bytes, bytes->data, bytes->length);
    input->length = bytes->length;
    call->front_data = input;
    return 0;
}

/* 1: answered. */
static int begin_input(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    autoclear(execution_info) info = {0};
    struct input_body body = {0};

    if (rpc_read(call, input_fields, &body, &document, err) < 0 ||
        find_running(call, &body.process, &info, err) < 0)
        return -1;
    if (!body.input.has_stdin && !body.input.has_pty) {
        (void)rpc_fail(call, RPC_UNIMPLEMENTED, "input is either stdin or pty");
        return 1;
    }
    if (body.input.has_pty != (info.kind == EXECUTION_TERMINAL)) {
        (void)rpc_fail(call, RPC_INTERNAL,
                       body.input.has_pty ? "the process has no terminal: send stdin"
                                          : "the process has a terminal: send pty");
        return 1;
    }
    return keep_input(call, &body, &info);
}

/* POST /process.Process/SendInput */
static int send_input(struct call *call, struct error *err)
{
    int status = call->front_data ? 0 : begin_input(call, err);
    struct input *input = call->front_data;
    size_t taken = 0;

    if (status != 0)
        return status < 0 ? -1 : 0;
    if (call->watch &&
        cancel_is_set(call->actor.cancel)) // it would be kept until the process reads
        return error_refuse(err, ERROR_CANCELLED, "execution", "the client went away");
    if (input->sent < input->length &&
        execution_write_input(call->core->executions, &call->actor, input->id,
                              input->bytes + input->sent, input->length - input->sent, &taken,
                              err) < 0) {
        if (error_is(err, ERROR_COMPLETE) || error_is(err, ERROR_STATE))
            return rpc_fail(call, RPC_INTERNAL, "the process's stdin is closed");
        return error_is_about(err, "execution") && error_is(err, ERROR_ENDED)
                   ? error_restate(err, ERROR_NOT_FOUND, "execution")
                   : -1;
    }
    input->sent += taken;
    if (input->sent == input->length)
        return rpc_answer_nothing(call);
    if (!call->watch)
        client_watch_start(call);
    call->again_ms = AGAIN_MS;
    return CALL_AGAIN;
}

// ---- CloseStdin ----

struct process_body {
    struct envd_selector process;
    const struct data_value *signal;
    struct {
        struct {
            int64_t cols, rows;
        } size;
    } pty;
};
static const struct field process_fields[] = {
    {"process", FIELD_MAP, offsetof(struct process_body, process), .is_nullable = true,
     .fields = envd_selector_fields},
    {0},
};

/* POST /process.Process/CloseStdin */
static int close_stdin(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    autoclear(execution_info) info = {0};
    struct process_body body = {0};

    if (rpc_read(call, process_fields, &body, &document, err) < 0 ||
        find_running(call, &body.process, &info, err) < 0)
        return -1;
    if (info.kind == EXECUTION_TERMINAL)
        return rpc_fail(call, RPC_UNKNOWN,
                        "a terminal's input cannot be closed: send Ctrl-D (4) instead");
    if (execution_close_input(call->core->executions, &call->actor, info.id, err) < 0 &&
        !error_is(err, ERROR_COMPLETE))
        return -1;
    return rpc_answer_nothing(call);
}

// ---- SendSignal ----

static const struct field signal_fields[] = {
    {"process", FIELD_MAP, offsetof(struct process_body, process), .is_nullable = true,
     .fields = envd_selector_fields},
    {"signal", FIELD_VALUE, offsetof(struct process_body, signal), .is_nullable = true},
    {0},
};

/* By name or number; 0: another. */
static int read_signal(const struct data_value *value)
{
    if (!value || !value->text)
        return 0;
    if (strcmp(value->text, "SIGNAL_SIGKILL") == 0 || strcmp(value->text, "9") == 0)
        return SIGKILL;
    if (strcmp(value->text, "SIGNAL_SIGTERM") == 0 || strcmp(value->text, "15") == 0)
        return SIGTERM;
    return 0;
}

/* POST /process.Process/SendSignal */
static int send_signal(struct call *call, struct error *err)
{
    struct executions *executions = call->core->executions;
    autoptr(data_document) document = NULL;
    autoclear(execution_info) info = {0}, stopped = {0};
    struct process_body body = {0};

    if (rpc_read(call, signal_fields, &body, &document, err) < 0)
        return -1;
    int number = read_signal(body.signal);
    if (!number)
        return rpc_fail(call, RPC_UNIMPLEMENTED,
                        "the signals are SIGNAL_SIGKILL and SIGNAL_SIGTERM");
    if (find_running(call, &body.process, &info, err) < 0)
        return -1;
    int result =
        number == SIGKILL
            ? execution_stop(executions, &call->actor, info.id, NULL, true, NULL, &stopped, err)
            : execution_signal(executions, &call->actor, info.id, number, false, err);
    if (result < 0)
        return error_is(err, ERROR_ENDED) && error_is_about(err, "execution")
                   ? error_restate(err, ERROR_NOT_FOUND, "execution")
                   : -1;
    return rpc_answer_nothing(call);
}

// ---- Update ----

#define SIZE(member) offsetof(__typeof__(((struct process_body *)0)->pty.size), member)
static const struct field size_fields[] = {
    {"cols", FIELD_INTEGER, SIZE(cols), .minimum = 1, .maximum = UINT16_MAX, .is_needed = true},
    {"rows", FIELD_INTEGER, SIZE(rows), .minimum = 1, .maximum = UINT16_MAX, .is_needed = true},
    {0},
};
#undef SIZE
static const struct field pty_fields[] = {
    {"size", FIELD_MAP, 0, .is_needed = true, .fields = size_fields},
    {0},
};
static const struct field update_fields[] = {
    {"process", FIELD_MAP, offsetof(struct process_body, process), .is_nullable = true,
     .fields = envd_selector_fields},
    {"pty", FIELD_MAP, offsetof(struct process_body, pty), .is_needed = true, .fields = pty_fields},
    {0},
};

/* POST /process.Process/Update */
static int update(struct call *call, struct error *err)
{
    autoptr(data_document) document = NULL;
    autoclear(execution_info) info = {0};
    struct process_body body = {0};

    if (rpc_read(call, update_fields, &body, &document, err) < 0 ||
        find_running(call, &body.process, &info, err) < 0)
        return -1;
    const struct terminal_size size = {(uint16_t)body.pty.size.rows, (uint16_t)body.pty.size.cols};
    if (execution_resize(call->core->executions, &call->actor, info.id, size, err) < 0)
        return -1;
    return rpc_answer_nothing(call);
}

/* POST /process.Process/StreamInput: no client sends it. */
static int stream_input(struct call *call, struct error *err)
{
    (void)err;
    return rpc_fail(call, RPC_UNIMPLEMENTED, "send input with SendInput");
}

#define ROW(method, lane, handler, summary)                                                        \
    {                                                                                              \
        "POST", "/process.Process/" method, lane, ACCESS_KEY, BODY_WHOLE, handler, summary,        \
            .needs = SCOPE_RUN, .is_undescribed = true, .reach = REACH_SANDBOX,                    \
            .body_limit = E2B_MESSAGE_BYTES                                                        \
    }
const struct route envd_input_routes[] = {
    ROW("SendInput", ROUTE_QUICK, send_input, "bytes for its standard input or terminal"),
    ROW("CloseStdin", ROUTE_QUICK, close_stdin, "its standard input ends"),
    ROW("SendSignal", ROUTE_CONTROL, send_signal, "ends it, or asks it to end"),
    ROW("Update", ROUTE_QUICK, update, "gives its terminal another size"),
    ROW("StreamInput", ROUTE_QUICK, stream_input, "is not offered"),
    {0},
};
