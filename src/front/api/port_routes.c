/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of a sandbox that are reached from outside. */
#include "front/api/port_body.h"
#include "front/api/api.h"
#include "web/preview_url.h"

#include <stdlib.h>
#include <string.h>

static const char *const protocols[] = {[PORT_HTTP] = "http", [PORT_TCP] = "tcp", NULL};

#define AT(member) offsetof(struct port_answer, member)
const struct answer_field port_answer_fields[] = {
    {"port", ANSWER_INTEGER, AT(port), .is_needed = true, .help = "of the sandbox; 0: all of them"},
    {"protocol", ANSWER_WORD, AT(protocol), .is_needed = true, .words = protocols,
     .n_words = PORT_TCP + 1},
    {"url", ANSWER_TEXT, AT(url),
     .help = "where it is reached from the client's machine; of all ports with '{port}' in it"},
    {"hostPort", ANSWER_INTEGER, AT(host_port), .has_offset = AT(has_host_port),
     .help = "the port of the server's machine that leads to it"},
    {"private", ANSWER_BOOL, AT(is_private), .is_needed = true,
     .help = "only with its token, in the header X-Burrow-Port-Token or in the name"},
    {"token", ANSWER_TEXT, AT(token), .help = "of a private one: told once, when it is made"},
    {"tokenUrl", ANSWER_TEXT, AT(token_url),
     .help = "with the token in the name, where the server has names for ports; told once too"},
    {"tokenExpiresAt", ANSWER_TIME, AT(token_expires_at), .help = "none: it does not"},
    {"createdAt", ANSWER_TIME, AT(created_at), .is_needed = true},
    {0},
};
#undef AT
static const struct answer_field list_fields[] = {
    {"items", ANSWER_LIST, 0, .is_needed = true, .fields = port_answer_fields,
     .item_size = sizeof(struct port_answer)},
    {0},
};

static struct port_answer port_answer_of(struct call *call, const struct port_info *info)
{
    return (struct port_answer){
        .port = info->port,
        .protocol = info->protocol,
        .url = preview_url(call, info),
        .host_port = info->host_port,
        .has_host_port = info->host_port != 0,
        .is_private = info->is_private,
        .token = info->token[0] ? call_print(call, "%s", info->token) : NULL,
        .token_url = preview_token_url(call, info),
        .token_expires_at = info->token_expires_at,
        .created_at = info->created_at,
    };
}

struct answer_list port_answer_list(struct call *call, const struct port_info *infos, size_t count)
{
    struct port_answer *items = call_alloc(call, (count + 1) * sizeof *items);

    for (size_t i = 0; i < count; i++)
        items[i] = port_answer_of(call, &infos[i]);
    return (struct answer_list){items, count};
}

// ---- what is asked for ----

#define AT(member) offsetof(struct port_body, member)
const struct field port_body_fields[] = {
    {"port", FIELD_INTEGER, AT(port), .maximum = PORT_MOST,
     .help = "1024 to 65535, on any address of the sandbox's loopback"},
    {"all", FIELD_BOOL, AT(is_all),
     .help = "true: every port, where the server has names for them; instead of 'port'"},
    {"protocol", FIELD_TEXT, AT(protocol), .words = protocols,
     .help = "tcp: bytes are passed on as they are (default http)"},
    {"private", FIELD_BOOL, AT(is_private),
     .help = "true: makes a token, without which it is shut"},
    {"expiresInMs", FIELD_MS, AT(token_ms), .minimum = 0, .maximum = PORT_TOKEN_MOST_MS,
     .help = "how long its token is good; 0: as long as the port is exposed"},
    {0},
};
#undef AT

int port_body_request(const struct call *call, const struct port_body *body,
                      struct port_request *out, struct error *err)
{
    *out = (struct port_request){
        .port = body->is_all ? PORT_ALL : body->port,
        .protocol = body->protocol && strcmp(body->protocol, "tcp") == 0 ? PORT_TCP : PORT_HTTP,
        .is_private = body->is_private,
        .token_ms = body->token_ms,
    };
    if (!body->is_all && body->port == 0) {
        (void)error_set(err, ERROR_INVALID, "port: is needed, unless 'all' is true");
        return error_field(err, "port");
    }
    if (port_check(out, err) < 0)
        return -1;
    if (body->is_all && !call->core->settings.has_port_names) {
        (void)error_set(err, ERROR_INVALID,
                        "all: needs names for ports, which this server has none of: name one port, "
                        "or have the operator set --preview-domain");
        return error_field(err, "all");
    }
    return 0;
}

// ---- handlers ----

/* POST /api/v1/sandboxes/{sandbox}/ports */
static int expose_port(struct call *call, struct error *err)
{
    struct port_body body = {0};
    struct port_request request;
    struct port_info info;
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        fields_read(call->body, port_body_fields, &body, err) < 0 ||
        port_body_request(call, &body, &request, err) < 0 ||
        port_expose(call->core->ports, &call->actor, id, &request, &info, err) < 0)
        return -1;
    const struct port_answer answer = port_answer_of(call, &info);
    return api_answer(call, 201, port_answer_fields, &answer);
}

/* GET /api/v1/sandboxes/{sandbox}/ports */
static int list_ports(struct call *call, struct error *err)
{
    autoclear(port_infos) found = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        port_list(call->core->ports, &call->actor, id, &found, err) < 0)
        return -1;
    const struct answer_list items = port_answer_list(call, found.items, found.count);
    return api_answer(call, 200, list_fields, &items);
}

/* "3000", or "all", which answers tell as 0. */
static int read_port(const char *text, uint16_t *out, struct error *err)
{
    char *end = NULL;
    unsigned long port =
        strcmp(text, "all") == 0 || strcmp(text, "0") == 0 ? PORT_ALL : strtoul(text, &end, 10);

    if (end && (*end || *text < '1' || *text > '9' || port > PORT_MOST))
        return error_refuse(err, ERROR_NOT_FOUND, "port", "there is no port '%.20s'", text);
    *out = (uint16_t)port;
    return 0;
}

/* DELETE /api/v1/sandboxes/{sandbox}/ports/{port} */
static int remove_port(struct call *call, struct error *err)
{
    uint16_t port = 0;
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 || read_port(call->parameters[1], &port, err) < 0 ||
        port_remove(call->core->ports, &call->actor, id, port, err) < 0)
        return -1;
    return api_answer_empty(call);
}

static const struct route_answer made_answers[] = {{201, port_answer_fields}, {0}};
static const struct route_answer list_answers[] = {{200, list_fields}, {0}};
static const struct route_answer empty_answers[] = {{204}, {0}};

#define PORTS API_TOP "/sandboxes/{sandbox}/ports"
const struct route api_port_routes[] = {
    {"POST", PORTS, ROUTE_SLOW, ACCESS_KEY, BODY_JSON, expose_port,
     .summary = "exposes a port of a sandbox, or makes a new token for it",
     .fields = port_body_fields, .answers = made_answers, .needs = SCOPE_RUN},
    {"GET", PORTS, ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_ports,
     .summary = "exposed ports of a sandbox, the oldest first", .answers = list_answers,
     .needs = SCOPE_READ},
    {"DELETE", PORTS "/{port}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, remove_port,
     .summary = "shuts an exposed port, and cuts connections to it", .answers = empty_answers,
     .needs = SCOPE_RUN},
    {0},
};
