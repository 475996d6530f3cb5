/* SPDX-License-Identifier: Apache-2.0 */
/* Output of processes on its way to spool files; see init.h. */
#include "init/init.h"

#include "base/auto.h"
#include "base/disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PUMP_BYTES (1u << 20) // at most, before others get their turn

void output_close(struct output *output)
{
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

/* Through memory: for timestamps, past the cap, or where splicing is not possible. */
static ssize_t copy_some(struct output *output)
{
    char chunk[16384];
    ssize_t got = read(output->pipe_fd, chunk, sizeof chunk);
    if (got <= 0)
        return got;
    output->produced += (uint64_t)got;
    if (output->has_timestamps)
        append_lines(output, chunk, (size_t)got);
    else
        append(output, chunk, (size_t)got);
    drop_oldest(output);
    return got;
}

static ssize_t splice_some(struct output *output)
{
    loff_t at = (loff_t)output->offset;
    size_t fits = room(output, PUMP_BYTES);
    // What is left below the floor is for the server to record how things end.
    output->is_disk_low = fits > 0 && !disk_has_room(output->spool_fd);
    if (output->has_timestamps || output->is_terminal || fits == 0 || output->is_disk_low)
        return copy_some(output); // a terminal is no pipe
    ssize_t moved = splice(output->pipe_fd, NULL, output->spool_fd, &at, fits, SPLICE_F_NONBLOCK);
    if (moved < 0 && errno != EAGAIN && errno != EINTR)
        return copy_some(output);
    if (moved > 0) {
        output->offset += (uint64_t)moved;
        output->written += (uint64_t)moved;
        output->produced += (uint64_t)moved;
    }
    return moved;
}

bool output_pump(struct output *output)
{
    ssize_t moved = splice_some(output);
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
