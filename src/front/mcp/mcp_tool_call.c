/* SPDX-License-Identifier: Apache-2.0 */
/* One call of a tool: from arguments to requests, from answers to a result; see mcp_tool_call.h. */
#include "front/mcp/mcp_tool_call.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "data/json.h"
#include "web/percent.h"
#include "web/router.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *tool_alloc(struct tool_call *call, size_t size)
{
    return exchange_alloc(call->exchange, size);
}

char *tool_print(struct tool_call *call, const char *format, ...)
{
    char *text;
    va_list args;

    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text = tool_alloc(call, (size_t)length + 1);
    va_start(args, format);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

// ---- arguments, as one table ----

static size_t count_fields(const struct field *fields)
{
    size_t count = 0;

    while (fields && fields[count].name)
        count++;
    return count;
}

static size_t count_parameters(const struct parameter *parameters)
{
    size_t count = 0;

    while (parameters && parameters[count].name)
        count++;
    return count;
}

static bool is_among(const char *const *words, const char *word)
{
    for (; words && *words; words++) {
        if (strcmp(*words, word) == 0)
            return true;
    }
    return false;
}

/* What may be said in a query, as if it were a member. */
static struct field field_of(const struct parameter *parameter)
{
    static const enum field_type types[] = {
        [PARAMETER_TEXT] = FIELD_TEXT,     [PARAMETER_INTEGER] = FIELD_INTEGER,
        [PARAMETER_BOOL] = FIELD_BOOL,     [PARAMETER_DURATION] = FIELD_DURATION,
        [PARAMETER_WORD] = FIELD_TEXT,     [PARAMETER_MS] = FIELD_MS,
        [PARAMETER_AMOUNT] = FIELD_AMOUNT,
    };

    return (struct field){.name = parameter->name,
                          .type = types[parameter->type],
                          .minimum = parameter->minimum,
                          .maximum = parameter->maximum,
                          .words = parameter->type == PARAMETER_WORD ? parameter->words : NULL,
                          .help = parameter->help};
}

static const struct {
    const char *name, *help;
} path_names[] = {
    {"sandbox", "the sandbox's id (sbx_…), or its name"},
    {"execution", "the execution's id (exe_…), from sandbox_exec or sandbox_run"},
    {"checkpoint", "the checkpoint's id (ckpt_…), or its name"},
};

static struct field path_field(struct exchange *exchange, const char *name, size_t length)
{
    struct field field = {.name = exchange_print(exchange, "%.*s", (int)length, name),
                          .type = FIELD_TEXT,
                          .is_needed = true,
                          .minimum = 1,
                          .maximum = 256};

    for (size_t i = 0; i < ARRAY_SIZE(path_names); i++) {
        if (strcmp(path_names[i].name, field.name) == 0)
            field.help = path_names[i].help;
    }
    return field;
}

static struct field *add_route_fields(struct exchange *exchange, const struct tool *tool,
                                      const struct route *route, struct field *at)
{
    const char *name = route->pattern;

    while ((name = strchr(name, '{'))) {
        size_t length = strcspn(++name, "}");
        *at++ = path_field(exchange, name, length);
    }
    for (const struct parameter *p = route->query; p && p->name; p++)
        *at++ = field_of(p);
    for (const struct field *field = route->fields; field && field->name; field++) {
        if (!is_among(tool->hidden, field->name))
            *at++ = *field;
    }
    return at;
}

const struct field *tool_fields(struct exchange *exchange, const struct tool *tool,
                                const struct route *route)
{
    size_t most = ROUTE_PARAMETERS + count_parameters(route->query) + count_fields(route->fields) +
                  count_fields(tool->own) + 2;
    struct field *fields = exchange_alloc(exchange, most * sizeof *fields), *at = fields;

    if (!tool->has_own_input)
        at = add_route_fields(exchange, tool, route, at);
    for (const struct field *field = tool->own; field && field->name; field++)
        *at++ = *field;
    if (tool->body_under)
        *at++ = (struct field){.name = tool->body_under,
                               .type = FIELD_MAP,
                               .fields = route->fields,
                               .help = "what is to change; what is not said stays"};
    return fields;
}

int tool_read(struct tool_call *call, void *into, struct error *err)
{
    return fields_read(call->arguments, call->tool->own, into, err);
}

// ---- requests ----

/* A value as it stands in a path or a query; NULL: it cannot. */
static const char *plain_text(const struct data_value *value)
{
    if (value->kind == VALUE_BOOL)
        return value->truth ? "true" : "false";
    bool is_text = (value->kind == VALUE_STRING || value->kind == VALUE_NUMBER) &&
                   strlen(value->text) == value->length;
    return is_text ? value->text : NULL;
}

static int add_path_argument(struct tool_call *call, const char *name, struct buffer *out,
                             struct error *err)
{
    const struct data_value *value = value_get(call->arguments, name);
    const char *text = value && value->kind == VALUE_STRING ? plain_text(value) : NULL;

    if (text && *text)
        return percent_encode(text, out, err);
    (void)error_set(err, ERROR_INVALID, "%s: %s", name,
                    value ? "must be a string that is not empty" : "is needed");
    return error_field(err, name);
}

void tool_add_query(struct buffer *target, const char *name, const char *value)
{
    struct error ignored;

    (void)buffer_add_text(target, memchr(target->data, '?', target->length) ? "&" : "?", &ignored);
    (void)percent_encode(name, target, &ignored);
    (void)buffer_add_text(target, "=", &ignored);
    (void)percent_encode(value, target, &ignored);
}

void tool_add_query_number(struct buffer *target, const char *name, int64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    tool_add_query(target, name, text);
}

static int add_path(struct tool_call *call, const char *pattern, struct buffer *out,
                    struct error *err)
{
    while (*pattern) {
        size_t length = strcspn(pattern, "{");
        if (buffer_add(out, pattern, length, err) < 0)
            return -1;
        pattern += length;
        if (!*pattern)
            break;
        length = strcspn(++pattern, "}");
        const char *name = tool_print(call, "%.*s", (int)length, pattern);
        if (add_path_argument(call, name, out, err) < 0)
            return -1;
        pattern += length + 1;
    }
    return 0;
}

static const char *default_of(const struct tool *tool, const char *name)
{
    for (const struct tool_default *at = tool->defaults; at && at->name; at++) {
        if (strcmp(at->name, name) == 0)
            return at->value;
    }
    return NULL;
}

int tool_target(struct tool_call *call, const struct route *route, struct buffer *out,
                struct error *err)
{
    if (add_path(call, route->pattern, out, err) < 0)
        return -1;
    for (const struct parameter *p = route->query; p && p->name; p++) {
        const struct data_value *value = value_get(call->arguments, p->name);
        const char *text = value ? plain_text(value) : default_of(call->tool, p->name);
        if (value && value->kind != VALUE_NULL && !text) {
            (void)error_set(err, ERROR_INVALID, "%s: must not be %s", p->name,
                            value_kind_name(value->kind));
            return error_field(err, p->name);
        }
        if (text)
            tool_add_query(out, p->name, text);
    }
    return 0;
}

static bool is_in_path(const char *pattern, const char *name)
{
    size_t length = strlen(name);

    for (; (pattern = strchr(pattern, '{')); pattern++) {
        if (strncmp(pattern + 1, name, length) == 0 && pattern[length + 1] == '}')
            return true;
    }
    return false;
}

static bool is_of_body(const struct tool_call *call, const struct route *route, const char *name)
{
    for (const struct field *own = call->tool->own; own && own->name; own++) {
        if (strcmp(own->name, name) == 0)
            return false;
    }
    return !is_in_path(route->pattern, name);
}

int tool_body(struct tool_call *call, const struct route *route, struct buffer *out,
              struct error *err)
{
    struct json_writer json;

    json_writer_init(&json, out);
    json_map_begin(&json);
    for (const struct data_value *v = call->arguments->first; v; v = v->next) {
        if (!is_of_body(call, route, v->key))
            continue;
        json_key_exact(&json, v->key, v->key_length);
        json_value(&json, v);
    }
    json_map_end(&json);
    return json_writer_finish(&json, err);
}

// ---- answers ----

/* What a model can do about a failure, by the code that /api/v1 has for it and words of its sentence (NULL: any). The first that fits. */
static const struct {
    const char *code, *words;
    const char *hint;
} hints[] = {
    {"not_found", "no sandbox",
     "sandbox_list shows the sandboxes there are, and sandbox_create makes one"},
    {"not_found", "no checkpoint", "name one that sandbox_checkpoint has made in this sandbox"},
    {"not_found", "no snapshot", "name one by the id that sandbox_snapshot returned"},
    {"not_found", "no execution", "use the id that sandbox_exec or sandbox_run returned"},
    {"not_found", "runtime", "choose a runtime that there is"},
    {"not_found", "o such file", "sandbox_list_files shows what is there"},
    {"not_found", NULL, "look whether the name is right"},
    {"ended", NULL, "make a new sandbox with sandbox_create; sandbox_list shows those that live"},
    {"invalid_request", "command: must be a list",
     "give the program and its arguments as a list, or a line for the shell as 'script'"},
    {"invalid_request", NULL, "correct the argument and call the tool again"},
    {"unknown_field", NULL, "correct the argument and call the tool again"},
    {"missing_scope", NULL,
     "do not try again: ask the person you work for, who can give you another key"},
    {"forbidden", NULL,
     "do not try again: ask the person you work for, who can give you another key"},
    {"busy", NULL, "wait a moment and call the tool again"},
    {"conflict", NULL, "sandbox_get tells its state"},
    {"already_exists", NULL, "choose another name, or use the one there is"},
    {"precondition_failed", NULL, "read the file again with sandbox_read_file"},
    {"limit_reached", NULL,
     "destroy sandboxes that are not needed (sandbox_list, sandbox_destroy)"},
    {"quota_exceeded", NULL,
     "destroy sandboxes that are not needed (sandbox_list, sandbox_destroy), or ask for less"},
    {"disk_full", NULL, "remove files in the sandbox with sandbox_exec"},
    {"too_large", NULL, "ask for less, or in parts by 'offset'"},
    {"rate_limited", NULL, "wait some seconds and call the tool again"},
    {"restarting", NULL, "wait some seconds and call the tool again"},
    {"unavailable", NULL, "wait some seconds and call the tool again"},
    {"timeout", NULL, "look at its state with sandbox_get before trying again"},
};

static const char *hint_of(const char *code, const char *detail)
{
    for (size_t i = 0; code && i < ARRAY_SIZE(hints); i++) {
        if (strcmp(hints[i].code, code) == 0 &&
            (!hints[i].words || (detail && strstr(detail, hints[i].words))))
            return hints[i].hint;
    }
    return NULL;
}

/* The problem of /api/v1 as a sentence. */
static int fail_as(const struct data_value *problem, int status, struct error *err)
{
    const char *detail = mcp_text(problem, "detail"), *code = mcp_text(problem, "code");
    const char *remedy = mcp_text(problem, "remedy"), *hint = hint_of(code, detail);
    const char *advice = hint ? hint : remedy;

    return error_set(err, error_reason_of_status(status), "%.480s (%s)%s%.240s",
                     detail ? detail : "the server gave no reason", code ? code : "failed",
                     advice ? ". What to do: " : "", advice ? advice : "");
}

static int fail_by(struct tool_call *call, const struct inner_answer *answer, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct error ignored;

    (void)call;
    if (json_read("", answer->body, answer->length, NULL, &document, &ignored) < 0)
        return error_set(err, error_reason_of_status(answer->status),
                         "the server failed (status %d)", answer->status);
    return fail_as(document->root, answer->status, err);
}

int tool_check(struct tool_call *call, const struct inner_answer *answer, struct error *err)
{
    if (answer->status >= 400)
        return fail_by(call, answer, err);
    if (answer->is_cut)
        return error_set(err, ERROR_TOO_LARGE,
                         "the answer is longer than a tool returns. What to do: ask for less");
    return 0;
}

int tool_answer(struct tool_call *call, const struct inner_answer *answer,
                struct data_document **out, struct error *err)
{
    if (tool_check(call, answer, err) < 0)
        return -1;
    return json_read("", answer->body, answer->length, NULL, out, err);
}

int64_t tool_header_number(const struct inner_answer *answer, const char *name)
{
    char text[32];

    return inner_answer_header(answer, name, text, sizeof text) ? strtoll(text, NULL, 10) : -1;
}

int64_t tool_integer(const struct data_value *map, const char *name, int64_t absent)
{
    const struct data_value *value = value_get(map, name);

    return value && value->kind == VALUE_NUMBER ? strtoll(value->text, NULL, 10) : absent;
}

int64_t tool_whole_size(const struct inner_answer *answer)
{
    char text[96];
    const char *slash =
        inner_answer_header(answer, "Content-Range", text, sizeof text) ? strchr(text, '/') : NULL;

    return slash ? strtoll(slash + 1, NULL, 10) : -1;
}

size_t tool_whole_characters(const char *text, size_t length)
{
    for (size_t cut = 1; cut < UTF8_MAX && cut < length; cut++) {
        if (utf8_is_partial(text + length - cut, cut))
            return length - cut;
    }
    return length;
}

int tool_result(struct tool_call *call, const struct answer_field *fields, const void *from,
                struct error *err)
{
    struct json_writer json;

    json_writer_init(&json, &call->result);
    answer_write(&json, fields, from);
    return json_writer_finish(&json, err) < 0 ? -1 : TOOL_DONE;
}

// ---- a tool that is one request ----

static int begin_route(struct tool_call *call, struct ask *next, struct error *err)
{
    next->method = call->route->method;
    if (tool_target(call, call->route, &next->target, err) < 0)
        return -1;
    if (call->route->body == BODY_JSON && tool_body(call, call->route, &next->body, err) < 0)
        return -1;
    return TOOL_ASKS;
}

static int step_route(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                      struct error *err)
{
    (void)next;
    if (tool_check(call, answer, err) < 0)
        return -1;
    return buffer_add(&call->result, answer->body, answer->length, err) < 0 ? -1 : TOOL_DONE;
}

// ---- the result ----

static void put_text(struct json_writer *json, const char *text, size_t length)
{
    json_map_begin(json);
    mcp_put(json, "type", "text");
    json_key(json, "text");
    json_bytes(json, text, length);
    json_map_end(json);
}

static void put_images(struct json_writer *json, const struct tool_image *image)
{
    for (; image; image = image->next) {
        json_map_begin(json);
        mcp_put(json, "type", "image");
        json_key(json, "data");
        json_bytes(json, image->data, image->length);
        mcp_put(json, "mimeType", image->type);
        json_map_end(json);
    }
}

static void put_failure(struct exchange *exchange, const struct error *err)
{
    struct json_writer *json = exchange_result_begin(exchange);

    json_key(json, "content");
    json_list_begin(json);
    put_text(json, err->text, strlen(err->text));
    json_list_end(json);
    json_key(json, "isError");
    json_bool(json, true);
    exchange_result_end(exchange);
}

static void put_result(const struct tool_call *call)
{
    struct json_writer *json = exchange_result_begin(call->exchange);
    bool is_empty = call->result.length == 0;
    const char *result = is_empty ? "{\"done\":true}" : call->result.data;
    size_t length = is_empty ? strlen(result) : call->result.length;

    json_key(json, "content");
    json_list_begin(json);
    if (call->text.length)
        put_text(json, call->text.data, call->text.length);
    else
        put_text(json, result, length);
    put_images(json, call->images);
    json_list_end(json);
    json_key(json, "structuredContent");
    json_raw(json, result, length);
    json_key(json, "isError");
    json_bool(json, false);
    exchange_result_end(call->exchange);
}

// ---- the call ----

static void clear(struct tool_call *call)
{
    if (call->clear)
        call->clear(call->state);
    buffer_clear(&call->result);
    buffer_clear(&call->text);
}

static void on_step(struct exchange *exchange, void *data, const struct inner_answer *answer);

/* After each step. Whether the message is answered. */
static bool settle(struct tool_call *call, int status, struct ask *next, struct error *err)
{
    struct exchange *exchange = call->exchange;

    if (status == TOOL_ASKS && exchange_is_given_up(exchange))
        status = error_set(err, ERROR_CANCELLED, "the call was cancelled before it was done");
    if (status == TOOL_ASKS) {
        exchange_ask(exchange, next, on_step, call);
        return false;
    }
    if (status < 0)
        put_failure(exchange, err);
    else
        put_result(call);
    clear(call);
    return true;
}

static void on_step(struct exchange *exchange, void *data, const struct inner_answer *answer)
{
    struct tool_call *call = data;
    autoask next = {0};
    struct error err = {0};
    tool_step step = call->tool->step ? call->tool->step : step_route;
    int status = step(call, answer, &next, &err);

    if (settle(call, status, &next, &err))
        exchange_done(exchange);
}

bool mcp_is_allowed(const struct actor *actor, enum mcp_tool tool)
{
    return !actor->tools || (actor->tools >> tool & 1);
}

static unsigned find_tool(const char *name)
{
    unsigned tool = 0;

    while (tool < MCP_TOOLS && strcmp(mcp_tool_names[tool], name) != 0)
        tool++;
    return tool;
}

/* With the names that there are: a model that guessed one does not guess again. */
static int fail_names(struct tool_call *call, const struct field *fields, struct error *err)
{
    autobuffer names = {0};
    struct error ignored;

    for (const struct field *field = fields; field->name; field++)
        (void)buffer_addf(&names, &ignored, "%s%s", names.length ? ", " : "", field->name);
    char *why = tool_print(call, "%.200s", err->text);
    return error_set(err, ERROR_INVALID, "the arguments: %s. What to do: this tool takes %.*s", why,
                     (int)names.length, names.data ? names.data : "");
}

static int begin(struct tool_call *call, struct ask *next, struct error *err)
{
    const struct field *fields = tool_fields(call->exchange, call->tool, call->route);

    if (fields_check_names(call->arguments, fields, err) < 0)
        return fail_names(call, fields, err);
    return (call->tool->begin ? call->tool->begin : begin_route)(call, next, err);
}

/* Sentences that this file makes itself have no advice yet. */
static void advise(struct error *err)
{
    size_t used = strlen(err->text);

    if (!strstr(err->text, "What to do"))
        (void)snprintf(err->text + used, sizeof err->text - used,
                       ". What to do: correct the argument and call the tool again");
}

int mcp_call_tool(struct exchange *exchange, struct mcp_fault *fault)
{
    const struct data_value *params = exchange_message(exchange)->params;
    const struct data_value *arguments = value_get(params, "arguments");
    const char *name = mcp_text(params, "name");
    unsigned which = name ? find_tool(name) : MCP_TOOLS;
    struct tool_call *call = exchange_alloc(exchange, sizeof *call);
    autoask next = {0};
    struct error err = {0};

    if (which == MCP_TOOLS || !mcp_is_allowed(exchange_actor(exchange), which))
        return mcp_fail(fault, MCP_INVALID_PARAMS, 200, "there is no tool '%.80s': see tools/list",
                        name ? name : "");
    if (arguments && arguments->kind != VALUE_MAP && arguments->kind != VALUE_NULL)
        return mcp_fail(fault, MCP_INVALID_PARAMS, 200, "arguments: must be an object, not %s",
                        value_kind_name(arguments->kind));
    struct data_value *nothing = exchange_alloc(exchange, sizeof *nothing);
    nothing->kind = VALUE_MAP;
    nothing->document = params->document;
    *call = (struct tool_call){
        .exchange = exchange,
        .tool = &mcp_tools[which],
        .route = router_find(exchange_router(exchange), mcp_tools[which].method,
                             mcp_tools[which].pattern),
        .arguments = arguments && arguments->kind == VALUE_MAP ? arguments : nothing,
    };
    call->last_image = &call->images;
    if (!call->route)
        return mcp_fail(fault, MCP_INTERNAL, 200, "the server has no '%s'",
                        mcp_tools[which].pattern);
    int status = begin(call, &next, &err);
    if (status < 0)
        advise(&err);
    return settle(call, status, &next, &err) ? 0 : MCP_LATER;
}
