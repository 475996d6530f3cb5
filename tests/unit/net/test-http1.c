/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1.h"

#include "test.h"

#include "base/error.h"

static const struct http1_limits limits = {.head_bytes = 4096, .target_bytes = 256, .headers = 20};

/* What came out, as one text: "GET /x?q h=1 [body] . " */
struct seen {
    char text[8192];
    size_t length;
};

static void note(struct seen *seen, const char *text, size_t length)
{
    CHECK(seen->length + length < sizeof seen->text);
    memcpy(seen->text + seen->length, text, length);
    seen->length += length;
    seen->text[seen->length] = '\0';
}

static int on_head(void *owner, struct http_request *request, struct http1_fault *fault)
{
    char line[1024];
    int length = snprintf(line, sizeof line, "%s %s%s%s %s 1.%d%s[", request->method, request->path,
                          request->query ? "?" : "", request->query ? request->query : "",
                          request->host ? request->host : "-", request->minor,
                          request->keeps_alive ? " keep " : " last ");
    note(owner, line, (size_t)length);
    http_request_free(request);
    return 0;
}

static int on_body(void *owner, const char *data, size_t length, struct http1_fault *fault)
{
    note(owner, data, length);
    return 0;
}

static void on_end(void *owner)
{
    note(owner, "].", 2);
}

static const struct http1_events events = {on_head, on_body, on_end};

/* Feeds the text in pieces of `step`; the status of the fault, or 0. */
static int feed(const char *text, size_t length, size_t step, struct seen *seen)
{
    struct http1 http;
    struct http1_fault fault = {0};
    size_t at = 0;

    *seen = (struct seen){0};
    http1_init(&http, &limits, &events, seen);
    while (at < length && !fault.status) {
        size_t part = length - at < step ? length - at : step;
        char *copy = malloc(part); // so that a sanitizer sees a read past it
        memcpy(copy, text + at, part);
        ssize_t used = http1_feed(&http, copy, part, &fault);
        free(copy);
        if (used > 0)
            at += (size_t)used;
    }
    http1_clear(&http);
    return fault.status;
}

/* However it is cut, the same comes out. */
static int parse(const char *text, struct seen *seen)
{
    int status = feed(text, strlen(text), strlen(text), seen);

    for (size_t step = 1; step < 40; step++) {
        struct seen again;
        CHECK_INT(feed(text, strlen(text), step, &again), status);
        if (status == 0)
            CHECK_STR(again.text, seen->text);
    }
    return status;
}

TEST(requests_come_out_whole_however_their_bytes_are_cut)
{
    static const struct {
        const char *text, *seen;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / a 1.1 keep []."},
        {"\r\nGET /x?y=1?z HTTP/1.1\r\nHOST:a:80\r\nConnection: close\r\n\r\n",
         "GET /x?y=1?z a:80 1.1 last []."},
        {"GET / HTTP/1.0\r\n\r\n", "GET / - 1.0 last []."},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET / - 1.0 keep []."},
        {"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
         "POST /a a 1.1 keep [hello]."},
        {"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "POST /a a 1.1 keep []."},
        {"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
         "Chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n",
         "POST /a a 1.1 keep [hello!]."},
        {"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: "
         "1\r\n\r\nGET /b HTTP/1.1\r\nHost: b\r\n\r\n",
         "POST /a a 1.1 keep [].GET /b b 1.1 keep []."},
        {"GET http://other:8080/p?q HTTP/1.1\r\nHost: a\r\n\r\n",
         "GET /p?q other:8080 1.1 keep []."},
        {"GET http://other HTTP/1.1\r\nHost: a\r\n\r\n", "GET / other 1.1 keep []."},
        {"GET http://other?q HTTP/1.1\r\nHost: a\r\n\r\n", "GET /?q other 1.1 keep []."},
        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * a 1.1 keep []."},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nGET /2 "
         "HTTP/1.1\r\nHost: a\r\n\r\n",
         "GET / a 1.1 keep [].GET /2 a 1.1 keep []."},
        {"GET / HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX-Blank: \t \r\n\r\n", "GET / a 1.1 keep []."},
        {"GET //double/../%2e%00 HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
         "GET //double/../%2e%00 [::1]:80 1.1 keep []."},
    };
    struct seen seen;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(parse(cases[i].text, &seen), 0);
        CHECK_STR(seen.text, cases[i].seen);
    }
}

