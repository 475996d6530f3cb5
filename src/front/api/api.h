/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow's own API: everything the core can do, below /api/v1/. One file a noun (NOUN_routes.c) with its table of routes, joined in
 * api_front.c; docs/internals/api.md says how to add one.
 * Threads: any; api_front_init and api_front_clear: one thread, at the start and the end of the server.
 */
#pragma once
#include "front/api/api_ids.h"
#include "web/call.h"
#include "web/front.h"
#include "web/reply.h"

#define API_TOP "/api/v1"

/* One table a file, each ended by an empty row. */
extern const struct route api_system_routes[];
extern const struct route api_runtime_routes[];
extern const struct route api_event_routes[];
extern const struct route api_webhook_routes[];
extern const struct route api_ceiling_routes[];
extern const struct route api_space_routes[];
extern const struct route api_finding_routes[];
extern const struct route api_checkpoint_routes[];
extern const struct route api_difference_routes[];
extern const struct route api_snapshot_routes[];
extern const struct route api_build_routes[];
extern const struct route api_transfer_routes[];
extern const struct route api_run_routes[];
extern const struct route api_execution_routes[];
extern const struct route api_output_routes[];

void api_front_init(struct front *front);
void api_front_clear(struct front *front); // no router may use it any more

/* Answers in this front's words: application/problem+json. */
void api_on_error(struct call *call, const struct error *err);
extern const struct answer_field api_failure_fields[];
/* Answers 410 for a place among events of which some were forgotten since; `oldest` is the first there is. Returns 1. */
int api_refuse_cursor(struct call *call, int64_t after, int64_t oldest, struct error *err);
#define API_FAILURE_CONTENT "application/problem+json"

/* Answers with one thing; returns 0. */
int api_answer(struct call *call, int status, const struct answer_field *fields, const void *from);
int api_answer_empty(struct call *call); // 204

/* The core's id of what a parameter of the path names. ERROR_NOT_FOUND for what cannot be one. */
int api_sandbox(struct call *call, unsigned index, const char **id, struct error *err);
int api_execution(struct call *call, unsigned index, const char **id, struct error *err);
