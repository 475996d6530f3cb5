/* SPDX-License-Identifier: Apache-2.0 */
/* The front: one route, who may call from a page, and how what is refused as a whole is told; see mcp.h. */
#include "base/auto.h"
#include "base/mem.h"
#include "front/mcp/mcp_impl.h"
#include "web/access.h"
#include "web/reply.h"
#include "web/tokens.h"

#include <string.h>

#define PATH "/mcp"
#define ECHO_MOST 2048 // bytes of what was asked for, in a failure

// ---- failures ----

/* What was asked for comes back, but not at any length. */
static void put_bounded(struct json_writer *json, const char *name, const char *text)
{
    json_key(json, name);
    json_bytes(json, text, strnlen(text, ECHO_MOST));
}

static void put_data(struct json_writer *json, const struct mcp_fault *fault)
{
    json_key(json, "data");
    json_map_begin(json);
    if (fault->uri)
        put_bounded(json, "uri", fault->uri);
    if (fault->code == MCP_VERSION) {
        json_key(json, "supported");
        json_list_begin(json);
        for (const char *const *version = mcp_versions; *version; version++)
            json_string(json, *version);
        json_list_end(json);
        put_bounded(json, "requested", fault->requested);
    }
    json_map_end(json);
}

void mcp_write_fault(struct json_writer *json, const struct data_value *id,
                     const struct mcp_fault *fault)
{
    json_map_begin(json);
    mcp_put(json, "jsonrpc", "2.0");
    json_key(json, "id");
    if (id)
        json_value(json, id);
    else
        json_null(json);
    json_key(json, "error");
    json_map_begin(json);
    json_key(json, "code");
    json_integer(json, fault->code);
    mcp_put(json, "message", fault->text);
    if (fault->uri || fault->code == MCP_VERSION)
        put_data(json, fault);
    json_map_end(json);
    json_map_end(json);
}

void mcp_answer_fault(struct call *call, const struct mcp_fault *fault)
{
    autoreply reply = {0};

    reply_init(&reply);
    mcp_write_fault(&reply.json, NULL, fault);
    reply_send(&reply, call->response, fault->status);
}

/* What is refused before any message was read: keys, origins, sizes, methods of HTTP. */
static void on_error(struct call *call, const struct error *err)
{
    struct mcp_fault fault;
    int status = error_status(err);

    (void)mcp_fail(&fault, status >= 500 ? MCP_INTERNAL : MCP_INVALID_REQUEST, status, "%.299s",
                   err->text[0] ? err->text : "something went wrong in the server");
    mcp_answer_fault(call, &fault);
}

// ---- pages of others ----

/* As the operator wrote it; NULL: it may not. */
static const char *allowed_origin(const struct call *call, const char *origin)
{
    const struct mcp_front *front = call->settings;
    const char *at = front->origins, *entry;
    size_t length;

    while ((entry = tokens_next(&at, &length))) {
        if (length == 1 && *entry == '*')
            return "*";
        if (strlen(origin) == length && strncmp(entry, origin, length) == 0)
            return origin;
    }
    return NULL;
}

/* A page that came from this very server on the machine it runs on. No name in DNS is behind such an address, so none can be made to lead here. */
static bool is_own_page(const struct call *call, const char *origin)
{
    static const char *const names[] = {"127.0.0.1", "[::1]", "localhost"};
    static const char scheme[] = "http://";
    const char *host = call->request->host;

    if (!host || strncmp(origin, scheme, sizeof scheme - 1) != 0 ||
        strcmp(origin + sizeof scheme - 1, host) != 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t length = strlen(names[i]);
        if (strncmp(host, names[i], length) == 0 && (host[length] == ':' || !host[length]))
            return true;
    }
    return false;
}

/* A page that is none of the operator's is refused whatever it knows: its name may have been made to lead here. */
static int on_call(struct call *call, struct error *err)
{
    const char *origin = call_header(call, "Origin");

    if (!origin)
        return 0;
    const char *allowed = is_own_page(call, origin) ? origin : allowed_origin(call, origin);
    access_set_header(call->access, call->response, "Vary", "Origin");
    if (!allowed)
        return error_refuse(err, ERROR_DENIED, "origin",
                            "pages of '%.100s' may not call: whoever runs the server names those "
                            "that may with --api-origins",
                            origin);
    access_set_header(call->access, call->response, "Access-Control-Allow-Origin", allowed);
    access_set_header(call->access, call->response, "Access-Control-Expose-Headers",
                      "Mcp-Session-Id, X-Request-Id, Retry-After");
    return 0;
}

static int preflight(struct call *call, struct error *err)
{
    static const struct http_header allowed[] = {
        {"Access-Control-Allow-Methods", "POST"},
        {"Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, "
                                         "MCP-Protocol-Version, Mcp-Method, Mcp-Name, "
                                         "Mcp-Session-Id, Last-Event-ID, X-Api-Key, X-Request-Id"},
        {"Access-Control-Max-Age", "600"},
        {0},
    };

    (void)err;
    (void)response_send(call->response, 204, call_header(call, "Origin") ? allowed : NULL, NULL, 0);
    return 0;
}

// ---- POST /mcp ----

static int post(struct call *call, struct error *err)
{
    const char *type = call_header(call, "Content-Type");

    if (!type || strncasecmp(type, "application/json", 16) != 0)
        return error_refuse(err, ERROR_MEDIA_TYPE, "body",
                            "messages are sent as Content-Type: application/json");
    return exchange_start(call, err);
}

static const struct route routes[] = {
    {"POST", PATH, ROUTE_QUICK, ACCESS_KEY, BODY_WHOLE, post,
     .summary = "a message of the Model Context Protocol; answered by one, or by a stream of them",
     .body_limit = MCP_BODY_BYTES, .is_undescribed = true, .needs = SCOPE_READ,
     .reach = REACH_SANDBOX, .takes_tool_keys = true},
    {"OPTIONS", PATH, ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, preflight, .is_undescribed = true},
    {0},
};

/* No challenge that names where to get a token: clients that see one forget the key they were given. */
void mcp_front_init(struct front *front, const char *origins)
{
    struct mcp_front *own = xnew(struct mcp_front);

    own->origins = origins;
    lock_init(&own->lock, LOCK_FRONT);
    *front = (struct front){
        .name = "mcp",
        .title = "The Model Context Protocol",
        .routes = routes,
        .top = PATH,
        .on_error = on_error,
        .on_call = on_call,
        .settings = own,
    };
}

void mcp_front_clear(struct front *front)
{
    struct mcp_front *own = front->settings;

    if (own)
        lock_clear(&own->lock);
    free(own);
    *front = (struct front){0};
}
