/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for heads beyond llhttp's, in the order of RFC 9112: request line, target, headers,
 * framing. */
#include "net/http1_head.h"

#include "base/mem.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static struct http1_fault bad(int status, const char *text)
{
    return (struct http1_fault){.status = status, .text = text};
}

/* Letters, then a space: a method, only none that anybody knows. */
static bool begins_with_method(const struct http1_head *head)
{
    size_t at = 0;
    while (at < head->length && at < 32 && head->text[at] >= 'A' && head->text[at] <= 'Z')
        at++;
    return at > 0 && at < head->length && head->text[at] == ' ';
}

void http1_head_fault(const struct http1_head *head, llhttp_errno_t code, struct http1_fault *fault)
{
    if (head->length > 5 && memcmp(head->text, "PRI *", 5) == 0)
        code = HPE_PAUSED_H2_UPGRADE;
    switch (code) {
    case HPE_INVALID_METHOD:
        *fault = begins_with_method(head) ? bad(501, "the method is not known here")
                                          : bad(400, "the request line is malformed");
        return;
    case HPE_PAUSED_H2_UPGRADE:
    case HPE_INVALID_VERSION:
        *fault = bad(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
        return;
    case HPE_INVALID_URL:
        *fault = bad(400, "the request target is malformed");
        return;
    case HPE_INVALID_CONTENT_LENGTH:
        *fault = bad(400, "Content-Length is not a number");
        return;
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        *fault = bad(
            400, "there is more than one length: Content-Length twice, or with Transfer-Encoding");
        return;
    case HPE_INVALID_TRANSFER_ENCODING:
        *fault = bad(400, "the transfer encoding is malformed");
        return;
    case HPE_INVALID_HEADER_TOKEN:
        *fault = bad(400, "a header is malformed");
        return;
    default:
        *fault = bad(400, "the head of the request is malformed");
    }
}

/* METHOD SP target SP HTTP/1.x, single spaces. */
static int check_line(const struct http1_head *head, struct http1_fault *fault)
{
    const char *end = memchr(head->text, '\r', head->length);
    size_t length = end ? (size_t)(end - head->text) : 0;
    int spaces = 0;

    for (size_t i = 0; i < length; i++)
        spaces += head->text[i] == ' ';
    if (length < 9 || spaces != 2) {
        *fault = bad(400, "the request line is malformed");
        return -1;
    }
    if (memcmp(end - 8, "HTTP/1.0", 8) != 0 && memcmp(end - 8, "HTTP/1.1", 8) != 0) {
        *fault = bad(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
        return -1;
    }
    return 0;
}

static void terminate(struct http1_piece *piece)
{
    while (piece->length &&
           (piece->at[piece->length - 1] == ' ' || piece->at[piece->length - 1] == '\t'))
        piece->length--;
    piece->at[piece->length] = '\0'; // over a ':', a blank or a CR, which are read by now
}

/* http://host/path: the authority moves one to the left, so that both can be ended. */
static int split_absolute(struct http_request *request, char *target)
{
    char *authority = strstr(target, "://") + 3;
    size_t length = strcspn(authority, "/?");
    char *rest = authority + length;

    if (length == 0 || memchr(authority, '@', length))
        return -1;
    memmove(authority - 1, authority, length);
    authority[length - 1] = '\0';
    request->host = authority - 1;
    request->path = *rest == '/' ? rest : "/";
    if (*rest == '?')
        request->query = rest + 1;
    return 0;
}

static int split_target(struct http_request *request, char *target)
{
    if (strchr(target, '#'))
        return -1;
    if (strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0) {
        if (split_absolute(request, target) < 0)
            return -1;
        if (request->query)
            return 0;
        target = (char *)request->path;
    } else if (strcmp(target, "*") == 0 && strcmp(request->method, "OPTIONS") == 0) {
        request->path = target;
        return 0;
    } else if (target[0] != '/') {
        return -1;
    }
    request->path = target;
    char *mark = strchr(target, '?');
    if (mark) {
        *mark = '\0';
        request->query = mark + 1;
    }
    return 0;
}

static const char *find_once(const struct http_request *request, const char *name, bool *is_twice)
{
    const char *found = NULL;

    for (size_t i = 0; i < request->header_count; i++) {
        if (strcasecmp(request->headers[i].name, name) != 0)
            continue;
        *is_twice = *is_twice || found;
        found = request->headers[i].value;
    }
    return found;
}

/* It comes back in addresses that are made from it. */
static bool is_host(const char *text)
{
    for (; *text; text++) {
        if (!isalnum((unsigned char)*text) && !strchr(".-_:[]", *text))
            return false;
    }
    return true;
}

static int check_host(struct http_request *request, struct http1_fault *fault)
{
    bool is_twice = false;
    const char *host = find_once(request, "Host", &is_twice);

    if (is_twice || (!host && request->minor > 0) || (host && !is_host(host)) ||
        (request->host && !is_host(request->host))) {
        *fault = bad(400, "a request has exactly one Host header with a host in it");
        return -1;
    }
    if (!request->host)
        request->host = host;
    return 0;
}

static int check_framing(struct http_request *request, struct http1_fault *fault)
{
    bool is_twice = false;
    const char *length = find_once(request, "Content-Length", &is_twice);
    const char *coding = find_once(request, "Transfer-Encoding", &is_twice);

    if (is_twice || (length && coding)) {
        *fault = bad(
            400, "there is more than one length: Content-Length twice, or with Transfer-Encoding");
        return -1;
    }
    if (length && (!*length || length[strspn(length, "0123456789")])) {
        *fault = bad(400, "Content-Length is not a number");
        return -1;
    }
    if (coding && request->minor == 0) {
        *fault = bad(400, "HTTP/1.0 knows no Transfer-Encoding");
        return -1;
    }
    if (coding && strcasecmp(coding, "chunked") != 0) {
        *fault = bad(501, "the only transfer encoding is 'chunked'");
        return -1;
    }
    request->is_chunked = coding != NULL;
    request->has_body = request->is_chunked || request->body_length > 0;
    return 0;
}

static int check_expect(struct http_request *request, struct http1_fault *fault)
{
    const char *expect = http_request_header(request, "Expect");

    if (expect && strcasecmp(expect, "100-continue") != 0) {
        *fault = bad(417, "the only expectation is '100-continue'");
        return -1;
    }
    request->expects_continue = expect && request->minor > 0 && request->has_body;
    return 0;
}

static void copy_headers(struct http_request *request, struct http1_head *head)
{
    request->headers = xcalloc(head->count + 1, sizeof *request->headers);
    request->header_count = head->count;
    for (size_t i = 0; i < head->count; i++) {
        terminate(&head->names[i]);
        terminate(&head->values[i]);
        request->headers[i].name = head->names[i].at;
        request->headers[i].value = head->values[i].at;
    }
}

struct http_request *http1_head_request(struct http1_head *head, const llhttp_t *parser,
                                        const struct http1_limits *limits,
                                        struct http1_fault *fault)
{
    autoptr(http_request) request = xnew(struct http_request);
    bool is_fine_line = check_line(head, fault) == 0;

    request->head = take(head->text);
    if (!is_fine_line)
        return NULL;
    request->method = llhttp_method_name(parser->method);
    request->is_head = parser->method == HTTP_HEAD;
    request->minor = parser->http_minor;
    request->keeps_alive = llhttp_should_keep_alive(parser);
    request->body_length = parser->content_length;
    copy_headers(request, head);
    head->target.at[head->target.length] = '\0';
    if (parser->method == HTTP_CONNECT) {
        *fault = bad(501, "this is no proxy: CONNECT is not served");
        return NULL;
    }
    if (head->target.length > limits->target_bytes) {
        *fault = bad(414, "the request target is too long");
        return NULL;
    }
    if (split_target(request, head->target.at) < 0) {
        *fault = bad(400, "the request target is malformed");
        return NULL;
    }
    if (check_host(request, fault) < 0 || check_framing(request, fault) < 0 ||
        check_expect(request, fault) < 0)
        return NULL;
    return take(request);
}
