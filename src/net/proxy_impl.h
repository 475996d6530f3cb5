/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files that make a proxy share.
 * Threads: the loop.
 */
#pragma once
#include "net/http1.h"
#include "net/http1_reply.h"
#include "net/proxy.h"
#include "net/proxy_end.h"
#include "net/proxy_head.h"

#define PROXY_SCRATCH (128u << 10)
#define PROXY_LINGER_MS 2000
#define PROXY_HALF_CLOSED_MS 10000 // for an answer to a client that sends no more

struct proxy {
    struct loop *loop;
    struct proxy_limits limits;
    struct http1_limits parse_limits;
    const struct proxy_events *events;
    void *owner;
    struct proxy_client *first;
    size_t count;
    bool is_draining;
    char *scratch;           // for one read; used up at once
    struct loop_timer sweep; // runs while there are clients
};

enum proxy_phase {
    PROXY_IDLE,     // between requests
    PROXY_HEAD,     // in the middle of a head
    PROXY_ASKING,   // a head is there; the owner is about to be asked
    PROXY_ASKED,    // the owner is to say where it goes
    PROXY_EXCHANGE, // request up, answer down
    PROXY_TUNNEL,   // bytes
    PROXY_ENDING,   // the last answer is out; waits for the client to take it and close
};

struct proxy_client {
    struct proxy *proxy;
    struct proxy_client *next, **place;
    void *data;
    struct peer peer;
    struct proxy_end near, far; // the client; the server
    struct http1 http;
    char *pending; // read from the client, not looked at yet
    size_t pending_length;
    enum proxy_phase phase;
    uint64_t since_ms; // in this phase
    struct http_request *request;
    struct http1_reply reply;
    struct proxy_reply_manner manner;
    const void *route; // of the server's connection
    struct http1_fault fault;
    uint64_t traffic_ms;               // when the owner was last told
    bool is_tunnel;                    // from the start
    bool is_request_complete;          //
    bool is_reply_begun;               // its head is on its way to the client
    bool is_reply_complete;            //
    bool is_reply_odd;                 // another protocol, which nobody asked for
    bool is_far_fresh;                 // nothing has come from there, nor gone, so far
    bool is_far_reused;                //
    bool far_keeps;                    // the server will take another
    bool is_elsewhere;                 // what came is not for this proxy
    bool is_running, is_dead, is_torn; // torn: the client must notice
};

int proxy_client_open(struct proxy *proxy, int fd, void *data, struct proxy_client **out,
                      struct error *err);
/* Bytes that were read before it came here. */
void proxy_client_feed(struct proxy_client *client, const char *bytes, size_t length);
/* Goes on as far as it can, and closes what is over. */
void proxy_client_run(struct proxy_client *client);
/* A look at its deadlines. */
void proxy_client_check(struct proxy_client *client);
