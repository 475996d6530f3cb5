/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tools, and how they are listed; see mcp_tool_call.h. */
#include "front/mcp/mcp_tool_call.h"
#include "web/openapi_schema.h"
#include "web/router.h"

#include <string.h>

#define API "/api/v1"
#define SANDBOX API "/sandboxes/{sandbox}"

static const char *const run_hidden[] = {"sandbox", "keepStdinOpen", "maxOutputBytes", NULL};
static const char *const exec_hidden[] = {"keepStdinOpen", "terminal", NULL};

static const struct tool_default list_defaults[] = {
    {"limit", "20"}, {"state", MCP_LIVING_STATES}, {0}};
static const struct tool_default file_defaults[] = {{"limit", "100"}, {0}};

const struct tool mcp_tools[MCP_TOOLS] = {
    [TOOL_RUN] = {.title = "Run a command in a fresh sandbox",
                  .description = "Runs one command or shell script in a new sandbox that ends with "
                                 "it, and returns its exit code and output. Use it for a single "
                                 "step that needs no state afterwards; give it files with 'files'. "
                                 "For several steps, and for what takes longer than a minute (many "
                                 "clients give up then), use sandbox_create and sandbox_exec.",
                  .is_open_world = true,
                  .method = "POST",
                  .pattern = API "/run",
                  .hidden = run_hidden,
                  .answer = tool_execution_answer,
                  .begin = tool_run_begin,
                  .step = tool_execution_step},
    [TOOL_CREATE] = {.title = "Create a sandbox",
                     .description = "Makes a sandbox that stays until sandbox_destroy, its idle "
                                    "timeout or its expiry, and returns its id: name that in later "
                                    "calls. Without 'network' it has no way out.",
                     .is_open_world = true,
                     .method = "POST",
                     .pattern = API "/sandboxes"},
    [TOOL_LIST] = {.title = "List sandboxes",
                   .description =
                       "Sandboxes that live and that the key may see, newest first, a page "
                       "at a time. Those that have ended are listed with 'state': "
                       "\"ended\" or \"failed\".",
                   .is_read_only = true,
                   .is_idempotent = true,
                   .method = "GET",
                   .pattern = API "/sandboxes",
                   .defaults = list_defaults},
    [TOOL_GET] = {.title = "Look at a sandbox",
                  .description = "Everything about one sandbox: state, limits, deadlines, usage.",
                  .is_read_only = true,
                  .is_idempotent = true,
                  .method = "GET",
                  .pattern = SANDBOX},
    [TOOL_DESTROY] = {.title = "Destroy a sandbox",
                      .description =
                          "Ends everything in a sandbox and deletes it with its files. Cannot be "
                          "undone; take a sandbox_snapshot first to keep them.",
                      .is_destructive = true,
                      .is_idempotent = true,
                      .method = "DELETE",
                      .pattern = SANDBOX},
    [TOOL_EXEC] = {.title = "Run a command in a sandbox",
                   .description = "Runs a command or shell script in a sandbox that is there, and "
                                  "waits for it up to 'waitMs'. When it has not ended by then, "
                                  "the result has running: true and the execution's id: ask "
                                  "sandbox_output for more, or end it with sandbox_stop.",
                   .is_destructive = true,
                   .is_open_world = true,
                   .method = "POST",
                   .pattern = SANDBOX "/executions",
                   .hidden = exec_hidden,
                   .own = tool_exec_fields,
                   .answer = tool_execution_answer,
                   .begin = tool_exec_begin,
                   .step = tool_execution_step},
    [TOOL_OUTPUT] = {.title = "Read a command's output",
                     .description = "What a command wrote, from an offset on, and whether it still "
                                    "runs. Waits up to 'waitMs' for it to end first. Go on with "
                                    "'offset' set to nextOffset.",
                     .is_read_only = true,
                     .is_idempotent = true,
                     .method = "GET",
                     .pattern = API "/executions/{execution}",
                     .has_own_input = true,
                     .own = tool_output_fields,
                     .answer = tool_output_answer,
                     .begin = tool_output_begin,
                     .step = tool_output_step},
    [TOOL_STOP] = {.title = "Stop a command",
                   .description = "Ends a command that runs in a sandbox; the sandbox stays.",
                   .is_destructive = true,
                   .is_idempotent = true,
                   .method = "DELETE",
                   .pattern = API "/executions/{execution}"},
    [TOOL_WRITE_FILES] = {.title = "Write files",
                          .description = "Writes files into a sandbox, each whole and in place of "
                                         "what was there; missing directories are made.",
                          .is_destructive = true,
                          .is_idempotent = true,
                          .method = "PUT",
                          .pattern = SANDBOX "/files",
                          .has_own_input = true,
                          .own = tool_write_fields,
                          .answer = tool_write_answer,
                          .begin = tool_write_begin,
                          .step = tool_write_step},
    [TOOL_READ_FILE] = {.title = "Read a file",
                        .description = "A part of a file of a sandbox, from an offset on; go on "
                                       "with 'offset' set to nextOffset.",
                        .is_read_only = true,
                        .is_idempotent = true,
                        .method = "GET",
                        .pattern = SANDBOX "/files",
                        .has_own_input = true,
                        .own = tool_read_fields,
                        .answer = tool_read_answer,
                        .begin = tool_read_begin,
                        .step = tool_read_step},
    [TOOL_LIST_FILES] = {.title = "List files",
                         .description = "What is in a directory of a sandbox, a page at a time; "
                                        "with 'recursive' also below it.",
                         .is_read_only = true,
                         .is_idempotent = true,
                         .method = "GET",
                         .pattern = SANDBOX "/files/list",
                         .defaults = file_defaults,
                         .answer = tool_list_answer,
                         .step = tool_list_step},
    [TOOL_EDIT_FILE] = {.title = "Edit a file",
                        .description =
                            "Replaces a text in a file of a sandbox by another. 'old' must be "
                            "there exactly once, unless 'all' is true; nothing is "
                            "changed otherwise.",
                        .is_destructive = true,
                        .method = "PUT",
                        .pattern = SANDBOX "/files",
                        .has_own_input = true,
                        .own = tool_edit_fields,
                        .answer = tool_edit_answer,
                        .begin = tool_edit_begin,
                        .step = tool_edit_step},
    [TOOL_RUN_CODE] = {.title = "Run code in a notebook",
                       .description = "Runs code in an interpreter that keeps what it defines, as "
                                      "a notebook does: the next call in the same 'context' or "
                                      "language sees its variables. Charts and images come back as "
                                      "images. The sandbox's runtime must have the language, as "
                                      "'code-interpreter:latest' has.",
                       .is_destructive = true,
                       .is_open_world = true,
                       .method = "POST",
                       .pattern = SANDBOX "/code",
                       .step = tool_code_step},
    [TOOL_EXPOSE_PORT] = {.title = "Expose a port",
                          .description =
                              "Makes a port of a sandbox, on which a server in it listens, "
                              "reachable from outside, and returns its address.",
                          .is_idempotent = true,
                          .is_open_world = true,
                          .method = "POST",
                          .pattern = SANDBOX "/ports"},
    [TOOL_SNAPSHOT] = {.title = "Take a snapshot",
                       .description = "Keeps a sandbox's files under an id of their own, to start "
                                      "other sandboxes from (sandbox_create with 'snapshot'). It "
                                      "outlives the sandbox.",
                       .method = "POST",
                       .pattern = SANDBOX "/snapshots"},
    [TOOL_FORK] = {.title = "Fork a sandbox",
                   .description = "Makes another sandbox with the files that this one has now and "
                                  "the same settings, unless something else is said.",
                   .is_open_world = true,
                   .method = "POST",
                   .pattern = SANDBOX "/fork"},
    [TOOL_CHECKPOINT] = {.title = "Take a checkpoint",
                         .description = "Keeps a sandbox's files as they are now, to go back to "
                                        "with sandbox_restore. It ends with the sandbox.",
                         .method = "POST",
                         .pattern = SANDBOX "/checkpoints"},
    [TOOL_RESTORE] = {.title = "Go back to a checkpoint",
                      .description =
                          "Ends what runs in a sandbox and gives it the files of a checkpoint (its "
                          "id or name) again. What was written since is lost.",
                      .is_destructive = true,
                      .is_idempotent = true,
                      .method = "POST",
                      .pattern = SANDBOX "/checkpoints/{checkpoint}/restore"},
    [TOOL_NETWORK] = {.title = "A sandbox's network",
                      .description =
                          "action 'get': where a sandbox may connect to. 'set': changes what "
                          "'policy' says of it. 'explain': whether 'host' and 'port' "
                          "can be reached, by which rule, and what to change where not.",
                      .is_destructive = true,
                      .is_idempotent = true,
                      .method = "PATCH",
                      .pattern = SANDBOX "/network",
                      .has_own_input = true,
                      .body_under = "policy",
                      .own = tool_network_fields,
                      .also = SANDBOX "/network/why",
                      .begin = tool_network_begin,
                      .step = tool_network_step},
};

