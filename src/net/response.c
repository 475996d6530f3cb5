/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: filled on any thread under a lock, collected by the connection on the loop. */
#include "net/response.h"
#include "net/response_impl.h"

#include "base/mem.h"
#include "base/lock.h"
#include "net/response_head.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum stage { STAGE_WAITING, STAGE_BEGUN, STAGE_FINISHED };
enum filter_stage { FILTER_NONE, FILTER_READY, FILTER_BUSY };

struct response {
    struct loop *loop;
    const struct response_link *link;
    void *connection; // loop only; NULL once ended
    atomic_int refs;
    atomic_int holders; // references that could still answer
    uint8_t minor;      // these four: set once
    bool is_head;
    const struct response_observer *observer; // NULL: none
    void *observer_data;
    const struct response_filter *filter; // NULL: none; set once, like its data
    void *filter_data;

    struct lock lock; // guards all below
    enum stage stage;
    enum filter_stage filter_stage;
    bool is_posted;
    bool is_chunked;
    bool ends_by_close;
    bool is_muted; // bytes are counted and dropped: HEAD, 304
    bool is_cut;
    bool is_full;
    bool is_gone, has_told_gone;
    bool has_ended, has_told_end, is_delivered;
    bool is_vouched;
    uint64_t who;
    struct http_request *decided; // given back, with its plan; NULL: none, or it was collected
    struct http_plan plan;
    int status;    // 0: no answer yet
    uint64_t sent; // bytes of the body that were handed over
    uint64_t left; // of a promised length
    uint64_t deadline_ms;
    const struct http_header *headers; // besides those of the answer
    struct segment *head;
    struct output added;  // not yet collected
    size_t waiting_bytes; // collected, not yet sent
    unsigned waiting_ranges;
    const struct response_events *events;
    void *data;
};

struct response *response_new(struct loop *loop, const struct response_link *link, void *connection)
{
    struct response *response = xnew(struct response);

    response->loop = loop;
    response->link = link;
    response->connection = connection;
    response->minor = 1;
    atomic_init(&response->refs, 1);
    lock_init(&response->lock, LOCK_RESPONSE);
    return response;
}

void response_set_request(struct response *response, const struct http_request *request)
{
    response->minor = request->minor;
    response->is_head = request->is_head;
}

static void let_go(struct response *response)
{
    if (atomic_fetch_sub(&response->refs, 1) != 1)
        return;
    if (response->observer)
        response->observer->on_free(response->observer_data);
    if (response->filter)
        response->filter->on_free(response->filter_data);
    output_clear(&response->added);
    free(response->head);
    http_request_free(response->decided);
    lock_clear(&response->lock);
    free(response);
}

struct response *response_ref(struct response *response)
{
    atomic_fetch_add(&response->refs, 1);
    atomic_fetch_add(&response->holders, 1);
    return response;
}

/* What is to be told now, without the lock: the events are set once. */
struct telling {
    const struct response_events *events;
    void *data;
    bool is_gone, has_ended, is_delivered;
};

static struct telling take_telling(struct response *response)
{
    autolock(&response->lock);
    const struct response_events *events = response->events;
    struct telling telling = {
        .events = events,
        .data = response->data,
        .is_gone = events && response->is_gone && !response->has_told_gone,
        .has_ended = events && response->has_ended && !response->has_told_end,
        .is_delivered = response->is_delivered,
    };
    response->has_told_gone |= telling.is_gone;
    response->has_told_end |= telling.has_ended;
    return telling;
}

/* Calls what is due. */
static void tell(struct response *response)
{
    struct telling telling = take_telling(response);

    if (telling.is_gone && telling.events->on_gone)
        telling.events->on_gone(telling.data);
    if (telling.has_ended && telling.events->on_end)
        telling.events->on_end(telling.data, telling.is_delivered);
}

static void on_posted(void *data)
{
    struct response *response = data;

    {
        autolock(&response->lock);
        response->is_posted = false;
    }
    tell(response);
    if (response->connection)
        response->link->on_change(response->connection);
    let_go(response);
}

/* With the lock held: has the loop look at it. */
static void post(struct response *response)
{
    if (response->is_posted)
        return;
    response->is_posted = true;
    atomic_fetch_add(&response->refs, 1);
    loop_post(response->loop, on_posted, response);
}

