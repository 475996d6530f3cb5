/* SPDX-License-Identifier: Apache-2.0 */
/* Status lines and headers. */
#include "net/response_head.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/decimal.h"

#include <string.h>

static const struct {
    int status;
    const char *text;
} reasons[] = {
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

bool response_status_has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

const char *response_status_reason(int status)
{
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
        if (reasons[i].status == status)
            return reasons[i].text;
    }
    return "Other";
}

/* Nothing in a header may end its line. */
static char *put_clean(char *at, const char *text)
{
    for (; *text; text++)
        *at++ = (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text;
    return at;
}

static char *put_number(char *at, uint64_t number)
{
    return at + decimal_format_natural(number, at);
}

static size_t measure_headers(const struct http_header *headers)
{
    size_t room = 0;

    for (const struct http_header *h = headers; h && h->name; h++)
        room += strlen(h->name) + strlen(h->value) + 4;
    return room;
}

static char *put_headers(char *at, const struct http_header *headers)
{
    for (const struct http_header *h = headers; h && h->name; h++) {
        at = put_clean(at, h->name);
        at = stpcpy(at, ": ");
        at = put_clean(at, h->value);
        at = stpcpy(at, "\r\n");
    }
    return at;
}

#define FIXED_PART 256 // status line, Date and framing at their longest

struct segment *response_head_new(const struct response_head *head)
{
    size_t room = FIXED_PART + measure_headers(head->headers) + measure_headers(head->more_headers);
    struct segment *segment = segment_new(room);
    char *start = segment_data(segment), *at = start, date[CLOCK_HTTP_TEXT];

    at = stpcpy(at, "HTTP/1.1 ");
    at = put_number(at, (unsigned)head->status);
    at = stpcpy(stpcpy(at, " "), response_status_reason(head->status));
    at = stpcpy(stpcpy(at, "\r\nDate: "), clock_format_http(clock_wall_ms(), date));
    at = stpcpy(at, "\r\n");
    if (head->is_chunked)
        at = stpcpy(at, "Transfer-Encoding: chunked\r\n");
    else if (head->length != RESPONSE_LENGTH_UNKNOWN)
        at = stpcpy(put_number(stpcpy(at, "Content-Length: "), head->length), "\r\n");
    at = put_headers(at, head->headers);
    at = put_headers(at, head->more_headers);
    segment_trim(segment, (size_t)(at - start));
    return segment;
}
