/* SPDX-License-Identifier: Apache-2.0 */
/* Heads as they are passed on; see proxy_head.h. */
#include "net/proxy_head.h"

#include "base/decimal.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define COOKIE_MARK "burrow-%u-" // in front of the names of cookies of a host port

/* Between two hops, made anew, or ours to say. */
static const char *const not_passed[] = {
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Content-Length",
    NULL,
};
static const char *const not_passed_up[] = {
    "Host", "Expect", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", NULL,
};

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (strcasecmp(name, *list) == 0)
            return true;
    }
    return false;
}

/* Whether `word` is in a list with commas between. */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; *at; at += strcspn(at, ",")) {
        at += strspn(at, ", \t");
        size_t here = strcspn(at, ", \t");
        if (here == length && strncasecmp(at, word, length) == 0)
            return true;
    }
    return false;
}

/* A Connection header names others that are for this hop alone. */
static bool is_named(const struct http_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(headers[i].name, "Connection") == 0 && has_word(headers[i].value, name))
            return true;
    }
    return false;
}

static bool has_connection(const struct http_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(headers[i].name, "Connection") == 0)
            return true;
    }
    return false;
}

static void add_header(struct proxy_end *to, const char *name, const char *value)
{
    proxy_end_add_text(to, name);
    proxy_end_add(to, ": ", 2);
    proxy_end_add_text(to, value);
    proxy_end_add(to, "\r\n", 2);
}

const char *proxy_head_upgrade(const struct http_request *request)
{
    const char *wanted = http_request_header(request, "Upgrade");
    bool is_asked = request->minor > 0 && !request->has_body &&
                    is_named(request->headers, request->header_count, "Upgrade");

    return is_asked && wanted && *wanted ? wanted : NULL;
}

// ---- cookies ----

/* Browsers send cookies to all ports of a host: those of a host port carry it in their names, and others are not passed on. */
static void add_cookies(struct proxy_end *to, const char *value, unsigned port)
{
    char mark[32];
    int length = snprintf(mark, sizeof mark, COOKIE_MARK, port);
    bool is_first = true;

    for (const char *at = value; *at; at += strcspn(at, ";")) {
        at += strspn(at, "; \t");
        size_t here = strcspn(at, ";");
        if (here <= (size_t)length || strncmp(at, mark, (size_t)length) != 0)
            continue;
        proxy_end_add_text(to, is_first ? "Cookie: " : "; ");
        proxy_end_add(to, at + length, here - (size_t)length);
        is_first = false;
    }
    if (!is_first)
        proxy_end_add(to, "\r\n", 2);
}

/* Without Domain: the cookie is for the name it came from alone. */
static void add_set_cookie(struct proxy_end *to, const char *value, unsigned port)
{
    char mark[32] = "";

    if (port)
        (void)snprintf(mark, sizeof mark, COOKIE_MARK, port);
    proxy_end_add_text(to, "Set-Cookie: ");
    proxy_end_add_text(to, mark);
    for (const char *at = value;; at++) {
        const char *word = at + strspn(at, " \t");
        size_t here = strcspn(at, ";");
        bool is_first = at == value;
        bool is_domain =
            !is_first && strncasecmp(word, "domain", 6) == 0 && strchr("= \t;", word[6]);
        if (!is_first && !is_domain)
            proxy_end_add(to, ";", 1);
        if (!is_domain)
            proxy_end_add(to, at, here);
        at += here;
        if (!*at)
            break;
    }
    proxy_end_add(to, "\r\n", 2);
}

// ---- requests ----

static void add_line(struct proxy_end *to, const struct http_request *request)
{
    proxy_end_add_text(to, request->method);
    proxy_end_add(to, " ", 1);
    proxy_end_add_text(to, request->path);
    if (request->query) {
        proxy_end_add(to, "?", 1);
        proxy_end_add_text(to, request->query);
    }
    proxy_end_add_text(to, " HTTP/1.1\r\n");
}

static void format_address(const struct peer *peer, char text[INET6_ADDRSTRLEN])
{
    if (IN6_IS_ADDR_V4MAPPED(&peer->address))
        (void)inet_ntop(AF_INET, &peer->address.s6_addr[12], text, INET6_ADDRSTRLEN);
    else
        (void)inet_ntop(AF_INET6, &peer->address, text, INET6_ADDRSTRLEN);
}