void response_free(struct response *response)
{
    if (!response)
        return;
    if (atomic_fetch_sub(&response->holders, 1) == 1) {
        autolock(&response->lock);
        if (response->stage != STAGE_FINISHED && !response->has_ended)
            post(response);
    }
    let_go(response);
}

void response_watch(struct response *response, const struct response_events *events, void *data)
{
    autolock(&response->lock);
    assert(!response->events);
    response->events = events;
    response->data = data;
    if (response->is_gone || response->has_ended)
        post(response);
}

void *response_observer_data(const struct response *response,
                             const struct response_observer *observer)
{
    return response->observer == observer ? response->observer_data : NULL;
}

void response_observe(struct response *response, const struct response_observer *observer,
                      void *data)
{
    response->observer = observer;
    response->observer_data = data;
}

void response_decide(struct response *response, struct http_request *request,
                     const struct http_plan *plan)
{
    autolock(&response->lock);
    assert(!response->decided);
    response->decided = request;
    response->plan = *plan;
    post(response);
}

struct http_request *response_take_decision(struct response *response, struct http_plan *plan)
{
    autolock(&response->lock);
    *plan = response->plan;
    return take(response->decided);
}

void response_vouch(struct response *response, uint64_t who)
{
    autolock(&response->lock);
    response->is_vouched = true;
    if (!who)
        return;
    response->who = who;
    post(
        response); // an answer may be long in coming, and until then the connection is cut off with its key
}

void response_set_deadline(struct response *response, uint64_t after_ms)
{
    autolock(&response->lock);
    response->deadline_ms = after_ms ? after_ms : 1;
    post(response);
}

void response_set_headers(struct response *response, const struct http_header *headers)
{
    autolock(&response->lock);
    response->headers = headers;
}

/* With the lock held: makes the head, unless somebody was faster. */
static bool begin(struct response *response, int status, const struct http_header *headers,
                  uint64_t length)
{
    if (response->stage != STAGE_WAITING)
        return false;
    bool has_body = response_status_has_body(status);
    bool is_open = has_body && length == RESPONSE_LENGTH_UNKNOWN;
    response->stage = STAGE_BEGUN;
    response->status = status;
    if (response->observer && response->observer->on_begin)
        response->observer->on_begin(response->observer_data, status);
    response->is_muted = response->is_head || (!has_body && status != 101);
    response->is_chunked = is_open && response->minor > 0;
    response->ends_by_close = is_open && response->minor == 0 && !response->is_head;
    response->left = length;
    if (response->has_ended)
        return true;
    response->head = response_head_new(&(struct response_head){
        .status = status,
        .headers = headers,
        .more_headers = response->headers,
        .length = has_body || status == 304 ? length : RESPONSE_LENGTH_UNKNOWN,
        .is_chunked = response->is_chunked,
    });
    return true;
}

#define CHUNK_LINE 24 // its length in hexadecimal and CR LF, at the longest

/* With the lock held. Drops what nobody reads. */
static void add_parts(struct response *response, const void *first, size_t first_length,
                      const void *data, size_t rest)
{
    size_t length = first_length + rest;

    if (response->is_muted || response->has_ended || length == 0)
        return;
    response->sent += length;
    struct segment *chunk = segment_new(CHUNK_LINE + length + 2);
    char *at = segment_data(chunk), *start = at;
    if (response->is_chunked)
        at += snprintf(at, CHUNK_LINE, "%zx\r\n", length);
    if (first_length)
        at = mempcpy(at, first, first_length);
    if (rest)
        at = mempcpy(at, data, rest);
    if (response->is_chunked)
        at = mempcpy(at, "\r\n", 2);
    segment_trim(chunk, (size_t)(at - start));
    output_add(&response->added, chunk);
}

static void add_bytes(struct response *response, const void *data, size_t length)
{
    add_parts(response, NULL, 0, data, length);
}

static void add_range(struct response *response, const struct file_range *range)
{
    char line[CHUNK_LINE];

    if (response->is_muted || response->has_ended || range->length == 0) {
        if (range->is_owned)
            (void)close(range->fd);
        return;
    }
    response->sent += range->length;
    if (response->is_chunked) {
        int used = snprintf(line, sizeof line, "%llx\r\n", (unsigned long long)range->length);
        output_add_copy(&response->added, line, (size_t)used);
    }
    output_add_range(&response->added, range);
    if (response->is_chunked)
        output_add_copy(&response->added, "\r\n", 2);
}

