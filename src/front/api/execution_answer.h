/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions as this front tells them: one shape for a run, for one execution, for lists and for records of a stream.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"
#include "core/core.h"
#include "core/execution/execution_info.h"
#include "front/api/changes_answer.h"
#include "web/answer_table.h"

#include <stdbool.h>
#include <stddef.h>

/* What is told of stdout or stderr. */
struct output_answer {
    bool is_told;                     // there is such a stream
    bool has_bytes;                   // it is known how much there is of it
    bool has_content;                 // its beginning is here
    bool is_truncated;                // and that is not all
    struct answer_bytes text, base64; // one of them
    int64_t bytes;
    char *url; // ours
    struct buffer content;
};

struct execution_answer {
    struct answer_joined id;
    const char *sandbox_id;
    enum execution_kind kind;
    enum execution_state state;
    struct command command;
    bool has_timeout, is_over, is_output_expired;
    bool is_output_lost; // more was written than is kept
    int64_t created_at, started_at, ended_at, stop_at;
    int64_t duration_ms, exit_code;
    enum execution_cause cause;
    const char *signal, *error, *stop_reason;
    struct output_answer output, errors;
    struct {
        int64_t cpu_user_us, cpu_system_us, max_memory_bytes;
    } resources;
    const struct changes_answer *changes; // NULL: not asked for
    struct changes_answer changed;        // where that points to
    struct difference difference;
};
void execution_answer_clear(struct execution_answer *answer);
#define autoexecutionanswer __attribute__((cleanup(execution_answer_clear))) struct execution_answer

extern const struct answer_field execution_answer_fields[];

/* Of its id. */
const char *execution_answer_prefix(enum execution_kind kind);

/* What is known of it, without a byte of what it wrote. `info` is borrowed. */
void execution_answer_init(struct execution_answer *answer, const struct execution_info *info,
                           const char *base_url);

/* Beside that the first `most` bytes of each output. is_quick: false where that could not be had without blocking. */
bool execution_answer_read(struct execution_answer *answer, struct core *core,
                           const struct execution_info *info, size_t most, bool is_quick);

/* Beside that which files differ in its sandbox from what that started from. Nothing where they are gone with it. Blocks. */
void execution_answer_compare(struct execution_answer *answer, struct core *core,
                              const struct actor *actor, const struct execution_info *info);

/* How much of these bytes is text: all of them, or what comes before a character that is cut at the end; SIZE_MAX: they are no
 * text. */
#define NO_TEXT SIZE_MAX
size_t output_text_length(const char *bytes, size_t length);
