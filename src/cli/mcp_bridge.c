/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of JSON-RPC to requests of HTTP and back; see mcp_bridge.h. */
#include "cli/mcp_bridge.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/endpoint.h"
#include "cli/say.h"
#include "client/client_impl.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES ((size_t)17 << 20) // the server takes 16 MiB
#define ANSWER_MAX_BYTES ((size_t)80 << 20)
#define AT_ONCE 200
#define LAST_MS 10000 // after the end of input, for answers to what was asked before
#define META "io.modelcontextprotocol/"
#define CODE_INTERNAL (-32603)
#define CODE_INVALID (-32600)

/* A line on its way. */
struct passage {
    struct wire *wire;
    struct reply_reader reader;
    struct buffer request; // what is left to send begins at `sent`
    size_t sent;
    struct buffer answer;           // of JSON all so far; of events the line that is not whole
    struct data_document *document; // the line
    const struct data_value *id;    // NULL: nothing is answered to it
    bool is_told;                   // its answer was written
    struct passage *next;
};

struct bridge {
    struct invocation *invocation;
    struct buffer input;
    bool is_skipping; // the rest of a line that is too long
    struct passage *passages;
    size_t count;
};

static void passage_free(struct passage *passage)
{
    wire_free(passage->wire);
    reply_reader_clear(&passage->reader);
    buffer_clear(&passage->request);
    buffer_clear(&passage->answer);
    data_document_free(passage->document);
    free(passage);
}

static void drop(struct bridge *bridge, struct passage *passage)
{
    struct passage **at = &bridge->passages;

    while (*at != passage)
        at = &(*at)->next;
    *at = passage->next;
    bridge->count--;
    passage_free(passage);
}

// ---- standard output ----

