/* SPDX-License-Identifier: Apache-2.0 */
/* One POST to /mcp; see mcp_exchange.h. */
#include "front/mcp/mcp_exchange.h"

#include "base/clock.h"
#include "base/mem.h"
#include "data/json.h"
#include "front/mcp/mcp_impl.h"
#include "web/auth.h"
#include "web/event_format.h"
#include "web/router.h"
#include "web/waiting_call.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ASK_BYTES ((size_t)4 << 20)
#define ANSWER_BYTES ((size_t)32 << 20) // of all messages in a body
#define FAULT_BYTES 32768               // more than any takes
#define UNCOUNTED_BYTES 65536           // of an answer: these are as many as there are connections
#define PROGRESS_MS 1000
#define CACHE_MS 60000

struct exchange {
    struct mcp_front *front;
    struct waiting_call waiting;
    atomic_int refs;             // whoever works on it; the response, once that is watched
    struct gather_charge charge; // what the body takes
    struct gather_charge held;   // what the answer does, until it is delivered
    struct data_document *document;
    const struct data_value *next; // message; NULL: that was the last
    bool is_batch, takes_events, is_watched;
    char *host, *request_id, *version, *method, *name, *session;
    struct mcp_headers headers; // those
    struct peer peer;
    struct mcp_message message; // that is being answered
    struct mcp_terms terms;
    struct arena arena; // of that message
    struct buffer out;
    struct json_writer json;
    size_t n_answers;
    size_t answer_start; // of the one that is being written, in `out`
    int status;
    char new_session[ID_TEXT];
    on_asked on_asked;
    void *asked_data;

    struct lock lock; // guards the two below
    struct inner_response *inner;
    bool is_given_up;

    // On the loop:
    struct loop_timer timer;
    bool is_begun, is_over;
    uint64_t since_ms;
    size_t sent; // of `out`, as events
    struct buffer event;

    struct exchange *before, *after; // under the front's lock
};

// ---- from the first reference to the last ----

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

/* A header that something on the way may go by must be there once: of two, each could go by another. */
static const char *repeated_header(const struct call *call)
{
    static const char *const names[] = {"MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"};
    const struct http_request *request = call->request;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        unsigned count = 0;
        for (size_t at = 0; at < request->header_count; at++)
            count += strcasecmp(request->headers[at].name, names[i]) == 0;
        if (count > 1)
            return names[i];
    }
    return NULL;
}

static struct exchange *exchange_new(struct call *call)
{
    struct exchange *x = xnew(struct exchange);
    const char *accept = call_header(call, "Accept");

    atomic_init(&x->refs, 1);
    lock_init(&x->lock, LOCK_FRONT);
    x->front = call->settings;
    waiting_call_init(&x->waiting, call);
    x->peer = call->request->peer;
    x->host = copy(call->request->host);
    x->request_id = copy(call_request_id(call));
    x->headers = (struct mcp_headers){
        .version = x->version = copy(call_header(call, "MCP-Protocol-Version")),
        .method = x->method = copy(call_header(call, "Mcp-Method")),
        .name = x->name = copy(call_header(call, "Mcp-Name")),
        .session = x->session = copy(call_header(call, "Mcp-Session-Id")),
    };
    x->takes_events = accept && strstr(accept, "text/event-stream");
    x->out.maximum = ANSWER_BYTES;
    x->status = 200;
    return x;
}

static void exchange_unref(struct exchange *x)
{
    if (atomic_fetch_sub(&x->refs, 1) != 1)
        return;
    inner_response_free(x->inner);
    waiting_call_clear(&x->waiting);
    data_document_free(x->document);
    gather_charge_clear(&x->charge);
    gather_charge_clear(&x->held);
    arena_clear(&x->arena);
    buffer_clear(&x->out);
    buffer_clear(&x->event);
    lock_clear(&x->lock);
    free(x->host);
    free(x->request_id);
    free(x->version);
    free(x->method);
    free(x->name);
    free(x->session);
    free(x);
}

const struct mcp_message *exchange_message(const struct exchange *exchange)
{
    return &exchange->message;
}

const struct mcp_terms *exchange_terms(const struct exchange *exchange)
{
    return &exchange->terms;
}

const struct actor *exchange_actor(const struct exchange *exchange)
{
    return &exchange->waiting.actor;
}

const struct router *exchange_router(const struct exchange *exchange)
{
    return exchange->waiting.router;
}

