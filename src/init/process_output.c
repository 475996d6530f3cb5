/* SPDX-License-Identifier: Apache-2.0 */
/* Output of processes on its way to spool files; see init.h. */
#include "init/init.h"

#include "base/auto.h"
#include "base/disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PIECE_BYTES (64u << 10) // at most, before others get their turn
#define PIPE_BYTES (1 << 20)    // of a process that says something: it goes on while PID 1 is busy

void output_close(struct output *output)
{
    closep(&output->end_fd);
    closep(&output->pipe_fd);
    closep(&output->spool_fd);
}

/* Room left under the cap. */
static size_t room(const struct output *output, size_t wanted)
{
    if (output->spool_fd < 0)
        return 0;
    if (output->cap == 0 || output->is_terminal)
        return wanted;
    uint64_t left = output->cap > output->written ? output->cap - output->written : 0;
    return left < wanted ? (size_t)left : wanted;
}

static void append(struct output *output, const char *data, size_t length)
{
    size_t fits = room(output, length);
    if (fits < length)
        output->is_truncated = true;
    while (fits > 0) {
        ssize_t wrote =
            output->is_disk_low ? -1 : pwrite(output->spool_fd, data, fits, (off_t)output->offset);
        if (wrote <= 0) {
            output->is_lost = true; // a full disk: the process goes on, the loss is told
            return;
        }
        data += wrote;
        fits -= (size_t)wrote;
        output->offset += (uint64_t)wrote;
        output->written += (uint64_t)wrote;
    }
}

/*
 * What a terminal showed long ago makes room for what it shows now: that becomes a hole in the file. Readers are told to begin one DISK_HOLE
 * behind it (core/stream), so what they begin to read stays for as long as it takes to write as much again.
 */
static void drop_oldest(struct output *output)
{
    if (!output->is_terminal || output->cap == 0 ||
        output->offset - output->dropped < output->cap + 3 * (uint64_t)DISK_HOLE)
        return;
    uint64_t until = output->offset - output->cap - DISK_HOLE;
    until -= until % DISK_HOLE;
    output->is_truncated = true;
    if (fallocate(output->spool_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)output->dropped, (off_t)(until - output->dropped)) == 0)
        output->dropped = until;
    else
        output->is_terminal = false; // a disk that cannot: the newest goes, as with other outputs
}

static void append_stamp(struct output *output)
{
    struct timespec now;
    struct tm parts;
    char stamp[48];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    size_t length = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
    length +=
        (size_t)snprintf(stamp + length, sizeof stamp - length, ".%03ldZ ", now.tv_nsec / 1000000);
    append(output, stamp, length);
}

static void append_lines(struct output *output, const char *data, size_t length)
{
    while (length > 0) {
        const char *end = memchr(data, '\n', length);
        size_t part = end ? (size_t)(end - data) + 1 : length;
        if (!output->is_inside_line)
            append_stamp(output);
        append(output, data, part);
        output->is_inside_line = end == NULL;
        data += part;
        length -= part;
    }
}

/* The first bytes of a process; most say nothing. */
static void begin(struct output *output)
{
    off_t end = output->spool_fd < 0 ? 0 : lseek(output->spool_fd, 0, SEEK_END);

    output->offset = end < 0 ? 0 : (uint64_t)end;
    if (!output->is_terminal)
        (void)fcntl(output->pipe_fd, F_SETPIPE_SZ, PIPE_BYTES);
}

/* Through memory: into a file that may only be appended to, which is what the server hands over, nothing can be spliced. */
static ssize_t copy_some(struct output *output)
{
    static char piece[PIECE_BYTES];
    ssize_t got = read(output->pipe_fd, piece, sizeof piece);
    if (got <= 0)
        return got;
    if (output->produced == 0)
        begin(output);
    // What is left below the floor is for the server to record how things end.
    output->is_disk_low = room(output, 1) > 0 && !disk_has_room(output->spool_fd);
    output->produced += (uint64_t)got;
    if (output->has_timestamps)
        append_lines(output, piece, (size_t)got);
    else
        append(output, piece, (size_t)got);
    drop_oldest(output);
    return got;
}

bool output_pump(struct output *output)
{
    ssize_t moved = copy_some(output);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    return moved > 0; // a terminal whose last user is gone says EIO: an end as well
}

void output_drain(struct output *output)
{
    // What a pipe holds is bounded; what others keep writing is pumped later.
    for (unsigned i = 0; i < 64 && output->pipe_fd >= 0; i++) {
        uint64_t before = output->produced;
        if (!output_pump(output)) {
            closep(&output->pipe_fd);
            return;
        }
        if (output->produced == before)
            return;
    }
}
