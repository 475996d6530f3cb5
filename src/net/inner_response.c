/* SPDX-License-Identifier: Apache-2.0 */
/* Answers for the program itself; see inner_response.h. */
#include "net/inner_response.h"

#include "base/mem.h"
#include "net/body_impl.h"
#include "net/output.h"
#include "net/response_impl.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define RETRY_MS 20 // where no worker is free to take the answer

struct inner_response {
    atomic_int refs; // the caller, and the response until it has ended
    struct inner_settings settings;
    atomic_bool is_given_up;
    // On the loop, and the worker's once it is finished:
    struct response *response;
    struct output output;
    struct buffer head;
    bool is_over; // a worker has it
    bool is_cut, is_abandoned;
    struct loop_timer deadline, retry;
};

static void let_go(struct inner_response *inner)
{
    if (atomic_fetch_sub(&inner->refs, 1) != 1)
        return;
    output_clear(&inner->output);
    buffer_clear(&inner->head);
    free(inner);
}

// ---- the answer ----

static const char *find_header(const struct inner_answer *answer, const char *name)
{
    size_t length = strlen(name);
    const char *at = answer->head, *end = answer->head + answer->head_length;

    while (at < end) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        if ((size_t)(end - at) > length && strncasecmp(at, name, length) == 0 && at[length] == ':')
            return at + length + 1;
        at = next ? next + 1 : end;
    }
    return NULL;
}

bool inner_answer_header(const struct inner_answer *answer, const char *name, char *value,
                         size_t size)
{
    const char *at = find_header(answer, name);

    if (!at)
        return false;
    at += strspn(at, " ");
    size_t length = strcspn(at, "\r\n");
    if (length >= size)
        length = size - 1;
    memcpy(value, at, length);
    value[length] = '\0';
    return true;
}

static int status_of(const struct inner_response *inner)
{
    // "HTTP/1.x 200 …"
    return inner->is_abandoned || inner->head.length < 12 ? 500 : atoi(inner->head.data + 9);
}

static void on_ended(void *data)
{
    struct inner_response *inner = data;

    loop_timer_clear(&inner->deadline);
    response_end(inner->response, !atomic_load(&inner->is_given_up));
    let_go(inner);
}

/* Parts of files are read here, where it may take time. */
static void on_worker(void *data)
{
    struct inner_response *inner = data;
    autobuffer body = {.maximum = inner->settings.limit};
    bool is_all = output_gather(&inner->output, &body);

    const struct inner_answer answer = {
        .status = status_of(inner),
        .head = inner->head.data ? inner->head.data : "",
        .head_length = inner->head.length,
        .body = body.data ? body.data : "",
        .length = body.length,
        .is_cut = inner->is_cut || !is_all,
    };
    inner->settings.on_answer(inner->settings.data, &answer);
    loop_post(inner->settings.loop, on_ended, inner);
}

static void hand_over(void *data)
{
    struct inner_response *inner = data;
    struct error err;

    if (workers_submit(inner->settings.workers, WORKERS_CONTROL, on_worker, inner, &err) < 0)
        loop_timer_set(&inner->retry, RETRY_MS);
}

static void on_deadline(void *data)
{
    struct inner_response *inner = data;

    if (!inner->is_over)
        response_call_deadline(inner->response);
}

// ---- what a connection would do ----

static void keep_head(struct inner_response *inner, struct segment *head)
{
    struct output one = {0};

    if (!head)
        return;
    output_add(&one, head);
    (void)output_gather(&one, &inner->head);
    output_clear(&one);
}

