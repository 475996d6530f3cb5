/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of a sandbox's log as this front tells them, in lists and as records.
 * Threads: plain values.
 */
#pragma once
#include "core/execution/execution_log.h"
#include "web/answer_table.h"

struct log_piece_answer {
    struct answer_joined execution;
    const char *stream;
    int64_t offset, length, started_at;
    struct answer_bytes text, base64;
};
extern const struct answer_field log_piece_fields[];
extern const char *const log_side_names[]; // by enum log_side, ended by NULL

/* Bytes are borrowed from the log. */
struct log_piece_answer log_piece_answer_of(const struct execution_log *log,
                                            const struct log_piece *piece);
