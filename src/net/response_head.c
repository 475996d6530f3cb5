/* SPDX-License-Identifier: Apache-2.0 */
/* Status lines and headers. */
#include "net/response_head.h"

#include "base/auto.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct {
    int status;
    const char *text;
} reasons[] = {
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

static const char *reason_of(int status)
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

static char *put_date(char *at)
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t now = time(NULL);
    struct tm day;

    (void)gmtime_r(&now, &day);
    return at + sprintf(at, "Date: %s, %02d %s %d %02d:%02d:%02d GMT\r\n", days[day.tm_wday],
                        day.tm_mday, months[day.tm_mon], day.tm_year + 1900, day.tm_hour,
                        day.tm_min, day.tm_sec);
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
    char *start = segment_data(segment);
    char *at = start + sprintf(start, "HTTP/1.1 %d %s\r\n", head->status, reason_of(head->status));
    at = put_date(at);
    if (head->is_chunked)
        at = stpcpy(at, "Transfer-Encoding: chunked\r\n");
    else if (head->length != RESPONSE_LENGTH_UNKNOWN)
        at += sprintf(at, "Content-Length: %llu\r\n", (unsigned long long)head->length);
    at = put_headers(at, head->headers);
    at = put_headers(at, head->more_headers);
    segment_trim(segment, (size_t)(at - start));
    return segment;
}
