/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event as this front tells it: in lists, in streams and to webhooks alike.
 * Threads: plain values.
 */
#pragma once
#include "base/buffer.h"
#include "core/event/event_kind.h"
#include "web/answer_table.h"
#include "web/event_format.h"

struct event_answer {
    const struct event_info *info;
    int64_t number, created_at;
    const char *id, *kind, *sandbox_id, *reason;
    const char *const *facts;
    char spare[EVENT_KIND];
};
extern const struct answer_field event_answer_fields[];
void event_answer_fill(struct event_answer *out, const struct event_info *info);

/* The JSON object alone; without a line break. */
int event_text_json(const struct event_info *info, struct buffer *out, struct error *err);
/* As a record of a stream. */
int event_text_record(enum event_format format, const struct event_info *info, struct buffer *out,
                      struct error *err);
/* How far the reader is, where there is nothing to tell: keeps the connection, and the reader's place. */
int event_text_place(enum event_format format, int64_t number, struct buffer *out,
                     struct error *err);