#define HEAD "POST / HTTP/1.1\r\nHost: a\r\n"

TEST(what_two_parsers_could_read_differently_is_refused)
{
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400},
        {HEAD "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
        {HEAD "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
        {HEAD "Content-Length: 5, 5\r\n\r\n", 400},
        {HEAD "Content-Length: +5\r\n\r\n", 400},
        {HEAD "Content-Length: -1\r\n\r\n", 400},
        {HEAD "Content-Length: 0x5\r\n\r\n", 400},
        {HEAD "Content-Length: 5 5\r\n\r\n", 400},
        {HEAD "Content-Length:\r\n\r\n", 400},
        {HEAD "Content-Length: 99999999999999999999\r\n\r\n", 400},
        {HEAD "Content-Length : 5\r\n\r\n", 400},
        {HEAD " Content-Length: 5\r\n\r\n", 400},
        {HEAD "Content-Length\r\n\r\n", 400},
        {HEAD "X: a\r\n b\r\n\r\n", 400},
        {HEAD "X: a\r\n\tb\r\n\r\n", 400},
        {HEAD "X: a\nContent-Length: 5\r\n\r\n", 400},
        {HEAD "X: a\rContent-Length: 5\r\n\r\n", 400},
        {HEAD "X: a\r\n\n", 400},
        {HEAD "X\x01: a\r\n\r\n", 400},
        {HEAD "X: a\x01\r\n\r\n", 400},
        {HEAD ": a\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: identity\r\n\r\n", 501},
        {HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {HEAD "Transfer-Encoding: chunked, gzip\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: xchunked\r\n\r\n", 501},
        {HEAD "Transfer-Encoding: \x0b"
              "chunked\r\n\r\n",
         400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX0\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n0\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\nx", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\nX: a\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\n\n", 400},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {HEAD "Host: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
        {"GET http://u@h/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /#f HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\nHost: a\n\n", 400},
        {"\r\n\r\n\r\n\r\n\r\n\r\n\r\n", 400},
        {"\x16\x03\x01\x02\r\n\r\n", 400},
        {"get / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
        {"GETX / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
        {"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 501},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
        {"GET / HTTP/0.9\r\n\r\n", 505},
        {"GET / RTSP/1.0\r\nHost: a\r\n\r\n", 505},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        {HEAD "Expect: the-unexpected\r\n\r\n", 417},
    };
    struct seen seen;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = parse(cases[i].text, &seen);
        if (status != cases[i].status)
            test_fail(__FILE__, __LINE__, "case %zu: %d, not %d: %.60s", i, status, cases[i].status,
                      cases[i].text);
    }
}

TEST(heads_have_a_limit_in_every_direction)
{
    static char text[8192];
    char many[2048] = HEAD;
    struct seen seen;

    (void)snprintf(text, sizeof text, "GET /%0300d HTTP/1.1\r\nHost: a\r\n\r\n", 0);
    CHECK_INT(parse(text, &seen), 414);
    (void)snprintf(text, sizeof text, "GET /%05000d", 0); // without an end
    CHECK_INT(parse(text, &seen), 414);
    (void)snprintf(text, sizeof text, HEAD "X: %05000d\r\n\r\n", 0);
    CHECK_INT(parse(text, &seen), 431);
    (void)snprintf(text, sizeof text, HEAD "%05000d", 0);
    CHECK_INT(parse(text, &seen), 431);
    for (int i = 0; i < 30; i++)
        strcat(many, "X: a\r\n");
    strcat(many, "\r\n");
    CHECK_INT(parse(many, &seen), 431);
    (void)snprintf(text, sizeof text, HEAD "Transfer-Encoding: chunked\r\n\r\n1;%02000d\r\n", 0);
    CHECK_INT(parse(text, &seen), 400);
}