static void finish(struct response *response, bool is_whole)
{
    bool is_short = response->left != RESPONSE_LENGTH_UNKNOWN && response->left > 0;

    response->stage = STAGE_FINISHED;
    response->is_cut = (!is_whole || is_short) && !response->is_muted;
    if (response->is_chunked && !response->is_cut && !response->is_muted && !response->has_ended)
        output_add_copy(&response->added, "0\r\n\r\n", 5);
    post(response);
}

void response_set_filter(struct response *response, const struct response_filter *filter,
                         void *data)
{
    autolock(&response->lock);
    assert(!response->filter);
    response->filter = filter;
    response->filter_data = data;
    response->filter_stage = FILTER_READY;
}

void *response_filter_data(const struct response *response, const struct response_filter *filter)
{
    return response->filter == filter ? response->filter_data : NULL;
}

/* Whether somebody's answer is with the filter, which makes it the first; else takes the filter, where there is one. */
static bool is_taken(struct response *response, bool *has_filter)
{
    autolock(&response->lock);
    *has_filter = response->filter_stage == FILTER_READY && response->stage == STAGE_WAITING;
    if (*has_filter)
        response->filter_stage = FILTER_BUSY;
    return !*has_filter && response->filter_stage == FILTER_BUSY;
}

static bool send_now(struct response *response, const struct response_answer *answer)
{
    autolock(&response->lock);
    response->filter_stage = FILTER_NONE;
    bool is_first = begin(response, answer->status, answer->headers, answer->length);
    if (is_first) {
        add_bytes(response, answer->body, answer->length);
        response->left = 0;
        finish(response, true);
    }
    return is_first;
}

bool response_send(struct response *response, int status, const struct http_header *headers,
                   const void *body, size_t length)
{
    struct response_answer answer = {
        .status = status, .headers = headers, .body = body, .length = length};
    bool has_filter;

    if (is_taken(response, &has_filter))
        return false;
    if (has_filter && response->filter->on_answer(response->filter_data, response, &answer))
        return true;
    bool is_first = send_now(response, &answer);
    free(answer.owned);
    return is_first;
}

void response_send_filtered(struct response *response, const struct response_answer *answer)
{
    (void)send_now(response, answer);
}

/* Before an answer that the filter does not see. False: somebody was faster. */
static bool pass_filter(struct response *response)
{
    bool has_filter;

    if (is_taken(response, &has_filter))
        return false;
    if (has_filter && response->filter->on_pieces)
        response->filter->on_pieces(response->filter_data);
    return true;
}

bool response_send_file(struct response *response, int status, const struct http_header *headers,
                        const struct file_range *range)
{
    if (!pass_filter(response))
        return false;
    autolock(&response->lock);
    response->filter_stage = FILTER_NONE;
    bool is_first = begin(response, status, headers, range->length);
    if (is_first) {
        add_range(response, range);
        response->left = 0;
        finish(response, true);
    }
    return is_first;
}

bool response_begin(struct response *response, int status, const struct http_header *headers,
                    uint64_t length)
{
    if (!pass_filter(response))
        return false;
    autolock(&response->lock);
    response->filter_stage = FILTER_NONE;
    bool is_first = begin(response, status, headers, length);
    if (is_first)
        post(response);
    return is_first;
}

/* With the lock held: is there room for so much? */
static enum response_room look_for_room(struct response *response, size_t bytes, unsigned ranges)
{
    size_t waiting = response->waiting_bytes + response->added.bytes;
    unsigned waiting_ranges = response->waiting_ranges + response->added.ranges;

    if (response->has_ended || response->stage != STAGE_BEGUN)
        return RESPONSE_GONE;
    if ((waiting && waiting + bytes > RESPONSE_BUFFER) ||
        waiting_ranges + ranges > RESPONSE_RANGES) {
        response->is_full = true;
        return RESPONSE_FULL;
    }
    return RESPONSE_TAKEN;
}

/* A client never gets more than it was promised. */
static uint64_t count_promised(struct response *response, uint64_t length)
{
    if (response->left == RESPONSE_LENGTH_UNKNOWN)
        return length;
    if (length > response->left)
        length = response->left;
    response->left -= length;
    return length;
}

enum response_room response_append(struct response *response, const void *data, size_t length)
{
    autolock(&response->lock);
    enum response_room room = look_for_room(response, length, 0);
    if (room == RESPONSE_TAKEN && length) {
        add_bytes(response, data, (size_t)count_promised(response, length));
        post(response);
    }
    return room;
}

