/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that speak HTTP/1.1: requests in, answers out, in order. Knows no route and no
 * format.
 * Threads: the loop; so are all callbacks.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "loop/loop.h"
#include "net/plan.h"
#include "net/request.h"
#include "net/response.h"

struct http_server;

/* http_limits_default is where to start from. */
struct http_limits {
    size_t connections;  // at once; past it the oldest stranger's is closed, else the longest idle
                         // one; else new ones wait in the backlog
    size_t strangers;    // connections of one address that have shown no key; past it the oldest of
                         // them is closed. This machine's own addresses may have 7 of 8 of all
    size_t head_bytes;   // request line and headers: 431
    size_t target_bytes; // 414
    size_t headers;      // their number: 431
    uint64_t body_bytes; // 413
    uint64_t gather_bytes; // of all gathered bodies and what is made of them: 429; see gather.h
    uint64_t head_ms;      // from the first byte of a head to its end: 408
    uint64_t body_ms;      // for gathering a body: this, and a second more for each 16 KiB: 408
    uint64_t stranger_ms;  // instead of body_ms and write_ms for whoever has shown no key
    uint64_t idle_ms;      // between requests: told to the client, closed a fifth later
    uint64_t write_ms;     // without any progress while there is something to send
    uint64_t
        write_pace; // bytes a second that a client has to take, after that time, of what waits for it; 0: any
    uint64_t linger_ms; // reading on after an early answer, so that it is not lost
};
extern const struct http_limits http_limits_default;

struct http_handler {
    /* A head has come. May change the plan; NULL leaves it. */
    void (*on_head)(void *owner, const struct http_request *request, struct http_plan *plan);
    /* The plan was HTTP_BODY_ASK, and there is a body. Takes both; the request is given back by
     * response_decide, from any thread, and then the response is freed. NULL where no plan asks. */
    void (*on_ask)(void *owner, struct http_request *request, struct response *response);
    /* A request to answer. Takes both: request and response are freed by the owner when it wants,
     * on any thread. */
    void (*on_request)(void *owner, struct http_request *request, struct response *response);
    /* Nothing that can be handled came (malformed, too large, too slow, no answer given). Takes the
     * response; should answer at once with the status. The connection closes afterwards, whatever
     * it says. `request`: its head, for the time of the call, where that much could be read; else NULL.
     * NULL: plain text. */
    void (*on_bad_request)(void *owner, const struct http_request *request,
                           struct response *response, int status, const char *text);
};

/* Requests that are for somebody else, by their heads alone; their connections go with them. Not those of Unix sockets. */
struct http_elsewhere {
    bool (*is_elsewhere)(void *owner, const char *head, size_t length);
    /* Takes fd, and the bytes that were read from it. */
    void (*on_leave)(void *owner, int fd, char *data, size_t length);
    void *owner;
};

int http_server_new(struct loop *loop, const struct http_limits *limits,
                    const struct http_handler *handler, void *owner, struct http_server **out,
                    struct error *err);

/* Any number of both. address_out, when not NULL, is valid as long as the server. */
int http_server_listen_tcp(struct http_server *server, const char *address,
                           const char **address_out, struct error *err);
int http_server_listen_unix(struct http_server *server, const char *path, mode_t mode,
                            struct error *err);

/* Stays the caller's, for as long as the server. */
void http_server_set_elsewhere(struct http_server *server, const struct http_elsewhere *elsewhere);
/* One that comes back: takes fd, connected and non-blocking. `bytes` were read from it. */
void http_server_adopt(struct http_server *server, int fd, const char *bytes, size_t length);

struct http_stats {
    size_t connections;
    size_t idle;      // of them, between two requests
    size_t strangers; // of them, without a key so far
    uint64_t requests;
    uint64_t bad_requests;
    uint64_t gathered_bytes; // held in bodies now
};
void http_server_stats(const struct http_server *server, struct http_stats *out);

/* Closes the connections of whoever has shown a key whose number is this one under the mask (response_vouch). */
void http_server_end_key(struct http_server *server, uint64_t number, uint64_t mask);

/* From now on each answer is the last of its connection. New connections are still accepted, and whoever asks is answered, so that
 * the handler can say why it does nothing more. on_drained comes when no request is under way, or after the time (then with some
 * still open); what is open then goes with http_server_free. */
void http_server_drain(struct http_server *server, uint64_t within_ms,
                       void (*on_drained)(void *data), void *data);

/* Cuts all connections. Responses may still be held elsewhere: they are gone, and stay valid until
 * freed there, as long as the loop exists. Not from a callback of the server. */
void http_server_free(struct http_server *server);
DEFINE_AUTOPTR(http_server)
