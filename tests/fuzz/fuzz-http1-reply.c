/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the reader of answers that servers in sandboxes give: the same bytes, whole and cut into pieces, must give the same answers or the
 * same refusal, and what is told of a head can be written into another. The first byte: which of the requests were HEAD.
 */
#include "net/http1_reply.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t hash; // of all heads, bodies and ends
    unsigned heads, ends;
    bool is_open;    // a head came, and its end did not
    bool is_upgrade; // nothing is read behind it
    bool is_bodiless, is_to_head, has_length, is_refused;
    uint64_t left; // of the body, where its length was told
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void add(struct seen *seen, const void *data, size_t length)
{
    for (size_t i = 0; i < length; i++)
        seen->hash = (seen->hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
}

static void add_text(struct seen *seen, const char *text)
{
    check(!strpbrk(text, "\r\n"));
    add(seen, text, strlen(text) + 1);
}

static void on_head(void *owner, const struct http1_reply_head *head)
{
    struct seen *seen = owner;

    check(head->status >= 100 && head->status <= 999 && head->header_count <= REPLY_MAX_HEADERS);
    check(!seen->is_upgrade);
    check(!seen->is_open);
    seen->heads++;
    add(seen, &head->status, sizeof head->status);
    add(seen, &head->length, sizeof head->length);
    add(seen, &head->keeps_alive, sizeof head->keeps_alive);
    add_text(seen, head->reason);
    for (size_t i = 0; i < head->header_count; i++) {
        check(*head->headers[i].name && !strchr(head->headers[i].name, ':'));
        add_text(seen, head->headers[i].name);
        add_text(seen, head->headers[i].value);
    }
    seen->is_upgrade = head->status == 101;
    seen->is_open = head->status >= 200 || seen->is_upgrade;
    seen->is_bodiless = head->is_bodiless;
    seen->has_length = head->has_length;
    seen->left = head->length;
    check(head->is_bodiless || (!seen->is_to_head && seen->is_open));
}

static void on_body(void *owner, const char *data, size_t length)
{
    struct seen *seen = owner;

    check(seen->is_open && !seen->is_bodiless);
    check(!seen->has_length || length <= seen->left);
    seen->left -= seen->has_length ? length : 0;
    add(seen, data, length);
}

static void on_end(void *owner)
{
    struct seen *seen = owner;

    check(seen->is_open);
    check(seen->is_bodiless || !seen->has_length || seen->left == 0);
    seen->is_open = false;
    seen->ends++;
    add(seen, ".", 1);
}

static const struct http1_reply_events events = {on_head, on_body, on_end};

static void expect(struct http1_reply *reply, struct seen *seen, unsigned which)
{
    seen->is_to_head = which >> seen->ends % 8 & 1;
    http1_reply_expect(reply, seen->is_to_head);
}

static struct seen parse(const uint8_t *data, size_t size, size_t step, unsigned which)
{
    struct seen seen = {.hash = 0xcbf29ce484222325u};
    struct http1_reply reply;

    http1_reply_init(&reply, &events, &seen);
    expect(&reply, &seen, which);
    for (size_t at = 0; at < size && !seen.is_upgrade;) {
        size_t part = size - at < step ? size - at : step;
        unsigned ends = seen.ends;
        ssize_t used = http1_reply_feed(&reply, (const char *)data + at, part);

        seen.is_refused = used == REPLY_MALFORMED;
        if (seen.is_refused)
            break;
        check(used > 0 && used <= (ssize_t)part);
        check(used == (ssize_t)part || seen.ends > ends);
        at += (size_t)used;
        if (seen.ends > ends && !seen.is_upgrade)
            expect(&reply, &seen, which);
    }
    unsigned ends = seen.ends;
    check(http1_reply_finish(&reply) == (seen.ends > ends));
    http1_reply_clear(&reply);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    unsigned which = data[0] == 'H' ? 0xffu : data[0] == 'G' ? 0 : data[0];
    struct seen whole = parse(data + 1, size - 1, size, which);
    struct seen pieces = parse(data + 1, size - 1, data[1] % 13 + 2u, which);
    struct seen bytes = parse(data + 1, size - 1, 1, which);

    check(whole.is_refused == pieces.is_refused && whole.is_refused == bytes.is_refused);
    check(whole.heads == pieces.heads && whole.heads == bytes.heads);
    check(whole.ends == pieces.ends && whole.ends == bytes.ends);
    check(whole.is_refused || (whole.hash == pieces.hash && whole.hash == bytes.hash));
    return 0;
}
