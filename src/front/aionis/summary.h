/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol's short account of how a run went, "tool_result_summary_v1".
 * Threads: plain values.
 */
#pragma once
#include "data/json_writer.h"
#include "front/aionis/wide.h"

#include <stdbool.h>
#include <stdint.h>

#define SUMMARY_NO_CODE INT64_MIN

struct summary {
    struct wide_text standard_output, standard_error; // all that was recorded
    const struct buffer *result;                      // JSON of an object; NULL: not given
    int64_t exit_code;                                // or SUMMARY_NO_CODE
    const char *error;                                // or NULL
    bool is_truncated;
};

/* Writes one object. */
void summary_write(struct json_writer *json, const struct summary *summary);
