/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow fs cp: files and directories to a sandbox and from it.
 * Threads: one thread.
 */
#pragma once
#include "cli/invocation.h"

int copy_run(struct invocation *invocation, struct burrow_error *err);
