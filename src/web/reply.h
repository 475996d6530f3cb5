/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: JSON with its status.
 * Threads: one per object.
 */
#pragma once
#include "base/error.h"
#include "data/json_writer.h"
#include "net/response.h"

/* For what has a status already: the error that error_status gives this status for. Returns -1. */
int reply_error(int status, const char *text, struct error *err);

/* A JSON answer being written. The writer's memory is its own; at most 64 MiB. */
struct reply {
    struct buffer text;
    struct json_writer json;
};
void reply_init(struct reply *reply);
/* Sends it with Content-Type application/json; `response` stays the caller's. A reply that could not be written is a 500. */
void reply_send(struct reply *reply, struct response *response, int status);
void reply_clear(struct reply *reply);
#define autoreply __attribute__((cleanup(reply_clear))) struct reply
