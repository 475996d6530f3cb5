/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of clients passed on to servers that somebody else connects to: HTTP/1.1 with WebSockets and streams of any length, or bytes as
 * they are. Both ways in bounded memory: a side that does not take what comes for it is waited for. One server connection belongs to one
 * client connection and serves its requests one after the other, so nobody's answer can become another's.
 *
 *     on_request ──> proxy_go(fd), or proxy_go(-1) where the server's connection from before is still good
 *                └─> proxy_answer(status, text)
 *
 * Threads: the loop; so are all callbacks.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "loop/loop.h"
#include "net/request.h"

struct proxy;
struct proxy_client;

enum proxy_failure {
    PROXY_REFUSED,   // nobody listens there
    PROXY_SLOW,      // the connection was not made in time
    PROXY_NO_ANSWER, // it closed without an answer
    PROXY_MALFORMED, // what came is no answer
};

struct proxy_events {
    /* Where not NULL: a head has come whole, as bytes. True: it is not for this proxy, and on_leave comes with its connection. */
    bool (*is_elsewhere)(void *owner, struct proxy_client *client, const char *head, size_t length);
    /* Takes fd, and the bytes that were read from it; the client is gone. */
    void (*on_leave)(void *owner, int fd, char *data, size_t length);
    /* A request has come: who answers? Sooner or later proxy_go or proxy_answer, unless on_close comes before. NULL: bytes, of
     * proxy_tunnel. The request stays until it is answered. */
    void (*on_request)(void *owner, struct proxy_client *client,
                       const struct http_request *request);
    /* The server did not answer: proxy_answer, at once. `request` NULL: of proxy_tunnel, which closes by itself. */
    void (*on_failure)(void *owner, struct proxy_client *client, const struct http_request *request,
                       enum proxy_failure failure);
    /* What came is no request: proxy_answer, at once. */
    void (*on_bad_request)(void *owner, struct proxy_client *client, int status, const char *text);
    /* Bytes have passed; at most once a second. */
    void (*on_traffic)(void *owner, struct proxy_client *client);
    /* It is about to be no more. */
    void (*on_close)(void *owner, struct proxy_client *client);
};

struct proxy_limits {
    size_t head_bytes, target_bytes, headers;
    uint64_t head_ms;    // for a head, from its first byte
    uint64_t idle_ms;    // between two requests
    uint64_t connect_ms; // for a server to be there
    uint64_t stall_ms; // without progress of what has to move: a body, an answer that is not taken
};
extern const struct proxy_limits proxy_limits_default;

int proxy_new(struct loop *loop, const struct proxy_limits *limits,
              const struct proxy_events *events, void *owner, struct proxy **out,
              struct error *err);
void proxy_free(struct proxy *proxy); // closes all; not from a callback
DEFINE_AUTOPTR(proxy)
size_t proxy_count(const struct proxy *proxy);
/* From now on each answer is the last of its connection. */
void proxy_drain(struct proxy *proxy);

/* A client's connection, and what was read from it before. Takes fd when it succeeds; `data` is the caller's, for the callbacks, which may come
 * from within, once *out is set. */
int proxy_accept(struct proxy *proxy, int fd, const char *bytes, size_t length, void *data,
                 struct proxy_client **out, struct error *err);
/* The same for bytes that are passed on as they are. */
int proxy_tunnel(struct proxy *proxy, int fd, void *data, struct proxy_client **out,
                 struct error *err);

void *proxy_client_data(const struct proxy_client *client);
/* The request that is being answered; NULL: none. */
const struct http_request *proxy_request(const struct proxy_client *client);
bool proxy_is_idle(const struct proxy_client *client); // it waits for a request

/* Where a request goes and what is said there. Strings are borrowed for the call. */
struct proxy_target {
    const void *route;                      // the same for all that may use the same connection
    const char *host;                       // for Host
    const char *forwarded_proto;            // "http", "https"
    const char *hidden_header, *hidden_too; // are not passed on; or NULL
    unsigned cookie_port; // not 0: cookies are marked with it, and unmarked ones stay out
};
/* Whether the server's connection of its last request can take another to the same route. */
bool proxy_keeps(struct proxy_client *client, const void *route);
/* Takes fd: non-blocking, connected or about to be. -1: proxy_keeps. */
void proxy_go(struct proxy_client *client, int fd, const struct proxy_target *target);

/* In place of a server. `headers` end with an empty one; NULL: none. */
void proxy_answer(struct proxy_client *client, int status, const struct http_header *headers,
                  const char *body, size_t length);
/* Cuts it now, or as soon as the callback that is running returns. */
void proxy_close(struct proxy_client *client);
