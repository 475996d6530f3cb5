/* SPDX-License-Identifier: Apache-2.0 */
/* Resources: sandboxes, their files and what their commands wrote, by URI. */
#include "base/base64.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "data/json.h"
#include "front/mcp/mcp_tool_call.h"
#include "web/percent.h"

#include <stdio.h>
#include <string.h>

#define SCHEME "burrow://"
#define PAGE "50"
#define READ_MOST ((size_t)1 << 20) // of a file or an output
#define READ_LAST "1048575"

// ---- what there is ----

/* Each is read by the tool beside it, whose key it needs. */
static const struct template
{
    const char *uri, *name, *description;
    enum mcp_tool tool;
}
templates[] = {
    {SCHEME "sandboxes/{sandbox}", "sandbox", "everything about a sandbox, as JSON", TOOL_GET},
    {SCHEME "sandboxes/{sandbox}/files/{+path}", "file",
     "a file of a sandbox, its first MiB; the path is absolute, without its first slash",
     TOOL_READ_FILE},
    {SCHEME "executions/{execution}/stdout", "stdout", "what a command wrote, its first MiB",
     TOOL_OUTPUT},
    {SCHEME "executions/{execution}/stderr", "stderr",
     "what a command wrote to its standard error, its first MiB", TOOL_OUTPUT},
};

int mcp_list_templates(struct exchange *exchange, struct mcp_fault *fault)
{
    struct json_writer *json = exchange_result_begin(exchange);

    (void)fault;
    json_key(json, "resourceTemplates");
    json_list_begin(json);
    for (size_t i = 0; i < ARRAY_SIZE(templates); i++) {
        if (!mcp_is_allowed(exchange_actor(exchange), templates[i].tool))
            continue;
        json_map_begin(json);
        mcp_put(json, "uriTemplate", templates[i].uri);
        mcp_put(json, "name", templates[i].name);
        mcp_put(json, "description", templates[i].description);
        json_map_end(json);
    }
    json_list_end(json);
    exchange_put_caching(exchange, json);
    exchange_result_end(exchange);
    return 0;
}

static void put_sandboxes(struct json_writer *json, const struct data_value *page)
{
    const struct data_value *items = value_get(page, "items");

    json_key(json, "resources");
    json_list_begin(json);
    for (const struct data_value *v = items ? items->first : NULL; v; v = v->next) {
        const char *id = mcp_text(v, "id"), *name = mcp_text(v, "name");
        char uri[128];
        (void)snprintf(uri, sizeof uri, SCHEME "sandboxes/%s", id ? id : "");
        json_map_begin(json);
        mcp_put(json, "uri", uri);
        mcp_put(json, "name", name ? name : id);
        mcp_put(json, "mimeType", "application/json");
        json_map_end(json);
    }
    json_list_end(json);
    const char *next = mcp_text(page, "nextCursor");
    if (next)
        mcp_put(json, "nextCursor", next);
}

/* A failure of /api/v1 where there are no results that say so. `uri` is NULL for the list. */
static void fail_by(struct exchange *exchange, const char *uri, const struct inner_answer *answer)
{
    autoptr(data_document) document = NULL;
    struct error ignored;
    struct mcp_fault fault;
    const char *detail = NULL;
    bool is_missing = answer->status == 404 || answer->status == 409 || answer->status == 410;
    bool is_modern = exchange_terms(exchange)->is_modern;

    if (json_read("", answer->body, answer->length, NULL, &document, &ignored) == 0)
        detail = mcp_text(document->root, "detail");
    (void)mcp_fail(&fault,
                   is_missing && !is_modern ? MCP_NO_RESOURCE
                   : answer->status < 500   ? MCP_INVALID_PARAMS
                                            : MCP_INTERNAL,
                   200, "%.100s: %.180s", uri ? uri : "resources/list",
                   detail ? detail : "cannot be read");
    fault.uri = uri;
    exchange_fault(exchange, &fault);
}

