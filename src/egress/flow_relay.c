/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1 between a box and a server, request by request: each says a host, and each is judged, because one connection may carry requests for several. Bodies are passed as
 * they come, both ways; nothing is kept.
 */
#include "egress/flow.h"

#include "base/auto.h"
#include "base/mem.h"
#include "egress/flow_tls.h"

#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum request_state { HEAD, BODY, CHUNKS };

struct relay {
    enum request_state state;
    uint64_t left;
    struct http_chunks chunks;
    unsigned requests;
    bool awaits_status; // another protocol was asked for: does the server agree?
    bool is_raw;        // it has
    bool has_dialled;
};

void relay_free(struct relay *relay)
{
    free(relay);
}

// ---- refusing ----

/* The first request is answered; of a later one the connection ends, because answers to others may be on their way. */
static void refuse_request(struct worker *worker, struct flow *flow, unsigned status,
                           const struct policy_verdict *verdict)
{
    char text[2048];

    if (flow->relay->requests) {
        flow_reset(worker, flow);
        return;
    }
    size_t length = flow_write_refusal(status, verdict, text, sizeof text);
    flow_answer_and_drain(worker, flow, text, length);
}

static bool refuse_for(struct worker *worker, struct box *box, struct flow *flow,
                       enum egress_refusal_kind kind, const char *name, const char *reason,
                       const char *remedy)
{
    struct policy_verdict verdict = {.tier = POLICY_DEFAULT};
    const struct policy_question question = {.name = name && *name ? name : NULL,
                                             .address = flow->address,
                                             .port = flow->port,
                                             .protocol = POLICY_TCP};

    (void)snprintf(verdict.reason, sizeof verdict.reason, "%s", reason);
    (void)snprintf(verdict.remedy, sizeof verdict.remedy, "%s", remedy);
    refuse(worker, box, kind, &question, &verdict);
    refuse_request(worker, flow, 403, &verdict);
    return false;
}

void relay_failed(struct worker *worker, struct flow *flow)
{
    struct policy_verdict verdict = {.tier = POLICY_DEFAULT};

    (void)snprintf(verdict.reason, sizeof verdict.reason, "'%s' could not be reached", flow->name);
    if (flow->server.ssl && SSL_get_verify_result(flow->server.ssl) != X509_V_OK)
        (void)snprintf(verdict.reason, sizeof verdict.reason,
                       "the certificate of '%s' is not trusted: %s", flow->name,
                       X509_verify_cert_error_string(SSL_get_verify_result(flow->server.ssl)));
    flow->relay->requests = 0; // nothing of an answer has come
    if (flow->client.ssl && !SSL_is_init_finished(flow->client.ssl))
        flow_reset(worker, flow);
    else
        refuse_request(worker, flow, 502, &verdict);
}

// ---- secrets ----

static const char *find(const char *bytes, size_t length, const char *word)
{
    return *word ? memmem(bytes, length, word, strlen(word)) : NULL;
}

/* A placeholder that is not where it is meant: in another header, or on its way to another host. */
static const struct secret *misplaced(const struct box *box, const struct flow *flow,
                                      const char *head, size_t length)
{
    for (size_t i = 0; i < box->n_secrets; i++) {
        const struct secret *secret = &box->secrets[i];
        const char *found = find(head, length, secret->placeholder);
        if (!found)
            continue;
        size_t value_length;
        const char *value = http_header_find(head, length, secret->header, &value_length);
        bool is_meant = flow->is_opened && strcmp(flow->name, secret->host) == 0 && value &&
                        found >= value && found < value + value_length &&
                        !find(value + value_length, length - (size_t)(value - head) - value_length,
                              secret->placeholder);
        if (!is_meant)
            return secret;
    }
    return NULL;
}

static bool is_header(const char *line, size_t length, const char *name)
{
    size_t name_length = strlen(name);

    return length > name_length && line[name_length] == ':' &&
           strncasecmp(line, name, name_length) == 0;
}

static bool put_text(struct leg *leg, const char *text)
{
    return leg_put(leg, text, strlen(text));
}

/* The line of a header with the placeholder in it replaced. */
static bool put_replaced(struct leg *leg, const char *line, size_t length,
                         const struct secret *secret)
{
    const char *found = find(line, length, secret->placeholder);

    if (!found)
        return leg_put(leg, line, length);
    size_t before = (size_t)(found - line), skip = before + strlen(secret->placeholder);
    return leg_put(leg, line, before) && put_text(leg, secret->value) &&
           leg_put(leg, line + skip, length - skip);
}

/* What the box says of a header that is set here does not count. */
static const struct secret *secret_for(const struct box *box, const struct flow *flow,
                                       const char *line, size_t length)
{
    for (size_t i = 0; i < box->n_secrets; i++) {
        const struct secret *secret = &box->secrets[i];
        if (strcmp(secret->host, flow->name) == 0 && is_header(line, length, secret->header))
            return secret;
    }
    return NULL;
}

