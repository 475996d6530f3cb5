/* SPDX-License-Identifier: Apache-2.0 */
/* The tool for a sandbox's network: look at it, change it, and ask why something is refused. */
#include "front/mcp/mcp_tool_call.h"
#include "web/percent.h"

#include <stdio.h>
#include <string.h>

static const char *const actions[] = {"get", "set", "explain", NULL};

struct network_arguments {
    const char *sandbox, *action, *host, *protocol;
    int64_t port;
    bool has_port;
    bool is_explained;
};
#define AT(member) offsetof(struct network_arguments, member)
const struct field tool_network_fields[] = {
    {"sandbox", FIELD_TEXT, AT(sandbox), .is_needed = true, .minimum = 1, .maximum = 256,
     .help = "the sandbox's id, or its name"},
    {"action", FIELD_TEXT, AT(action), .words = actions, .help = "default get"},
    {"host", FIELD_TEXT, AT(host), .maximum = 253,
     .help = "of 'explain': a name, or an address of version 4"},
    {"port", FIELD_INTEGER, AT(port), .minimum = 0, .maximum = 65535, .has_offset = AT(has_port),
     .help = "of 'explain'; not said: whether the name is resolved at all"},
    {"protocol", FIELD_TEXT, AT(protocol), .maximum = 8,
     .help = "of 'explain': tcp, udp or icmp; default tcp"},
    {0},
};
#undef AT

static int ask_change(struct tool_call *call, const struct data_value *policy, struct ask *next,
                      struct error *err)
{
    struct json_writer json;

    (void)call;
    if (!policy)
        return error_set(err, ERROR_INVALID, "policy: is needed to set something");
    next->method = "PATCH";
    json_writer_init(&json, &next->body);
    json_value(&json, policy);
    return json_writer_finish(&json, err) < 0 ? -1 : TOOL_ASKS;
}

static int ask_why(const struct network_arguments *arguments, struct ask *next, struct error *err)
{
    if (!arguments->host)
        return error_set(err, ERROR_INVALID, "host: is needed: whether the sandbox may go where?");
    if (buffer_add_text(&next->target, "/why", err) < 0)
        return -1;
    tool_add_query(&next->target, "host", arguments->host);
    if (arguments->has_port)
        tool_add_query_number(&next->target, "port", arguments->port);
    if (arguments->protocol)
        tool_add_query(&next->target, "protocol", arguments->protocol);
    return TOOL_ASKS;
}

int tool_network_begin(struct tool_call *call, struct ask *next, struct error *err)
{
    struct network_arguments *arguments = tool_alloc(call, sizeof *arguments);
    const struct data_value *policy = value_get(call->arguments, call->tool->body_under);

    call->state = arguments;
    arguments->action = actions[0];
    next->method = "GET";
    if (tool_read(call, arguments, err) < 0 ||
        buffer_add_text(&next->target, "/api/v1/sandboxes/", err) < 0 ||
        percent_encode(arguments->sandbox, &next->target, err) < 0 ||
        buffer_add_text(&next->target, "/network", err) < 0)
        return -1;
    if (strcmp(arguments->action, "set") == 0)
        return ask_change(call, policy, next, err);
    if (policy)
        return error_set(err, ERROR_INVALID, "policy: is for action 'set' alone");
    arguments->is_explained = strcmp(arguments->action, "explain") == 0;
    return arguments->is_explained ? ask_why(arguments, next, err) : TOOL_ASKS;
}

/* How a refusal is mended with this very tool; NULL: it is not, or nothing is refused. */
static const char *how_to_allow(struct tool_call *call, const struct data_value *explanation)
{
    const struct network_arguments *arguments = call->state;
    const struct data_value *allowed = value_get(explanation, "allowed");
    const char *tier = mcp_text(explanation, "tier");
    char port[16] = "";

    if (!allowed || allowed->truth || !tier || strcmp(tier, "default") != 0)
        return NULL;
    if (arguments->has_port && arguments->port)
        (void)snprintf(port, sizeof port, ":%d", (int)arguments->port);
    return tool_print(call,
                      "to allow it: action \"set\" with policy {\"enabled\": true, \"allow\": "
                      "[\"%s%s\"]}, and in that list also every rule that action \"get\" shows in "
                      "'allow', since it takes its place",
                      arguments->host, port);
}

static const char *how_to_switch_on(const struct network_arguments *arguments,
                                    const struct data_value *network)
{
    const struct data_value *enabled = value_get(network, "enabled");

    if (strcmp(arguments->action, "set") != 0 || !enabled || enabled->truth)
        return NULL;
    return "the network is off, so nothing can be reached: set policy {\"enabled\": true} to "
           "switch "
           "it on";
}

int tool_network_step(struct tool_call *call, const struct inner_answer *answer, struct ask *next,
                      struct error *err)
{
    const struct network_arguments *arguments = call->state;
    autoptr(data_document) document = NULL;
    struct json_writer json;

    (void)next;
    if (tool_answer(call, answer, &document, err) < 0)
        return -1;
    const char *advice = arguments->is_explained ? how_to_allow(call, document->root)
                                                 : how_to_switch_on(arguments, document->root);
    json_writer_init(&json, &call->result);
    json_map_begin(&json);
    json_key(&json, arguments->is_explained ? "explanation" : "network");
    json_raw(&json, answer->body, answer->length);
    if (advice)
        mcp_put(&json, "next", advice);
    json_map_end(&json);
    return json_writer_finish(&json, err) < 0 ? -1 : TOOL_DONE;
}
