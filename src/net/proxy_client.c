/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client of a proxy. Events and the owner's answers change its state; proxy_client_run then takes the steps that follow, one after
 * the other, and is the only place where it is freed.
 */
#include "net/proxy_impl.h"

#include "base/mem.h"
#include "net/response_head.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define TRAFFIC_MS 1000

static void set_phase(struct proxy_client *client, enum proxy_phase phase)
{
    client->phase = phase;
    client->since_ms = loop_now_ms(client->proxy->loop);
}

static void die(struct proxy_client *client, bool is_torn)
{
    client->is_dead = true;
    client->is_torn |= is_torn;
}

static void note_traffic(struct proxy_client *client, struct proxy_end *end)
{
    uint64_t now = loop_now_ms(client->proxy->loop);

    end->moved_ms = now;
    if (now - client->traffic_ms < TRAFFIC_MS)
        return;
    client->traffic_ms = now;
    client->proxy->events->on_traffic(client->proxy->owner, client);
}

static void drop_far(struct proxy_client *client)
{
    proxy_end_close(&client->far);
    client->far.fd = -1;
    client->route = NULL;
    client->is_far_fresh = client->far_keeps = false;
}

// ---- the request ----

static bool is_elsewhere(void *owner, const char *head, size_t length)
{
    struct proxy_client *client = owner;
    const struct proxy_events *events = client->proxy->events;

    client->is_elsewhere =
        events->is_elsewhere && events->is_elsewhere(client->proxy->owner, client, head, length);
    return client->is_elsewhere;
}

static int on_head(void *owner, struct http_request *request, struct http1_fault *fault)
{
    struct proxy_client *client = owner;

    (void)fault;
    request->peer = client->peer;
    client->request = request;
    client->is_request_complete = false;
    client->is_reply_begun = client->is_reply_complete = false;
    set_phase(client, PROXY_ASKING);
    return HTTP1_HOLD; // the owner is asked when the parser is done with it
}

static int on_body(void *owner, const char *data, size_t length, struct http1_fault *fault)
{
    struct proxy_client *client = owner;
    char line[24];

    (void)fault;
    if (length == 0 || client->phase != PROXY_EXCHANGE)
        return 0;
    if (!client->request->is_chunked) {
        proxy_end_write(&client->far, data, length);
        return 0;
    }
    (void)snprintf(line, sizeof line, "%zx\r\n", length);
    proxy_end_add_text(&client->far, line);
    proxy_end_write(&client->far, data, length);
    proxy_end_add(&client->far, "\r\n", 2);
    return 0;
}

static void on_end(void *owner)
{
    struct proxy_client *client = owner;

    client->is_request_complete = true;
    if (client->request->is_chunked && client->phase == PROXY_EXCHANGE)
        proxy_end_add_text(&client->far, "0\r\n\r\n");
}

static const struct http1_events parse_events = {
    .on_head = on_head, .on_body = on_body, .on_end = on_end, .is_elsewhere = is_elsewhere};

static void keep(struct proxy_client *client, const char *data, size_t length)
{
    char *kept = length ? xrealloc(NULL, length, 1) : NULL;

    if (length)
        memcpy(kept, data, length);
    free(client->pending);
    client->pending = kept;
    client->pending_length = length;
}

/* The head that the parser holds and what was read behind it go with the connection. */
static void leave(struct proxy_client *client, const char *rest, size_t length)
{
    struct proxy *proxy = client->proxy;
    struct buffer *head = &client->http.head;
    char *data = xrealloc(NULL, head->length + length + 1, 1);
    size_t total = head->length + length;

    memcpy(data, head->data, head->length);
    memcpy(data + head->length, rest, length);
    drop_far(client);
    int fd = proxy_end_release(&client->near);
    die(client, false);
    proxy->events->on_leave(proxy->owner, fd, data, total);
}

static void refuse(struct proxy_client *client, const struct http1_fault *fault)
{
    struct proxy *proxy = client->proxy;

    keep(client, NULL, 0);
    if (client->is_reply_begun || client->phase == PROXY_EXCHANGE) {
        die(client, true); // a body went bad: neither side may take it for a whole
        return;
    }
    http_request_free(take(client->request));
    set_phase(client, PROXY_ASKED);
    proxy->events->on_bad_request(proxy->owner, client, fault->status, fault->text);
}

