/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools that models are given (front/mcp), by name: a key can be for some of them alone.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum mcp_tool {
    TOOL_RUN,
    TOOL_CREATE,
    TOOL_LIST,
    TOOL_GET,
    TOOL_DESTROY,
    TOOL_EXEC,
    TOOL_OUTPUT,
    TOOL_STOP,
    TOOL_WRITE_FILES,
    TOOL_READ_FILE,
    TOOL_LIST_FILES,
    TOOL_EDIT_FILE,
    TOOL_RUN_CODE,
    TOOL_EXPOSE_PORT,
    TOOL_SNAPSHOT,
    TOOL_FORK,
    TOOL_CHECKPOINT,
    TOOL_RESTORE,
    TOOL_NETWORK,
    MCP_TOOLS
};

#define MCP_NO_TOOL (UINT32_C(1) << 31) // in a set of tools: it is one, however little is in it
_Static_assert(MCP_TOOLS < 31, "a set of tools has a bit for each");

/* "sandbox_run" …, in their order, ended by NULL. */
extern const char *const mcp_tool_names[];

/* A set of these words, ended by NULL, with or without "sandbox_" in front. ERROR_INVALID, noun "tool", says which there are. */
int mcp_tools_of(const char *const *words, uint32_t *out, struct error *err);

/* "sandbox_run sandbox_exec", as records have them, and back; words that are not known say nothing. */
#define MCP_TOOLS_TEXT 512
const char *mcp_tools_write(uint32_t tools, char text[MCP_TOOLS_TEXT]);
uint32_t mcp_tools_read(const char *text);

/* The names of those in the set, ended by NULL. */
void mcp_tools_list(uint32_t tools, const char *out[MCP_TOOLS + 1]);
