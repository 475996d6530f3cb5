/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a log; see log_answer.h. */
#include "front/api/log_answer.h"

#include "front/api/api_ids.h"
#include "front/api/execution_answer.h"

const char *const log_side_names[] = {"stdout", "stderr", NULL};

#define AT(member) offsetof(struct log_piece_answer, member)
const struct answer_field log_piece_fields[] = {
    {"executionId", ANSWER_JOINED, AT(execution), .is_needed = true, .prefix = "",
     .help = "whose it is"},
    {"startedAt", ANSWER_TIME, AT(started_at), .help = "when that was started"},
    {"stream", ANSWER_TEXT, AT(stream), .is_needed = true, .words = log_side_names, .n_words = 2},
    {"offset", ANSWER_INTEGER, AT(offset), .help = "of the first byte, in the stream"},
    {"bytes", ANSWER_INTEGER, AT(length)},
    {"text", ANSWER_BYTES, AT(text), .help = "what was written, where that is UTF-8"},
    {"textBase64", ANSWER_BASE64, AT(base64), .help = "instead of text, where it is not UTF-8"},
    {0},
};
#undef AT

struct log_piece_answer log_piece_answer_of(const struct execution_log *log,
                                            const struct log_piece *piece)
{
    const struct answer_bytes bytes = {log->bytes.data + piece->start, piece->length};
    bool is_text = output_text_length(bytes.data, bytes.length) == bytes.length;

    return (struct log_piece_answer){
        .execution = {piece->kind == EXECUTION_JOB ? JOB_PREFIX : EXECUTION_PREFIX,
                      piece->execution_id},
        .stream = log_side_names[piece->side],
        .offset = (int64_t)piece->offset,
        .length = (int64_t)piece->length,
        .started_at = piece->started_at,
        .text = is_text ? bytes : (struct answer_bytes){0},
        .base64 = is_text ? (struct answer_bytes){0} : bytes,
    };
}