static bool put_head(const struct box *box, struct flow *flow, const char *head, size_t length)
{
    struct leg *leg = &flow->server;

    if (!flow->is_opened)
        return leg_put(leg, head, length);
    for (size_t at = 0, lines = 0; at + 2 < length; lines++) {
        const char *end = memchr(head + at, '\n', length - at);
        size_t line = (size_t)(end - (head + at)) + 1;
        const struct secret *secret = lines ? secret_for(box, flow, head + at, line) : NULL;
        if (!secret ? !leg_put(leg, head + at, line)
                    : *secret->placeholder && !put_replaced(leg, head + at, line, secret))
            return false;
        at += line;
    }
    for (size_t i = 0; i < box->n_secrets; i++) {
        const struct secret *secret = &box->secrets[i];
        if (strcmp(secret->host, flow->name) != 0 || *secret->placeholder)
            continue;
        if (!put_text(leg, secret->header) || !put_text(leg, ": ") ||
            !put_text(leg, secret->value) || !put_text(leg, "\r\n"))
            return false;
    }
    return put_text(leg, "\r\n");
}

// ---- requests ----

/* False: the flow has ended or is about to. */
static bool check_request(struct worker *worker, struct box *box, struct flow *flow,
                          const struct http_head *head)
{
    const char *bytes = flow->client.in.data;
    struct policy_verdict verdict;

    if (head->has_bad_name)
        return refuse_for(worker, box, flow, EGRESS_HTTP, NULL,
                          "the Host of the request is no name", "send the name of the host");
    if (head->address && head->address != flow->address)
        return refuse_for(worker, box, flow, EGRESS_HTTP, NULL,
                          "the Host of the request is another address than the connection's",
                          "send the Host that belongs to the address");
    if (flow->is_opened && strcmp(head->name, flow->name) != 0)
        return refuse_for(worker, box, flow, EGRESS_HTTP, head->name,
                          "the Host of the request is not the one that TLS was opened for",
                          "use a connection for each host");
    if (!flow_judge(worker, box, flow, head->name, &verdict)) {
        refuse_request(worker, flow, 403, &verdict);
        return false;
    }
    if (head->is_upgrade && flow->relay->requests)
        return refuse_for(worker, box, flow, EGRESS_HTTP, head->name,
                          "another protocol was asked for on a connection that was used before",
                          "use a connection of its own for it");
    if (flow->is_opened && strncasecmp(bytes, "TRACE ", 6) == 0)
        return refuse_for(worker, box, flow, EGRESS_HTTP, head->name,
                          "TRACE would show the secrets that are added to requests",
                          "use another method");
    const struct secret *secret = misplaced(box, flow, bytes, head->length);
    if (secret) {
        char reason[512];
        (void)snprintf(reason, sizeof reason,
                       "a placeholder that stands for a secret of '%s' was sent elsewhere",
                       secret->host);
        return refuse_for(worker, box, flow, EGRESS_SECRET, head->name, reason,
                          "send it to its host alone, over https and in its header");
    }
    return true;
}

static bool take_head(struct worker *worker, struct box *box, struct flow *flow)
{
    struct relay *relay = flow->relay;
    struct http_head head;
    enum http_head_state state =
        http_head_read(flow->client.in.data, flow->client.in.length, &head);
    char reason[256];

    if (state == HTTP_HEAD_MORE)
        return false;
    if (state == HTTP_HEAD_BAD) {
        (void)snprintf(reason, sizeof reason, "a request cannot be judged: %s", head.problem);
        return refuse_for(worker, box, flow, EGRESS_HTTP, NULL, reason,
                          "send requests of HTTP/1.1 with one Host");
    }
    if (!check_request(worker, box, flow, &head))
        return false;
    if (!flow->is_opened)
        (void)strcpy(flow->name, head.name);
    if (!put_head(box, flow, flow->client.in.data, head.length)) {
        flow_reset(worker, flow);
        return false;
    }
    leg_used(&flow->client, head.length);
    relay->requests++;
    relay->awaits_status = head.is_upgrade;
    relay->left = head.content_length;
    relay->chunks = (struct http_chunks){0};
    relay->state = head.is_chunked ? CHUNKS : head.content_length ? BODY : HEAD;
    if (!relay->has_dialled) {
        relay->has_dialled = true;
        flow_dial(worker, flow);
    }
    return !flow->is_gone && flow->state != FLOW_DRAINING;
}

/* So many bytes of the body are there; -1: damaged. */
static ptrdiff_t take_body(struct relay *relay, const struct leg *client)
{
    bool is_end = false;
    ptrdiff_t part;

    if (relay->state == CHUNKS) {
        part = http_chunks_take(&relay->chunks, client->in.data, client->in.length, &is_end);
    } else {
        part = (ptrdiff_t)(relay->left < client->in.length ? relay->left : client->in.length);
        relay->left -= (uint64_t)part;
        is_end = !relay->left;
    }
    if (is_end)
        relay->state = HEAD;
    return part;
}