void *exchange_alloc(struct exchange *exchange, size_t size)
{
    return arena_alloc(&exchange->arena, size);
}

char *exchange_print(struct exchange *exchange, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = arena_alloc(&exchange->arena, (size_t)length + 1);
    va_start(args, format);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

// ---- cancelling ----

bool exchange_is_given_up(struct exchange *exchange)
{
    autolock(&exchange->lock);
    return exchange->is_given_up;
}

static void give_up(struct exchange *x)
{
    autolock(&x->lock);
    x->is_given_up = true;
    if (x->inner)
        inner_response_give_up(x->inner);
}

static void enlist(struct exchange *x)
{
    autolock(&x->front->lock);
    x->after = x->front->waiting;
    if (x->after)
        x->after->before = x;
    x->front->waiting = x;
}

static void delist(struct exchange *x)
{
    autolock(&x->front->lock);
    if (x->before)
        x->before->after = x->after;
    else if (x->front->waiting == x)
        x->front->waiting = x->after;
    if (x->after)
        x->after->before = x->before;
    x->before = x->after = NULL;
}

static bool is_meant(const struct exchange *x, const struct exchange *from,
                     const struct data_value *id)
{
    const struct data_value *own = x->message.id;
    const struct actor *mine = &x->waiting.actor, *asks = &from->waiting.actor;

    return x != from && own && own->kind == id->kind && own->length == id->length &&
           memcmp(own->text, id->text, id->length) == 0 && x->session && from->session &&
           strcmp(x->session, from->session) == 0 && strcmp(mine->key_id, asks->key_id) == 0 &&
           strcmp(mine->token_id, asks->token_id) == 0 &&
           strcmp(mine->organisation, asks->organisation) == 0;
}

static struct exchange *find_meant(const struct exchange *from, const struct data_value *id)
{
    autolock(&from->front->lock);
    struct exchange *x = from->front->waiting;

    // a batch answers its messages one by one, and the one that waits cannot be told from here
    while (x && (x->is_batch || !is_meant(x, from, id)))
        x = x->after;
    if (x)
        atomic_fetch_add(&x->refs, 1);
    return x;
}

void exchange_cancel(const struct exchange *from, const struct data_value *id)
{
    struct exchange *x = find_meant(from, id);

    if (!x)
        return;
    give_up(x);
    exchange_unref(x);
}

// ---- the answer, on the loop ----

static const struct http_header event_headers[] = {
    {"Content-Type", "text/event-stream"},
    {"Cache-Control", "no-cache"},
    {"X-Accel-Buffering", "no"},
    {0},
};

/* All that is ready, and then the end of the answer. */
static void push_events(struct exchange *x)
{
    struct response *response = x->waiting.response;
    enum response_room room = RESPONSE_TAKEN;

    if (x->event.length)
        room = response_append(response, x->event.data, x->event.length);
    if (room == RESPONSE_FULL)
        return; // on_room
    buffer_clear(&x->event);
    if (x->is_over)
        response_finish(response, room == RESPONSE_TAKEN);
}

static void add_event(struct exchange *x, const char *json, size_t length)
{
    const struct event_record record = {NULL, "message", json, length};
    struct error ignored;

    (void)event_format_add(EVENT_FORMAT_SSE, &record, &x->event, &ignored);
}

static const struct data_value *progress_token(const struct exchange *x)
{
    const struct data_value *token = value_get(x->message.meta, "progressToken");

    return token && (token->kind == VALUE_STRING || token->kind == VALUE_NUMBER) ? token : NULL;
}

static void add_progress(struct exchange *x)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error ignored;
    char words[64];
    uint64_t seconds = (loop_now_ms(x->waiting.loop) - x->since_ms + 500) / 1000;

    (void)snprintf(words, sizeof words, "running for %" PRIu64 " s", seconds);
    json_writer_init(&json, &text);
    json_map_begin(&json);
    mcp_put(&json, "jsonrpc", "2.0");
    mcp_put(&json, "method", "notifications/progress");
    json_key(&json, "params");
    json_map_begin(&json);
    json_key(&json, "progressToken");
    json_value(&json, progress_token(x));
    json_key(&json, "progress");
    json_natural(&json, seconds);
    mcp_put(&json, "message", words);
    json_map_end(&json);
    json_map_end(&json);
    if (json_writer_finish(&json, &ignored) == 0)
        add_event(x, text.data, text.length);
}

