/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MCP over standard input and output, as clients start it: each line is sent to POST /mcp of the server over a connection of its own, and what
 * comes back is written as lines. Nothing else is ever written to stdout.
 * Threads: one thread.
 */
#pragma once
#include "cli/invocation.h"

/* Until standard input ends, or a signal comes. What is under way is given up then, as if its client had gone away. */
int mcp_bridge_run(struct invocation *invocation, struct burrow_error *err);
