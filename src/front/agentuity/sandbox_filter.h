/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sandboxes a list asks for, by the query of GET /sandbox and of GET /cli/sandbox.
 * Threads: any but loops.
 */
#pragma once
#include "core/sandbox/sandbox.h"
#include "web/call.h"

extern const struct parameter sandbox_filter_parameters[];

/* The list that the call's query asks for. */
int sandbox_filter_list(struct call *call, struct sandbox_infos *out, struct error *err);
