/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files that make a connection share.
 * Threads: the loop.
 */
#pragma once
#include "net/body_impl.h"
#include "net/connection.h"
#include "net/output.h"

/* What the timer is set for. */
enum waiting {
    WAITING_NOTHING,
    WAITING_REQUEST,  // idle
    WAITING_HEAD,     // the rest of one
    WAITING_BODY,     // the rest of one that is gathered
    WAITING_DEADLINE, // of an answer that is waited for
    WAITING_WRITE,    // until the client takes more
    WAITING_LINGER,   // for the client to close
    WAITING_LEAVE,    // its turn to go to somebody else
    WAITING_CONFIRM,  // for the client's machine to take the last bytes
};

struct connection {
    struct connection_home *home;
    struct connection_place places[CONNECTION_ORDERS];
    int fd;
    struct loop_watch *watch;
    struct loop_timer timer;
    enum waiting waiting;
    struct http1 http;
    struct peer peer;

    struct response *response;    // of the request under way; NULL: none
    struct http_request *request; // while its body is gathered
    struct body *body;            // while it is streamed
    uint64_t body_limit, body_bytes, body_ms;
    uint64_t since_ms;       // gathering, or confirming
    uint64_t opened_ms, who; // who: the number of the key it has shown
    struct output output;
    uint64_t blocked_ms, blocked_at; // since when not all is taken, and what was by then
    char *pending;                   // read, but of the next request
    size_t pending_length;

    bool is_idle;
    bool is_known;       // has shown a key
    bool is_held;        // nothing is read until it was decided what to do with the body
    bool is_skipped;     // the body is thrown away as it comes
    bool is_complete;    // the request has been read to its end
    bool is_handed_out;  // somebody is to answer it
    bool is_bad;         // and that is on_bad_request
    bool is_last;        // close after the answer
    bool is_upgraded;    // answered with 101: what is read is for whoever holds the body
    bool is_body_full;   // the consumer is behind
    bool is_half_closed; // the client sends no more
    bool is_hung_up;     // the same, but there may still be bytes to read
    bool is_blocked;     // the client takes no more for now
    bool is_finished;    // the answer is in the output as a whole
    bool is_cut;         // as far as it goes, that is
    bool ends_by_close;
    bool is_ended; // the answer was sent; lingering or confirming
};

/* Asks the loop for what the connection can use now. */
void connection_watch(struct connection *connection);

/* Its request was answered with 101. Returns the body that takes what is read from now on, a reference. */
struct body *connection_upgrade(void *connection);
/* Bytes that were read since. */
void connection_take(struct connection *connection, const char *data, size_t length);