static void put_hint(struct json_writer *json, const char *name, bool truth)
{
    json_key(json, name);
    json_bool(json, truth);
}

static void put_annotations(struct json_writer *json, const struct tool *tool)
{
    json_key(json, "annotations");
    json_map_begin(json);
    mcp_put(json, "title", tool->title);
    put_hint(json, "readOnlyHint", tool->is_read_only);
    put_hint(json, "destructiveHint", tool->is_destructive);
    put_hint(json, "idempotentHint", tool->is_idempotent);
    put_hint(json, "openWorldHint", tool->is_open_world);
    json_map_end(json);
}

static const struct answer_field done_fields[] = {
    {"done", ANSWER_BOOL, 0, .is_needed = true},
    {0},
};

/* What a route answers as JSON when all is well. */
static const struct route_answer *answer_of(const struct route *route)
{
    static const struct route_answer done = {200, done_fields};
    const struct route_answer *answer = route->answers;

    while (answer && answer->status && (answer->content || !answer->fields))
        answer++;
    return answer && answer->status ? answer : &done;
}

/* One of two results, by name. */
static void put_both(struct json_writer *json, const struct route *route, const struct route *also)
{
    json_map_begin(json);
    mcp_put(json, "type", "object");
    json_key(json, "properties");
    json_map_begin(json);
    json_key(json, "network");
    openapi_answer(json, answer_of(route));
    json_key(json, "explanation");
    openapi_answer(json, answer_of(also));
    json_key(json, "next");
    json_map_begin(json);
    mcp_put(json, "type", "string");
    mcp_put(json, "description", "what to do next");
    json_map_end(json);
    json_map_end(json);
    json_map_end(json);
}