static void on_sandboxes(struct exchange *exchange, void *data, const struct inner_answer *answer)
{
    autoptr(data_document) document = NULL;
    struct error ignored;

    (void)data;
    if (answer->status >= 300 ||
        json_read("", answer->body, answer->length, NULL, &document, &ignored) < 0) {
        fail_by(exchange, NULL, answer);
    } else {
        struct json_writer *json = exchange_result_begin(exchange);
        put_sandboxes(json, document->root);
        exchange_put_caching(exchange, json);
        exchange_result_end(exchange);
    }
    exchange_done(exchange);
}

int mcp_list_resources(struct exchange *exchange, struct mcp_fault *fault)
{
    const char *cursor = mcp_text(exchange_message(exchange)->params, "cursor");
    autoask ask = {.method = "GET"};
    struct error ignored;

    (void)fault;
    if (!mcp_is_allowed(exchange_actor(exchange), TOOL_LIST)) {
        struct json_writer *json = exchange_result_begin(exchange);
        put_sandboxes(json, NULL);
        exchange_put_caching(exchange, json);
        exchange_result_end(exchange);
        return 0;
    }
    (void)buffer_add_text(&ask.target, "/api/v1/sandboxes?limit=" PAGE "&state=" MCP_LIVING_STATES,
                          &ignored);
    if (cursor)
        tool_add_query(&ask.target, "cursor", cursor);
    exchange_ask(exchange, &ask, on_sandboxes, NULL);
    return MCP_LATER;
}

// ---- one of them ----

struct reading {
    const char *uri;
    const char *type; // of its content; NULL: text or bytes, as it is
};

/* Where only its beginning is given: how long it is in all; -1: it is given whole. */
static int64_t cut_size(const struct inner_answer *answer)
{
    int64_t size = tool_whole_size(answer);

    if (size < 0)
        size = tool_header_number(answer, "Output-Bytes");
    return size > (int64_t)answer->length ? size : -1;
}

static void put_cut(struct json_writer *json, int64_t size)
{
    json_key(json, "_meta");
    json_map_begin(json);
    json_key(json, "burrow/truncated");
    json_bool(json, true);
    json_key(json, "burrow/sizeBytes");
    json_integer(json, size);
    json_map_end(json);
}

static void put_content(struct json_writer *json, const struct reading *reading,
                        const struct inner_answer *answer)
{
    int64_t size = cut_size(answer);
    size_t length = size < 0 ? answer->length : tool_whole_characters(answer->body, answer->length);
    bool is_text = utf8_is_valid(answer->body, length) && !memchr(answer->body, 0, length);

    json_map_begin(json);
    mcp_put(json, "uri", reading->uri);
    mcp_put(json, "mimeType",
            reading->type ? reading->type
            : is_text     ? "text/plain"
                          : "application/octet-stream");
    json_key(json, is_text ? "text" : "blob");
    if (is_text) {
        json_bytes(json, answer->body, length);
    } else {
        autofree char *text = xcalloc(1, base64_length(answer->length) + 1);
        base64_encode(answer->body, answer->length, text);
        json_string(json, text);
    }
    if (size >= 0)
        put_cut(json, size);
    json_map_end(json);
}

static void on_content(struct exchange *exchange, void *data, const struct inner_answer *answer)
{
    const struct reading *reading = data;
    struct inner_answer told = *answer;

    if (told.status == 416) // an empty file has no first byte
        told = (struct inner_answer){.status = 200, .body = ""};
    if (told.status >= 300) {
        fail_by(exchange, reading->uri, answer);
    } else {
        struct json_writer *json = exchange_result_begin(exchange);
        json_key(json, "contents");
        json_list_begin(json);
        put_content(json, reading, &told);
        json_list_end(json);
        if (exchange_terms(exchange)->is_modern) {
            json_key(json, "ttlMs");
            json_integer(json, 0);
            mcp_put(json, "cacheScope", "private");
        }
        exchange_result_end(exchange);
    }
    exchange_done(exchange);
}

