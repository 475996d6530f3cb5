/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of streams as the real one has it: store, hub and spool in a directory of its own, the Agentuity routes of streams
 * behind the router, on a loop thread with workers; and plain blocking clients on loopback.
 */
#pragma once
#include "base/buffer.h"
#include "core/core.h"
#include "core/stream/streams.h"
#include "web/router.h"
#include "loop/loop.h"
#include "net/http_server.h"

#include <pthread.h>

struct stage {
    char *directory;
    struct core core; // with its parts for streams alone: no engine, no boxes
    struct actor actor;
    struct loop *loop;
    struct workers *workers;
    struct router *router;
    struct http_server *server;
    struct front front;
    const struct front *fronts[2];
    int port;
    pthread_t thread;
};

struct stage *stage_new(void);
void stage_free(struct stage *stage);
DEFINE_AUTOPTR(stage)

/* A new stream of the actor's; its bare id. */
const char *stage_stream(struct stage *stage, char id[ID_TEXT]);
void stage_append(struct stage *stage, const char *id, const void *data, size_t length);
void stage_say(struct stage *stage, const char *id, const char *text);
void stage_complete(struct stage *stage, const char *id);
/* Makes it the input of a command, and ends that command. */
struct stream *stage_take(struct stage *stage, const char *id);
void stage_end_command(struct stage *stage, struct stream *stream);
uint64_t stage_size(struct stage *stage, const char *id);
void stage_wait_size(struct stage *stage, const char *id, uint64_t size);
bool stage_is_complete(struct stage *stage, const char *id);

/* One connection and the answer that comes over it. */
struct client {
    int fd;
    int status; // of the last answer; 0 when the connection ended before its head was there
    bool is_chunked, has_length;
    uint64_t left; // of the chunk, or of the whole
    char head[1024];
    char ahead[4096]; // read from the socket, not looked at yet
    size_t start, length;
};

struct client *client_new(struct stage *stage);
void client_free(struct client *client);
DEFINE_AUTOPTR(client)

/* Sends what the format gives, as it is. */
void client_say(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void client_send(struct client *client, const void *data, size_t length);
/* "METHOD /stream/stream_ID<tail>" with these further lines (each with CR LF; may be ""). */
void client_ask(struct client *client, const char *method, const char *id, const char *tail,
                const char *lines);
/* One chunk of a request's body; "" is the last. */
void client_chunk(struct client *client, const char *text);

/* Reads the head of the answer. */
int client_head(struct client *client);
/* The header's value in `value`; NULL when absent. */
const char *client_header(const struct client *client, const char *name, char *value, size_t size);
/* Reads up to `size` bytes of the body: 0 at its proper end, -1 where the connection ended before. */
ssize_t client_read(struct client *client, void *data, size_t size);
/* Reads as many and compares. */
bool client_gets(struct client *client, const char *text);
/* Reads to the end, expecting exactly this. */
bool client_gets_all(struct client *client, const char *text);

size_t memory_kib(void); // resident set of this process
