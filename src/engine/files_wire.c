/* SPDX-License-Identifier: Apache-2.0 */
/* Frames about files, made and taken apart; see files_wire.h. */
#include "engine/files_wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define MAX_PARTS 4
#define BATCH_CONTENT                                                                              \
    16384u // larger contents have frames of their own; copying them costs more than a frame

int files_frame_send(int sock, uint16_t type, uint16_t flags, const struct iovec *parts,
                     unsigned n_parts)
{
    struct files_header header = {.type = type, .flags = flags};
    struct iovec all[MAX_PARTS + 1] = {{&header, sizeof header}};
    size_t length = 0;

    if (n_parts > MAX_PARTS) {
        errno = EINVAL;
        return -1;
    }
    for (unsigned i = 0; i < n_parts; i++) {
        all[i + 1] = parts[i];
        length += parts[i].iov_len;
    }
    if (length > FILES_MAX_DATA) {
        errno = EMSGSIZE;
        return -1;
    }
    header.length = (uint32_t)length;
    struct msghdr message = {.msg_iov = all, .msg_iovlen = n_parts + 1};
    for (;;) {
        if (sendmsg(sock, &message, MSG_NOSIGNAL) >= 0)
            return 0;
        if (errno != EINTR)
            return -1;
    }
}

int files_frame_receive(int sock, void *buffer, struct files_frame *out, int recv_flags)
{
    ssize_t got = -1;
    do
        got = recv(sock, buffer, FILES_MAX_FRAME, recv_flags | MSG_TRUNC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == ECONNRESET ? 0 : -1;
    if (got == 0)
        return 0;
    if (!files_frame_parse(buffer, (size_t)got, out)) {
        errno = EPROTO;
        return -1;
    }
    return 1;
}

bool files_frame_parse(const void *packet, size_t size, struct files_frame *out)
{
    struct files_header header;
    if (size < sizeof header || size > FILES_MAX_FRAME)
        return false;
    memcpy(&header, packet, sizeof header);
    if (header.length != size - sizeof header || header.type == 0 || header.type >= FILES_TYPES)
        return false;
    *out = (struct files_frame){
        .type = header.type,
        .flags = header.flags,
        .length = header.length,
        .payload = (const uint8_t *)packet + sizeof header,
    };
    return true;
}

/* A string of `size` bytes at `at`: within the frame, ended by its only NUL. */
static bool take_string(const struct files_frame *frame, size_t *at, size_t size, size_t maximum,
                        const char **out)
{
    if (size == 0 || size > maximum || size > frame->length - *at)
        return false;
    const char *text = (const char *)frame->payload + *at;
    if (strnlen(text, size) != size - 1)
        return false;
    *out = text;
    *at += size;
    return true;
}

static bool take_fixed(const struct files_frame *frame, size_t *at, void *out, size_t size)
{
    if (size > frame->length - *at)
        return false;
    memcpy(out, frame->payload + *at, size);
    *at += size;
    return true;
}

bool files_request_parse(const struct files_frame *frame, struct files_request *out)
{
    size_t at = 0;
    if (frame->type >= FILES_REQUESTS)
        return false;
    return take_fixed(frame, &at, &out->fixed, sizeof out->fixed) &&
           take_string(frame, &at, out->fixed.path_size, FILES_MAX_PATH, &out->path) &&
           take_string(frame, &at, out->fixed.second_size, FILES_MAX_PATH, &out->second) &&
           take_string(frame, &at, out->fixed.third_size, FILES_MAX_RECORD_PATH, &out->third) &&
           at == frame->length;
}

bool files_total_parse(const struct files_frame *frame, struct files_total *out)
{
    size_t at = 0;
    return frame->type == FILES_END && take_fixed(frame, &at, out, sizeof *out) &&
           at == frame->length;
}

bool files_failure_parse(const struct files_frame *frame, struct files_failure *out,
                         const char **text)
{
    size_t at = 0;
    return frame->type == FILES_ERROR && take_fixed(frame, &at, out, sizeof *out) &&
           take_string(frame, &at, frame->length - at, FILES_MAX_TEXT, text);
}

bool files_item_next(const struct files_frame *frame, size_t *at, struct files_item *out)
{
    struct files_item_wire fixed;
    if (*at > frame->length || !take_fixed(frame, at, &fixed, sizeof fixed))
        return false;
    *out = (struct files_item){
        .size = fixed.size,
        .disk_bytes = fixed.disk_bytes,
        .mtime_ns = fixed.mtime_ns,
        .ctime_ns = fixed.ctime_ns,
        .atime_ns = fixed.atime_ns,
        .inode = fixed.inode,
        .mode = fixed.mode,
        .uid = fixed.uid,
        .gid = fixed.gid,
        .links = fixed.links,
        .is_hard_link = fixed.is_hard_link != 0,
    };
    size_t maximum = out->is_hard_link ? FILES_MAX_RECORD_PATH : FILES_MAX_PATH;
    return take_string(frame, at, fixed.path_size, FILES_MAX_RECORD_PATH, &out->path) &&
           take_string(frame, at, fixed.target_size, maximum, &out->target);
}

size_t files_item_size(const struct files_item *item)
{
    return sizeof(struct files_item_wire) + strlen(item->path) + 1 + strlen(item->target) + 1;
}

size_t files_item_write(const struct files_item *item, uint8_t *room)
{
    size_t path_size = strlen(item->path) + 1, target_size = strlen(item->target) + 1;
    struct files_item_wire fixed = {
        .size = item->size,
        .disk_bytes = item->disk_bytes,
        .mtime_ns = item->mtime_ns,
        .ctime_ns = item->ctime_ns,
        .atime_ns = item->atime_ns,
        .inode = item->inode,
        .mode = item->mode,
        .uid = item->uid,
        .gid = item->gid,
        .links = item->links,
        .path_size = (uint16_t)path_size,
        .target_size = (uint16_t)target_size,
        .is_hard_link = item->is_hard_link,
    };
    memcpy(room, &fixed, sizeof fixed);
    memcpy(room + sizeof fixed, item->path, path_size);
    memcpy(room + sizeof fixed + path_size, item->target, target_size);
    return sizeof fixed + path_size + target_size;
}

static bool has_path(enum files_event_kind kind)
{
    return kind != FILES_STARTED && kind != FILES_OVERFLOW;
}

/* Whether there is a path where there has to be one, and none else. */
static bool is_path_right(const char *path, bool is_wanted)
{
    return is_wanted ? files_path_is_plain(path) : *path == '\0';
}

bool files_record_next(const struct files_frame *frame, size_t *at, struct files_item *out,
                       const uint8_t **content)
{
    if (!files_item_next(frame, at, out) || out->size > frame->length - *at)
        return false;
    *content = frame->payload + *at;
    *at += out->size;
    return true;
}

bool files_batch_takes(const struct files_item *item)
{
    return item->size <= BATCH_CONTENT && files_item_size(item) + item->size <= FILES_MAX_DATA;
}

bool files_batch_has_room(const struct files_batch *batch, const struct files_item *item)
{
    return files_item_size(item) + item->size <= FILES_MAX_DATA - batch->length;
}

uint8_t *files_batch_begin(struct files_batch *batch, const struct files_item *item)
{
    uint8_t *at = batch->room + batch->length;

    return at + files_item_write(item, at);
}

void files_batch_keep(struct files_batch *batch, const struct files_item *item)
{
    batch->length += files_item_size(item) + item->size;
}

bool files_event_next(const struct files_frame *frame, size_t *at, struct files_event *out)
{
    struct files_event_wire fixed;

    if (*at > frame->length || !take_fixed(frame, at, &fixed, sizeof fixed) || fixed.kind == 0 ||
        fixed.kind >= FILES_EVENT_KINDS)
        return false;
    out->kind = fixed.kind;
    out->is_directory = fixed.is_directory != 0;
    return take_string(frame, at, fixed.path_size, FILES_MAX_RECORD_PATH, &out->path) &&
           take_string(frame, at, fixed.second_size, FILES_MAX_RECORD_PATH, &out->second) &&
           is_path_right(out->path, has_path(out->kind)) &&
           is_path_right(out->second, out->kind == FILES_MOVED);
}

size_t files_event_size(const struct files_event *event)
{
    return sizeof(struct files_event_wire) + strlen(event->path) + 1 + strlen(event->second) + 1;
}

size_t files_event_write(const struct files_event *event, uint8_t *room)
{
    size_t path_size = strlen(event->path) + 1, second_size = strlen(event->second) + 1;
    struct files_event_wire fixed = {
        .kind = (uint16_t)event->kind,
        .is_directory = event->is_directory,
        .path_size = (uint16_t)path_size,
        .second_size = (uint16_t)second_size,
    };

    memcpy(room, &fixed, sizeof fixed);
    memcpy(room + sizeof fixed, event->path, path_size);
    memcpy(room + sizeof fixed + path_size, event->second, second_size);
    return sizeof fixed + path_size + second_size;
}

bool files_match_parse(const struct files_frame *frame, struct files_match *out)
{
    struct files_match_wire fixed;
    size_t at = 0;

    if (frame->type != FILES_MATCH || !take_fixed(frame, &at, &fixed, sizeof fixed) ||
        !take_string(frame, &at, fixed.path_size, FILES_MAX_RECORD_PATH, &out->path) ||
        fixed.text_size != frame->length - at || fixed.line == 0 ||
        fixed.column > fixed.text_size + 1)
        return false;
    out->line = fixed.line;
    out->offset = fixed.offset;
    out->column = fixed.column;
    out->is_cut = fixed.is_cut != 0;
    out->text = (const char *)frame->payload + at;
    out->text_size = fixed.text_size;
    return true;
}

const char *files_item_etag(const struct files_item *item, char etag[FILES_ETAG_SIZE])
{
    (void)snprintf(etag, FILES_ETAG_SIZE, "%llx-%llx-%llx-%llx", (unsigned long long)item->inode,
                   (unsigned long long)item->size, (unsigned long long)item->mtime_ns,
                   (unsigned long long)item->ctime_ns);
    return etag;
}

int files_path_compare(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    // a slash ends a name, so it comes before all that may stand in one
    int left = *a == '/' ? 1 : *a ? (uint8_t)*a + 1 : 0;
    int right = *b == '/' ? 1 : *b ? (uint8_t)*b + 1 : 0;
    return left - right;
}

bool files_path_is_plain(const char *path)
{
    if (strlen(path) >= FILES_MAX_RECORD_PATH)
        return false;
    for (const char *part = path;;) {
        size_t length = strcspn(part, "/");
        if (length == 0 || length > 255 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        if (part[length] == '\0')
            return true;
        part += length + 1;
    }
}
