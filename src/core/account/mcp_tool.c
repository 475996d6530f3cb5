/* SPDX-License-Identifier: Apache-2.0 */
/* Names of tools; see mcp_tool.h. */
#include "core/account/mcp_tool.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "sandbox_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)

const char *const mcp_tool_names[] = {
    [TOOL_RUN] = PREFIX "run",
    [TOOL_CREATE] = PREFIX "create",
    [TOOL_LIST] = PREFIX "list",
    [TOOL_GET] = PREFIX "get",
    [TOOL_DESTROY] = PREFIX "destroy",
    [TOOL_EXEC] = PREFIX "exec",
    [TOOL_OUTPUT] = PREFIX "output",
    [TOOL_STOP] = PREFIX "stop",
    [TOOL_WRITE_FILES] = PREFIX "write_files",
    [TOOL_READ_FILE] = PREFIX "read_file",
    [TOOL_LIST_FILES] = PREFIX "list_files",
    [TOOL_EDIT_FILE] = PREFIX "edit_file",
    [TOOL_RUN_CODE] = PREFIX "run_code",
    [TOOL_EXPOSE_PORT] = PREFIX "expose_port",
    [TOOL_SNAPSHOT] = PREFIX "snapshot",
    [TOOL_FORK] = PREFIX "fork",
    [TOOL_CHECKPOINT] = PREFIX "checkpoint",
    [TOOL_RESTORE] = PREFIX "restore",
    [TOOL_NETWORK] = PREFIX "network",
    [MCP_TOOLS] = NULL,
};

static unsigned find(const char *word, size_t length)
{
    bool is_short = length < PREFIX_LENGTH || strncmp(word, PREFIX, PREFIX_LENGTH) != 0;
    size_t skip = is_short ? PREFIX_LENGTH : 0;
    unsigned tool = 0;

    while (tool < MCP_TOOLS && (strlen(mcp_tool_names[tool] + skip) != length ||
                                memcmp(mcp_tool_names[tool] + skip, word, length) != 0))
        tool++;
    return tool;
}

static int refuse(const char *word, struct error *err)
{
    char all[MCP_TOOLS_TEXT] = "";
    size_t used = 0;

    for (unsigned i = 0; i < MCP_TOOLS && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "",
                                 mcp_tool_names[i] + PREFIX_LENGTH);
    return error_refuse(err, ERROR_INVALID, "tool", "there is no tool '%.40s'; there are %s", word,
                        all);
}

int mcp_tools_of(const char *const *words, uint32_t *out, struct error *err)
{
    uint32_t tools = 0;

    for (; words && *words; words++) {
        unsigned tool = find(*words, strlen(*words));
        if (tool == MCP_TOOLS)
            return refuse(*words, err);
        tools |= UINT32_C(1) << tool;
    }
    *out = tools;
    return 0;
}

const char *mcp_tools_write(uint32_t tools, char text[MCP_TOOLS_TEXT])
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < MCP_TOOLS; i++) {
        if (tools >> i & 1)
            used += (size_t)snprintf(text + used, MCP_TOOLS_TEXT - used, "%s%s", used ? " " : "",
                                     mcp_tool_names[i]);
    }
    return text;
}

uint32_t mcp_tools_read(const char *text)
{
    uint32_t tools = 0;

    for (const char *at = text ? text : ""; *at;) {
        size_t length = strcspn(at, " ");
        unsigned tool = find(at, length);
        if (tool < MCP_TOOLS)
            tools |= UINT32_C(1) << tool;
        at += length + strspn(at + length, " ");
    }
    return tools;
}

void mcp_tools_list(uint32_t tools, const char *out[MCP_TOOLS + 1])
{
    unsigned count = 0;

    for (unsigned i = 0; i < MCP_TOOLS; i++) {
        if (tools >> i & 1)
            out[count++] = mcp_tool_names[i];
    }
    out[count] = NULL;
}