/* Decoded, of the exchange's memory; NULL: it cannot be. */
static const char *decode(struct exchange *exchange, const char *text, size_t length)
{
    char *out = exchange_alloc(exchange, length + 1);
    size_t used;
    struct error ignored;

    return length && percent_decode(text, length, false, "uri", out, &used, &ignored) == 0 ? out
                                                                                           : NULL;
}

static bool add_escaped(struct buffer *target, const char *top, const char *name)
{
    struct error ignored;

    return name && buffer_add_text(target, top, &ignored) == 0 &&
           percent_encode(name, target, &ignored) == 0;
}

/* Which request a URI stands for. MCP_TOOLS: none. */
static enum mcp_tool find_place(struct exchange *exchange, const char *uri, struct ask *ask,
                                struct reading *reading)
{
    static const char sandboxes[] = SCHEME "sandboxes/", executions[] = SCHEME "executions/";
    bool is_sandbox = strncmp(uri, sandboxes, sizeof sandboxes - 1) == 0;
    bool is_execution = strncmp(uri, executions, sizeof executions - 1) == 0;
    const char *at = uri + (is_sandbox ? sizeof sandboxes : sizeof executions) - 1;
    struct error ignored;

    if (!is_sandbox && !is_execution)
        return MCP_TOOLS;
    size_t length = strcspn(at, "/");
    const char *name = decode(exchange, at, length), *rest = at + length;
    if (!add_escaped(&ask->target, is_sandbox ? "/api/v1/sandboxes/" : "/api/v1/executions/", name))
        return MCP_TOOLS;
    if (is_sandbox && !*rest) {
        reading->type = "application/json";
        return TOOL_GET;
    }
    if (is_sandbox && strncmp(rest, "/files/", 7) == 0) {
        const char *path = decode(exchange, rest + 6, strlen(rest + 6)); // with its slash
        (void)buffer_add_text(&ask->target, "/files", &ignored);
        if (path)
            tool_add_query(&ask->target, "path", path);
        ask->range = "bytes=0-" READ_LAST;
        return path ? TOOL_READ_FILE : MCP_TOOLS;
    }
    if (is_execution && (strcmp(rest, "/stdout") == 0 || strcmp(rest, "/stderr") == 0)) {
        (void)buffer_add_text(&ask->target, "/output?length=" READ_LAST, &ignored);
        tool_add_query(&ask->target, "stream", rest + 1);
        return TOOL_OUTPUT;
    }
    return MCP_TOOLS;
}

static int fail_unknown(const struct exchange *exchange, const char *uri, struct mcp_fault *fault)
{
    bool is_modern = exchange_terms(exchange)->is_modern;

    (void)mcp_fail(fault, is_modern ? MCP_INVALID_PARAMS : MCP_NO_RESOURCE, 200,
                   "there is no resource '%.150s': see resources/templates/list", uri);
    fault->uri = uri;
    return -1;
}

int mcp_read_resource(struct exchange *exchange, struct mcp_fault *fault)
{
    const char *uri = mcp_text(exchange_message(exchange)->params, "uri");
    struct reading *reading = exchange_alloc(exchange, sizeof *reading);
    autoask ask = {.method = "GET", .limit = READ_MOST + 4096};

    if (!uri)
        return mcp_fail(fault, MCP_INVALID_PARAMS, 200, "uri: is needed, as a string");
    reading->uri = uri;
    enum mcp_tool tool = find_place(exchange, uri, &ask, reading);
    if (tool == MCP_TOOLS || !mcp_is_allowed(exchange_actor(exchange), tool))
        return fail_unknown(exchange, uri, fault);
    exchange_ask(exchange, &ask, on_content, reading);
    return MCP_LATER;
}
