/* SPDX-License-Identifier: Apache-2.0 */
/* What is sent to an execution that runs: signals, the size of its terminal. Its input is in input_pump.c. */
#include "core/execution/execution.h"
#include "front/api/api.h"
#include "front/api/input_pump.h"
#include "front/api/signal_name.h"

#include <signal.h>
#include <string.h>

static int fault(struct error *err, const char *field, const char *text)
{
    error_set(err, ERROR_INVALID, "%s: %s", field, text);
    return error_field(err, field);
}

// ---- signal ----

struct signal_body {
    const struct data_value *signal;
    bool is_whole_tree;
};
static const struct field signal_fields[] = {
    {"signal", FIELD_VALUE, offsetof(struct signal_body, signal), .is_needed = true,
     .help = "a name, such as \"INT\" or \"SIGINT\", or a number"},
    {"wholeTree", FIELD_BOOL, offsetof(struct signal_body, is_whole_tree),
     .help = "to all processes it started, instead of its process group"},
    {0},
};

static int read_signal(const struct data_value *value, int *out, struct error *err)
{
    const bool is_number = value->kind == VALUE_NUMBER;

    if (!is_number && value->kind != VALUE_STRING)
        return fault(err, "signal", "must be a name or a number");
    if (is_number && strlen(value->text) <= 2 && !value->text[strspn(value->text, "0123456789")])
        *out = atoi(value->text);
    else
        *out = is_number ? 0 : signal_of_name(value->text);
    return *out > 0 && *out < NSIG ? 0 : fault(err, "signal", "there is no such signal");
}

/* POST /api/v1/executions/{execution}/signal */
static int send_signal(struct call *call, struct error *err)
{
    struct signal_body body = {0};
    const char *id;
    int number = 0;

    if (api_execution(call, 0, &id, err) < 0 ||
        fields_read(call->body, signal_fields, &body, err) < 0 ||
        read_signal(body.signal, &number, err) < 0 ||
        execution_signal(call->core->executions, &call->actor, id, number, body.is_whole_tree,
                         err) < 0)
        return -1;
    return api_answer_empty(call);
}

// ---- resize ----

struct resize_body {
    int64_t rows, cols;
};
static const struct field resize_fields[] = {
    {"rows", FIELD_INTEGER, offsetof(struct resize_body, rows), .is_needed = true, .minimum = 1,
     .maximum = UINT16_MAX},
    {"cols", FIELD_INTEGER, offsetof(struct resize_body, cols), .is_needed = true, .minimum = 1,
     .maximum = UINT16_MAX},
    {0},
};

/* POST /api/v1/executions/{execution}/resize */
static int resize(struct call *call, struct error *err)
{
    struct resize_body body = {0};
    const char *id;

    if (api_execution(call, 0, &id, err) < 0 ||
        fields_read(call->body, resize_fields, &body, err) < 0)
        return -1;
    const struct terminal_size size = {(uint16_t)body.rows, (uint16_t)body.cols};
    if (execution_resize(call->core->executions, &call->actor, id, size, err) < 0)
        return -1;
    return api_answer_empty(call);
}

// ---- input ----

static const struct parameter input_parameters[] = {
    {"close", PARAMETER_BOOL, NULL, "its input ends after these bytes; in a terminal: Ctrl-D"},
    {0},
};

/* POST /api/v1/executions/{execution}/stdin */
static int send_input(struct call *call, struct error *err)
{
    const char *id;

    if (api_execution(call, 0, &id, err) < 0)
        return -1;
    return input_pump_start(call, id, query_bool(call->query, "close", false), err);
}

static const struct route_answer no_answers[] = {{204}, {0}};
static const struct route_answer input_answers[] = {{200, input_pump_fields}, {0}};

const struct route api_input_routes[] = {
    {"POST", API_TOP "/executions/{execution}/signal", ROUTE_CONTROL, ACCESS_KEY, BODY_JSON,
     send_signal, .summary = "sends it a signal", .fields = signal_fields, .answers = no_answers,
     .needs = SCOPE_RUN},
    {"POST", API_TOP "/executions/{execution}/resize", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, resize,
     .summary = "gives its terminal another size", .fields = resize_fields, .answers = no_answers,
     .needs = SCOPE_RUN},
    {"POST", API_TOP "/executions/{execution}/stdin", ROUTE_QUICK, ACCESS_KEY, BODY_STREAM,
     send_input, .summary = "bytes for its standard input or terminal, as fast as it reads them",
     .query = input_parameters, .answers = input_answers, .needs = SCOPE_RUN},
    {0},
};
