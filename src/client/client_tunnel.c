/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of SSH through a WebSocket of the server's; see burrow.h. */
#include "client/client_impl.h"

#include "base/auto.h"
#include "base/mem.h"
#include "client/frame_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#define PIECE ((size_t)64 << 10)

// What waits to be written.
struct pending {
    const char *at;
    size_t left;
};

struct tunnel {
    struct burrow_client *client;
    struct wire *wire;
    struct frame_reader reader;
    int in_fd, out_fd;
    char *piece;          // of the input
    struct buffer frames; // for the server
    struct pending up;    // of them
    struct pending down;  // of a message of the server's, which the reader has
    bool is_ending;       // no more input: the close is in `frames`
    bool is_over;         // the server has said so
};

static int fail_from(struct burrow_error *err, const struct error *error)
{
    return client_fail_from(err, BURROW_PROTOCOL, error);
}

// ---- up ----

static int add_frame(struct tunnel *tunnel, enum frame_kind kind, const void *data, size_t length,
                     struct burrow_error *err)
{
    const size_t sent = tunnel->frames.length - tunnel->up.left;
    struct error error = {0};
    uint32_t mask = 0;

    if (getrandom(&mask, sizeof mask, 0) != sizeof mask)
        return client_fail_sys(err, BURROW_LOCAL, "get random bytes");
    if (!tunnel->up.left)
        tunnel->frames.length = 0;
    if (frame_add(&tunnel->frames, kind, data, length, mask, &error) < 0)
        return fail_from(err, &error);
    const size_t from = tunnel->up.left ? sent : 0;
    tunnel->up = (struct pending){tunnel->frames.data + from, tunnel->frames.length - from};
    return 0;
}

static int take_input(struct tunnel *tunnel, struct burrow_error *err)
{
    ssize_t got = read(tunnel->in_fd, tunnel->piece, PIECE);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got < 0 && errno != EIO && errno != ECONNRESET)
        return client_fail_sys(err, BURROW_LOCAL, "read what is to be sent");
    if (got > 0)
        return add_frame(tunnel, FRAME_BINARY, tunnel->piece, (size_t)got, err);
    tunnel->is_ending = true;
    return add_frame(tunnel, FRAME_CLOSE, NULL, 0, err);
}

static int send_up(struct tunnel *tunnel, struct burrow_error *err)
{
    ssize_t put = wire_send_some(tunnel->wire, tunnel->up.at, tunnel->up.left, err);

    if (put < 0)
        return -1;
    tunnel->up.at += put;
    tunnel->up.left -= (size_t)put;
    return 0;
}

// ---- down ----

static int take_message(struct tunnel *tunnel, enum frame_kind kind, const struct buffer *data,
                        struct burrow_error *err)
{
    switch (kind) {
    case FRAME_BINARY:
        tunnel->down = (struct pending){data->data, data->length};
        return 0;
    case FRAME_PING:
        return tunnel->is_ending ? 0 : add_frame(tunnel, FRAME_PONG, data->data, data->length, err);
    case FRAME_CLOSE:
        tunnel->is_over = true;
        return 0;
    default:
        return 0; // of a later server
    }
}

