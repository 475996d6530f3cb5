/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the client library share: the client itself, and a request on its way.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"
#include "client/client_fail.h"
#include "client/reply_reader.h"
#include "client/wire.h"
#include "data/json.h"
#include "data/json_writer.h"

struct burrow_client {
    char *url, *api_key, *tls_program, *ca_file, *user_agent;
    struct wire_target target;
    struct wire_patience patience;
    struct wire *idle;         // of a request before; or NULL
    uint64_t file_limit_bytes; // what the server takes or gives of a file at once; 0: not asked yet
};

/* An answer that is being read. */
struct burrow_stream {
    struct burrow_client *client;
    struct wire *wire;
    struct reply_reader reader;
    struct buffer line;             // of a record that is not whole
    struct data_document *document; // of the record that was told
    char header[256];               // that was asked for last
    bool is_handed_back;            // its connection is the client's again
    const char *piece;              // of the body: read, and not yet taken
    size_t piece_length;
};

struct client_request {
    const char *method, *path;
    const char *accept;  // NULL: JSON
    const char *headers; // more lines, each with its end; NULL: none
    const struct burrow_body *body;
};

/* Sends a request and reads the head of its answer; a status from 400 on is a failure, with the server's own words. */
int client_begin(struct burrow_client *client, const struct client_request *request,
                 struct burrow_stream **out, struct burrow_error *err);

/* Its two halves: the answer's head is not read by the first. */
int client_send(struct burrow_client *client, const struct client_request *request,
                struct burrow_stream **out, struct burrow_error *err);
int client_read_head(struct burrow_stream *stream, struct burrow_error *err);

/* A connection: that of a request before, or a new one. */
int client_connect(struct burrow_client *client, struct wire **out, struct burrow_error *err);
/* The request's head into `to`: method, path and the headers that every request has, without the empty line at its end. */
int client_write_head(const struct burrow_client *client, const char *method, const char *path,
                      const char *accept, struct buffer *to, struct burrow_error *err);
/* More of the answer's head or body: 1, 0 at its end, -1. `is_now`: 2 when there is nothing without waiting. */
int client_read_more(struct burrow_stream *stream, bool is_now, struct burrow_error *err);
/* The sentence of a problem, from the body that follows. */
int client_read_problem(struct burrow_stream *stream, struct burrow_error *err);

/* A WebSocket at this path, on a connection of its own. */
int client_upgrade(struct burrow_client *client, const char *path, struct wire **out,
                   struct burrow_error *err);

/* An answer made of this text, whose bytes are taken. */
int client_answer_new(struct buffer *text, struct burrow_answer **out, struct burrow_error *err);

/* The caller frees it. */
char *client_base64(const char *text);

/* The JSON that a command is: into a map that is begun. */
void client_write_env(struct json_writer *json, const char *const *env);
int client_copy_id(const struct burrow_value *map, const char *name, char out[BURROW_ID],
                   struct burrow_error *err);
