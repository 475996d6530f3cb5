/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a ClientHello (RFC 8446, 4.1.2); see tls_hello.h. */
#include "egress/tls_hello.h"

#include "base/auto.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { RECORD_HEAD = 5, HANDSHAKE = 22, CLIENT_HELLO = 1, MESSAGE_HEAD = 4, MAX_RECORD = 16384 };
enum { EXTENSION_NAME = 0, EXTENSION_ECH = 0xfe0d, NAME_HOST = 0 };

struct reader {
    const unsigned char *bytes;
    size_t left;
    bool is_bad;
};

static unsigned read_number(struct reader *reader, size_t width)
{
    unsigned value = 0;

    if (reader->left < width) {
        reader->is_bad = true;
        reader->left = 0;
        return 0;
    }
    for (size_t i = 0; i < width; i++)
        value = value << 8 | reader->bytes[i];
    reader->bytes += width;
    reader->left -= width;
    return value;
}

/* A part with its length before it. */
static struct reader read_part(struct reader *reader, size_t width)
{
    size_t length = read_number(reader, width);
    struct reader part = {.bytes = reader->bytes, .left = length};

    if (reader->is_bad || reader->left < length) {
        reader->is_bad = true;
        return (struct reader){0};
    }
    reader->bytes += length;
    reader->left -= length;
    return part;
}

/* The list of names: exactly one, of a host. */
static bool read_names(struct reader extension, struct tls_hello *out)
{
    struct reader list = read_part(&extension, 2);

    if (extension.is_bad || extension.left)
        return false;
    unsigned kind = read_number(&list, 1);
    struct reader name = read_part(&list, 2);
    if (list.is_bad || list.left || kind != NAME_HOST)
        return false;
    if (!policy_fold_name((const char *)name.bytes, name.left, out->name)) {
        out->name[0] = '\0';
        out->has_bad_name = true;
    }
    return true;
}

static bool read_extensions(struct reader list, struct tls_hello *out)
{
    bool has_name = false;

    while (list.left) {
        unsigned kind = read_number(&list, 2);
        struct reader extension = read_part(&list, 2);
        if (list.is_bad)
            return false;
        if (kind == EXTENSION_NAME) {
            if (has_name || !read_names(extension, out))
                return false;
            has_name = true;
        }
        out->has_ech |= kind == EXTENSION_ECH;
    }
    return true;
}

static bool read_body(struct reader body, struct tls_hello *out)
{
    (void)read_number(&body, 2); // version
    for (int i = 0; i < 8; i++)
        (void)read_number(&body, 4); // random
    (void)read_part(&body, 1);       // session
    (void)read_part(&body, 2);       // ciphers
    (void)read_part(&body, 1);       // compression
    if (body.is_bad)
        return false;
    if (!body.left)
        return true; // an old one
    struct reader extensions = read_part(&body, 2);
    return !body.is_bad && !body.left && read_extensions(extensions, out);
}

/* Puts the contents of records after each other; 0 in *need: all of the hello is there. */
static enum tls_hello_state join(const unsigned char *bytes, size_t length, unsigned char *out,
                                 size_t *joined)
{
    size_t need = MESSAGE_HEAD;

    *joined = 0;
    while (*joined < need) {
        if (length && bytes[0] != HANDSHAKE)
            return TLS_HELLO_BAD;
        if (length > 1 && bytes[1] != 3)
            return TLS_HELLO_BAD;
        if (length < RECORD_HEAD)
            return TLS_HELLO_MORE;
        size_t record = (size_t)bytes[3] << 8 | bytes[4];
        if (record == 0 || record > MAX_RECORD)
            return TLS_HELLO_BAD;
        size_t there = length - RECORD_HEAD < record ? length - RECORD_HEAD : record;
        memcpy(out + *joined, bytes + RECORD_HEAD, there);
        *joined += there;
        if (*joined && out[0] != CLIENT_HELLO)
            return TLS_HELLO_BAD;
        if (*joined >= MESSAGE_HEAD)
            need = MESSAGE_HEAD + ((size_t)out[1] << 16 | (size_t)out[2] << 8 | out[3]);
        if (need > TLS_HELLO_MAX)
            return TLS_HELLO_BAD;
        if (*joined < need && there < record)
            return TLS_HELLO_MORE;
        bytes += RECORD_HEAD + there;
        length -= RECORD_HEAD + there;
    }
    *joined = need;
    return TLS_HELLO_READ;
}

enum tls_hello_state tls_hello_read(const unsigned char *bytes, size_t length,
                                    struct tls_hello *out)
{
    size_t joined;

    *out = (struct tls_hello){0};
    if (length > TLS_HELLO_MAX)
        length = TLS_HELLO_MAX;
    autofree unsigned char *message = xcalloc(1, length + 1);
    enum tls_hello_state state = join(bytes, length, message, &joined);
    if (state == TLS_HELLO_MORE && length == TLS_HELLO_MAX)
        return TLS_HELLO_BAD;
    if (state != TLS_HELLO_READ)
        return state;
    const struct reader body = {.bytes = message + MESSAGE_HEAD, .left = joined - MESSAGE_HEAD};
    return read_body(body, out) ? TLS_HELLO_READ : TLS_HELLO_BAD;
}
