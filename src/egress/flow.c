/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of boxes: the first flight, the dial, and the kernel's part; see flow.h. */
#include "egress/flow.h"

#include "base/auto.h"
#include "base/mem.h"
#include "egress/flow_tls.h"
#include "egress/tls_hello.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ORIGINAL_DESTINATION 80 // SO_ORIGINAL_DST of linux/netfilter_ipv4.h
#define FLIGHT_MS 30000
#define DIAL_MS 60000
#define DRAIN_MS 5000
#define ACCEPTS 32
#define SPLICE_BYTES (256u << 10)
#define SPLICE_TURNS 16

// ---- ends ----

static void close_pipes(struct flow *flow)
{
    for (int way = 0; way < 2; way++) {
        closep(&flow->pipes[way][0]);
        closep(&flow->pipes[way][1]);
    }
}

void flow_free(struct worker *worker, struct flow *flow)
{
    struct box *box = box_at(worker, flow->slot);

    if (flow->is_gone)
        return;
    flow->is_gone = true;
    leg_clear(worker, &flow->client);
    leg_clear(worker, &flow->server);
    close_pipes(flow);
    relay_free(flow->relay);
    *flow->link = flow->next;
    if (flow->next)
        flow->next->link = flow->link;
    worker->flows->count--;
    if (box && box->open_flows)
        box->open_flows--;
    worker_free_later(worker, flow);
}

