/* SPDX-License-Identifier: Apache-2.0 */
/* How a JSON answer looks on the wire; see representation.h. */
#include "web/representation.h"

#include "base/auto.h"
#include "base/mem.h"
#include "base/thread.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define TAG_BYTES 10 // as hexadecimal, with quotes and "-gzip": less than REPRESENTATION_TAG

void representation_init(struct representation *representation, const struct http_request *request)
{
    const char *tags = http_request_header(request, "If-None-Match");

    *representation = (struct representation){
        .is_get = request->is_head || strcmp(request->method, "GET") == 0,
        .takes_gzip = representation_takes_gzip(http_request_header(request, "Accept-Encoding")),
    };
    if (representation->is_get && tags)
        representation->if_none_match = xstrdup(tags);
}

void representation_clear(struct representation *representation)
{
    free(representation->if_none_match);
}

/* Whether the parameters of an item say "q=0", in any spelling. */
static bool is_refused(const char *parameters, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        if ((parameters[i] == 'q' || parameters[i] == 'Q') && parameters[i + 1] == '=')
            return strtod(parameters + i + 2, NULL) <= 0;
    }
    return false;
}

bool representation_takes_gzip(const char *accept)
{
    while (accept && *accept) {
        accept += strspn(accept, " \t,");
        size_t whole = strcspn(accept, ","), name = strcspn(accept, " \t,;");
        bool is_gzip =
            (name == 4 && strncasecmp(accept, "gzip", 4) == 0) || (name == 1 && accept[0] == '*');
        if (is_gzip)
            return !is_refused(accept + name, whole - name);
        accept += whole;
    }
    return false;
}

/* Two tags are of one thing, whatever coding the second was sent with: "abc" and "abc-gzip". */
static bool is_tag(const char *text, size_t length, const char *tag)
{
    size_t bare = strlen(tag) - 1; // without the quote at its end

    if (length >= 2 && strncmp(text, "W/", 2) == 0) {
        text += 2;
        length -= 2;
    }
    if (length <= bare || strncmp(text, tag, bare) != 0)
        return false;
    return (length == bare + 1 && text[bare] == '"') ||
           (length == bare + 6 && strncmp(text + bare, "-gzip\"", 6) == 0);
}

bool representation_has_tag(const char *list, const char *tag)
{
    while (*list) {
        list += strspn(list, " \t,");
        size_t length = strcspn(list, " \t,");
        if ((length == 1 && *list == '*') || is_tag(list, length, tag))
            return true;
        list += length;
    }
    return false;
}

static const char *header_of(const struct http_header *headers, const char *name)
{
    for (; headers && headers->name; headers++) {
        if (strcasecmp(headers->name, name) == 0)
            return headers->value;
    }
    return NULL;
}

static void make_tag(const struct response_answer *answer, char tag[REPRESENTATION_TAG])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    char *at = tag;

    (void)SHA256(answer->body, answer->length, hash);
    *at++ = '"';
    for (unsigned i = 0; i < TAG_BYTES; i++, at += 2)
        (void)snprintf(at, 3, "%02x", hash[i]);
    (void)stpcpy(at, "\"");
}

/* A window of 8 KiB: JSON repeats itself in short distances, and the memory is made for each answer. */
#define WINDOW_BITS 13
#define MEMORY_LEVEL 6
#define GZIP_FORMAT 16
#define LEVEL 4

/* NULL when that would not make it shorter. */
static void *compress_body(const struct response_answer *answer, size_t *length)
{
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)answer->body,
                       .avail_in = (unsigned)answer->length};

    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, WINDOW_BITS + GZIP_FORMAT, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    autofree char *out = xcalloc(1, answer->length);
    stream.next_out = (unsigned char *)out;
    stream.avail_out = (unsigned)answer->length;
    bool is_whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    *length = stream.total_out;
    (void)deflateEnd(&stream);
    return is_whole ? take(out) : NULL;
}

static bool is_worth_it(const struct representation *representation,
                        const struct response_answer *answer)
{
    size_t most = thread_is_loop() ? REPRESENTATION_GZIP_LOOP : REPRESENTATION_GZIP_MOST;

    return representation->takes_gzip && answer->length >= REPRESENTATION_GZIP_FROM &&
           answer->length <= most;
}

/* The answer's own headers and as many more; what has no room is left out. */
static void add_header(struct representation *representation, const char *name, const char *value)
{
    unsigned at = 0;

    while (at < REPRESENTATION_HEADERS - 1 && representation->headers[at].name)
        at++;
    if (at < REPRESENTATION_HEADERS - 1)
        representation->headers[at] = (struct http_header){name, value};
}

static void take_headers(struct representation *representation, struct response_answer *answer)
{
    for (const struct http_header *header = answer->headers; header && header->name; header++)
        add_header(representation, header->name, header->value);
    answer->headers = representation->headers;
}

static void encode(struct representation *representation, struct response_answer *answer)
{
    size_t length, tag = strlen(representation->tag);
    void *body = is_worth_it(representation, answer) ? compress_body(answer, &length) : NULL;

    if (!body)
        return;
    answer->body = answer->owned = body;
    answer->length = length;
    add_header(representation, "Content-Encoding", "gzip");
    if (tag) // another coding, so another tag
        (void)snprintf(representation->tag + tag - 1, sizeof representation->tag - tag + 1,
                       "-gzip\"");
}

void representation_apply(struct representation *representation, struct response_answer *answer)
{
    const char *type = header_of(answer->headers, "Content-Type");
    bool is_json = type && strcmp(type, "application/json") == 0;
    const char *own = header_of(answer->headers, "ETag");

    if (!is_json || answer->status < 200 || answer->status >= 300 ||
        header_of(answer->headers, "Content-Encoding"))
        return;
    take_headers(representation, answer);
    add_header(representation, "Vary", "Accept-Encoding");
    if (representation->is_get && answer->status == 200) {
        if (!own) {
            make_tag(answer, representation->tag);
            add_header(representation, "ETag", representation->tag);
        }
        if (representation->if_none_match &&
            representation_has_tag(representation->if_none_match,
                                   own ? own : representation->tag)) {
            answer->status = 304;
            answer->length = 0;
            return;
        }
    }
    encode(representation, answer);
}
