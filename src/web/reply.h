/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers: JSON with its status, and the one table from kinds of errors to statuses.
 * Threads: one per object.
 */
#pragma once
#include "base/error.h"
#include "data/json_writer.h"
#include "net/response.h"

/* 400 INVALID, 404 NOT_FOUND and GONE, 401/403 DENIED (reason "unauthorized" is 401), 409 CONFLICT, 429 LIMIT and reason "full" (413
 * with reason "too large"), 503 UNAVAILABLE with reason "restarting" only, 500 else. */
int reply_status(const struct error *err);

/* The other way round, for what has a status already: an error that reply_status gives this status for. Returns -1. */
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
