/* SPDX-License-Identifier: Apache-2.0 */
/* A list of segments, written with sendmsg and sendfile. */
#include "net/output.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define PIECES_A_CALL 16
#define BYTES_A_TURN (1u << 20)
#define GATHERED_AT_ONCE (64u << 10)
#define READ_AHEAD (4u << 20)

struct segment {
    struct segment *next;
    uint64_t length; // still to be sent
    uint64_t offset; // of the next byte, in data or in the file
    int fd;          // -1: bytes
    bool is_owned;
    char data[];
};

struct segment *segment_new(size_t length)
{
    struct segment *segment = xrealloc(NULL, 1, sizeof *segment + length);
    *segment = (struct segment){.length = length, .fd = -1};
    return segment;
}

char *segment_data(struct segment *segment)
{
    return segment->data;
}

void segment_trim(struct segment *segment, size_t length)
{
    segment->length = length;
}

void output_add(struct output *output, struct segment *segment)
{
    if (output->last)
        output->last->next = segment;
    else
        output->first = segment;
    output->last = segment;
    if (segment->fd < 0)
        output->bytes += segment->length;
    else
        output->ranges++;
}

void output_add_copy(struct output *output, const void *data, size_t length)
{
    if (length == 0)
        return;
    struct segment *segment = segment_new(length);
    memcpy(segment->data, data, length);
    output_add(output, segment);
}

void output_add_range(struct output *output, const struct file_range *range)
{
    struct segment *segment = segment_new(0);
    segment->length = range->length;
    segment->offset = range->offset;
    segment->fd = range->fd;
    segment->is_owned = range->is_owned;
    output_add(output, segment);
}

void output_move(struct output *to, struct output *from)
{
    if (!from->first)
        return;
    if (to->last)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    to->bytes += from->bytes;
    to->ranges += from->ranges;
    *from = (struct output){0};
}

static void drop_first(struct output *output)
{
    struct segment *segment = output->first;

    output->first = segment->next;
    if (!output->first)
        output->last = NULL;
    if (segment->fd >= 0)
        output->ranges--;
    if (segment->is_owned)
        (void)close(segment->fd);
    free(segment);
}

void output_clear(struct output *output)
{
    while (output->first)
        drop_first(output);
    *output = (struct output){0};
}

static bool gather_range(const struct segment *segment, struct buffer *to)
{
    struct error ignored;
    uint64_t left = segment->length, offset = segment->offset;

    while (left > 0) {
        size_t piece = left < GATHERED_AT_ONCE ? (size_t)left : GATHERED_AT_ONCE;
        if (buffer_reserve(to, piece, &ignored) < 0)
            return false;
        ssize_t got = pread(segment->fd, to->data + to->length, piece, (off_t)offset);
        if (got <= 0)
            return false;
        buffer_grew(to, (size_t)got);
        left -= (uint64_t)got;
        offset += (uint64_t)got;
    }
    return true;
}

bool output_gather(const struct output *output, struct buffer *to)
{
    struct error ignored;

    for (const struct segment *segment = output->first; segment; segment = segment->next) {
        bool is_added = segment->fd >= 0 ? gather_range(segment, to)
                                         : buffer_add(to, segment->data + segment->offset,
                                                      (size_t)segment->length, &ignored) == 0;
        if (!is_added)
            return false;
    }
    return true;
}

/* The bytes at the front, up to a part of a file. */
static ssize_t send_bytes(struct output *output, int fd)
{
    struct iovec pieces[PIECES_A_CALL];
    struct msghdr message = {.msg_iov = pieces};
    struct segment *segment = output->first;

    for (; segment && segment->fd < 0 && message.msg_iovlen < PIECES_A_CALL;
         segment = segment->next) {
        pieces[message.msg_iovlen++] =
            (struct iovec){segment->data + segment->offset, (size_t)segment->length};
    }
    // What follows goes into the same packet.
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT | (segment ? MSG_MORE : 0));
}

static void count_bytes(struct output *output, size_t sent)
{
    output->bytes -= sent;
    while (output->first && output->first->fd < 0) {
        struct segment *segment = output->first;
        size_t part = sent < segment->length ? sent : (size_t)segment->length;
        segment->offset += part;
        segment->length -= part;
        sent -= part;
        if (segment->length)
            return;
        drop_first(output);
    }
}

static ssize_t send_range(struct output *output, int fd, size_t budget)
{
    struct segment *segment = output->first;
    off_t offset = (off_t)segment->offset;
    size_t want = segment->length < budget ? (size_t)segment->length : budget;
    ssize_t sent = sendfile(fd, segment->fd, &offset, want);

    if (sent == 0)
        errno = EIO; // the file is shorter than was promised
    if (sent <= 0)
        return -1;
    segment->offset += (uint64_t)sent;
    segment->length -= (uint64_t)sent;
    if (segment->length == 0)
        drop_first(output);
    else if (segment->offset % READ_AHEAD <
             (uint64_t)sent) // a slow disk that was asked in time delays others less
        (void)posix_fadvise(segment->fd, (off_t)segment->offset, 2 * READ_AHEAD,
                            POSIX_FADV_WILLNEED);
    return sent;
}

enum output_result output_write(struct output *output, int fd)
{
    size_t budget = BYTES_A_TURN;

    while (output->first) {
        bool is_range = output->first->fd >= 0;
        ssize_t sent = is_range ? send_range(output, fd, budget) : send_bytes(output, fd);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN ? OUTPUT_BLOCKED : OUTPUT_BROKEN;
        output->sent += (uint64_t)sent;
        if (!is_range)
            count_bytes(output, (size_t)sent);
        if ((size_t)sent >= budget)
            return output->first ? OUTPUT_BLOCKED : OUTPUT_DONE;
        budget -= (size_t)sent;
    }
    return OUTPUT_DONE;
}