static uint64_t pulse_ms(const struct exchange *x)
{
    return progress_token(x) ? PROGRESS_MS : EVENT_KEEP_ALIVE_MS;
}

/* The client has waited for a while: from now on the answer is a stream. */
static void on_pulse(void *data)
{
    struct exchange *x = data;
    struct error ignored;

    if (x->is_over)
        return;
    if (!x->is_begun &&
        !response_begin(x->waiting.response, 200, event_headers, RESPONSE_LENGTH_UNKNOWN))
        return;
    x->is_begun = true;
    if (x->event.length == 0 && progress_token(x))
        add_progress(x);
    else if (x->event.length == 0)
        (void)event_format_add_keep_alive(EVENT_FORMAT_SSE, &x->event, &ignored);
    push_events(x);
    loop_timer_set(&x->timer, pulse_ms(x));
}

static void on_gone(void *data)
{
    give_up(data);
}

static void on_room(void *data)
{
    push_events(data);
}

static void on_end(void *data, bool is_delivered)
{
    struct exchange *x = data;

    (void)is_delivered;
    x->is_over = true;
    loop_timer_clear(&x->timer);
    give_up(x);
    exchange_unref(x);
}

static const struct response_events events = {
    .on_gone = on_gone, .on_room = on_room, .on_end = on_end};

static void start_pulse(void *data)
{
    struct exchange *x = data;

    x->since_ms = loop_now_ms(x->waiting.loop);
    if (!x->is_over && x->takes_events && !x->is_batch)
        loop_timer_set(&x->timer, pulse_ms(x));
    exchange_unref(x);
}

/* Once, before the first thing that takes time. */
static void watch(struct exchange *x)
{
    if (x->is_watched)
        return;
    x->is_watched = true;
    loop_timer_init(&x->timer, x->waiting.loop, on_pulse, x);
    enlist(x);
    atomic_fetch_add(&x->refs, 2);
    loop_post(x->waiting.loop, start_pulse, x);
    response_watch(x->waiting.response, &events, x);
}

static void send_whole(struct exchange *x)
{
    const struct http_header headers[] = {
        {"Content-Type", "application/json"},
        {x->new_session[0] ? "Mcp-Session-Id" : NULL, x->new_session},
        {0},
    };
    bool is_empty = x->n_answers == 0;

    (void)response_send(x->waiting.response, is_empty ? 202 : x->status, is_empty ? NULL : headers,
                        x->out.data, is_empty ? 0 : x->out.length);
    buffer_clear(&x->out);
}

static void on_answered(void *data)
{
    struct exchange *x = data;

    loop_timer_clear(&x->timer);
    if (!x->is_over && x->is_begun) {
        add_event(x, x->out.data, x->out.length);
        buffer_clear(&x->out);
        x->is_over = true;
        push_events(x);
    } else if (!x->is_over) {
        x->is_over = true;
        send_whole(x);
    }
    exchange_unref(x);
}

// ---- messages ----

static struct json_writer *begin_answer(struct exchange *x)
{
    struct error ignored;

    x->out.maximum++; // however full it is
    if (x->is_batch)
        (void)buffer_add_text(&x->out, x->n_answers ? "," : "[", &ignored);
    x->n_answers++;
    x->answer_start = x->out.length;
    json_writer_init(&x->json, &x->out);
    return &x->json;
}

struct json_writer *exchange_result_begin(struct exchange *exchange)
{
    struct json_writer *json = begin_answer(exchange);

    json_map_begin(json);
    mcp_put(json, "jsonrpc", "2.0");
    json_key(json, "id");
    json_value(json, exchange->message.id);
    json_key(json, "result");
    json_map_begin(json);
    if (!exchange->terms.is_modern)
        return json;
    mcp_put(json, "resultType", "complete");
    json_key(json, "_meta");
    json_map_begin(json);
    json_key(json, MCP_META "serverInfo");
    json_map_begin(json);
    mcp_put(json, "name", "burrow");
    mcp_put(json, "version", BURROW_VERSION);
    json_map_end(json);
    json_map_end(json);
    return json;
}

static void write_fault(struct exchange *x, const struct mcp_fault *fault)
{
    struct error ignored;

    json_writer_init(&x->json, &x->out);
    mcp_write_fault(&x->json, x->message.id, fault);
    (void)json_writer_finish(&x->json, &ignored);
}

