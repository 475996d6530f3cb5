/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of MCP: what the server says of itself, and the table of all; see mcp_exchange.h. */
#include "base/id.h"
#include "front/mcp/mcp_impl.h"

#include <string.h>

static const char instructions[] =
    "burrow runs untrusted code in sandboxes: isolated Linux machines with files of their own. For "
    "a single command use sandbox_run, which needs nothing "
    "else and leaves nothing behind. For work of several steps make a sandbox with sandbox_create "
    "and name its id in every later call; end it with "
    "sandbox_destroy. sandbox_exec waits for a while and then returns a handle (execution) whose "
    "output sandbox_output reads. Long output comes as its "
    "beginning and its end; sandbox_output reads the rest by offset. A sandbox has no network "
    "unless it is given one: where a connection is refused, "
    "sandbox_network with action explain says why and what to change. Take a sandbox_checkpoint "
    "before something risky and sandbox_restore to go back.";

static void put_capabilities(struct json_writer *json)
{
    json_key(json, "capabilities");
    json_map_begin(json);
    json_key(json, "tools");
    json_map_begin(json);
    json_map_end(json);
    json_key(json, "resources");
    json_map_begin(json);
    json_map_end(json);
    json_map_end(json);
}

static int discover(struct exchange *exchange, struct mcp_fault *fault)
{
    struct json_writer *json = exchange_result_begin(exchange);

    (void)fault;
    json_key(json, "supportedVersions");
    json_list_begin(json);
    for (const char *const *version = mcp_versions; *version; version++)
        json_string(json, *version);
    json_list_end(json);
    put_capabilities(json);
    mcp_put(json, "instructions", instructions);
    exchange_put_caching(exchange, json);
    exchange_result_end(exchange);
    return 0;
}

/* The session is a name without anything behind it: it tells apart the clients of one key when they cancel. */
static int initialize(struct exchange *exchange, struct mcp_fault *fault)
{
    const char *asked = mcp_text(exchange_message(exchange)->params, "protocolVersion");
    const char *version = mcp_legacy_version(asked);
    char session[ID_TEXT];

    if (!asked)
        return mcp_fail(fault, MCP_INVALID_PARAMS, 200,
                        "protocolVersion: is needed, as a string such as \"%s\"",
                        MCP_LEGACY_VERSION);
    exchange_set_session(exchange, id_make(session));
    struct json_writer *json = exchange_result_begin(exchange);
    mcp_put(json, "protocolVersion", version ? version : MCP_LEGACY_VERSION);
    put_capabilities(json);
    json_key(json, "serverInfo");
    json_map_begin(json);
    mcp_put(json, "name", "burrow");
    mcp_put(json, "title", "burrow sandboxes");
    mcp_put(json, "version", BURROW_VERSION);
    json_map_end(json);
    mcp_put(json, "instructions", instructions);
    exchange_result_end(exchange);
    return 0;
}

static int ping(struct exchange *exchange, struct mcp_fault *fault)
{
    (void)fault;
    (void)exchange_result_begin(exchange);
    exchange_result_end(exchange);
    return 0;
}

const struct mcp_method mcp_methods[] = {
    {"initialize", initialize, .is_legacy = true},
    {"ping", ping, .is_legacy = true},
    {"server/discover", discover, .is_modern = true},
    {"tools/list", mcp_list_tools, true, true},
    {"tools/call", mcp_call_tool, true, true},
    {"resources/list", mcp_list_resources, true, true},
    {"resources/templates/list", mcp_list_templates, true, true},
    {"resources/read", mcp_read_resource, true, true},
    {0},
};
