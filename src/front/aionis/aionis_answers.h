/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the routes of this front answer, described: the documents have shapes of the vendor's own (key order, summaries, hashed
 * parts) and are written by hand.
 * Threads: plain values.
 */
#pragma once
#include "web/answer_table.h"

extern const struct route_answer aionis_session_answers[], aionis_execute_answers[],
    aionis_run_answers[], aionis_logs_answers[], aionis_artifact_answers[], aionis_cancel_answers[];
extern const struct route_answer aionis_empty_answers[];     // it is never well
extern const struct route_answer aionis_preflight_answers[]; // 204
extern const struct answer_field aionis_failure[];
