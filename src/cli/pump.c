/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the bytes of one direction; see pump.h. */
#include "cli/pump.h"

#include "base/auto.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum {
    SPLICE_BYTES = 1 << 20,
    COPY_BYTES = 64 << 10,
    LARGE_PIPE = 1 << 20,
    BUSY_BYTES = 32 << 10, // one move of this size: worth a larger pipe
    ROUNDS = 16,           // moves in a row before others get their turn
};

/*
 * A terminal that was stopped (Ctrl-S) must not block us: a description of our own can be
 * non-blocking. Not so the master of a terminal, since opening that makes another one: pts(4).
 */
static int reopen_terminal(int fd, dev_t device)
{
    char path[32];
    if (device == makedev(5, 2) || !isatty(fd))
        return -1;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void pump_init(struct pump *pump, int from, int to, const char *what)
{
    struct stat source = {0}, target = {0};

    *pump = (struct pump){.from = from,
                          .to = to,
                          .what = what,
                          .left = UINT64_MAX,
                          .reopened = -1,
                          .is_done = from < 0};
    if (from < 0 || fstat(from, &source) < 0 || (to >= 0 && fstat(to, &target) < 0))
        return; // a bad fd is told by the first read or write
    pump->from_pipe = S_ISFIFO(source.st_mode);
    pump->from_device = S_ISCHR(source.st_mode);
    pump->to_socket = S_ISSOCK(target.st_mode);
    pump->to_file = S_ISREG(target.st_mode);
    pump->to_device = S_ISCHR(target.st_mode);
    pump->can_splice = pump->from_pipe ? S_ISFIFO(target.st_mode) || pump->to_file
                                       : S_ISREG(source.st_mode) && S_ISFIFO(target.st_mode);
    if (pump->to_device)
        pump->reopened = reopen_terminal(to, target.st_rdev);
}

static void let_go(struct pump *pump)
{
    if (pump->owns_from)
        closep(&pump->from);
    if (pump->owns_to)
        closep(&pump->to);
    closep(&pump->reopened);
    pump->from = -1;
    pump->to = -1;
}

void pump_stop(struct pump *pump)
{
    pump->is_done = true;
    let_go(pump);
}

void pump_clear(struct pump *pump)
{
    pump_stop(pump);
    buffer_clear(&pump->held);
}

static size_t n_pending(const struct pump *pump)
{
    return pump->shape == PUMP_CAPTURED ? 0 : pump->held.length - pump->held_at;
}

/* How much may be taken at once; 0 means that it has to be dropped. */
static size_t room(const struct pump *pump, size_t at_most)
{
    if (pump->shape == PUMP_DROPPED)
        return 0;
    uint64_t allowed = pump->left < at_most ? pump->left : at_most;
    if (pump->cap_bytes) {
        uint64_t rest = pump->cap_bytes > pump->bytes ? pump->cap_bytes - pump->bytes : 0;
        allowed = rest < allowed ? rest : allowed;
    }
    return (size_t)allowed;
}

static bool is_spliced(const struct pump *pump)
{
    return pump->can_splice && pump->shape == PUMP_PLAIN && room(pump, 1) > 0;
}

bool pump_wants_input(const struct pump *pump)
{
    return !pump->is_done && !pump->has_ended && !pump->can_read && n_pending(pump) == 0;
}

bool pump_wants_output(const struct pump *pump)
{
    if (pump->is_done || pump->can_write)
        return false;
    return n_pending(pump) > 0 || (pump->can_read && !pump->has_ended && is_spliced(pump));
}

bool pump_is_eager(const struct pump *pump)
{
    return !pump->is_done && !pump_wants_input(pump) && !pump_wants_output(pump);
}

void pump_ready(struct pump *pump, bool input, bool output)
{
    pump->can_read |= input;
    pump->can_write |= output;
}

/* The other end no longer listens, or writing failed for good. */
static int fail_output(struct pump *pump, struct error *err)
{
    bool is_gone = errno == EPIPE || errno == ECONNRESET || (errno == EIO && pump->to_device);
    int status = is_gone ? 0 : error_sys(err, "relay %s", pump->what);
    pump_stop(pump);
    return status;
}

/* Whether `to` is shared and may block: then poll before each write, and write little. */
static bool is_careful(const struct pump *pump)
{
    return !pump->owns_to && !pump->to_socket && !pump->to_file && pump->reopened < 0;
}

static ssize_t write_some(struct pump *pump, const char *data, size_t length)
{
    if (pump->to_socket)
        return send(pump->to, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (pump->reopened >= 0)
        return write(pump->reopened, data, length);
    if (is_careful(pump) && length > PIPE_BUF)
        length = PIPE_BUF; // a pipe that polls writable takes this much without blocking
    return write(pump->to, data, length);
}

/* Writes what is held. 0 also when it has to wait. */
static int flush(struct pump *pump, struct error *err)
{
    while (n_pending(pump) > 0 && pump->can_write) {
        ssize_t wrote = write_some(pump, pump->held.data + pump->held_at, n_pending(pump));
        if (wrote >= 0) {
            pump->held_at += (size_t)wrote;
            pump->can_write = !is_careful(pump);
        } else if (errno == EAGAIN) {
            pump->can_write = false;
        } else if (errno != EINTR) {
            return fail_output(pump, err);
        }
    }
    if (n_pending(pump) == 0 && pump->shape != PUMP_CAPTURED)
        pump->held.length = pump->held_at = 0;
    return 0;
}

/* Only pipes of our own; a smaller one is slower, no more. */
static void enlarge_pipes(struct pump *pump)
{
    pump->is_large = true;
    if (pump->owns_from && pump->from_pipe)
        (void)fcntl(pump->from, F_SETPIPE_SZ, LARGE_PIPE);
    if (pump->owns_to)
        (void)fcntl(pump->to, F_SETPIPE_SZ, LARGE_PIPE);
}

static void take_bytes(struct pump *pump, size_t count)
{
    pump->bytes += count;
    if (pump->left != UINT64_MAX)
        pump->left -= count;
    if (!pump->is_large && count >= BUSY_BYTES)
        enlarge_pipes(pump);
}

static void end_input(struct pump *pump)
{
    struct error ignored;

    if (pump->has_ended)
        return;
    pump->has_ended = true;
    if (pump->last_words)
        (void)buffer_add_text(&pump->held, pump->last_words, &ignored); // unbounded unless captured
}

/* A read came back with nothing: the end, a wait, or (for a terminal) its hang-up. */
static int read_nothing(struct pump *pump, ssize_t got, struct error *err)
{
    if (got == 0 || (errno == EIO && pump->from_device)) {
        end_input(pump);
        return 0;
    }
    pump->can_read = false;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    (void)error_sys(err, "relay %s", pump->what);
    pump_stop(pump);
    return -1;
}

/* Past the cap, or all of it: the writer goes on, its bytes do not. */
static int drop_some(struct pump *pump, struct error *err)
{
    char bin[COPY_BYTES];
    size_t want = pump->left < sizeof bin ? (size_t)pump->left : sizeof bin;
    ssize_t got = read(pump->from, bin, want);

    if (got <= 0)
        return read_nothing(pump, got, err);
    pump->can_read = pump->owns_from;
    pump->is_truncated |= pump->shape != PUMP_DROPPED;
    take_bytes(pump, (size_t)got);
    return 0;
}

static int splice_some(struct pump *pump, size_t want, struct error *err)
{
    ssize_t moved =
        splice(pump->from, NULL, pump->to, NULL, want, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

    if (moved > 0) {
        take_bytes(pump, (size_t)moved);
    } else if (moved == 0) {
        end_input(pump);
    } else if (errno == EAGAIN) {
        pump->can_read = pump->can_write = false; // poll tells which of the two it was
    } else if (errno == EINVAL) {
        pump->can_splice = false; // opened for appending, or a file system without
    } else if (errno != EINTR) {
        return fail_output(pump, err);
    }
    return 0;
}

static int add_stamped(struct pump *pump, const char *data, size_t length, struct error *err)
{
    char stamp[CLOCK_TEXT + 1];

    clock_format(clock_wall_ms(), stamp);
    stamp[CLOCK_TEXT - 1] = ' ';
    while (length > 0) {
        const char *newline = memchr(data, '\n', length);
        size_t line = newline ? (size_t)(newline - data) + 1 : length;
        if (!pump->is_mid_line && buffer_add(&pump->held, stamp, CLOCK_TEXT, err) < 0)
            return -1;
        if (buffer_add(&pump->held, data, line, err) < 0)
            return -1;
        pump->is_mid_line = newline == NULL;
        data += line;
        length -= line;
    }
    return 0;
}

static int copy_stamped(struct pump *pump, size_t want, struct error *err)
{
    char data[COPY_BYTES];
    ssize_t got = read(pump->from, data, want);

    if (got <= 0)
        return read_nothing(pump, got, err);
    pump->can_read = pump->owns_from;
    take_bytes(pump, (size_t)got);
    return add_stamped(pump, data, (size_t)got, err);
}

/* Reads into what is held. Only a pipe of our own may be read without polling first. */
static int copy_some(struct pump *pump, size_t want, struct error *err)
{
    if (pump->shape == PUMP_STAMPED)
        return copy_stamped(pump, want, err);
    if (buffer_reserve(&pump->held, want, err) < 0)
        return -1;
    ssize_t got = read(pump->from, pump->held.data + pump->held.length, want);
    if (got <= 0)
        return read_nothing(pump, got, err);
    pump->can_read = pump->owns_from;
    buffer_grew(&pump->held, (size_t)got);
    take_bytes(pump, (size_t)got);
    return 0;
}

static int move_once(struct pump *pump, struct error *err)
{
    if (pump->left == 0) {
        end_input(pump);
        return 0;
    }
    size_t want = room(pump, is_spliced(pump) ? SPLICE_BYTES : COPY_BYTES);
    if (want == 0)
        return drop_some(pump, err);
    return is_spliced(pump) ? splice_some(pump, want, err) : copy_some(pump, want, err);
}

int pump_move(struct pump *pump, struct error *err)
{
    for (int round = 0; round < ROUNDS && !pump->is_done; round++) {
        if (flush(pump, err) < 0)
            return -1;
        if (pump->is_done || n_pending(pump) > 0)
            return 0;
        if (pump->has_ended) {
            pump_stop(pump);
            return 0;
        }
        if (!pump->can_read || pump_wants_output(pump))
            return 0;
        if (move_once(pump, err) < 0)
            return -1;
    }
    return 0;
}

void pump_finish(struct pump *pump)
{
    int waiting = 0;

    if (pump->is_done || pump->is_finishing)
        return;
    pump->is_finishing = true;
    if (!pump->from_pipe)
        return;
    if (ioctl(pump->from, FIONREAD, &waiting) == 0)
        pump->left = (uint64_t)waiting;
    pump->can_read = true;
}

bool pump_is_lingering(const struct pump *pump)
{
    return pump->is_finishing && !pump->from_pipe && !pump->is_done && !pump->has_ended;
}