/* Whether there is memory to hold the answers so far until they are read, which may be never: they count among all that the server holds for its key. */
static bool may_hold(struct exchange *x)
{
    const struct actor *actor = &x->waiting.actor;

    if (x->out.length <= UNCOUNTED_BYTES || !x->charge.budget)
        return true;
    if (!x->held.budget)
        gather_charge_open(&x->held, x->charge.budget, GATHER_KEY,
                           auth_number(actor->key_id, actor->token_id));
    return x->out.length <= x->held.bytes ||
           gather_charge_add(&x->held, x->out.length - x->held.bytes);
}

/* Half an answer is none: it says why instead. */
void exchange_result_end(struct exchange *exchange)
{
    struct mcp_fault fault;
    struct error err;

    json_map_end(&exchange->json);
    json_map_end(&exchange->json);
    bool is_whole = json_writer_finish(&exchange->json, &err) == 0;
    if (is_whole && may_hold(exchange))
        return;
    exchange->out.length = exchange->answer_start;
    exchange->out.maximum += FAULT_BYTES;
    if (is_whole)
        (void)mcp_fail(&fault, MCP_INTERNAL, 429,
                       "too many answers of this key wait to be read: read them, then ask again");
    else
        (void)mcp_fail(&fault, MCP_INTERNAL, 200, "the answer is too long: %.200s", err.text);
    exchange->status = fault.status;
    write_fault(exchange, &fault);
}

void exchange_put_caching(struct exchange *exchange, struct json_writer *json)
{
    if (!exchange->terms.is_modern)
        return;
    json_key(json, "ttlMs");
    json_integer(json, CACHE_MS);
    mcp_put(json, "cacheScope", "private");
}

void exchange_fault(struct exchange *exchange, const struct mcp_fault *fault)
{
    (void)begin_answer(exchange);
    exchange->out.maximum += FAULT_BYTES; // there is always room to say what is wrong
    write_fault(exchange, fault);
    exchange->status = fault->status;
}

void exchange_set_session(struct exchange *exchange, const char *id)
{
    (void)snprintf(exchange->new_session, sizeof exchange->new_session, "%s", id);
}

static void on_notification(struct exchange *x)
{
    const struct data_value *id = value_get(x->message.params, "requestId");

    if (strcmp(x->message.method, "notifications/cancelled") == 0 && id &&
        (id->kind == VALUE_STRING || id->kind == VALUE_NUMBER))
        exchange_cancel(x, id);
}

/* 0, MCP_LATER, or -1. */
static int handle(struct exchange *x, struct mcp_fault *fault)
{
    const struct mcp_message *message = &x->message;

    if (!message->id && message->method)
        on_notification(x);
    if (!message->id)
        return 0;
    for (const struct mcp_method *method = mcp_methods; method->name; method++) {
        bool is_spoken = x->terms.is_modern ? method->is_modern : method->is_legacy;
        if (is_spoken && strcmp(method->name, message->method) == 0)
            return method->fn(x, fault);
    }
    return mcp_fail(fault, MCP_NO_METHOD, x->terms.is_modern ? 404 : 200,
                    "there is no method '%.100s'", message->method);
}

static int read_message(struct exchange *x, const struct data_value *value, struct mcp_fault *fault)
{
    if (mcp_message_read(value, &x->message, fault) < 0)
        return -1;
    if (x->is_batch)
        return x->message.method && strcmp(x->message.method, "initialize") == 0
                   ? mcp_fail(fault, MCP_INVALID_REQUEST, 200, "initialize must come alone")
                   : 0;
    if (mcp_terms_choose(&x->message, &x->headers, &x->terms, fault) < 0)
        return -1;
    return 0;
}

static void finish(struct exchange *x)
{
    struct error ignored;

    x->out.maximum++;
    if (x->is_batch && x->n_answers)
        (void)buffer_add_text(&x->out, "]", &ignored);
    if (x->is_batch)
        x->status = 200;
    if (x->held.bytes)
        watch(x); // it counts until it is delivered
    if (!x->is_watched) {
        send_whole(x);
        exchange_unref(x);
        return;
    }
    delist(x);
    loop_post(x->waiting.loop, on_answered, x);
}