void proxy_client_feed(struct proxy_client *client, const char *data, size_t length)
{
    struct http1_fault fault = {0};
    ssize_t used = http1_feed(&client->http, data, length, &fault);

    if (used < 0) {
        refuse(client, &fault);
    } else if (client->is_elsewhere) {
        leave(client, data + used, length - (size_t)used);
    } else {
        keep(client, data + used, length - (size_t)used);
        if (client->phase == PROXY_IDLE && client->http.part == HTTP1_HEAD)
            set_phase(client, PROXY_HEAD);
    }
}

static void feed_pending(struct proxy_client *client)
{
    autofree char *data = take(client->pending);
    size_t length = client->pending_length;

    client->pending_length = 0;
    proxy_client_feed(client, data, length);
}

// ---- the answer ----

static void on_reply_head(void *owner, const struct http1_reply_head *head)
{
    struct proxy_client *client = owner;
    struct proxy_reply_manner *manner = &client->manner;
    bool is_old = client->request->minor == 0;

    if (head->status < 200 && head->status != 101)
        return; // on its way only
    if (head->status == 101 && !proxy_head_upgrade(client->request)) {
        client->is_reply_odd = true;
        return;
    }
    manner->is_upgrade = head->status == 101;
    manner->is_old = is_old;
    if (head->is_bodiless)
        manner->framing = PROXY_NO_BODY;
    else if (head->has_length)
        manner->framing = PROXY_LENGTH;
    else
        manner->framing = is_old ? PROXY_UNTIL_CLOSE : PROXY_CHUNKS;
    manner->is_last = !client->request->keeps_alive || client->proxy->is_draining ||
                      manner->framing == PROXY_UNTIL_CLOSE || !client->is_request_complete ||
                      client->near.is_over;
    client->far_keeps = head->keeps_alive;
    client->is_reply_begun = true;
    proxy_head_write_reply(&client->near, head, manner);
}

static void on_reply_body(void *owner, const char *data, size_t length)
{
    struct proxy_client *client = owner;
    char line[24];

    if (client->manner.framing == PROXY_NO_BODY)
        return;
    if (client->manner.framing != PROXY_CHUNKS) {
        proxy_end_write(&client->near, data, length);
        return;
    }
    (void)snprintf(line, sizeof line, "%zx\r\n", length);
    proxy_end_add_text(&client->near, line);
    proxy_end_write(&client->near, data, length);
    proxy_end_add(&client->near, "\r\n", 2);
}

static void on_reply_end(void *owner)
{
    struct proxy_client *client = owner;

    client->is_reply_complete = true;
    if (client->manner.framing == PROXY_CHUNKS)
        proxy_end_add_text(&client->near, "0\r\n\r\n");
}

static const struct http1_reply_events reply_events = {
    .on_head = on_reply_head, .on_body = on_reply_body, .on_end = on_reply_end};

static void fail(struct proxy_client *client, enum proxy_failure failure)
{
    struct proxy *proxy = client->proxy;

    if (client->is_tunnel || client->is_reply_begun) {
        die(client, true);
        return;
    }
    drop_far(client);
    set_phase(client, PROXY_ASKED);
    proxy->events->on_failure(proxy->owner, client, client->request, failure);
}

