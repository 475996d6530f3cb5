/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Model Context Protocol over burrow's own API: `POST /mcp`, whose tools are requests of /api/v1 that the server makes of itself. All revisions from
 * 2025-03-26 on, on the same address. docs/internals/mcp.md.
 * Threads: one thread; at the start and the end of the server.
 */
#pragma once
#include "web/front.h"

/* `origins`: of pages that may call, with commas between; "*": all; NULL or "": none. Borrowed for as long as the front is used. */
void mcp_front_init(struct front *front, const char *origins);
void mcp_front_clear(struct front *front); // no router may use it any more
