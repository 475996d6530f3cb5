/* SPDX-License-Identifier: Apache-2.0 */
/* Reading heads; see http_head.h. */
#include "egress/http_head.h"

#include "base/auto.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define METHOD 19 // characters, at most

struct text {
    const char *at;
    size_t length;
};

static bool is_token_char(unsigned char c)
{
    return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool text_is(struct text text, const char *word)
{
    return text.length == strlen(word) && strncasecmp(text.at, word, text.length) == 0;
}

static struct text trim(struct text text)
{
    while (text.length && (*text.at == ' ' || *text.at == '\t')) {
        text.at++;
        text.length--;
    }
    while (text.length && (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t'))
        text.length--;
    return text;
}

static bool is_clean(struct text line)
{
    for (size_t i = 0; i < line.length; i++) {
        unsigned char c = (unsigned char)line.at[i];
        if ((c < 32 && c != '\t') || c == 127)
            return false;
    }
    return true;
}

/* The next line, which ends with CR LF and with nothing else; false: there is none, or *problem. */
static bool next_line(const char *bytes, size_t length, size_t *at, struct text *line,
                      const char **problem)
{
    const char *begin = bytes + *at;
    const char *end = memchr(begin, '\n', length - *at);

    if (!end)
        return false;
    if (end == begin || end[-1] != '\r') {
        *problem = "a line that does not end with CR LF";
        return false;
    }
    *line = (struct text){begin, (size_t)(end - begin) - 1};
    *at += (size_t)(end - begin) + 1;
    if (is_clean(*line))
        return true;
    *problem = "a control character";
    return false;
}

// ---- the host ----

static bool read_address(struct text host, uint32_t *out)
{
    uint32_t address = 0;
    size_t i = 0;

    for (unsigned part = 0; part < 4; part++) {
        unsigned value = 0, digits = 0;
        for (; i < host.length && isdigit((unsigned char)host.at[i]) && digits < 4; i++, digits++)
            value = value * 10 + (unsigned)(host.at[i] - '0');
        if (!digits || digits > 3 || value > 255)
            return false;
        address = address << 8 | value;
        if (part < 3 && (i >= host.length || host.at[i++] != '.'))
            return false;
    }
    *out = address;
    return i == host.length;
}

/* "example.com:8080" */
static void take_host(struct text host, struct http_head *out)
{
    const char *colon = memchr(host.at, ':', host.length);

    out->name[0] = '\0';
    out->address = 0;
    if (colon) {
        struct text port = {colon + 1, host.length - (size_t)(colon - host.at) - 1};
        host.length = (size_t)(colon - host.at);
        for (size_t i = 0; i < port.length; i++)
            out->has_bad_name |= !isdigit((unsigned char)port.at[i]);
    }
    if (read_address(host, &out->address))
        return;
    if (!policy_fold_name(host.at, host.length, out->name)) {
        out->name[0] = '\0';
        out->has_bad_name = true;
    }
}

// ---- requests ----

struct head {
    struct http_head *out;
    unsigned hosts, lengths, codings;
    struct text authority; // of an absolute target
    bool is_old;           // HTTP/1.0
};

static const char *read_request_line(struct text line, struct head *head)
{
    size_t method = 0;

    while (method < line.length && is_token_char((unsigned char)line.at[method]))
        method++;
    if (!method || method > METHOD || method >= line.length || line.at[method] != ' ')
        return "no request of HTTP/1";
    struct text target = {line.at + method + 1, line.length - method - 1};
    const char *space = memchr(target.at, ' ', target.length);
    if (!space)
        return "no request of HTTP/1";
    struct text version = {space + 1, target.length - (size_t)(space - target.at) - 1};
    target.length = (size_t)(space - target.at);
    head->is_old = text_is(version, "HTTP/1.0");
    if (!head->is_old && !text_is(version, "HTTP/1.1"))
        return "no request of HTTP/1";
    if (text_is((struct text){line.at, method}, "CONNECT"))
        return "CONNECT";
    if (!target.length)
        return "no target";
    if (target.at[0] == '/' || text_is(target, "*"))
        return NULL;
    if (target.length < 7 || strncasecmp(target.at, "http://", 7) != 0)
        return "a target that is no path";
    head->authority = (struct text){target.at + 7, target.length - 7};
    for (size_t i = 0; i < head->authority.length; i++) {
        if (strchr("/?#", head->authority.at[i])) {
            head->authority.length = i;
            break;
        }
    }
    return NULL;
}

static const char *read_length(struct text value, struct head *head)
{
    uint64_t length = 0;

    if (head->lengths++ || !value.length || value.length > 18)
        return "a Content-Length that is not one number";
    for (size_t i = 0; i < value.length; i++) {
        if (!isdigit((unsigned char)value.at[i]))
            return "a Content-Length that is not one number";
        length = length * 10 + (uint64_t)(value.at[i] - '0');
    }
    head->out->content_length = length;
    return NULL;
}

static const char *read_header(struct text line, struct head *head)
{
    size_t name_length = 0;

    while (name_length < line.length && is_token_char((unsigned char)line.at[name_length]))
        name_length++;
    if (!name_length || name_length >= line.length || line.at[name_length] != ':')
        return "a header that is none"; // folded ones too
    struct text name = {line.at, name_length};
    struct text value =
        trim((struct text){line.at + name_length + 1, line.length - name_length - 1});
    if (text_is(name, "Host")) {
        if (head->hosts++)
            return "two Host headers";
        take_host(value, head->out);
    } else if (text_is(name, "Content-Length")) {
        return read_length(value, head);
    } else if (text_is(name, "Transfer-Encoding")) {
        if (head->codings++ || !text_is(value, "chunked"))
            return "a Transfer-Encoding that is not 'chunked'";
        head->out->is_chunked = true;
    } else if (text_is(name, "Upgrade")) {
        head->out->is_upgrade = true;
    }
    return NULL;
}

/* What only the whole of it shows. */
static const char *check_head(struct head *head)
{
    struct http_head said = {0};

    if (head->codings && (head->lengths || head->is_old))
        return "two lengths of the body";
    if (!head->authority.length)
        return NULL;
    take_host(head->authority, &said);
    if (said.has_bad_name || (head->hosts && (strcmp(said.name, head->out->name) != 0 ||
                                              said.address != head->out->address)))
        return "a target of another host";
    (void)strcpy(head->out->name, said.name);
    head->out->address = said.address;
    return NULL;
}

static enum http_head_state bad(struct http_head *out, const char *problem)
{
    out->problem = problem;
    return HTTP_HEAD_BAD;
}

enum http_head_state http_head_read(const char *bytes, size_t length, struct http_head *out)
{
    struct head head = {.out = out};
    struct text line;
    const char *problem = NULL;
    size_t at = 0;

    *out = (struct http_head){0};
    for (size_t lines = 0; next_line(bytes, length, &at, &line, &problem); lines++) {
        if (at > HTTP_HEAD_MAX)
            return bad(out, "a head that is too long");
        if (lines == 0)
            problem = read_request_line(line, &head);
        else if (line.length)
            problem = read_header(line, &head);
        if (problem)
            return bad(out, problem);
        if (lines && !line.length) {
            problem = check_head(&head);
            out->length = at;
            return problem ? bad(out, problem) : HTTP_HEAD_READ;
        }
    }
    if (problem)
        return bad(out, problem);
    // No method is this long, and none has other bytes in it: say so before the rest comes.
    for (size_t i = 0; i < length && i <= METHOD && bytes[i] != ' '; i++) {
        if (i == METHOD || !is_token_char((unsigned char)bytes[i]))
            return bad(out, "no request of HTTP/1");
    }
    return length >= HTTP_HEAD_MAX ? bad(out, "a head that is too long") : HTTP_HEAD_MORE;
}

enum http_head_state http_status_read(const char *bytes, size_t length, struct http_head *out)
{
    *out = (struct http_head){0};
    const char *end = memmem(bytes, length, "\r\n\r\n", 4);
    if (!end)
        return length >= HTTP_HEAD_MAX ? bad(out, "a head that is too long") : HTTP_HEAD_MORE;
    if (strncmp(bytes, "HTTP/1.", 7) != 0 || bytes[8] != ' ' || !isdigit((unsigned char)bytes[9]) ||
        !isdigit((unsigned char)bytes[10]) || !isdigit((unsigned char)bytes[11]))
        return bad(out, "no answer of HTTP/1");
    out->status = (unsigned)((bytes[9] - '0') * 100 + (bytes[10] - '0') * 10 + (bytes[11] - '0'));
    out->length = (size_t)(end - bytes) + 4;
    return HTTP_HEAD_READ;
}

const char *http_header_find(const char *head, size_t length, const char *name,
                             size_t *value_length)
{
    const char *problem = NULL;
    struct text line;
    size_t at = 0;

    for (size_t lines = 0; next_line(head, length, &at, &line, &problem) && (line.length || !lines);
         lines++) {
        const char *colon = memchr(line.at, ':', line.length);
        if (!lines || !colon || !text_is((struct text){line.at, (size_t)(colon - line.at)}, name))
            continue;
        struct text value =
            trim((struct text){colon + 1, line.length - (size_t)(colon - line.at) - 1});
        *value_length = value.length;
        return value.at;
    }
    return NULL;
}

// ---- chunks ----

enum { SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER, TRAILER_LF, LAST_LF, ENDED };

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One byte outside the data; false: damaged. */
static bool step(struct http_chunks *chunks, char c)
{
    switch (chunks->state) {
    case SIZE:
        if (hex_of(c) >= 0) {
            if (++chunks->digits > 15)
                return false;
            chunks->left = chunks->left << 4 | (unsigned)hex_of(c);
            return true;
        }
        chunks->state = c == '\r' ? SIZE_LF : EXTENSION;
        return chunks->digits && (c == '\r' || c == ';');
    case EXTENSION:
        if (c == '\r')
            chunks->state = SIZE_LF;
        return ++chunks->line < 1024 && c != '\n';
    case SIZE_LF:
        chunks->line = chunks->digits = 0;
        chunks->state = chunks->left ? DATA : TRAILER;
        return c == '\n';
    case DATA_CR:
        chunks->state = DATA_LF;
        return c == '\r';
    case DATA_LF:
        chunks->state = SIZE;
        return c == '\n';
    case TRAILER:
        if (c == '\r')
            chunks->state = chunks->line ? TRAILER_LF : LAST_LF;
        return ++chunks->line < 8192 && c != '\n';
    case TRAILER_LF:
        chunks->line = 0;
        chunks->state = TRAILER;
        return c == '\n';
    case LAST_LF:
        chunks->state = ENDED;
        return c == '\n';
    default:
        return false;
    }
}

ptrdiff_t http_chunks_take(struct http_chunks *chunks, const char *bytes, size_t length,
                           bool *is_end)
{
    size_t at = 0;

    while (at < length && chunks->state != ENDED) {
        if (chunks->state == DATA) {
            size_t part = chunks->left < length - at ? (size_t)chunks->left : length - at;
            chunks->left -= part;
            at += part;
            if (!chunks->left)
                chunks->state = DATA_CR;
            continue;
        }
        if (!step(chunks, bytes[at++]))
            return -1;
    }
    *is_end = chunks->state == ENDED;
    return (ptrdiff_t)at;
}