static void set_reset(int fd)
{
    const struct linger now = {.l_onoff = 1};

    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void flow_reset(struct worker *worker, struct flow *flow)
{
    set_reset(flow->client.watch.fd);
    set_reset(flow->server.watch.fd);
    flow_free(worker, flow);
}

void flow_answer_and_drain(struct worker *worker, struct flow *flow, const void *bytes,
                           size_t length)
{
    watch_close(worker, &flow->server.watch);
    flow->state = FLOW_DRAINING;
    flow->until_ms = worker->now_ms + DRAIN_MS;
    if (!leg_put(&flow->client, bytes, length)) {
        flow_reset(worker, flow);
        return;
    }
    flow->client.is_ending = true;
    if (!leg_flush(&flow->client)) {
        flow_reset(worker, flow);
        return;
    }
    watch_change(worker, &flow->client.watch,
                 flow->client.out.length ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void drain(struct worker *worker, struct flow *flow)
{
    char part[4096];
    ssize_t got;

    if (!leg_flush(&flow->client)) {
        flow_reset(worker, flow);
        return;
    }
    watch_change(worker, &flow->client.watch,
                 flow->client.out.length ? EPOLLIN | EPOLLOUT : EPOLLIN);
    while ((got = recv(flow->client.watch.fd, part, sizeof part, MSG_DONTWAIT)) > 0)
        continue;
    if (got == 0 || errno != EAGAIN)
        flow_free(worker, flow);
}

// ---- what is said of a refusal ----

size_t flow_write_refusal(unsigned status, const struct policy_verdict *verdict, char *out,
                          size_t size)
{
    char body[1200];
    int length = snprintf(body, sizeof body, "burrow: %s%s%s\n", verdict->reason,
                          *verdict->remedy ? "\nto change this: " : "", verdict->remedy);
    int whole =
        snprintf(out, size,
                 "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
                 "Content-Length: %d\r\nConnection: close\r\nX-Burrow-Refused: %s\r\n\r\n%s",
                 status, status == 403 ? "Forbidden" : "Bad Gateway", length,
                 policy_tier_name(verdict->tier), body);

    return (size_t)whole < size ? (size_t)whole : size - 1;
}

static void refuse_flow(struct worker *worker, struct flow *flow,
                        const struct policy_verdict *verdict)
{
    static const unsigned char alert[] = {21, 3, 3, 0, 2, 2, 49}; // fatal, access denied
    char text[2048];

    if (flow->kind == EGRESS_TLS) {
        flow_answer_and_drain(worker, flow, alert, sizeof alert);
    } else if (flow->kind == EGRESS_HTTP) {
        size_t length = flow_write_refusal(403, verdict, text, sizeof text);
        flow_answer_and_drain(worker, flow, text, length);
    } else {
        flow_reset(worker, flow);
    }
}

/* Words for what no rule decides. */
static void refuse_for(struct worker *worker, struct box *box, struct flow *flow, const char *name,
                       const char *reason, const char *remedy, struct policy_verdict *out)
{
    const struct policy_question question = {.name = name && *name ? name : NULL,
                                             .address = flow->address,
                                             .port = flow->port,
                                             .protocol = POLICY_TCP};
    bool is_observing = box->policy.is_observing;

    *out = (struct policy_verdict){
        .tier = POLICY_DEFAULT, .is_allowed = is_observing, .would_deny = is_observing};
    (void)snprintf(out->reason, sizeof out->reason, "%s", reason);
    (void)snprintf(out->remedy, sizeof out->remedy, "%s", remedy);
    refuse(worker, box, flow->kind, &question, out);
}

bool flow_judge(struct worker *worker, struct box *box, struct flow *flow, const char *name,
                struct policy_verdict *out)
{
    const struct policy_question question = {.name = name && *name ? name : NULL,
                                             .address = flow->address,
                                             .port = flow->port,
                                             .protocol = POLICY_TCP};

    judge(worker, box, flow->kind, &question, out);
    if (!out->is_allowed)
        return false;
    if (!out->is_by_name || box_pin_left_ms(box, flow->address, name))
        return true;
    char reason[512];
    (void)snprintf(reason, sizeof reason,
                   "'%s' was named to an address that it has not resolved to in this sandbox",
                   name);
    refuse_for(worker, box, flow, name, reason,
               "resolve the name inside the sandbox, and connect to the address that comes back",
               out);
    return out->is_allowed;
}

// ---- splicing ----

/* One way. False: broken. */
static bool pass(struct flow *flow, int way)
{
    struct leg *from = way ? &flow->server : &flow->client;
    struct leg *to = way ? &flow->client : &flow->server;

    if (flow->pipes[way][0] < 0 && pipe2(flow->pipes[way], O_NONBLOCK | O_CLOEXEC) < 0)
        return false;
    for (int i = 0; i < SPLICE_TURNS; i++) {
        bool has_moved = false;
        if (!from->is_eof && flow->in_pipe[way] == 0) {
            ssize_t got = splice(from->watch.fd, NULL, flow->pipes[way][1], NULL, SPLICE_BYTES,
                                 SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
            if (got < 0 && errno != EAGAIN)
                return false;
            from->is_eof = got == 0;
            if (got > 0) {
                flow->in_pipe[way] += (size_t)got;
                has_moved = true;
            }
        }
        if (flow->in_pipe[way]) {
            ssize_t got = splice(flow->pipes[way][0], NULL, to->watch.fd, NULL, flow->in_pipe[way],
                                 SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
            if (got < 0 && errno != EAGAIN)
                return false;
            if (got > 0) {
                flow->in_pipe[way] -= (size_t)got;
                has_moved = true;
            }
        }
        if (!has_moved)
            break;
    }
    if (from->is_eof && !flow->in_pipe[way] && !to->is_ended) {
        to->is_ended = true;
        (void)shutdown(to->watch.fd, SHUT_WR);
    }
    return true;
}

static void splice_step(struct worker *worker, struct flow *flow)
{
    if (!pass(flow, 0) || !pass(flow, 1)) {
        flow_reset(worker, flow);
        return;
    }
    if (flow->client.is_ended && flow->server.is_ended) {
        flow_free(worker, flow);
        return;
    }
    watch_change(worker, &flow->client.watch,
                 (!flow->client.is_eof && !flow->in_pipe[0] ? EPOLLIN : 0) |
                     (flow->in_pipe[1] ? EPOLLOUT : 0));
    watch_change(worker, &flow->server.watch,
                 (!flow->server.is_eof && !flow->in_pipe[1] ? EPOLLIN : 0) |
                     (flow->in_pipe[0] ? EPOLLOUT : 0));
}

// ---- dialling ----

static void send_first(struct worker *worker, struct flow *flow)
{
    if (!leg_flush(&flow->server)) {
        flow_reset(worker, flow);
        return;
    }
    if (flow->server.out.length) {
        watch_change(worker, &flow->server.watch, EPOLLOUT);
        return;
    }
    buffer_clear(&flow->server.out);
    buffer_clear(&flow->client.in);
    flow->state = FLOW_SPLICING;
    flow->until_ms = 0;
    splice_step(worker, flow);
}

static void on_connected(struct worker *worker, struct flow *flow)
{
    flow->is_connected = true;
    if (flow->relay) {
        flow->state = FLOW_RELAY;
        flow->until_ms = 0;
        relay_connected(worker, flow);
        return;
    }
    flow->state = FLOW_SENDING;
    if (!leg_put(&flow->server, flow->client.in.data, flow->client.in.length)) {
        flow_reset(worker, flow);
        return;
    }
    send_first(worker, flow);
}

static void fail_dial(struct worker *worker, struct flow *flow)
{
    if (flow->relay)
        relay_failed(worker, flow);
    else
        flow_reset(worker, flow);
}

/* The proxy is asked for the address that was judged, not for a name that it would resolve anew. */
static void ask_proxy(struct worker *worker, struct flow *flow)
{
    char text[160];
    uint32_t a = flow->address;
    int length = snprintf(text, sizeof text,
                          "CONNECT %u.%u.%u.%u:%u HTTP/1.1\r\nHost: %u.%u.%u.%u:%u\r\n\r\n",
                          a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255, flow->port, a >> 24,
                          a >> 16 & 255, a >> 8 & 255, a & 255, flow->port);

    flow->state = FLOW_PROXY;
    if (send(flow->server.watch.fd, text, (size_t)length, MSG_DONTWAIT | MSG_NOSIGNAL) != length)
        fail_dial(worker, flow);
    else
        watch_change(worker, &flow->server.watch, EPOLLIN);
}

static void take_proxy_answer(struct worker *worker, struct flow *flow)
{
    struct http_head head;
    struct error err;
    char byte;

    // byte by byte, so that nothing of the server's is taken
    for (;;) {
        ssize_t got = recv(flow->server.watch.fd, &byte, 1, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0 || buffer_add(&flow->server.in, &byte, 1, &err) < 0)
            break;
        enum http_head_state state =
            http_status_read(flow->server.in.data, flow->server.in.length, &head);
        if (state == HTTP_HEAD_MORE)
            continue;
        if (state == HTTP_HEAD_BAD || head.status / 100 != 2)
            break;
        leg_used(&flow->server, flow->server.in.length);
        on_connected(worker, flow);
        return;
    }
    fail_dial(worker, flow);
}

static void take_connection(struct worker *worker, struct flow *flow)
{
    int code = 0;
    socklen_t size = sizeof code;

    if (getsockopt(flow->server.watch.fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0 || code) {
        fail_dial(worker, flow);
        return;
    }
    if (worker->has_proxy && flow->kind != EGRESS_HOST)
        ask_proxy(worker, flow);
    else
        on_connected(worker, flow);
}

static void flow_on_event(struct worker *worker, struct watch *watch, uint32_t events);

static void watch_server(struct worker *worker, struct flow *flow, int fd)
{
    const int yes = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    flow->server.watch.on_event = flow_on_event;
    flow->server.watch.owner = flow;
    watch_add(worker, &flow->server.watch, fd, EPOLLOUT);
}

void flow_dial(struct worker *worker, struct flow *flow)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(flow->port),
                                   .sin_addr.s_addr = htonl(flow->address)};
    const struct egress_dial_message dial = {.slot = flow->slot, .port = flow->port};

    if (flow->state != FLOW_RELAY) {
        flow->state = FLOW_DIALLING;
        watch_change(worker, &flow->client.watch, 0);
    }
    flow->until_ms = worker->now_ms + DIAL_MS;
    if (flow->kind == EGRESS_HOST || worker->has_proxy) {
        flow->serial =
            worker_ask(worker, flow->kind == EGRESS_HOST ? EGRESS_DIAL_HOST : EGRESS_DIAL_PROXY,
                       &dial, sizeof dial);
        return;
    }
    autofd fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS))
        fail_dial(worker, flow);
    else
        watch_server(worker, flow, take_fd(fd));
}

void flows_dialled(struct worker *worker, uint64_t serial, int fd)
{
    for (struct flow *flow = worker->flows->first; flow; flow = flow->next) {
        if (flow->serial != serial)
            continue;
        flow->serial = 0;
        if (fd < 0)
            fail_dial(worker, flow);
        else
            watch_server(worker, flow, fd);
        return;
    }
    closep(&fd);
}

// ---- the first flight ----

static void read_tls(struct worker *worker, struct box *box, struct flow *flow)
{
    struct policy_verdict verdict;
    struct tls_hello hello;
    enum tls_hello_state state =
        tls_hello_read((const unsigned char *)flow->client.in.data, flow->client.in.length, &hello);

    if (state == TLS_HELLO_MORE)
        return;
    bool is_allowed = false;
    if (state == TLS_HELLO_BAD || hello.has_bad_name) {
        refuse_for(worker, box, flow, NULL, "this is no ClientHello that says which host it is for",
                   "use TLS with the name of the host", &verdict);
        is_allowed = verdict.is_allowed;
    } else {
        (void)strcpy(flow->name, hello.name);
        is_allowed = flow_judge(worker, box, flow, hello.name, &verdict);
        if (is_allowed && hello.has_ech && verdict.is_by_name) {
            refuse_for(worker, box, flow, hello.name,
                       "the ClientHello hides another name (ECH), so that it cannot be judged",
                       "turn off Encrypted Client Hello in the client", &verdict);
            is_allowed = verdict.is_allowed;
        }
    }
    if (!is_allowed) {
        refuse_flow(worker, flow, &verdict);
        return;
    }
    box->counters.connections++;
    if (*flow->name && box_secret(box, flow->name))
        flow_open_tls(worker, flow);
    else
        flow_dial(worker, flow);
}

static void read_http(struct worker *worker, struct box *box, struct flow *flow)
{
    struct policy_verdict verdict;
    struct http_head head;
    enum http_head_state state =
        http_head_read(flow->client.in.data, flow->client.in.length, &head);
    char reason[256];

    if (state == HTTP_HEAD_MORE)
        return;
    if (state == HTTP_HEAD_READ) {
        box->counters.connections++;
        relay_start(worker, flow); // which judges this request as each further one
        return;
    }
    (void)snprintf(reason, sizeof reason, "what was sent cannot be judged: %s", head.problem);
    refuse_for(worker, box, flow, NULL, reason, "send a request of HTTP/1.1 with one Host",
               &verdict);
    if (verdict.is_allowed)
        flow_dial(worker, flow);
    else
        refuse_flow(worker, flow, &verdict);
}

static void read_flight(struct worker *worker, struct flow *flow)
{
    struct box *box = box_at(worker, flow->slot);

    if (!box || !leg_pull(&flow->client) || (flow->client.is_eof && !flow->client.in.length)) {
        flow_reset(worker, flow);
        return;
    }
    if (!flow->client.in.length)
        return;
    flow->kind = flow->client.in.data[0] == 22 ? EGRESS_TLS : EGRESS_HTTP;
    bool is_eof = flow->client.is_eof;
    if (flow->kind == EGRESS_TLS)
        read_tls(worker, box, flow);
    else
        read_http(worker, box, flow);
    if (is_eof && flow->client.watch.fd >= 0 && flow->state == FLOW_READING)
        flow_reset(worker, flow); // it will never say more
}

static void flow_on_event(struct worker *worker, struct watch *watch, uint32_t events)
{
    struct flow *flow = watch->owner;
    bool is_client = watch == &flow->client.watch;

    switch (flow->state) {
    case FLOW_READING:
        read_flight(worker, flow);
        break;
    case FLOW_DIALLING:
        if (is_client)
            flow_reset(worker, flow); // it has hung up: nothing else is watched
        else
            take_connection(worker, flow);
        break;
    case FLOW_PROXY:
        if (is_client && flow->relay)
            relay_on_event(worker, watch, events);
        else if (is_client)
            flow_reset(worker, flow);
        else
            take_proxy_answer(worker, flow);
        break;
    case FLOW_SENDING:
        send_first(worker, flow);
        break;
    case FLOW_SPLICING:
        splice_step(worker, flow);
        break;
    case FLOW_RELAY:
        if (!is_client && !flow->is_connected)
            take_connection(worker, flow);
        else
            relay_on_event(worker, watch, events);
        break;
    case FLOW_DRAINING:
        drain(worker, flow);
        break;
    }
}

// ---- arrivals ----

static bool read_destination(int fd, struct flow *flow)
{
    struct sockaddr_in to;
    socklen_t size = sizeof to;

    if (getsockopt(fd, SOL_IP, ORIGINAL_DESTINATION, &to, &size) < 0 || size != sizeof to)
        return false;
    flow->address = ntohl(to.sin_addr.s_addr);
    flow->port = ntohs(to.sin_port);
    return true;
}

static void judge_host(struct worker *worker, struct box *box, struct flow *flow)
{
    struct policy_verdict verdict;
    const struct policy_question question = {
        .name = "host", .port = flow->port, .protocol = POLICY_TCP};

    flow->address = 0;
    (void)strcpy(flow->name, "host");
    judge(worker, box, EGRESS_HOST, &question, &verdict);
    if (!verdict.is_allowed) {
        flow_reset(worker, flow);
        return;
    }
    box->counters.connections++;
    flow_dial(worker, flow);
}

static void begin(struct worker *worker, struct watch *listener, int fd, uint32_t source)
{
    struct box *box = box_of(worker, source);
    struct flows *flows = worker->flows;
    struct flow *flow = xnew(struct flow);
    const int yes = 1;

    flow->slot = box->slot;
    flow->kind = listener == &flows->host ? EGRESS_HOST : EGRESS_CONNECTION;
    flow->until_ms = worker->now_ms + FLIGHT_MS;
    leg_init(&flow->client);
    leg_init(&flow->server);
    for (int way = 0; way < 2; way++)
        flow->pipes[way][0] = flow->pipes[way][1] = -1;
    flow->next = flows->first;
    flow->link = &flows->first;
    if (flow->next)
        flow->next->link = &flow->next;
    flows->first = flow;
    flows->count++;
    box->open_flows++;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    flow->client.watch.on_event = flow_on_event;
    flow->client.watch.owner = flow;
    watch_add(worker, &flow->client.watch, fd, EPOLLIN);
    if (!read_destination(fd, flow))
        flow_reset(worker, flow);
    else if (flow->kind == EGRESS_HOST)
        judge_host(worker, box, flow);
}

/* A few boxes that take all they may leave some for the others. */
static bool has_room(const struct worker *worker, const struct box *box)
{
    size_t taken = worker->flows->count;

    if (taken >= worker->max_flows || box->open_flows >= WORKER_BOX_FLOWS)
        return false;
    return taken < worker->max_flows / 2 || box->open_flows < WORKER_FEW_FLOWS;
}

static void on_arrival(struct worker *worker, struct watch *watch, uint32_t events)
{
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        autofd fd =
            accept4(watch->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        uint32_t source = ntohl(from.sin_addr.s_addr);
        struct box *box = box_of(worker, source);
        if (!box || !has_room(worker, box)) {
            set_reset(fd);
            if (box)
                refuse(worker, box, EGRESS_RATE, &(struct policy_question){.protocol = POLICY_TCP},
                       &(struct policy_verdict){
                           .tier = POLICY_DEFAULT,
                           .reason = "more connections at a time than a sandbox may have",
                           .remedy = "close some of them"});
            continue;
        }
        begin(worker, watch, take_fd(fd), source);
    }
}

// ---- changes and time ----

static bool is_still_allowed(const struct box *box, const struct flow *flow)
{
    struct policy_verdict verdict;
    const struct policy_question question = {.name = *flow->name ? flow->name : NULL,
                                             .address = flow->address,
                                             .port = flow->port,
                                             .protocol = POLICY_TCP};

    if (flow->is_opened || (*flow->name && box_secret(box, flow->name)))
        return false; // its secret may be another
    policy_decide(&box->policy, &question, &verdict);
    return verdict.is_allowed;
}

void flows_judge(struct worker *worker, unsigned slot)
{
    const struct box *box = box_at(worker, slot);

    for (struct flow *flow = worker->flows->first, *next; flow; flow = next) {
        next = flow->next;
        bool is_judged = flow->state != FLOW_READING && flow->state != FLOW_DRAINING;
        if (flow->slot == slot && (!box || (is_judged && !is_still_allowed(box, flow))))
            flow_reset(worker, flow);
    }
}

void flows_tick(struct worker *worker)
{
    for (struct flow *flow = worker->flows->first, *next; flow; flow = next) {
        next = flow->next;
        if (!flow->until_ms || flow->until_ms > worker->now_ms)
            continue;
        if (flow->state == FLOW_DIALLING || flow->state == FLOW_PROXY ||
            (flow->state == FLOW_RELAY && !flow->is_connected))
            fail_dial(worker, flow);
        else
            flow_reset(worker, flow);
    }
}

void flows_start(struct worker *worker)
{
    struct flows *flows = xnew(struct flows);

    worker->flows = flows;
    flows->listener.on_event = flows->host.on_event = on_arrival;
    watch_add(worker, &flows->listener, WORKER_FLOWS, EPOLLIN);
    watch_add(worker, &flows->host, WORKER_HOST, EPOLLIN);
}