/* Until something takes time, or all is answered. */
static void go_on(struct exchange *x)
{
    while (x->next) {
        const struct data_value *value = x->next;
        struct mcp_fault fault = {0};
        x->next = x->is_batch ? value->next : NULL;
        arena_clear(&x->arena);
        int status = read_message(x, value, &fault);
        if (status == 0)
            status = handle(x, &fault);
        if (status == MCP_LATER)
            return;
        if (status < 0)
            exchange_fault(x, &fault);
    }
    finish(x);
}

void exchange_done(struct exchange *exchange)
{
    go_on(exchange);
}

// ---- asking ----

void ask_clear(struct ask *ask)
{
    buffer_clear(&ask->target);
    buffer_clear(&ask->body);
}

static void on_answer(void *data, const struct inner_answer *answer)
{
    struct exchange *x = data;
    struct inner_response *inner;

    {
        autolock(&x->lock);
        inner = take(x->inner);
    }
    inner_response_free(inner);
    x->on_asked(x, x->asked_data, answer);
}

static struct http_request *make_request(const struct exchange *x, const struct ask *ask)
{
    struct http_header headers[6] = {{"X-Request-Id", x->request_id},
                                     {"Content-Type", "application/json"}};
    unsigned count = 2;

    if (ask->range)
        headers[count++] = (struct http_header){"Range", ask->range};
    if (ask->if_match)
        headers[count++] = (struct http_header){"If-Match", ask->if_match};
    const struct inner_request from = {
        .method = ask->method,
        .target = ask->target.data,
        .headers = headers,
        .host = x->host,
        .body = ask->body.data,
        .length = ask->body.length,
        .peer = &x->peer,
    };
    return inner_request_new(&from, x->waiting.loop, ask->is_stream);
}

void exchange_ask(struct exchange *exchange, struct ask *ask, on_asked fn, void *data)
{
    struct response *response;
    const struct inner_settings settings = {
        .loop = exchange->waiting.loop,
        .workers = exchange->waiting.workers,
        .limit = ask->limit ? ask->limit : ASK_BYTES,
        .on_answer = on_answer,
        .data = exchange,
    };
    struct http_request *request = make_request(exchange, ask);

    exchange->on_asked = fn;
    exchange->asked_data = data;
    ask_clear(ask);
    watch(exchange);
    {
        autolock(&exchange->lock);
        exchange->inner = inner_response_new(&settings, &response);
        if (exchange->is_given_up)
            inner_response_give_up(exchange->inner);
    }
    router_run_inner(&exchange->waiting, request, response); // may be answered before this returns
}

// ---- the request ----

static int read_body(struct call *call, struct exchange *x, struct mcp_fault *fault)
{
    const struct buffer *text = &call->request->body;
    const struct json_limits limits = {.bytes = (size_t)MCP_BODY_BYTES,
                                       .memory = (size_t)MCP_BODY_BYTES * 4,
                                       .may_take = call_may_take,
                                       .data = call};
    struct error err = {0};
    const char *repeated = repeated_header(call);

    if (repeated)
        return mcp_fail(fault, MCP_HEADER_MISMATCH, 400, "the header %s is there more than once",
                        repeated);
    if (json_read("", text->data ? text->data : "", text->length, &limits, &x->document, &err) < 0)
        return mcp_fail(fault, MCP_PARSE, error_is(&err, ERROR_FULL) ? 429 : 400,
                        "the body is not JSON: %.200s", err.text);
    x->charge = call->request->charge;
    call->request->charge = (struct gather_charge){0};
    struct data_value *root = x->document->root;
    x->is_batch = root->kind == VALUE_LIST;
    x->next = x->is_batch ? root->first : root;
    if (!x->is_batch)
        return 0;
    if (mcp_terms_of_batch(&x->headers, &x->terms, fault) < 0)
        return -1;
    if (root->count == 0 || root->count > MCP_BATCH_MOST)
        return mcp_fail(fault, MCP_INVALID_REQUEST, 400,
                        "a body has from 1 to %d messages, and this one %zu", MCP_BATCH_MOST,
                        root->count);
    return 0;
}

int exchange_start(struct call *call, struct error *err)
{
    struct exchange *x = exchange_new(call);
    struct mcp_fault fault;

    (void)err;
    if (read_body(call, x, &fault) < 0) {
        mcp_answer_fault(call, &fault);
        exchange_unref(x);
        return 0;
    }
    go_on(x);
    return 0;
}
