/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this front share and nobody else sees.
 * Threads: any.
 */
#pragma once
#include "base/lock.h"
#include "front/mcp/mcp.h"
#include "front/mcp/mcp_exchange.h"

#define MCP_BODY_BYTES ((uint64_t)16 << 20) // of a request
#define MCP_BATCH_MOST 50                   // messages in one body
// What lists have unless more is asked for: each one-shot leaves a sandbox behind that has ended.
#define MCP_LIVING_STATES "creating,idle,running,pausing,paused,resuming,stopping"

struct mcp_front {
    const char *origins;      // of pages that may call; NULL: none
    struct lock lock;         // guards the list
    struct exchange *waiting; // those that may be cancelled
};

/* One member, a text. */
static inline void mcp_put(struct json_writer *json, const char *name, const char *text)
{
    json_key(json, name);
    json_string(json, text);
}

/* An answer without an id that says what is wrong with the request as a whole. */
void mcp_answer_fault(struct call *call, const struct mcp_fault *fault);
/* The failure, as JSON. `id` may be NULL. */
void mcp_write_fault(struct json_writer *json, const struct data_value *id,
                     const struct mcp_fault *fault);

/* Whether the key is for this tool. */
bool mcp_is_allowed(const struct actor *actor, enum mcp_tool tool);

/* tools/list, tools/call; resources/… */
int mcp_list_tools(struct exchange *exchange, struct mcp_fault *fault);
int mcp_call_tool(struct exchange *exchange, struct mcp_fault *fault);
int mcp_list_resources(struct exchange *exchange, struct mcp_fault *fault);
int mcp_list_templates(struct exchange *exchange, struct mcp_fault *fault);
int mcp_read_resource(struct exchange *exchange, struct mcp_fault *fault);