static int send_down(struct tunnel *tunnel, struct burrow_error *err)
{
    ssize_t put = write(tunnel->out_fd, tunnel->down.at, tunnel->down.left);

    if (put < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (put < 0 && errno == EPIPE)
        tunnel->is_over = true; // nobody wants it any more
    else if (put < 0)
        return client_fail_sys(err, BURROW_LOCAL, "write what was received");
    tunnel->down.at += put < 0 ? 0 : put;
    tunnel->down.left = put < 0 ? 0 : tunnel->down.left - (size_t)put;
    return 0;
}

// Until a message waits to be written, or nothing whole is there.
static int take_received(struct tunnel *tunnel, struct burrow_error *err)
{
    struct wire *wire = tunnel->wire;

    while (wire->at < wire->end && !tunnel->down.left && !tunnel->is_over) {
        const struct buffer *data = NULL;
        enum frame_kind kind = FRAME_PONG;
        struct error error = {0};
        size_t used = 0;
        int whole = frame_reader_take(&tunnel->reader, wire->in + wire->at, wire->end - wire->at,
                                      &used, &kind, &data, &error);
        wire->at += used;
        if (whole < 0)
            return fail_from(err, &error);
        if (whole && take_message(tunnel, kind, data, err) < 0)
            return -1;
        if (tunnel->down.left && send_down(tunnel, err) < 0)
            return -1;
    }
    return 0;
}

static int receive(struct tunnel *tunnel, struct burrow_error *err)
{
    int got = wire_receive_now(tunnel->wire, err);

    if (got == 0)
        tunnel->is_over = true;
    return got < 0 ? -1 : take_received(tunnel, err);
}

// ---- both ----

static int wait_for_both(struct tunnel *tunnel, struct pollfd fds[4], struct burrow_error *err)
{
    const bool is_full = tunnel->down.left > 0;

    fds[0] = (struct pollfd){tunnel->up.left || tunnel->is_ending ? -1 : tunnel->in_fd, POLLIN, 0};
    fds[1] = (struct pollfd){tunnel->wire->fd,
                             (short)((is_full ? 0 : POLLIN) | (tunnel->up.left ? POLLOUT : 0)), 0};
    // Also when nothing waits for it: that nobody reads any more is told as POLLERR.
    fds[2] = (struct pollfd){tunnel->out_fd, is_full ? POLLOUT : 0, 0};
    fds[3] = (struct pollfd){tunnel->client->patience.cancel_fd, POLLIN, 0};
    if (poll(fds, 4, -1) < 0 && errno != EINTR)
        return client_fail_sys(err, BURROW_LOCAL, "wait for the server");
    if (fds[3].revents)
        return client_fail(err, BURROW_CANCELLED, "interrupted");
    return 0;
}

static int step(struct tunnel *tunnel, struct burrow_error *err)
{
    struct pollfd fds[4] = {0};

    if (wait_for_both(tunnel, fds, err) < 0)
        return -1;
    if (fds[0].revents && take_input(tunnel, err) < 0)
        return -1;
    if (tunnel->up.left && (fds[1].revents & POLLOUT || fds[0].revents) && send_up(tunnel, err) < 0)
        return -1;
    if (fds[2].revents & (POLLERR | POLLNVAL))
        tunnel->is_over = true;
    if (tunnel->down.left)
        return fds[2].revents & POLLOUT &&
                       (send_down(tunnel, err) < 0 || take_received(tunnel, err) < 0)
                   ? -1
                   : 0;
    return fds[1].revents & (POLLIN | POLLHUP | POLLERR) ? receive(tunnel, err) : 0;
}

static int relay(struct tunnel *tunnel, struct burrow_error *err)
{
    if (take_received(tunnel, err) < 0) // what came with the answer
        return -1;
    while (!(tunnel->is_over && !tunnel->down.left) && !(tunnel->is_ending && !tunnel->up.left))
        if (step(tunnel, err) < 0)
            return -1;
    return 0;
}

static int unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0 && !(flags & O_NONBLOCK))
        (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    return flags;
}

int burrow_ssh_relay(struct burrow_client *client, const char *sandbox, int in_fd, int out_fd,
                     struct burrow_error *err)
{
    autofree char *path = burrow_path("/sandboxes/%s/ssh", sandbox, NULL);
    struct tunnel tunnel = {.client = client, .in_fd = in_fd, .out_fd = out_fd};

    if (client_upgrade(client, path, &tunnel.wire, err) < 0)
        return -1;
    const int in_flags = unblock(in_fd), out_flags = unblock(out_fd);
    tunnel.piece = xcalloc(1, PIECE);
    frame_reader_init(&tunnel.reader);
    int result = relay(&tunnel, err);
    (void)fcntl(out_fd, F_SETFL, out_flags);
    (void)fcntl(in_fd, F_SETFL, in_flags);
    frame_reader_clear(&tunnel.reader);
    buffer_clear(&tunnel.frames);
    free(tunnel.piece);
    wire_free(tunnel.wire);
    return result;
}