/* The client is gone where it cannot be written: then the end of standard input follows. */
static void write_line(const char *text, size_t length)
{
    autobuffer line = {0};
    struct error ignored;
    size_t done = 0;

    (void)buffer_add(&line, text, length, &ignored);
    (void)buffer_add(&line, "\n", 1, &ignored);
    while (done < line.length) {
        ssize_t wrote = write(STDOUT_FILENO, line.data + done, line.length - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return;
        done += (size_t)wrote;
    }
}

static void write_failure(const struct data_value *id, int64_t code, const char *text)
{
    autobuffer line = {0};
    struct json_writer json;
    struct error ignored;

    json_writer_init(&json, &line);
    json_map_begin(&json);
    json_key(&json, "jsonrpc");
    json_string(&json, "2.0");
    json_key(&json, "id");
    if (id)
        json_value(&json, id);
    else
        json_null(&json);
    json_key(&json, "error");
    json_map_begin(&json);
    json_key(&json, "code");
    json_integer(&json, code);
    json_key(&json, "message");
    json_string(&json, text);
    json_map_end(&json);
    json_map_end(&json);
    if (json_writer_finish(&json, &ignored) == 0)
        write_line(line.data, line.length);
}

static void fail_passage(struct passage *passage, const char *text)
{
    if (passage->id && !passage->is_told)
        write_failure(passage->id, CODE_INTERNAL, text);
    passage->is_told = true;
}

// ---- requests ----

static const char *text_of(const struct data_value *map, const char *name)
{
    const struct data_value *value = value_get(map, name);

    return value && value->kind == VALUE_STRING && strlen(value->text) == value->length
               ? value->text
               : NULL;
}

static bool is_plain(const char *value)
{
    size_t length = strlen(value);

    for (const char *at = value; *at; at++) {
        if (*at < ' ' || *at > '~')
            return false;
    }
    return length > 0 && value[0] != ' ' && value[length - 1] != ' ' &&
           strncmp(value, "=?base64?", 9) != 0;
}

/* Encoded where it cannot stand in a header as it is. */
static void add_header(struct buffer *head, const char *name, const char *value)
{
    struct error ignored;

    if (!value)
        return;
    if (is_plain(value)) {
        (void)buffer_addf(head, &ignored, "%s: %s\r\n", name, value);
        return;
    }
    autofree char *text = xcalloc(1, base64_length(strlen(value)) + 1);
    base64_encode(value, strlen(value), text);
    (void)buffer_addf(head, &ignored, "%s: =?base64?%s?=\r\n", name, text);
}

/* What the stateless revision wants repeated of a message; older ones have nothing of it. */
static void add_mirrors(struct buffer *head, const struct data_value *message)
{
    const struct data_value *params = value_get(message, "params");
    const char *version = text_of(value_get(params, "_meta"), META "protocolVersion");
    const char *name = text_of(params, "name"), *method = text_of(message, "method");
    struct error ignored;

    if (!version || (method && strcmp(method, "initialize") == 0)) {
        (void)buffer_add_text(head, "Mcp-Session-Id: stdio\r\n", &ignored);
        return;
    }
    add_header(head, "MCP-Protocol-Version", version);
    add_header(head, "Mcp-Method", method);
    add_header(head, "Mcp-Name", name ? name : text_of(params, "uri"));
}

static int write_request(const struct burrow_client *client, struct passage *passage,
                         const char *line, size_t length)
{
    struct buffer *to = &passage->request;
    struct error err = {0};

    (void)buffer_addf(to, &err,
                      "POST %s/mcp HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\n"
                      "Accept: application/json, text/event-stream\r\nConnection: close\r\n"
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                      client->target.base, client->target.authority, client->user_agent, length);
    if (client->api_key && *client->api_key)
        (void)buffer_addf(to, &err, "Authorization: Bearer %s\r\n", client->api_key);
    if (passage->document && passage->document->root->kind == VALUE_MAP)
        add_mirrors(to, passage->document->root);
    (void)buffer_add_text(to, "\r\n", &err);
    return buffer_add(to, line, length, &err);
}

/* A server that was started here may have ended since, having been quiet. */
static int open_wire(struct bridge *bridge, struct wire **out, struct burrow_error *err)
{
    for (unsigned tries = 0;; tries++) {
        struct burrow_client *client = bridge->invocation->client;
        const struct wire_tls tls = {client->tls_program, client->ca_file};
        if (wire_open(&client->target, &client->patience, &tls, out, err) == 0)
            return 0;
        if (tries > 0 || err->kind == BURROW_CANCELLED)
            return -1;
        burrow_close(client);
        bridge->invocation->client = NULL;
        if (endpoint_connect(bridge->invocation, ENDPOINT_START, err) < 0)
            return -1;
    }
}

// ---- lines ----

static bool is_same_id(const struct data_value *one, const struct data_value *other)
{
    return one && other && one->kind == other->kind && one->length == other->length &&
           memcmp(one->text ? one->text : "", other->text ? other->text : "", one->length) == 0;
}

/* Going away is what cancels, in every revision. */
static void cancel(struct bridge *bridge, const struct data_value *id)
{
    for (struct passage *passage = bridge->passages; passage; passage = passage->next) {
        if (is_same_id(passage->id, id)) {
            drop(bridge, passage);
            return;
        }
    }
}

static void send_line(struct bridge *bridge, struct data_document *document, const char *line,
                      size_t length)
{
    struct passage *passage = xnew(struct passage);
    const struct data_value *id = document ? value_get(document->root, "id") : NULL;
    struct burrow_error err = {0};

    reply_reader_init(&passage->reader, false);
    passage->answer.maximum = ANSWER_MAX_BYTES;
    passage->document = document;
    passage->id = id;
    if (!bridge->invocation->client &&
        endpoint_connect(bridge->invocation, ENDPOINT_START, &err) < 0) {
        fail_passage(passage, err.text);
    } else if (bridge->count >= AT_ONCE) {
        fail_passage(passage, "too many requests at once: wait for an answer first");
    } else if (open_wire(bridge, &passage->wire, &err) < 0) {
        fail_passage(passage, err.text);
    } else if (write_request(bridge->invocation->client, passage, line, length) == 0) {
        passage->next = bridge->passages;
        bridge->passages = passage;
        bridge->count++;
        return;
    }
    passage_free(passage);
}

static void take_line(struct bridge *bridge, const char *line, size_t length)
{
    const struct json_limits limits = {.bytes = LINE_MAX_BYTES, .memory = 4 * LINE_MAX_BYTES};
    struct data_document *document = NULL;
    struct error err = {0};

    while (length && (line[length - 1] == '\r' || line[length - 1] == ' '))
        length--;
    if (length == 0)
        return;
    if (json_read("", line, length, &limits, &document, &err) < 0) {
        write_failure(NULL, -32700, err.text);
        return;
    }
    const char *method = text_of(document->root, "method");
    const struct data_value *params = value_get(document->root, "params");
    if (method && strcmp(method, "notifications/cancelled") == 0) {
        cancel(bridge, value_get(params, "requestId"));
        data_document_free(document);
        return;
    }
    send_line(bridge, document, line, length);
}

/* Behind what is left out: one message too many ends nothing else. */
static const char *skip_line(struct bridge *bridge, const char *piece, size_t length)
{
    const char *newline = bridge->is_skipping ? memchr(piece, '\n', length) : NULL;

    if (!bridge->is_skipping)
        return piece;
    bridge->is_skipping = !newline;
    return newline ? newline + 1 : piece + length;
}

/* 1: there may be more; 0: its end. */
static int read_input(struct bridge *bridge)
{
    char piece[65536];
    ssize_t got = read(STDIN_FILENO, piece, sizeof piece);
    struct error ignored;

    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    if (got == 0) {
        take_line(bridge, bridge->input.data ? bridge->input.data : "", bridge->input.length);
        return 0;
    }
    const char *rest = skip_line(bridge, piece, (size_t)got);
    (void)buffer_add(&bridge->input, rest, (size_t)(piece + got - rest), &ignored);
    if (bridge->input.length == 0)
        return 1;
    char *at = bridge->input.data, *end = at + bridge->input.length, *newline;
    while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
        take_line(bridge, at, (size_t)(newline - at));
        at = newline + 1;
    }
    bridge->input.length = (size_t)(end - at);
    memmove(bridge->input.data, at, bridge->input.length);
    if (bridge->input.length > LINE_MAX_BYTES) {
        write_failure(NULL, CODE_INVALID, "a line is longer than 16 MiB, and was left out");
        buffer_clear(&bridge->input);
        bridge->is_skipping = true;
    }
    return 1;
}

