/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration of coding agents that names `burrow mcp`: printed, or put into their files beside what is there.
 * Threads: one thread.
 */
#pragma once
#include "base/buffer.h"
#include "cli/invocation.h"

/* burrow mcp install CLIENT */
int mcp_install(struct invocation *invocation, struct burrow_error *err);