static void on_change(void *data)
{
    struct inner_response *inner = data;
    static const struct output nothing = {0};
    struct response_changes changes;

    if (inner->is_over)
        return;
    response_collect(inner->response, &inner->output, &changes);
    keep_head(inner, changes.head);
    if (changes.deadline_ms)
        loop_timer_set(&inner->deadline, changes.deadline_ms);
    bool is_long = inner->output.bytes > inner->settings.limit;
    inner->is_abandoned = changes.is_abandoned && changes.is_waiting;
    inner->is_cut = changes.is_cut || is_long || (changes.is_abandoned && !changes.is_waiting);
    if (changes.is_finished || changes.is_abandoned || is_long) {
        inner->is_over = true;
        hand_over(inner);
        return;
    }
    response_set_waiting(inner->response, &nothing); // memory is bounded by the limit instead
}

static struct body *on_upgrade(void *data)
{
    (void)data;
    return NULL; // nobody speaks another protocol with the program itself
}

static const struct response_link inner_link = {.on_change = on_change, .on_upgrade = on_upgrade};

struct inner_response *inner_response_new(const struct inner_settings *settings,
                                          struct response **response)
{
    struct inner_response *inner = xnew(struct inner_response);
    const struct http_request plain = {.minor = 0}; // no chunks

    atomic_init(&inner->refs, 2);
    inner->settings = *settings;
    loop_timer_init(&inner->deadline, settings->loop, on_deadline, inner);
    loop_timer_init(&inner->retry, settings->loop, hand_over, inner);
    inner->response = response_new(settings->loop, &inner_link, inner);
    response_set_request(inner->response, &plain);
    *response = response_ref(inner->response);
    return inner;
}

static void on_given_up(void *data)
{
    struct inner_response *inner = data;

    if (!inner->is_over)
        response_set_gone(inner->response);
    let_go(inner);
}

void inner_response_give_up(struct inner_response *inner)
{
    if (atomic_exchange(&inner->is_given_up, true))
        return;
    atomic_fetch_add(&inner->refs, 1);
    loop_post(inner->settings.loop, on_given_up, inner);
}

void inner_response_free(struct inner_response *inner)
{
    if (inner)
        let_go(inner);
}

// ---- requests ----

static void on_resume(void *data)
{
    (void)data; // all of it is there from the start
}

static size_t size_of(const struct inner_request *from, size_t *count)
{
    size_t size = strlen(from->method) + strlen(from->target) + 2;

    *count = 0;
    for (const struct http_header *h = from->headers; h && h->name; h++, (*count)++)
        size += strlen(h->name) + strlen(h->value) + 2;
    return size + (from->host ? strlen(from->host) + 1 : 0);
}

static const char *put(char **at, const char *text)
{
    char *start = *at;

    *at = stpcpy(start, text) + 1;
    return start;
}

static void fill_strings(struct http_request *request, const struct inner_request *from)
{
    size_t count;
    char *at = request->head = xcalloc(1, size_of(from, &count) + 1);

    request->headers = xcalloc(count + 1, sizeof *request->headers);
    request->method = put(&at, from->method);
    char *target = (char *)(uintptr_t)put(&at, from->target);
    char *mark = strchr(target, '?');
    if (mark) {
        *mark = '\0';
        request->query = mark + 1;
    }
    request->path = target;
    for (; request->header_count < count; request->header_count++) {
        const struct http_header *h = &from->headers[request->header_count];
        struct http_header *to = &request->headers[request->header_count];
        to->name = put(&at, h->name);
        to->value = put(&at, h->value);
    }
    if (from->host)
        request->host = put(&at, from->host);
}

struct http_request *inner_request_new(const struct inner_request *from, struct loop *loop,
                                       bool is_stream)
{
    struct http_request *request = xnew(struct http_request);
    struct error ignored;

    fill_strings(request, from);
    request->minor = 1;
    request->peer = *from->peer;
    request->has_body = from->length > 0;
    request->body_length = from->length;
    if (is_stream) {
        request->stream = body_new(loop, on_resume, NULL);
        if (from->length)
            (void)body_put(request->stream, from->body, from->length);
        body_end(request->stream, ERROR_NONE, NULL);
    } else if (from->length) {
        (void)buffer_add(&request->body, from->body, from->length, &ignored);
    }
    return request;
}