// ---- answers ----

/* Events: each line of data is a message. */
static void take_events(struct passage *passage, const char *data, size_t length)
{
    struct buffer *line = &passage->answer;
    struct error ignored;

    for (; length > 0; data++, length--) {
        if (*data != '\n') {
            (void)buffer_add(line, data, 1, &ignored);
            continue;
        }
        if (line->length > 6 && strncmp(line->data, "data: ", 6) == 0) {
            write_line(line->data + 6, line->length - 6);
            passage->is_told |=
                strstr(line->data, "\"result\":") || strstr(line->data, "\"error\":");
        }
        line->length = 0;
    }
}

static bool is_stream(const struct passage *passage)
{
    char type[64];

    return reply_reader_header(&passage->reader, "Content-Type", type, sizeof type) &&
           strncmp(type, "text/event-stream", 17) == 0;
}

/* What is refused as a whole has no id: the one who waits is told with his. */
static void tell_answer(struct passage *passage)
{
    autoptr(data_document) document = NULL;
    struct error ignored;
    char text[160];

    if (passage->answer.length == 0 && passage->reader.status < 300)
        return;
    if (json_read("", passage->answer.data ? passage->answer.data : "", passage->answer.length,
                  NULL, &document, &ignored) < 0) {
        (void)snprintf(text, sizeof text, "the server answered with status %d: is it burrow's?",
                       passage->reader.status);
        fail_passage(passage, text);
        return;
    }
    const struct data_value *id = value_get(document->root, "id");
    const struct data_value *error = value_get(document->root, "error");
    const struct data_value *code = value_get(error, "code");
    const char *message = text_of(error, "message");
    if (passage->id && error && (!id || id->kind == VALUE_NULL))
        write_failure(passage->id,
                      code && code->text ? strtoll(code->text, NULL, 10) : CODE_INTERNAL,
                      message ? message : "refused");
    else
        write_line(passage->answer.data, passage->answer.length);
    passage->is_told = true;
}

