/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the HTTP/1.1 parser: the same bytes, whole and cut into pieces, must give the same requests or the same refusal. */
#include "base/auto.h"
#include "net/http1.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http1_limits limits = {.head_bytes = 2048, .target_bytes = 256, .headers = 16};

struct seen {
    uint64_t hash; // of all heads, bodies and ends
    unsigned heads, ends;
    int status;
};

static void add(struct seen *seen, const void *data, size_t length)
{
    for (size_t i = 0; i < length; i++)
        seen->hash = (seen->hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
}

static void add_text(struct seen *seen, const char *text)
{
    add(seen, text ? text : "-", text ? strlen(text) + 1 : 1);
}

static int on_head(void *owner, struct http_request *taken, struct http1_fault *fault)
{
    struct seen *seen = owner;
    autoptr(http_request) request = taken;

    seen->heads++;
    add_text(seen, request->method);
    add_text(seen, request->path);
    add_text(seen, request->query);
    add_text(seen, request->host);
    for (size_t i = 0; i < request->header_count; i++) {
        add_text(seen, request->headers[i].name);
        add_text(seen, request->headers[i].value);
        if (strpbrk(request->headers[i].value, "\r\n") || !*request->headers[i].name)
            abort();
    }
    if (request->path[0] != '/' && strcmp(request->path, "*") != 0)
        abort();
    if (request->is_chunked && http_request_header(request, "Content-Length"))
        abort();
    return 0;
}

static int on_body(void *owner, const char *data, size_t length, struct http1_fault *fault)
{
    add(owner, data, length);
    return 0;
}

static void on_end(void *owner)
{
    struct seen *seen = owner;
    add(seen, ".", 1);
    if (++seen->ends != seen->heads)
        abort();
}

static const struct http1_events events = {on_head, on_body, on_end};

static struct seen parse(const uint8_t *data, size_t size, size_t step)
{
    struct seen seen = {.hash = 0xcbf29ce484222325u};
    struct http1 http;
    struct http1_fault fault = {0};

    http1_init(&http, &limits, &events, &seen);
    for (size_t at = 0; at < size && !fault.status;) {
        size_t part = size - at < step ? size - at : step;
        ssize_t used = http1_feed(&http, (const char *)data + at, part, &fault);
        if (used > (ssize_t)part || (used <= 0 && !fault.status) || (used < 0 && !fault.text))
            abort();
        at += used > 0 ? (size_t)used : 0;
    }
    http1_clear(&http);
    seen.status = fault.status;
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = parse(data, size, size ? size : 1);
    struct seen pieces = parse(data, size, size ? data[0] % 13 + 1 : 1);
    struct seen bytes = parse(data, size, 1);

    // Which limit a head that passes several meets first depends on the pieces; that it is refused does not.
    if (!whole.status != !pieces.status || !whole.status != !bytes.status)
        abort();
    if (whole.heads != pieces.heads || whole.heads != bytes.heads || whole.ends != bytes.ends)
        abort();
    if (!whole.status && (whole.hash != pieces.hash || whole.hash != bytes.hash))
        abort();
    return 0;
}
