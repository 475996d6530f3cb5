/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to one request. No call blocks, and none does anything when the client is gone. A
 * response that nobody has answered yet is waiting: it costs memory and no thread, and whoever comes
 * first answers it.
 * Threads: any; callbacks run on the loop.
 */
#pragma once
#include "base/auto.h"
#include "net/plan.h"
#include "net/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct body;
struct response;

struct response_events {
    /* The client closed its side, or the connection broke, before the answer was complete. At most
     * once. Whatever is still sent is tried all the same: a client may only have closed its sending
     * side. */
    void (*on_gone)(void *data);
    /* There is room again after RESPONSE_FULL. */
    void (*on_room)(void *data);
    /* The time of response_set_deadline came, and there was no answer yet. */
    void (*on_deadline)(void *data);
    /* The last of all, exactly once: nothing of `data` or of a borrowed file is touched any more.
     * Delivered means that all bytes went to the client's machine as far as this one can tell. */
    void (*on_end)(void *data, bool is_delivered);
};

/* Whom to tell. Once per response; what happened before is told as well. Any of the four may be
 * NULL; `events` must stay. */
void response_watch(struct response *response, const struct response_events *events, void *data);

/* What became of an answer. */
struct response_outcome {
    int status;        // 0: none was given
    uint64_t bytes;    // of its body, as far as they were handed over
    bool is_delivered; // as response_events.on_end tells it
};

/* Somebody who only looks on, beside whoever watches: for a log. */
struct response_observer {
    /* An answer begins, of which nothing has gone out yet. Any thread, at most once, with the response locked: must not block. NULL: not told. */
    void (*on_begin)(void *data, int status);
    /* On the loop, exactly once, when the response has ended. */
    void (*on_end)(void *data, const struct response_outcome *outcome);
    /* Nobody holds the response any more. Any thread. */
    void (*on_free)(void *data);
};

/* Once, before anybody can answer; `observer` must stay. */
void response_observe(struct response *response, const struct response_observer *observer,
                      void *data);
/* What that one was given; NULL: it does not observe this. */
void *response_observer_data(const struct response *response,
                             const struct response_observer *observer);

/* Gives a request back that on_ask was given, and says what to do with it. Takes the request. Once, before anything is answered;
 * `plan` must not ask again. */
void response_decide(struct response *response, struct http_request *request,
                     const struct http_plan *plan);

/* The client has shown the key of this number, or 0: something as good, as all others have that did. Its connection is no
 * stranger's any more. */
void response_vouch(struct response *response, uint64_t who);

/* Calls on_deadline after this time unless somebody has begun to answer by then. */
void response_set_deadline(struct response *response, uint64_t after_ms);

/*
 * The whole answer, copied. `headers` may be NULL; Date, Content-Length, Connection, Keep-Alive and
 * Transfer-Encoding are made here. False, without any effect: somebody was faster.
 */
bool response_send(struct response *response, int status, const struct http_header *headers,
                   const void *body, size_t length);

/* A whole answer on its way to response_send's copy. */
struct response_answer {
    int status;
    const struct http_header *headers; // may be NULL
    const void *body;
    size_t length;
    void *owned; // what a filter put there is freed once the answer was copied
};

/* Somebody who may change a whole answer before it is given, whoever gives it. */
struct response_filter {
    /*
     * At most once, without a lock, on the thread of whoever answers. False: the answer goes out as it is now. True: the
     * filter copied it, holds a reference to the response, and gives it later by response_send_filtered; until then nobody else can
     * answer.
     */
    bool (*on_answer)(void *data, struct response *response, struct response_answer *answer);
    /* Instead: the answer comes in pieces, or is a file. The same thread, at most once. */
    void (*on_pieces)(void *data);
    /* Nobody holds the response any more. Any thread. */
    void (*on_free)(void *data);
};

/* Once, before anybody can answer; `filter` must stay. */
void response_set_filter(struct response *response, const struct response_filter *filter,
                         void *data);
/* What that one was given; NULL: it is not this response's. */
void *response_filter_data(const struct response *response, const struct response_filter *filter);
/* For a filter that took the answer. */
void response_send_filtered(struct response *response, const struct response_answer *answer);

/* Headers that the answer gets beside its own, whoever gives it. Borrowed until it has begun; NULL
 * takes them back. */
void response_set_headers(struct response *response, const struct http_header *headers);

/* A part of a regular file that does not shrink meanwhile. Borrowed until on_end, unless owned. */
struct file_range {
    int fd;
    bool is_owned; // goes with the answer once that is taken, and is closed when sent
    uint64_t offset;
    uint64_t length;
};

/* The whole answer is this part of a file, sent without copying it through memory. */
bool response_send_file(struct response *response, int status, const struct http_header *headers,
                        const struct file_range *range);

/* Begins an answer that comes in pieces and sends its head at once. With a length, exactly that
 * many bytes must be appended; without, it is chunked (HTTP/1.1) or ends with the connection
 * (HTTP/1.0). False: somebody was faster. */
#define RESPONSE_LENGTH_UNKNOWN UINT64_MAX
bool response_begin(struct response *response, int status, const struct http_header *headers,
                    uint64_t length);

enum response_room {
    RESPONSE_GONE = -1, // nobody will read it; nothing was taken
    RESPONSE_FULL = 0,  // the client is behind; nothing was taken; on_room will be called
    RESPONSE_TAKEN = 1,
};

/* At most RESPONSE_BUFFER bytes wait in memory, and at most RESPONSE_RANGES parts of files. A
 * single larger piece is taken when nothing else waits. An empty piece only asks. */
#define RESPONSE_BUFFER (256u << 10)
#define RESPONSE_RANGES 4
enum response_room response_append(struct response *response, const void *data, size_t length);
enum response_room response_append_file(struct response *response, const struct file_range *range);
/* Both parts in a row, or neither. */
enum response_room response_append_parts(struct response *response, const void *first,
                                         size_t first_length, const void *data, size_t length);
enum response_room response_append_file_behind(struct response *response, const void *first,
                                               size_t length, const struct file_range *range);

/*
 * Answers 101 with `Connection: Upgrade` and gives the connection over to the caller: what is appended goes out as it is, and what the
 * client sends from now on, or has sent behind its request, comes out of the body that is returned, a reference. response_finish ends
 * it. NULL: somebody was faster, or the client is gone. On the loop, for requests of HTTP/1.1 without a body.
 */
struct body *response_upgrade(struct response *response, const struct http_header *headers);

/* Whether all that was appended so far has gone to the socket. */
bool response_is_drained(struct response *response);

/* The answer is complete. After fewer bytes than promised, or with is_whole false, the connection
 * is cut so that the client can tell. */
void response_finish(struct response *response, bool is_whole);

struct response *response_ref(struct response *response);

/* Gives up one reference. With the last, a response without an answer gets a 500, an unfinished one
 * is cut. */
void response_free(struct response *response);
DEFINE_AUTOPTR(response)
