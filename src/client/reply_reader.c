/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of answers; see reply_reader.h. */
#include "client/reply_reader.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TRAILER_MAX ((size_t)16 << 10)
#define EARLY_MAX 100 // answers before the answer

void reply_reader_init(struct reply_reader *reader, bool is_head_request)
{
    *reader = (struct reply_reader){.has_no_body = is_head_request};
    buffer_init(&reader->head, REPLY_HEAD_MAX);
}

void reply_reader_clear(struct reply_reader *reader)
{
    buffer_clear(&reader->head);
}

static int refuse(struct error *err, const char *what)
{
    return error_set(err, ERROR_INVALID, "the answer is not HTTP: %s", what);
}

const char *reply_reader_header(const struct reply_reader *reader, const char *name, char *text,
                                size_t size)
{
    const char *line = reader->head.data ? strstr(reader->head.data, "\r\n") : NULL;
    size_t length = strlen(name);

    while (line) {
        line += 2;
        const char *end = strstr(line, "\r\n");
        if (!end)
            return NULL;
        if ((size_t)(end - line) > length && line[length] == ':' &&
            strncasecmp(line, name, length) == 0) {
            const char *value = line + length + 1;
            while (value < end && (*value == ' ' || *value == '\t'))
                value++;
            while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
            (void)snprintf(text, size, "%.*s", (int)(end - value), value);
            return text;
        }
        line = end;
    }
    return NULL;
}

static bool has_token(const char *list, const char *token)
{
    size_t length = strlen(token);

    while (*list) {
        list += strspn(list, " \t,");
        size_t word = strcspn(list, " \t,;");
        if (word == length && strncasecmp(list, token, length) == 0)
            return true;
        list += word;
        list += strcspn(list, ",");
    }
    return false;
}

/* Digits alone, and not more than fit. */
static int read_length(const char *text, uint64_t *out)
{
    uint64_t number = 0;

    if (!*text || text[strspn(text, "0123456789")] || strlen(text) > 18)
        return -1;
    for (; *text; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    *out = number;
    return 0;
}

static int read_status(struct reply_reader *reader, struct error *err)
{
    const char *line = reader->head.data;

    if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ' ||
        strspn(line + 9, "0123456789") != 3 || (line[12] != ' ' && line[12] != '\r'))
        return refuse(err, "no status line");
    reader->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
    reader->is_last = line[7] == '0';
    return reader->status >= 100 ? 0 : refuse(err, "no status line");
}

/* How the body comes (RFC 9112, 6.3). */
static int choose_body(struct reply_reader *reader, struct error *err)
{
    char text[128];

    if (reply_reader_header(reader, "connection", text, sizeof text) && has_token(text, "close"))
        reader->is_last = true;
    if (reader->status == 101) {
        if (!reader->may_switch)
            return refuse(err, "it changes to a protocol that nobody asked for");
        reader->state = REPLY_SWITCHED;
        return 0;
    }
    if (reader->status < 200) { // 100 Continue and the like: the answer is still to come
        bool is_head = reader->has_no_body, may_switch = reader->may_switch;
        unsigned n_early = reader->n_early + 1;
        if (n_early > EARLY_MAX)
            return refuse(err, "it never begins");
        reply_reader_clear(reader);
        reply_reader_init(reader, is_head);
        reader->n_early = n_early;
        reader->may_switch = may_switch;
        return 0;
    }
    bool is_chunked = false;
    if (reply_reader_header(reader, "transfer-encoding", text, sizeof text)) {
        if (strcasecmp(text, "chunked") != 0)
            return refuse(err, "a coding that nobody asked for");
        is_chunked = true;
    }
    if (reply_reader_header(reader, "content-length", text, sizeof text)) {
        if (is_chunked || read_length(text, &reader->length) < 0)
            return refuse(err, "its length is no number");
        reader->has_length = true;
        reader->left = reader->length;
    }
    if (reader->has_no_body || reader->status == 204 || reader->status == 304)
        reader->state = REPLY_DONE;
    else if (is_chunked)
        reader->state = REPLY_CHUNK_SIZE;
    else if (reader->has_length)
        reader->state = reader->left ? REPLY_LENGTH : REPLY_DONE;
    else
        reader->state = REPLY_UNTIL_CLOSE;
    return 0;
}

static int take_head(struct reply_reader *reader, const char *data, size_t length, size_t *used,
                     struct error *err)
{
    size_t before = reader->head.length;
    size_t room = REPLY_HEAD_MAX - before;
    size_t part = length < room ? length : room;