/* A server that closed its connection just when the next request came: that was never looked at, so it is sent again. */
static bool try_again(struct proxy_client *client)
{
    static const char *const safe[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", NULL};
    bool is_safe = false;

    for (size_t i = 0; safe[i]; i++)
        is_safe |= strcmp(client->request->method, safe[i]) == 0;
    if (!client->is_far_reused || client->is_reply_begun || client->request->has_body || !is_safe)
        return false;
    drop_far(client);
    set_phase(client, PROXY_ASKING);
    return true;
}

static void on_far_over(struct proxy_client *client, bool is_refused)
{
    if (client->phase != PROXY_EXCHANGE) {
        drop_far(client); // one that was kept
        return;
    }
    if (!is_refused && http1_reply_finish(&client->reply)) {
        client->far_keeps = false;
        return;
    }
    if (!try_again(client))
        fail(client, is_refused && client->is_far_fresh ? PROXY_REFUSED : PROXY_NO_ANSWER);
}

static void take_reply(struct proxy_client *client, const char *data, size_t length)
{
    ssize_t used = http1_reply_feed(&client->reply, data, length);

    if (used == REPLY_MALFORMED || client->is_reply_odd) {
        client->is_reply_odd = client->is_reply_complete = false;
        fail(client, PROXY_MALFORMED);
        return;
    }
    if (!client->is_reply_complete)
        return;
    if (client->manner.is_upgrade)
        proxy_end_add(&client->near, data + used, length - (size_t)used);
    else if ((size_t)used < length)
        client->far_keeps = false; // what nobody asked for
}

/* ---- steps ---- */

static void start_tunnel(struct proxy_client *client)
{
    set_phase(client, PROXY_TUNNEL);
    client->is_reply_complete = false;
    if (client->pending_length)
        proxy_end_add(&client->far, client->pending, client->pending_length);
    keep(client, NULL, 0);
}

/* The answer is in the client's buffer as a whole. */
static void finish(struct proxy_client *client)
{
    if (client->manner.is_upgrade && client->request) {
        start_tunnel(client);
        return;
    }
    bool is_last = client->manner.is_last || !client->is_request_complete || client->near.is_over;
    if (!client->far_keeps || !client->is_request_complete || client->far.is_broken)
        drop_far(client);
    http_request_free(take(client->request));
    client->is_reply_complete = client->is_reply_begun = false;
    if (is_last) {
        keep(client, NULL, 0);
        drop_far(client);
        proxy_end_shut(&client->near);
        set_phase(client, PROXY_ENDING);
    } else {
        set_phase(client, PROXY_IDLE);
    }
}

static bool can_feed(const struct proxy_client *client)
{
    if (!client->pending_length)
        return false;
    if (client->phase == PROXY_IDLE || client->phase == PROXY_HEAD)
        return !proxy_end_waiting(&client->near); // its connection may go elsewhere with it
    return client->phase == PROXY_EXCHANGE && !client->is_request_complete &&
           !proxy_end_is_full(&client->far);
}

static void ask(struct proxy_client *client)
{
    set_phase(client, PROXY_ASKED);
    client->proxy->events->on_request(client->proxy->owner, client, client->request);
}

/* One step; false: nothing can be done until something happens. */
static bool step(struct proxy_client *client)
{
    if (client->phase == PROXY_ASKING)
        ask(client);
    else if (client->is_reply_complete)
        finish(client);
    else if (can_feed(client))
        feed_pending(client);
    else
        return false;
    return true;
}

static void move_tunnel(struct proxy_client *client)
{
    if (client->near.is_over && !client->far.is_shut)
        proxy_end_shut(&client->far);
    if (client->far.is_over && !client->near.is_shut)
        proxy_end_shut(&client->near);
    bool is_out = !proxy_end_waiting(&client->near) && !proxy_end_waiting(&client->far);
    if ((client->near.is_over && client->far.is_over && is_out) || client->far.is_broken)
        die(client, client->far.is_broken);
}

static void watch(struct proxy_client *client)
{
    bool is_tunnel = client->phase == PROXY_TUNNEL;
    bool wants_near = !client->near.is_over && !client->pending_length;
    bool wants_far = !client->far.is_over && !proxy_end_is_full(&client->near);
    unsigned near = 0, far = 0;

    if (client->phase == PROXY_ASKED || client->phase == PROXY_ASKING)
        wants_near &= !client->is_tunnel;
    if (is_tunnel || (client->phase == PROXY_EXCHANGE && !client->is_request_complete))
        wants_near &= !proxy_end_is_full(&client->far);
    if (wants_near)
        near |= LOOP_READABLE;
    if (proxy_end_waiting(&client->near))
        near |= LOOP_WRITABLE;
    loop_watch_set(client->near.watch, near);
    if (!client->far.watch)
        return;
    if (wants_far)
        far |= LOOP_READABLE;
    if (proxy_end_waiting(&client->far) || (is_tunnel && client->is_far_fresh))
        far |= LOOP_WRITABLE;
    loop_watch_set(client->far.watch, far);
}

static void destroy(struct proxy_client *client)
{
    struct proxy *proxy = client->proxy;

    proxy->events->on_close(proxy->owner, client);
    *client->place = client->next;
    if (client->next)
        client->next->place = client->place;
    proxy->count--;
    if (client->is_torn)
        proxy_end_reset(&client->near);
    proxy_end_close(&client->near);
    proxy_end_close(&client->far);
    http1_clear(&client->http);
    http1_reply_clear(&client->reply);
    http_request_free(client->request);
    free(client->pending);
    free(client);
}

static void write_out(struct proxy_client *client)
{
    size_t near = proxy_end_waiting(&client->near), far = proxy_end_waiting(&client->far);

    proxy_end_flush(&client->near);
    proxy_end_flush(&client->far);
    if (proxy_end_waiting(&client->near) < near)
        note_traffic(client, &client->near);
    if (proxy_end_waiting(&client->far) < far) {
        client->is_far_fresh = false;
        note_traffic(client, &client->far);
    }
}

void proxy_client_run(struct proxy_client *client)
{
    if (client->is_running)
        return;
    client->is_running = true;
    do {
        while (!client->is_dead && step(client))
            ;
        if (client->is_dead)
            break;
        write_out(client);
        if (client->phase == PROXY_TUNNEL)
            move_tunnel(client);
        if (client->near.is_broken)
            die(client, false);
    } while (!client->is_dead && (client->phase == PROXY_ASKING || can_feed(client)));
    client->is_running = false;
    if (client->is_dead)
        destroy(client);
    else
        watch(client);
}

/* ---- what happens ---- */

static void near_over(struct proxy_client *client)
{
    bool is_answered = client->phase == PROXY_TUNNEL ||
                       ((client->phase == PROXY_EXCHANGE || client->phase == PROXY_ASKED ||
                         client->phase == PROXY_ASKING) &&
                        client->is_request_complete);

    if (!is_answered)
        die(client, false);
    client->near.moved_ms = loop_now_ms(client->proxy->loop);
}

static void read_near(struct proxy_client *client)
{
    char *scratch = client->proxy->scratch;
    ssize_t length = proxy_end_read(&client->near, scratch, PROXY_SCRATCH);

    if (length < 0) {
        if (errno != EAGAIN)
            die(client, false);
        return;
    }
    if (length == 0) {
        near_over(client);
        return;
    }
    note_traffic(client, &client->near);
    if (client->phase == PROXY_TUNNEL)
        proxy_end_write(&client->far, scratch, (size_t)length);
    else if (((client->phase == PROXY_IDLE || client->phase == PROXY_HEAD) &&
              !proxy_end_waiting(&client->near)) ||
             (client->phase == PROXY_EXCHANGE && !client->is_request_complete))
        proxy_client_feed(client, scratch, (size_t)length);
    else if (client->phase != PROXY_ENDING)
        keep(client, scratch, (size_t)length); // its turn comes
}

static void on_near(void *data, unsigned events)
{
    struct proxy_client *client = data;

    client->is_running = true; // what the callbacks ask for is done below
    if (events & LOOP_FAILED)
        die(client, false);
    else if (events & LOOP_READABLE)
        read_near(client);
    client->is_running = false;
    proxy_client_run(client);
}

static void read_far(struct proxy_client *client)
{
    char *scratch = client->proxy->scratch;
    ssize_t length = proxy_end_read(&client->far, scratch, PROXY_SCRATCH);

    if (length < 0 && errno == EAGAIN)
        return;
    if (length <= 0 && client->phase == PROXY_TUNNEL) {
        if (length < 0)
            die(client, true);
        return;
    }
    if (length <= 0) {
        on_far_over(client,
                    (length < 0 && errno == ECONNREFUSED) || client->far.code == ECONNREFUSED);
        return;
    }
    client->is_far_fresh = false;
    note_traffic(client, &client->far);
    if (client->phase == PROXY_TUNNEL)
        proxy_end_write(&client->near, scratch, (size_t)length);
    else if (client->phase == PROXY_EXCHANGE)
        take_reply(client, scratch, (size_t)length);
    else
        drop_far(client); // an answer that nobody asked for
}

static void on_far(void *data, unsigned events)
{
    struct proxy_client *client = data;

    client->is_running = true;
    if (events & (LOOP_READABLE | LOOP_FAILED))
        read_far(client);
    else if (events & LOOP_WRITABLE)
        client->is_far_fresh = false; // it is connected
    client->is_running = false;
    proxy_client_run(client);
}

// ---- the owner's side ----

bool proxy_keeps(struct proxy_client *client, const void *route)
{
    char byte;

    if (client->far.fd < 0 || client->route != route || !client->far_keeps)
        return false;
    // Whether it has closed meanwhile: the loop may not have told so yet.
    ssize_t length = recv(client->far.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return length < 0 && errno == EAGAIN;
}

void proxy_go(struct proxy_client *client, int fd, const struct proxy_target *target)
{
    struct error err = {0};

    client->is_far_reused = fd < 0;
    if (fd >= 0) {
        drop_far(client);
        if (proxy_end_open(&client->far, client->proxy->loop, fd, on_far, client, &err) < 0) {
            (void)close(fd);
            client->far.fd = -1;
            fail(client, PROXY_NO_ANSWER);
            proxy_client_run(client);
            return;
        }
        client->is_far_fresh = true;
    }
    client->route = target->route;
    client->far.moved_ms = loop_now_ms(client->proxy->loop);
    if (client->is_tunnel) {
        set_phase(client, PROXY_TUNNEL);
    } else {
        set_phase(client, PROXY_EXCHANGE);
        client->manner = (struct proxy_reply_manner){.cookie_port = target->cookie_port};
        http1_reply_expect(&client->reply, client->request->is_head);
        proxy_head_write_request(&client->far, client->request, target);
        if (client->request->expects_continue)
            proxy_end_add_text(&client->near, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    proxy_client_run(client);
}

void proxy_answer(struct proxy_client *client, int status, const struct http_header *headers,
                  const char *body, size_t length)
{
    struct http_request *request = client->request;
    bool is_last = !request || !request->keeps_alive || !client->is_request_complete ||
                   client->proxy->is_draining;
    char line[96];

    if (client->is_tunnel) {
        proxy_close(client);
        return;
    }
    (void)snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\n", status,
                   response_status_reason(status), length);
    proxy_end_add_text(&client->near, line);
    for (; headers && headers->name; headers++) {
        proxy_end_add_text(&client->near, headers->name);
        proxy_end_add_text(&client->near, ": ");
        proxy_end_add_text(&client->near, headers->value);
        proxy_end_add_text(&client->near, "\r\n");
    }
    proxy_end_add_text(&client->near, is_last ? "Connection: close\r\n\r\n" : "\r\n");
    if (!request || !request->is_head)
        proxy_end_add(&client->near, body, length);
    client->manner = (struct proxy_reply_manner){.is_last = is_last};
    client->is_reply_begun = client->is_reply_complete = true;
    set_phase(client, PROXY_EXCHANGE);
    proxy_client_run(client);
}

// ---- deadlines ----

static bool is_stalled(const struct proxy_client *client, uint64_t now)
{
    uint64_t stall_ms = client->proxy->limits.stall_ms;
    bool is_near_late = now - client->near.moved_ms > stall_ms;

    if (proxy_end_waiting(&client->near) && is_near_late)
        return true;
    if (client->phase == PROXY_EXCHANGE && !client->is_request_complete && is_near_late &&
        !proxy_end_waiting(&client->far))
        return true;
    return proxy_end_waiting(&client->far) && now - client->far.moved_ms > stall_ms;
}

void proxy_client_check(struct proxy_client *client)
{
    const struct proxy_limits *limits = &client->proxy->limits;
    uint64_t now = loop_now_ms(client->proxy->loop), age_ms = now - client->since_ms;
    static const struct http1_fault slow = {408, "the head of the request took too long"};

    client->is_running = true;
    if (client->phase == PROXY_HEAD && age_ms > limits->head_ms)
        refuse(client, &slow);
    else if (client->phase == PROXY_IDLE && age_ms > limits->idle_ms)
        die(client, false);
    else if (client->phase == PROXY_ENDING && age_ms > PROXY_LINGER_MS &&
             !proxy_end_waiting(&client->near))
        die(client, false);
    else if ((client->phase == PROXY_EXCHANGE || client->phase == PROXY_TUNNEL) &&
             client->is_far_fresh && now - client->far.moved_ms > limits->connect_ms)
        fail(client, PROXY_SLOW);
    else if (client->phase == PROXY_EXCHANGE && client->near.is_over &&
             now - client->near.moved_ms > PROXY_HALF_CLOSED_MS &&
             now - client->far.moved_ms > PROXY_HALF_CLOSED_MS)
        die(client, false);
    else if (is_stalled(client, now))
        die(client, true);
    client->is_running = false;
    proxy_client_run(client);
}

int proxy_client_open(struct proxy *proxy, int fd, void *data, struct proxy_client **out,
                      struct error *err)
{
    struct proxy_client *client = xnew(struct proxy_client);

    client->far.fd = -1;
    if (proxy_end_open(&client->near, proxy->loop, fd, on_near, client, err) < 0) {
        free(client);
        return -1;
    }
    client->proxy = proxy;
    client->data = data;
    client->next = proxy->first;
    client->place = &proxy->first;
    if (client->next)
        client->next->place = &client->next;
    proxy->first = client;
    proxy->count++;
    peer_init(&client->peer, fd);
    http1_init(&client->http, &proxy->parse_limits, &parse_events, client);
    http1_reply_init(&client->reply, &reply_events, client);
    set_phase(client, PROXY_IDLE);
    *out = client;
    return 0;
}
