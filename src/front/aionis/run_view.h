/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution as the protocol's clients see it: a run, with what it wrote.
 * Threads: any but loops; run_view_init with is_quick: any.
 */
#pragma once
#include "core/execution/execution.h"
#include "front/aionis/aionis_impl.h"
#include "front/aionis/stored.h"
#include "front/aionis/summary.h"

struct run_view {
    const struct aionis_settings *settings;
    const struct execution_info *info; // borrowed
    struct stored_run stored;
    struct buffer standard_output, standard_error; // decoded
    struct buffer result;                          // JSON
    const char *status;
    int64_t exit_code; // or SUMMARY_NO_CODE
    char *error;       // or NULL
    bool is_truncated;
};

/* `is_quick`: without blocking; false when that cannot be. Where it can block it always succeeds: streams that are gone are empty. */
bool run_view_init(struct run_view *view, struct core *core, const struct aionis_settings *settings,
                   const struct execution_info *info, bool is_quick);
void run_view_clear(struct run_view *view);
#define autorun __attribute__((cleanup(run_view_clear))) struct run_view

const char *run_status(const struct execution_info *info);

/* "run": the whole object. */
void run_write(struct json_writer *json, const struct run_view *view);

/* Parts. */
void run_write_action(struct json_writer *json, const struct run_view *view);
void run_write_summary(struct json_writer *json, const struct run_view *view);
/* The same without result, code and error. */
void run_write_output_summary(struct json_writer *json, const struct run_view *view);
void run_write_exit_code(struct json_writer *json, const struct run_view *view);
/* "started_at" and the other times. */
void run_write_times(struct json_writer *json, const struct run_view *view);
/* "stdout" and "stderr": their last so many bytes. */
void run_write_tails(struct json_writer *json, const struct run_view *view, size_t bytes);