static void add_forwarded(struct proxy_end *to, const struct http_request *request,
                          const struct proxy_target *target)
{
    char address[INET6_ADDRSTRLEN] = "";
    const char *before = http_request_header(request, "X-Forwarded-For");

    format_address(&request->peer, address);
    proxy_end_add_text(to, "X-Forwarded-For: ");
    if (before && *before) {
        proxy_end_add_text(to, before);
        proxy_end_add(to, ", ", 2);
    }
    proxy_end_add_text(to, address);
    proxy_end_add(to, "\r\n", 2);
    if (request->host)
        add_header(to, "X-Forwarded-Host", request->host);
    add_header(to, "X-Forwarded-Proto", target->forwarded_proto);
}

static void add_length(struct proxy_end *to, const char *name, uint64_t length)
{
    char number[DECIMAL_TEXT];

    number[decimal_format_natural(length, number)] = '\0';
    add_header(to, name, number);
}

static bool is_hidden(const struct proxy_target *target, const char *name)
{
    return (target->hidden_header && strcasecmp(name, target->hidden_header) == 0) ||
           (target->hidden_too && strcasecmp(name, target->hidden_too) == 0);
}

void proxy_head_write_request(struct proxy_end *to, const struct http_request *request,
                              const struct proxy_target *target)
{
    const char *upgrade = proxy_head_upgrade(request);
    bool has_named = has_connection(request->headers, request->header_count);

    add_line(to, request);
    add_header(to, "Host", target->host);
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *header = &request->headers[i];
        if (is_one_of(header->name, not_passed) || is_one_of(header->name, not_passed_up) ||
            is_hidden(target, header->name) ||
            (has_named && is_named(request->headers, request->header_count, header->name)))
            continue;
        if (target->cookie_port && strcasecmp(header->name, "Cookie") == 0)
            add_cookies(to, header->value, target->cookie_port);
        else
            add_header(to, header->name, header->value);
    }
    add_forwarded(to, request, target);
    if (upgrade) {
        add_header(to, "Connection", "Upgrade");
        add_header(to, "Upgrade", upgrade);
    }
    if (request->is_chunked)
        add_header(to, "Transfer-Encoding", "chunked");
    else if (request->has_body || http_request_header(request, "Content-Length"))
        add_length(to, "Content-Length", request->body_length);
    proxy_end_add(to, "\r\n", 2);
}

// ---- answers ----

static void add_framing(struct proxy_end *to, const struct http1_reply_head *head,
                        const struct proxy_reply_manner *manner)
{
    if (manner->framing == PROXY_CHUNKS)
        add_header(to, "Transfer-Encoding", "chunked");
    else if (head->has_length && head->status != 204 && head->status >= 200)
        add_length(to, "Content-Length", head->length);
}

void proxy_head_write_reply(struct proxy_end *to, const struct http1_reply_head *head,
                            const struct proxy_reply_manner *manner)
{
    bool has_named = has_connection(head->headers, head->header_count);
    char line[32];

    (void)snprintf(line, sizeof line, "HTTP/1.1 %d ", head->status);
    proxy_end_add_text(to, line);
    proxy_end_add_text(to, head->reason);
    proxy_end_add(to, "\r\n", 2);
    for (size_t i = 0; i < head->header_count; i++) {
        const struct http_header *header = &head->headers[i];
        if (manner->is_upgrade && strcasecmp(header->name, "Upgrade") == 0)
            add_header(to, header->name, header->value);
        if (is_one_of(header->name, not_passed) ||
            (has_named && is_named(head->headers, head->header_count, header->name)))
            continue;
        if (strcasecmp(header->name, "Set-Cookie") == 0)
            add_set_cookie(to, header->value, manner->cookie_port);
        else
            add_header(to, header->name, header->value);
    }
    add_framing(to, head, manner);
    if (manner->is_upgrade)
        add_header(to, "Connection", "Upgrade");
    else if (manner->is_last)
        add_header(to, "Connection", "close");
    else if (manner->is_old)
        add_header(to, "Connection", "keep-alive");
    proxy_end_add(to, "\r\n", 2);
}