enum response_room response_append_file(struct response *response, const struct file_range *range)
{
    autolock(&response->lock);
    enum response_room room = look_for_room(response, 0, 1);
    if (room == RESPONSE_TAKEN) {
        struct file_range part = *range;
        part.length = count_promised(response, range->length);
        add_range(response, &part);
        post(response);
    }
    return room;
}

enum response_room response_append_parts(struct response *response, const void *first,
                                         size_t first_length, const void *data, size_t length)
{
    autolock(&response->lock);
    enum response_room room = look_for_room(response, first_length + length, 0);
    if (room == RESPONSE_TAKEN && first_length + length) {
        add_parts(response, first, first_length, data, length);
        post(response);
    }
    return room;
}

enum response_room response_append_file_behind(struct response *response, const void *first,
                                               size_t length, const struct file_range *range)
{
    autolock(&response->lock);
    enum response_room room = look_for_room(response, length, 1);
    if (room == RESPONSE_TAKEN) {
        add_bytes(response, first, length);
        add_range(response, range);
        post(response);
    }
    return room;
}

struct body *response_upgrade(struct response *response, const struct http_header *headers)
{
    assert_on_loop(response->loop);
    bool is_first;
    {
        autolock(&response->lock);
        is_first = !response->has_ended && begin(response, 101, headers, RESPONSE_LENGTH_UNKNOWN);
        if (is_first)
            post(response);
    }
    return is_first ? response->link->on_upgrade(response->connection) : NULL;
}

bool response_is_drained(struct response *response)
{
    autolock(&response->lock);
    return response->waiting_bytes + response->added.bytes == 0 &&
           response->waiting_ranges + response->added.ranges == 0;
}

void response_finish(struct response *response, bool is_whole)
{
    autolock(&response->lock);
    if (response->stage == STAGE_BEGUN)
        finish(response, is_whole);
}

void response_collect(struct response *response, struct output *to,
                      struct response_changes *changes)
{
    autolock(&response->lock);
    *changes = (struct response_changes){
        .head = take(response->head),
        .is_finished = response->stage == STAGE_FINISHED,
        .is_cut = response->is_cut,
        .is_waiting = response->stage == STAGE_WAITING,
        .is_abandoned = atomic_load(&response->holders) == 0 && response->stage != STAGE_FINISHED,
        .ends_by_close = response->ends_by_close,
        .is_vouched = response->is_vouched,
        .who = response->who,
        .deadline_ms = response->deadline_ms,
    };
    response->deadline_ms = 0;
    response->waiting_bytes += response->added.bytes;
    response->waiting_ranges += response->added.ranges;
    output_move(to, &response->added);
}

/* Whether there is room again, and somebody to be told. */
static bool set_waiting(struct response *response, const struct output *output)
{
    autolock(&response->lock);
    response->waiting_bytes = output->bytes;
    response->waiting_ranges = output->ranges;
    bool has_room = response->is_full && response->events &&
                    output->bytes + response->added.bytes <= RESPONSE_BUFFER / 2 &&
                    output->ranges + response->added.ranges <= RESPONSE_RANGES / 2;
    if (has_room)
        response->is_full = false;
    return has_room;
}

void response_set_waiting(struct response *response, const struct output *output)
{
    if (set_waiting(response, output) && response->events->on_room)
        response->events->on_room(response->data);
}

static bool is_watched_and_waiting(struct response *response)
{
    autolock(&response->lock);
    return response->stage == STAGE_WAITING && response->events;
}

void response_call_deadline(struct response *response)
{
    if (is_watched_and_waiting(response) && response->events->on_deadline)
        response->events->on_deadline(response->data);
}

void response_set_gone(struct response *response)
{
    {
        autolock(&response->lock);
        response->is_gone = true;
    }
    tell(response);
}

void response_end(struct response *response, bool is_delivered)
{
    response->connection = NULL;
    struct response_outcome outcome;
    {
        autolock(&response->lock);
        response->has_ended = true;
        response->is_delivered = is_delivered;
        response->is_gone |= !is_delivered;
        outcome = (struct response_outcome){
            .status = response->status, .bytes = response->sent, .is_delivered = is_delivered};
        output_clear(&response->added);
    }
    if (response->observer)
        response->observer->on_end(response->observer_data, &outcome);
    tell(response);
    let_go(response);
}
