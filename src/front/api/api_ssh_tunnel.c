/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of an SSH connection between a WebSocket and a socket that burrow-ssh has the other end of; see api_ssh.h. All on the loop. */
#include "base/mem.h"
#include "front/api/api_ssh.h"
#include "net/websocket.h"
#include "web/follower.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE (32u << 10)
#define PIECES 8 // before others get their turn

static const struct websocket_limits limits = {
    .message_bytes = 1u << 20, .text_bytes = 256, .fragments = 4096, .ping_ms = 30000};

struct tunnel {
    struct follower base;
    const struct api_ssh *ssh;
    struct upgrade upgrade;
    char sandbox_id[ID_TEXT];
    struct websocket *socket; // NULL before and after
    int fd;
    struct loop_watch *watch;
    struct buffer held; // from the client, what the socket did not take
    size_t held_at;
    struct buffer back; // for the client, who is behind
};

static void tunnel_free(void *data)
{
    struct tunnel *tunnel = data;

    closep(&tunnel->fd);
    buffer_clear(&tunnel->held);
    buffer_clear(&tunnel->back);
    free(tunnel);
}

static void wait_for_more(struct tunnel *tunnel)
{
    unsigned wanted = tunnel->back.length ? 0 : LOOP_READABLE;

    loop_watch_set(tunnel->watch, wanted | (tunnel->held.length ? LOOP_WRITABLE : 0));
}

// ---- from the client ----

/* How much the socket takes now; -1: it is gone. */
static ssize_t push(const struct tunnel *tunnel, const char *bytes, size_t length)
{
    ssize_t sent = send(tunnel->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static bool on_binary(void *data, const char *bytes, size_t length, bool is_first, bool is_last)
{
    struct tunnel *tunnel = data;
    struct error ignored;

    (void)is_first, (void)is_last;
    ssize_t sent = push(tunnel, bytes, length);
    if (sent < 0) {
        websocket_close(tunnel->socket, WEBSOCKET_NORMAL, "the connection has ended");
        return false;
    }
    if ((size_t)sent == length)
        return true;
    // No maximum: a piece is one read, and no other comes before this one is gone.
    (void)buffer_add(&tunnel->held, bytes + sent, length - (size_t)sent, &ignored);
    wait_for_more(tunnel);
    return false;
}

static bool on_text(void *data, const char *text, size_t length)
{
    struct tunnel *tunnel = data;

    (void)text, (void)length;
    websocket_close(tunnel->socket, WEBSOCKET_POLICY, "SSH is sent in binary messages");
    return false;
}

static void send_held(struct tunnel *tunnel)
{
    struct buffer *held = &tunnel->held;
    ssize_t sent = push(tunnel, held->data + tunnel->held_at, held->length - tunnel->held_at);

    if (sent < 0) {
        websocket_close(tunnel->socket, WEBSOCKET_NORMAL, "the connection has ended");
        return;
    }
    tunnel->held_at += (size_t)sent;
    if (tunnel->held_at < held->length)
        return;
    buffer_clear(held);
    tunnel->held_at = 0;
    wait_for_more(tunnel);
    websocket_resume(tunnel->socket);
}

// ---- to the client ----

/* False: the client is behind, and on_room will come; or it is gone, and on_end will. */
static bool send_piece(struct tunnel *tunnel, const char *bytes, size_t length)
{
    static const struct websocket_message plain = {.opcode = WEBSOCKET_BINARY};
    struct error ignored;

    if (websocket_send(tunnel->socket, &plain, bytes, length) == RESPONSE_TAKEN)
        return true;
    if (bytes != tunnel->back.data)
        (void)buffer_add(&tunnel->back, bytes, length, &ignored); // one piece at most
    return false;
}

static void read_some(struct tunnel *tunnel)
{
    char piece[PIECE];

    for (int i = 0; i < PIECES; i++) {
        ssize_t got = recv(tunnel->fd, piece, sizeof piece, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            loop_watch_set(tunnel->watch, 0);
            websocket_close(tunnel->socket, WEBSOCKET_NORMAL, "the connection has ended");
            return;
        }
        if (!send_piece(tunnel, piece, (size_t)got))
            break;
    }
    wait_for_more(tunnel);
}

static void on_socket(void *data, unsigned ready)
{
    struct tunnel *tunnel = data;

    if (ready & LOOP_WRITABLE && tunnel->held.length)
        send_held(tunnel);
    if (ready & (LOOP_READABLE | LOOP_FAILED) && tunnel->back.length == 0)
        read_some(tunnel);
}

static void on_room(void *data)
{
    struct tunnel *tunnel = data;

    if (tunnel->back.length && !send_piece(tunnel, tunnel->back.data, tunnel->back.length))
        return;
    buffer_clear(&tunnel->back);
    wait_for_more(tunnel);
}

static void on_end(void *data)
{
    struct tunnel *tunnel = data;

    tunnel->socket = NULL;
    loop_watch_free(take(tunnel->watch));
    closep(&tunnel->fd); // burrow-ssh sees that
    follower_end(&tunnel->base);
}

static const struct websocket_events events = {
    .on_binary = on_binary, .on_text = on_text, .on_room = on_room, .on_end = on_end};

static void ignore(void *data)
{
    (void)data;
}

static const struct follower_kind kind = {
    .on_wake = ignore, .on_worked = ignore, .on_retry = ignore, .free = tunnel_free};

/* On the loop. */
static void begin(void *data)
{
    struct tunnel *tunnel = data;
    struct waiting_call *waiting = &tunnel->base.waiting;
    int pair[2] = {-1, -1};
    struct error err = {0};

    tunnel->socket = websocket_open(&(struct websocket_request){
        .loop = waiting->loop,
        .response = waiting->response,
        .headers = tunnel->upgrade.headers,
        .limits = &limits,
        .events = &events,
        .data = tunnel,
    });
    if (!tunnel->socket) {
        follower_unref(&tunnel->base);
        return;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
        loop_watch_new(waiting->loop, pair[0], on_socket, tunnel, &tunnel->watch, &err) < 0) {
        closep(&pair[0]);
        closep(&pair[1]);
        websocket_close(tunnel->socket, WEBSOCKET_FAILED, "no connection could be made");
        return;
    }
    tunnel->fd = pair[0];
    tunnel->ssh->adopt(tunnel->ssh->data, pair[1], &waiting->actor, tunnel->sandbox_id);
    wait_for_more(tunnel);
}

int api_ssh_tunnel(struct call *call, const struct api_ssh *ssh, const struct upgrade *upgrade,
                   const char *sandbox_id, struct error *err)
{
    struct tunnel *tunnel = xnew(struct tunnel);

    (void)err;
    follower_init(&tunnel->base, call, &kind);
    tunnel->ssh = ssh;
    tunnel->fd = -1;
    (void)snprintf(tunnel->sandbox_id, sizeof tunnel->sandbox_id, "%s", sandbox_id);
    upgrade_copy(&tunnel->upgrade, upgrade);
    loop_post(tunnel->base.waiting.loop, begin, tunnel);
    return 0;
}