/* False: it is over. */
static bool take_bytes(struct passage *passage, struct burrow_error *err)
{
    struct wire *wire = passage->wire;
    struct error error = {0};

    while (wire->at < wire->end && passage->reader.state != REPLY_DONE) {
        size_t used = 0, length = 0;
        const char *body = NULL;
        if (reply_reader_take(&passage->reader, wire->in + wire->at, wire->end - wire->at, &used,
                              &body, &length, &error) < 0)
            return client_fail_from(err, BURROW_PROTOCOL, &error), false;
        wire->at += used;
        if (length && is_stream(passage))
            take_events(passage, body, length);
        else if (length && buffer_add(&passage->answer, body, length, &error) < 0)
            return client_fail_from(err, BURROW_PROTOCOL, &error), false;
    }
    return passage->reader.state != REPLY_DONE;
}

/* False: it is over. */
static bool advance(struct passage *passage, struct burrow_error *err)
{
    struct error error = {0};

    while (passage->sent < passage->request.length) {
        ssize_t sent = wire_send_some(passage->wire, passage->request.data + passage->sent,
                                      passage->request.length - passage->sent, err);
        if (sent < 0)
            break; // a server that refuses early has answered all the same
        if (sent == 0)
            break;
        passage->sent += (size_t)sent;
    }
    for (;;) {
        int got = wire_receive_now(passage->wire, err);
        if (got < 0)
            return false;
        if (got == 2)
            return true;
        if (got == 0) {
            if (reply_reader_end(&passage->reader, passage->wire->is_cut, &error) < 0)
                (void)client_fail_from(err, BURROW_BROKEN, &error);
            return false;
        }
        if (!take_bytes(passage, err))
            return false;
    }
}

static void look_at(struct bridge *bridge, struct passage *passage)
{
    struct burrow_error err = {0};

    if (advance(passage, &err))
        return;
    if (passage->reader.state == REPLY_DONE && !is_stream(passage))
        tell_answer(passage);
    fail_passage(passage, err.text[0] ? err.text : "the server ended before it answered");
    drop(bridge, passage);
}

// ---- waiting ----

#define BESIDE 3 // descriptors that are no passage's

static int wait_for_any(struct bridge *bridge, uint64_t until, struct pollfd *fds)
{
    size_t count = BESIDE;
    bool has_input = !until;
    uint64_t now = clock_monotonic_ms();

    fds[0] = (struct pollfd){.fd = has_input ? STDIN_FILENO : -1, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = endpoint_cancel_fd(), .events = POLLIN};
    fds[2] = (struct pollfd){.fd = has_input ? -1 : STDOUT_FILENO}; // whether anybody still reads
    for (struct passage *p = bridge->passages; p; p = p->next) {
        bool is_sent = p->sent == p->request.length;
        fds[count++] =
            (struct pollfd){.fd = p->wire->fd, .events = (short)(POLLIN | (is_sent ? 0 : POLLOUT))};
    }
    return poll(fds, count, has_input ? -1 : until > now ? (int)(until - now) : 0);
}

int mcp_bridge_run(struct invocation *invocation, struct burrow_error *err)
{
    struct bridge bridge = {.invocation = invocation};
    struct pollfd fds[AT_ONCE + BESIDE];
    uint64_t until = 0; // set once there is no more input

    if (endpoint_connect(invocation, ENDPOINT_START, err) < 0)
        return -1;
    while (!until || (bridge.passages && clock_monotonic_ms() < until)) {
        if (wait_for_any(&bridge, until, fds) < 0 && errno != EINTR)
            return say_fail_sys(err, "wait for messages");
        size_t at = BESIDE;
        for (struct passage *p = bridge.passages, *next; p; p = next, at++) {
            next = p->next;
            if (fds[at].revents)
                look_at(&bridge, p);
        }
        if (fds[1].revents || fds[2].revents)
            break;
        if (fds[0].revents && read_input(&bridge) == 0)
            until = clock_monotonic_ms() + LAST_MS;
    }
    while (bridge.passages)
        drop(&bridge, bridge.passages);
    buffer_clear(&bridge.input);
    return 0;
}
