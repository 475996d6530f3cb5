/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of SFTP; see sftp_packet.h. */
#include "sftp/sftp_packet.h"

#include <string.h>

const char *const sftp_extension_names[SFTP_EXTENSIONS][2] = {
    [SFTP_POSIX_RENAME] = {"posix-rename@openssh.com", "1"},
    [SFTP_STATVFS] = {"statvfs@openssh.com", "2"},
    [SFTP_FSTATVFS] = {"fstatvfs@openssh.com", "2"},
    [SFTP_HARDLINK] = {"hardlink@openssh.com", "1"},
    [SFTP_FSYNC] = {"fsync@openssh.com", "1"},
    [SFTP_LSETSTAT] = {"lsetstat@openssh.com", "1"},
    [SFTP_LIMITS] = {"limits@openssh.com", "1"},
    [SFTP_EXPAND_PATH] = {"expand-path@openssh.com", "1"},
};

/*
 * What a request consists of, a letter for each part: p path, q another path, h handle, o offset, l length, f flags, a attributes,
 * d data, which is as long as it says.
 */
static const char *const shapes[SFTP_REQUESTS] = {
    [SFTP_OPEN] = "pfa",   [SFTP_CLOSE] = "h",    [SFTP_READ] = "hol",   [SFTP_WRITE] = "hod",
    [SFTP_LSTAT] = "p",    [SFTP_FSTAT] = "h",    [SFTP_SETSTAT] = "pa", [SFTP_FSETSTAT] = "ha",
    [SFTP_OPENDIR] = "p",  [SFTP_READDIR] = "h",  [SFTP_REMOVE] = "p",   [SFTP_MKDIR] = "pa",
    [SFTP_RMDIR] = "p",    [SFTP_REALPATH] = "p", [SFTP_STAT] = "p",     [SFTP_RENAME] = "pq",
    [SFTP_READLINK] = "p", [SFTP_SYMLINK] = "pq",
};
static const char *const extended_shapes[SFTP_EXTENSIONS] = {
    [SFTP_POSIX_RENAME] = "pq", [SFTP_STATVFS] = "p",     [SFTP_FSTATVFS] = "h",
    [SFTP_HARDLINK] = "pq",     [SFTP_FSYNC] = "h",       [SFTP_LSETSTAT] = "pa",
    [SFTP_LIMITS] = "",         [SFTP_EXPAND_PATH] = "p",
};

// ---- reading ----

struct rest {
    const unsigned char *at;
    size_t length;
};

