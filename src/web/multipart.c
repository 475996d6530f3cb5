/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies in parts; see multipart.h. */
#include "web/multipart.h"

#include "base/buffer.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum place {
    IN_PREAMBLE, // before the first boundary
    AT_BOUNDARY, // behind one: a line break begins a part, "--" ends all
    IN_HEAD,
    IN_BYTES,
    IN_EPILOGUE,
};

struct multipart {
    const struct multipart_events *events;
    void *data;
    char mark[MULTIPART_BOUNDARY + 5]; // "\r\n--" and the boundary
    size_t mark_length;
    enum place place;
    unsigned n_parts;
    struct buffer held; // what cannot be told yet: the beginning of a mark, or of a head
};

// ---- the boundary ----

static const char *find_boundary(const char *type, size_t *length)
{
    static const char name[] = "boundary=";
    const char *at = strcasestr(type, name);

    if (!at)
        return NULL;
    at += sizeof name - 1;
    if (*at == '"') {
        *length = strcspn(++at, "\"");
        return at[*length] ? at : NULL;
    }
    *length = strcspn(at, "; \t");
    return at;
}

int multipart_new(const char *content_type, const struct multipart_events *events, void *data,
                  struct multipart **out, struct error *err)
{
    size_t length = 0;
    const char *boundary = find_boundary(content_type, &length);

    if (!boundary || length == 0 || length > MULTIPART_BOUNDARY || memchr(boundary, '\r', length) ||
        memchr(boundary, '\n', length))
        return error_set(err, ERROR_INVALID,
                         "the Content-Type has no boundary of 1 to %d characters",
                         MULTIPART_BOUNDARY);
    struct multipart *multipart = xnew(struct multipart);
    multipart->events = events;
    multipart->data = data;
    memcpy(multipart->mark, "\r\n--", 4);
    memcpy(multipart->mark + 4, boundary, length);
    multipart->mark_length = 4 + length;
    // The first boundary has no line break before it.
    struct error ignored = {0};
    (void)buffer_add(&multipart->held, "\r\n", 2, &ignored);
    *out = multipart;
    return 0;
}

void multipart_free(struct multipart *multipart)
{
    if (!multipart)
        return;
    buffer_clear(&multipart->held);
    free(multipart);
}

// ---- heads ----