/* False: the flow has ended. */
static bool take_requests(struct worker *worker, struct box *box, struct flow *flow)
{
    struct relay *relay = flow->relay;
    struct leg *client = &flow->client, *server = &flow->server;

    while (client->in.length && server->out.length + server->waiting.length < LEG_ROOM) {
        if (relay->state == HEAD && !relay->is_raw) {
            if (relay->awaits_status || !take_head(worker, box, flow))
                return !flow->is_gone && flow->state != FLOW_DRAINING;
            continue;
        }
        ptrdiff_t part = relay->is_raw ? (ptrdiff_t)client->in.length : take_body(relay, client);
        if (part < 0 || !leg_put(server, client->in.data, (size_t)part)) {
            flow_reset(worker, flow);
            return false;
        }
        leg_used(client, (size_t)part);
    }
    return true;
}

// ---- answers ----

/* Looks whether the server agrees to another protocol; how many bytes may be passed on. False: it says what makes no sense. */
static bool take_status(struct flow *flow, size_t *length)
{
    struct relay *relay = flow->relay;
    struct http_head head;

    *length = flow->server.in.length;
    if (!relay->awaits_status)
        return true;
    switch (http_status_read(flow->server.in.data, flow->server.in.length, &head)) {
    case HTTP_HEAD_BAD:
        return false;
    case HTTP_HEAD_MORE:
        *length = 0;
        return true;
    case HTTP_HEAD_READ:
        break;
    }
    *length = head.length;
    if (head.status == 101)
        relay->is_raw = true;
    if (head.status == 101 || head.status >= 200)
        relay->awaits_status = false;
    return true;
}

static bool take_answers(struct worker *worker, struct flow *flow)
{
    struct leg *client = &flow->client, *server = &flow->server;

    while (server->in.length && client->out.length < LEG_ROOM) {
        size_t length;
        if (!take_status(flow, &length) || !leg_put(client, server->in.data, length)) {
            flow_reset(worker, flow);
            return false;
        }
        if (!length)
            break;
        leg_used(server, length);
    }
    return true;
}

// ---- both ----

static uint32_t interest(const struct leg *leg, bool has_room)
{
    return (!leg->is_eof && has_room ? EPOLLIN : 0) | (leg->out.length ? EPOLLOUT : 0);
}

/* Both ways, until neither end has anything more to give or to take. False: the flow has ended. */
static bool move_all(struct worker *worker, struct box *box, struct flow *flow)
{
    struct leg *client = &flow->client, *server = &flow->server;
    size_t before, after;

    do {
        before = client->in.length + client->out.length + server->in.length + server->out.length;
        if (!take_requests(worker, box, flow) || !take_answers(worker, flow))
            return false;
        if (client->is_eof && !client->in.length && flow->is_connected)
            server->is_ending = true;
        if (server->is_eof && !server->in.length)
            client->is_ending = true;
        if (!leg_flush(client) || (flow->is_connected && !leg_flush(server))) {
            flow_reset(worker, flow);
            return false;
        }
        after = client->in.length + client->out.length + server->in.length + server->out.length;
    } while (after < before && (client->in.length || server->in.length));
    return true;
}

void relay_step(struct worker *worker, struct flow *flow)
{
    struct box *box = box_at(worker, flow->slot);
    struct leg *client = &flow->client, *server = &flow->server;

    if (!box) {
        flow_reset(worker, flow);
        return;
    }
    if (!move_all(worker, box, flow))
        return;
    if (client->is_eof && !flow->relay->has_dialled) { // it went without a request
        flow_free(worker, flow);
        return;
    }
    if (server->is_eof && client->is_ended) {
        flow_answer_and_drain(worker, flow, "", 0);
        return;
    }
    bool is_blocked = flow->relay->state == HEAD && flow->relay->awaits_status;
    watch_change(worker, &client->watch,
                 interest(client, client->in.length < LEG_ROOM && !is_blocked));
    if (flow->is_connected)
        watch_change(worker, &server->watch, interest(server, server->in.length < LEG_ROOM));
}

void relay_on_event(struct worker *worker, struct watch *watch, uint32_t events)
{
    struct flow *flow = watch->owner;
    struct leg *leg = watch == &flow->client.watch ? &flow->client : &flow->server;

    if (!leg_pull(leg)) {
        bool is_handshake = leg == &flow->server && leg->ssl && !SSL_is_init_finished(leg->ssl);
        if (is_handshake)
            relay_failed(worker, flow);
        else
            flow_reset(worker, flow);
        return;
    }
    if ((events & EPOLLERR) || ((events & EPOLLHUP) && leg->is_eof && leg == &flow->client)) {
        flow_reset(worker, flow);
        return;
    }
    relay_step(worker, flow);
}

void relay_connected(struct worker *worker, struct flow *flow)
{
    if (flow->server.ssl && !leg_feed(&flow->server, "", 0)) { // begins to speak TLS
        relay_failed(worker, flow);
        return;
    }
    relay_step(worker, flow);
}

void relay_start(struct worker *worker, struct flow *flow)
{
    flow->relay = xnew(struct relay);
    flow->state = FLOW_RELAY;
    relay_step(worker, flow);
}
