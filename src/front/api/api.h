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
extern const struct route api_key_routes[];
extern const struct route api_ssh_key_routes[];
extern const struct route api_quota_routes[];
extern const struct route api_token_routes[];
extern const struct route api_audit_routes[];
extern const struct route api_usage_routes[];
extern const struct route api_sandbox_routes[];
extern const struct route api_log_routes[];
extern const struct route api_attach_routes[];
extern const struct route api_ssh_routes[];
extern const struct route api_watch_routes[];
extern const struct route api_network_routes[];
extern const struct route api_event_routes[];
extern const struct route api_webhook_routes[];
extern const struct route api_file_routes[];
extern const struct route api_tree_routes[];
extern const struct route api_ceiling_routes[];
extern const struct route api_space_routes[];
extern const struct route api_finding_routes[];
extern const struct route api_port_routes[];
extern const struct route api_checkpoint_routes[];
extern const struct route api_code_routes[];
extern const struct route api_difference_routes[];
extern const struct route api_snapshot_routes[];
extern const struct route api_build_routes[];
extern const struct route api_transfer_routes[];
extern const struct route api_run_routes[];
extern const struct route api_execution_routes[];
extern const struct route api_output_routes[];
extern const struct route api_input_routes[];

struct api_settings; // api_manners.h

/* Texts of `settings` are borrowed for as long as the front is used. */
void api_front_init(struct front *front, const struct api_settings *settings);
void api_front_clear(struct front *front); // no router may use it any more

/* Answers in this front's words: application/problem+json. */
void api_on_error(struct call *call, const struct error *err);
/* The word for programs that a failure has there. */
const char *api_problem_code(const struct error *err);
/* The same with a header more. */
void api_on_error_with(struct call *call, const struct error *err, const struct http_header *more);
extern const struct answer_field api_failure_fields[];
/* Answers 410 for a place among events of which some were forgotten since; `oldest` is the first there is. Returns 1. */
int api_refuse_cursor(struct call *call, int64_t after, int64_t oldest, struct error *err);
/* For an answer that has only a status: its body, to be freed. */
void *api_problem_of_status(int status, const char *request_id, size_t *length);
#define API_FAILURE_CONTENT "application/problem+json"

/* Answers with one thing; returns 0. */
int api_answer(struct call *call, int status, const struct answer_field *fields, const void *from);
int api_answer_empty(struct call *call); // 204

/*
 * The core's id of what a parameter of the path names. ERROR_NOT_FOUND for what cannot be one. A sandbox can be named by its id, or by the name of exactly one
 * living one (ERROR_AMBIGUOUS); on the loop a name is CALL_ELSEWHERE.
 */
int api_sandbox(struct call *call, unsigned index, const char **id, struct error *err);
int api_sandbox_of(struct call *call, const char *text, const char **id, struct error *err);
int api_execution(struct call *call, unsigned index, const char **id, struct error *err);

#define API_NAME_MAX 256 // bytes

/* What sandboxes of this front are unless something else is asked for: root, /workspace, any number of commands at once. Sets nothing else. */
struct sandbox_request;
void api_sandbox_defaults(struct sandbox_request *request);