    if (part == 0)
        return refuse(err, "its head is longer than 64 KiB");
    if (buffer_add(&reader->head, data, part, err) < 0)
        return -1;
    size_t shown = reader->head.length < 5 ? reader->head.length : 5;
    if (memcmp(reader->head.data, "HTTP/", shown) != 0)
        return refuse(err, "no status line");
    size_t from = before > 3 ? before - 3 : 0;
    const char *end = memmem(reader->head.data + from, reader->head.length - from, "\r\n\r\n", 4);
    size_t of_head = end ? (size_t)(end - reader->head.data) : reader->head.length;
    if (memchr(reader->head.data, '\0', of_head))
        return refuse(err, "a NUL in its head");
    if (!end) {
        *used = part;
        return 0;
    }
    size_t whole = (size_t)(end + 4 - reader->head.data);
    *used = whole - before;
    reader->head.length = whole;
    reader->head.data[whole] = '\0';
    return read_status(reader, err) < 0 ? -1 : choose_body(reader, err);
}

/* 1 when a line is whole, without its CRLF, in reader->line; 0. */
static int take_line(struct reply_reader *reader, const char *data, size_t length, size_t *used,
                     struct error *err)
{
    for (size_t i = 0; i < length; i++) {
        *used = i + 1;
        if (data[i] == '\n') {
            if (reader->line_length && reader->line[reader->line_length - 1] == '\r')
                reader->line_length--;
            reader->line[reader->line_length] = '\0';
            reader->line_length = 0;
            return 1;
        }
        if (reader->line_length + 1 >= sizeof reader->line) {
            if (reader->state != REPLY_TRAILER)
                return refuse(err, "the line of a chunk is too long");
            continue; // of a trailer nobody wants to know anything
        }
        reader->line[reader->line_length++] = data[i];
    }
    return 0;
}

static int read_chunk_size(struct reply_reader *reader, struct error *err)
{
    size_t digits = strspn(reader->line, "0123456789abcdefABCDEF");
    uint64_t size = 0;

    if (digits == 0 || digits > 15 ||
        (reader->line[digits] && reader->line[digits] != ';' && reader->line[digits] != ' '))
        return refuse(err, "the size of a chunk is no number");
    for (size_t i = 0; i < digits; i++) {
        char c = reader->line[i];
        unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
        size = size * 16 + digit;
    }
    reader->left = size;
    reader->state = size ? REPLY_CHUNK : REPLY_TRAILER;
    return 0;
}

static void take_body(struct reply_reader *reader, const char *data, size_t length, size_t *used,
                      const char **body, size_t *body_length)
{
    size_t part =
        reader->state == REPLY_UNTIL_CLOSE || length < reader->left ? length : (size_t)reader->left;

    *used = *body_length = part;
    *body = data;
    if (reader->state == REPLY_UNTIL_CLOSE)
        return;
    reader->left -= part;
    if (reader->left == 0)
        reader->state = reader->state == REPLY_CHUNK ? REPLY_CHUNK_END : REPLY_DONE;
}

int reply_reader_take(struct reply_reader *reader, const char *data, size_t length, size_t *used,
                      const char **body, size_t *body_length, struct error *err)
{
    int whole;

    *used = *body_length = 0;
    *body = data;
    if (length == 0)
        return 0;
    switch (reader->state) {
    case REPLY_HEAD:
        return take_head(reader, data, length, used, err);
    case REPLY_LENGTH:
    case REPLY_CHUNK:
    case REPLY_UNTIL_CLOSE:
        take_body(reader, data, length, used, body, body_length);
        return 0;
    case REPLY_CHUNK_SIZE:
        whole = take_line(reader, data, length, used, err);
        return whole == 1 ? read_chunk_size(reader, err) : whole;
    case REPLY_CHUNK_END:
        whole = take_line(reader, data, length, used, err);
        if (whole == 1 && reader->line[0])
            return refuse(err, "a chunk is longer than it said");
        if (whole == 1)
            reader->state = REPLY_CHUNK_SIZE;
        return whole < 0 ? -1 : 0;
    case REPLY_TRAILER:
        whole = take_line(reader, data, length, used, err);
        reader->trailer_bytes += *used;
        if (reader->trailer_bytes > TRAILER_MAX)
            return refuse(err, "too much after its end");
        if (whole == 1 && !reader->line[0])
            reader->state = REPLY_DONE;
        return whole < 0 ? -1 : 0;
    case REPLY_SWITCHED:
    case REPLY_DONE:
        break;
    }
    return 0;
}

int reply_reader_end(struct reply_reader *reader, bool is_cut, struct error *err)
{
    if (reader->state == REPLY_UNTIL_CLOSE && !is_cut)
        reader->state = REPLY_DONE;
    if (reader->state == REPLY_DONE)
        return 0;
    if (reader->state == REPLY_HEAD && reader->head.length == 0)
        return error_set(err, ERROR_GONE, "the server closed the connection without an answer");
    return error_set(err, ERROR_GONE,
                     "the server closed the connection in the middle of its answer");
}