/* What browsers write for what a quoted name cannot hold. */
static void decode_name(char *text)
{
    static const struct {
        const char *escape;
        char character;
    } escapes[] = {{"%22", '"'}, {"%0D", '\r'}, {"%0A", '\n'}};
    char *to = text;

    for (const char *at = text; *at;) {
        size_t i = 0;
        while (i < 3 && strncasecmp(at, escapes[i].escape, 3) != 0)
            i++;
        if (i < 3) {
            *to++ = escapes[i].character;
            at += 3;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

/* The value of `name` in "form-data; name=\"a\"; filename=\"b\"", ended in place; NULL: none. */
static char *find_parameter(char *line, const char *name)
{
    size_t length = strlen(name);
    char *found = NULL;

    for (char *at = strchr(line, ';'); at && !found; at = strchr(at, ';')) {
        at += 1 + strspn(at + 1, " \t");
        bool is_it = strncasecmp(at, name, length) == 0 && at[length] == '=';
        char *value = strchr(at, '=');
        if (!value)
            break;
        bool is_quoted = value[1] == '"';
        value += 1 + is_quoted;
        char *end = value + strcspn(value, is_quoted ? "\"" : "; \t");
        if (is_it) {
            found = value;
            *end = '\0';
            break;
        }
        at = *end == '"' ? end + 1 : end;
    }
    return found;
}

static int begin_part(struct multipart *multipart, char *head, struct error *err)
{
    static const char header[] = "Content-Disposition:";
    struct multipart_part part = {.name = ""};

    for (char *line = head; line && *line;) {
        char *end = strstr(line, "\r\n");
        if (end)
            *end = '\0';
        if (strncasecmp(line, header, sizeof header - 1) == 0) {
            char *copy = xstrdup(line);
            char *name = find_parameter(line, "name");
            char *filename = find_parameter(copy, "filename");
            if (name)
                decode_name(name);
            if (filename)
                decode_name(filename);
            part = (struct multipart_part){name ? name : "", filename};
            int result = multipart->events->on_part(multipart->data, &part, err);
            free(copy);
            return result;
        }
        line = end ? end + 2 : NULL;
    }
    return error_set(err, ERROR_INVALID, "part %u of the body has no Content-Disposition",
                     multipart->n_parts);
}

// ---- reading ----

static void drop(struct buffer *held, size_t length)
{
    memmove(held->data, held->data + length, held->length - length);
    held->length -= length;
    held->data[held->length] = '\0';
}

/* Where the mark is, or what of it may have begun at the end; the whole length when neither. */
static size_t find_mark(const struct multipart *multipart, const char *data, size_t length,
                        bool *is_whole)
{
    const char *at = memmem(data, length, multipart->mark, multipart->mark_length);

    *is_whole = at != NULL;
    if (at)
        return (size_t)(at - data);
    size_t rest = length < multipart->mark_length - 1 ? length : multipart->mark_length - 1;
    while (rest > 0 && memcmp(data + length - rest, multipart->mark, rest) != 0)
        rest--;
    return length - rest;
}

/* What is before a mark, and the mark. Each: 1 went on, 0 more is needed, -1. */
static int pass_bytes(struct multipart *multipart, const char *data, size_t length, size_t *taken,
                      struct error *err)
{
    bool is_part = multipart->place == IN_BYTES, is_whole;

    *taken = find_mark(multipart, data, length, &is_whole);
    if (is_part && *taken && multipart->events->on_bytes(multipart->data, data, *taken, err) < 0)
        return -1;
    if (!is_whole)
        return 0;
    *taken += multipart->mark_length;
    multipart->place = AT_BOUNDARY;
    return is_part && multipart->events->on_part_end(multipart->data, err) < 0 ? -1 : 1;
}

static int take_bytes(struct multipart *multipart, struct error *err)
{
    size_t taken = 0;
    int result = pass_bytes(multipart, multipart->held.data, multipart->held.length, &taken, err);

    if (result >= 0)
        drop(&multipart->held, taken);
    return result;
}

static int take_boundary(struct multipart *multipart, struct error *err)
{
    struct buffer *held = &multipart->held;

    if (held->length < 2)
        return 0;
    if (memcmp(held->data, "--", 2) == 0) {
        multipart->place = IN_EPILOGUE;
        return 1;
    }
    // Blanks may follow a boundary.
    size_t blanks = strspn(held->data, " \t");
    if (blanks > MULTIPART_HEAD)
        return error_set(err, ERROR_INVALID, "a boundary of the body does not end");
    if (held->length < blanks + 2)
        return 0;
    if (memcmp(held->data + blanks, "\r\n", 2) != 0)
        return error_set(err, ERROR_INVALID,
                         "a boundary of the body is not at the end of its line");
    drop(held, blanks + 2);
    if (++multipart->n_parts > MULTIPART_PARTS)
        return error_set(err, ERROR_LIMIT, "the body has more than %d parts", MULTIPART_PARTS);
    multipart->place = IN_HEAD;
    return 1;
}

static int take_head(struct multipart *multipart, struct error *err)
{
    struct buffer *held = &multipart->held;
    char *end = memmem(held->data, held->length, "\r\n\r\n", 4);
    bool is_empty = held->length >= 2 && memcmp(held->data, "\r\n", 2) == 0;

    if (is_empty || (end && memchr(held->data, 0, (size_t)(end - held->data))))
        return error_set(err, ERROR_INVALID, "part %u of the body has no head", multipart->n_parts);
    if (end ? (size_t)(end - held->data) > MULTIPART_HEAD : held->length > MULTIPART_HEAD)
        return error_set(err, ERROR_LIMIT, "the head of part %u is longer than %u bytes",
                         multipart->n_parts, MULTIPART_HEAD);
    if (!end)
        return 0;
    *end = '\0';
    size_t length = (size_t)(end - held->data);
    if (begin_part(multipart, held->data, err) < 0)
        return -1;
    drop(held, length + 4);
    multipart->place = IN_BYTES;
    return 1;
}

static int step(struct multipart *multipart, struct error *err)
{
    switch (multipart->place) {
    case AT_BOUNDARY:
        return take_boundary(multipart, err);
    case IN_HEAD:
        return take_head(multipart, err);
    case IN_EPILOGUE:
        multipart->held.length = 0;
        return 0;
    default:
        return take_bytes(multipart, err);
    }
}

static bool is_between_marks(const struct multipart *multipart)
{
    return multipart->place == IN_BYTES || multipart->place == IN_PREAMBLE;
}

/* Through what is held: no more than it takes to tell what that is. */
static int feed_held(struct multipart *multipart, const char **at, size_t *length,
                     struct error *err)
{
    size_t most = is_between_marks(multipart) ? multipart->mark_length : MULTIPART_HEAD;
    size_t piece = *length < most ? *length : most;
    int went_on;

    if (buffer_add(&multipart->held, *at, piece, err) < 0)
        return -1;
    *at += piece;
    *length -= piece;
    do
        went_on = step(multipart, err);
    while (went_on > 0);
    return went_on;
}

int multipart_feed(struct multipart *multipart, const void *bytes, size_t length, struct error *err)
{
    const char *at = bytes;

    while (length > 0) {
        size_t taken = 0;
        if (is_between_marks(multipart) && multipart->held.length == 0) { // most of all bytes
            if (pass_bytes(multipart, at, length, &taken, err) < 0)
                return -1;
            at += taken;
            length -= taken;
        }
        if (taken == 0 && feed_held(multipart, &at, &length, err) < 0)
            return -1;
    }
    return 0;
}

int multipart_finish(struct multipart *multipart, struct error *err)
{
    if (multipart->place == IN_EPILOGUE)
        return 0;
    return error_set(err, ERROR_INVALID, "the body is cut off before its last boundary");
}