static uint32_t number_at(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

uint32_t sftp_packet_length(const unsigned char bytes[4])
{
    uint32_t length = number_at(bytes);
    return length <= SFTP_PACKET_MAX ? length : 0;
}

static bool take_number(struct rest *rest, uint32_t *out)
{
    if (rest->length < 4)
        return false;
    *out = number_at(rest->at);
    rest->at += 4;
    rest->length -= 4;
    return true;
}

static bool take_large(struct rest *rest, uint64_t *out)
{
    uint32_t high, low;

    if (!take_number(rest, &high) || !take_number(rest, &low))
        return false;
    *out = (uint64_t)high << 32 | low;
    return true;
}

static bool take_text(struct rest *rest, struct sftp_text *out)
{
    uint32_t length;

    if (!take_number(rest, &length) || length > rest->length)
        return false;
    *out = (struct sftp_text){(const char *)rest->at, length};
    rest->at += length;
    rest->length -= length;
    return true;
}

static bool take_path(struct rest *rest, char out[SFTP_PATH_MAX])
{
    struct sftp_text text;

    if (!take_text(rest, &text) || text.length >= SFTP_PATH_MAX ||
        memchr(text.at, '\0', text.length))
        return false;
    memcpy(out, text.at, text.length);
    out[text.length] = '\0';
    return true;
}

static bool take_more(struct rest *rest)
{
    struct sftp_text name, value;
    uint32_t count;

    if (!take_number(rest, &count))
        return false;
    while (count--)
        if (!take_text(rest, &name) || !take_text(rest, &value))
            return false;
    return true;
}

static bool take_attributes(struct rest *rest, struct sftp_attributes *out)
{
    return take_number(rest, &out->flags) &&
           (!(out->flags & SFTP_HAS_SIZE) || take_large(rest, &out->size)) &&
           (!(out->flags & SFTP_HAS_IDS) ||
            (take_number(rest, &out->uid) && take_number(rest, &out->gid))) &&
           (!(out->flags & SFTP_HAS_MODE) || take_number(rest, &out->mode)) &&
           (!(out->flags & SFTP_HAS_TIMES) ||
            (take_number(rest, &out->accessed_at) && take_number(rest, &out->modified_at))) &&
           (!(out->flags & SFTP_HAS_MORE) || take_more(rest));
}

static bool take_part(struct rest *rest, char letter, struct sftp_request *out)
{
    switch (letter) {
    case 'p':
        return take_path(rest, out->path);
    case 'q':
        return take_path(rest, out->other);
    case 'h':
        return take_text(rest, &out->handle);
    case 'o':
        return take_large(rest, &out->offset);
    case 'l':
        return take_number(rest, &out->length);
    case 'f':
        return take_number(rest, &out->flags);
    case 'a':
        return take_attributes(rest, &out->attributes);
    default:
        return take_text(rest, &out->data);
    }
}

// What the extension that is named next consists of; NULL: it is not known, or is cut off.
static const char *take_extension(struct rest *rest, struct sftp_request *out)
{
    struct sftp_text name;

    out->extension = SFTP_EXTENSIONS;
    if (!take_text(rest, &name))
        return NULL;
    for (enum sftp_extension i = 0; i < SFTP_EXTENSIONS; i++)
        if (strlen(sftp_extension_names[i][0]) == name.length &&
            memcmp(sftp_extension_names[i][0], name.at, name.length) == 0) {
            out->extension = i;
            return extended_shapes[i];
        }
    return NULL;
}

static void forget(struct sftp_request *request)
{
    request->handle = request->data = (struct sftp_text){0};
    request->path[0] = request->other[0] = '\0'; // and not all of it, for each request
    request->flags = request->length = 0;
    request->offset = 0;
    request->attributes = (struct sftp_attributes){0};
    request->extension = SFTP_EXTENSIONS;
}

enum sftp_read sftp_request_read(const void *packet, size_t length, struct sftp_request *out)
{
    struct rest rest = {packet, length};
    const char *shape = NULL;

    forget(out);
    if (!length)
        return SFTP_IS_GARBAGE;
    out->type = *rest.at++;
    rest.length--;
    if (!take_number(&rest, &out->id))
        return SFTP_IS_GARBAGE;
    if (out->type == SFTP_INIT)
        return SFTP_IS_READ;
    if (out->type < SFTP_REQUESTS)
        shape = shapes[out->type];
    else if (out->type == SFTP_EXTENDED)
        shape = take_extension(&rest, out);
    if (!shape)
        return SFTP_IS_UNKNOWN;
    for (; *shape; shape++)
        if (!take_part(&rest, *shape, out))
            return SFTP_IS_MALFORMED;
    return SFTP_IS_READ;
}

// ---- writing ----

void sftp_put_number(struct sftp_answer *answer, uint32_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *answer->at++ = (unsigned char)(number >> shift);
}

void sftp_put_large(struct sftp_answer *answer, uint64_t number)
{
    sftp_put_number(answer, (uint32_t)(number >> 32));
    sftp_put_number(answer, (uint32_t)number);
}

void sftp_put_text(struct sftp_answer *answer, const void *text, size_t length)
{
    sftp_put_number(answer, (uint32_t)length);
    memcpy(answer->at, text, length);
    answer->at += length;
}

void sftp_put_attributes(struct sftp_answer *answer, const struct sftp_attributes *attributes)
{
    const uint32_t flags = attributes->flags;

    sftp_put_number(answer, flags);
    if (flags & SFTP_HAS_SIZE)
        sftp_put_large(answer, attributes->size);
    if (flags & SFTP_HAS_IDS) {
        sftp_put_number(answer, attributes->uid);
        sftp_put_number(answer, attributes->gid);
    }
    if (flags & SFTP_HAS_MODE)
        sftp_put_number(answer, attributes->mode);
    if (flags & SFTP_HAS_TIMES) {
        sftp_put_number(answer, attributes->accessed_at);
        sftp_put_number(answer, attributes->modified_at);
    }
}

void sftp_answer_begin(struct sftp_answer *answer, void *memory, enum sftp_type type, uint32_t id)
{
    answer->begin = memory;
    answer->at = answer->begin + 4;
    *answer->at++ = (unsigned char)type;
    sftp_put_number(answer, id);
}

size_t sftp_answer_end(struct sftp_answer *answer)
{
    size_t length = (size_t)(answer->at - answer->begin);
    struct sftp_answer front = {answer->begin, answer->begin};

    sftp_put_number(&front, (uint32_t)(length - 4));
    return length;
}
