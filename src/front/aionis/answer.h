/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of this front: the envelope of failures, and the headers that every answer has.
 * Threads: one per object.
 */
#pragma once
#include "front/aionis/aionis_impl.h"
#include "web/reply.h"

#define ANSWER_ORIGIN 256 // longest origin

/* What headers need of a request, also when that is gone. A value. */
struct answer_head {
    char origin[ANSWER_ORIGIN]; // that may read the answer; "": none
};

/* A failure in the protocol's words. Texts are the call's. */
struct refusal {
    int status; // 0: none
    const char *code;
    const char *details; // JSON, or NULL
    const char *issues;  // likewise
    int64_t retry_after_s;
};

/* What this front keeps with a call (call->front_data) from its first look on. */
struct call_state {
    struct answer_head head;
    struct refusal refusal;
    int64_t waited_ms; // held back by the rate limit
    bool has_token;    // and let through
};
struct call_state *call_state(struct call *call); // makes it

/* Ends the map that the reply is, and sends it. */
int answer_send(struct reply *reply, struct response *response, const struct answer_head *head);
/* Begins the map with tenant and scope. */
void answer_begin(struct reply *reply, const struct actor *actor);

/*
 * The call fails with this; returns -1 and sets *err to the sentence. `details` is JSON or NULL, borrowed until the call ends.
 */
int refuse(struct call *call, const struct refusal *refusal, struct error *err, const char *format,
           ...) __attribute__((format(printf, 4, 5)));

/* For the front: on_error. */
void answer_error(struct call *call, const struct error *err);

/* Members. */
void put_text(struct json_writer *json, const char *name, const char *text); // NULL: null
void put_integer(struct json_writer *json, const char *name, int64_t number);
void put_bool(struct json_writer *json, const char *name, bool truth);
void put_null(struct json_writer *json, const char *name);
void put_time(struct json_writer *json, const char *name, int64_t wall_ms); // 0: null
void put_id(struct json_writer *json, const char *name, const char *id);    // as a UUID

/* JSON in the call's memory: begin with a writer over `text`, then this. NULL when it is too large. */
const char *keep_json(struct call *call, struct json_writer *json, const struct buffer *text);