static void put_output(struct json_writer *json, const struct router *router,
                       const struct tool *tool, const struct route *route)
{
    const struct route_answer own = {200, tool->answer};
    const struct route *also = tool->also ? router_find(router, "GET", tool->also) : NULL;

    json_key(json, "outputSchema");
    if (also)
        put_both(json, route, also);
    else
        openapi_answer(json, tool->answer ? &own : answer_of(route));
}

static void put_tool(struct exchange *exchange, struct json_writer *json, enum mcp_tool which)
{
    const struct tool *tool = &mcp_tools[which];
    const struct router *router = exchange_router(exchange);
    const struct route *route = router_find(router, tool->method, tool->pattern);

    if (!route)
        return;
    json_map_begin(json);
    mcp_put(json, "name", mcp_tool_names[which]);
    mcp_put(json, "title", tool->title);
    mcp_put(json, "description", tool->description);
    json_key(json, "inputSchema");
    openapi_fields(json, tool_fields(exchange, tool, route), true);
    put_output(json, router, tool, route);
    put_annotations(json, tool);
    json_map_end(json);
}

int mcp_list_tools(struct exchange *exchange, struct mcp_fault *fault)
{
    const char *cursor = mcp_text(exchange_message(exchange)->params, "cursor");

    if (cursor && *cursor)
        return mcp_fail(fault, MCP_INVALID_PARAMS, 200,
                        "cursor: there is one page of tools, and none after it");
    struct json_writer *json = exchange_result_begin(exchange);
    json_key(json, "tools");
    json_list_begin(json);
    for (unsigned i = 0; i < MCP_TOOLS; i++) {
        if (mcp_is_allowed(exchange_actor(exchange), i))
            put_tool(exchange, json, i);
    }
    json_list_end(json);
    exchange_put_caching(exchange, json);
    exchange_result_end(exchange);
    return 0;
}
