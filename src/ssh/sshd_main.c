/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-ssh: speaks SSH with one client for the server, without any right. The server starts it, waits until it has given up everything, and hands it the
 * connection.
 * usage: burrow-ssh     fd 0: the server's socket
 */
#include "base/auto.h"
#include "base/confine.h"
#include "base/mem.h"
#include "ssh/sshd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEMORY_BYTES ((uint64_t)256 << 20) // address space, libraries and all
#define CPU_SECONDS ((uint64_t)4 * 3600)
#define PACKETS 64 // pieces of 4 KiB that are read before others get their turn
#define FILES 192  // three for each channel and two for its agent, and a few
#define DESCRIPTORS (2 + 4 * SSH_WIRE_CHANNELS + SSHD_LISTENERS)

static const struct filter_rule rules[] = {
    {SYS_recvmsg, FILTER_FIRST_IS, SSHD_CONTROL}, // descriptors come this way alone
    {SYS_sendmsg, FILTER_FIRST_IS, SSHD_CONTROL},
    {SYS_read, FILTER_ALWAYS, 0},
    {SYS_write, FILTER_ALWAYS, 0},
    {SYS_pread64, FILTER_ALWAYS, 0},
    {SYS_recvfrom, FILTER_ALWAYS, 0},
    {SYS_sendto, FILTER_ALWAYS, 0},
#ifdef SYS_poll
    {SYS_poll, FILTER_ALWAYS, 0},
#endif
    {SYS_ppoll, FILTER_ALWAYS, 0},
    {SYS_shutdown, FILTER_ALWAYS, 0},
    {SYS_accept4, FILTER_ALWAYS, 0}, // of listeners that it was handed: it can make none
    {SYS_close, FILTER_ALWAYS, 0},
    {SYS_fcntl, FILTER_SECOND_IS, F_GETFL},
    {SYS_fcntl, FILTER_SECOND_IS, F_SETFL},
    {SYS_fcntl, FILTER_SECOND_IS, F_GETFD},
    {SYS_ioctl, FILTER_SECOND_IS, FIONBIO}, // libssh's way of saying O_NONBLOCK
    {SYS_getsockopt, FILTER_ALWAYS, 0},
    {SYS_getpid, FILTER_ALWAYS, 0}, // OpenSSL's random numbers, which look for forks
    {SYS_clock_nanosleep, FILTER_ALWAYS, 0},
    // What libraries look for and can do without.
    {SYS_openat, FILTER_REFUSED, 2},
    {SYS_newfstatat, FILTER_REFUSED, 2},
    {SYS_fstat, FILTER_REFUSED, 9},
    {SYS_setsockopt, FILTER_REFUSED, 1},
    {SYS_getuid, FILTER_REFUSED, 1},
    {SYS_socket, FILTER_REFUSED, 1},
};

/* What libraries read files for is read while there are some. */
static int warm_up(void)
{
    ssh_key key = NULL;

    if (ssh_init() < 0 || ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &key) < 0)
        return -1;
    ssh_key_free(key);
    if (ssh_pki_generate(SSH_KEYTYPE_ECDSA_P256, 0, &key) < 0)
        return -1;
    ssh_key_free(key);
    return 0;
}

static int give_up_rights(struct error *err)
{
    const struct confinement left = {
        .memory_bytes = MEMORY_BYTES,
        .cpu_seconds = CPU_SECONDS,
        .max_files = FILES,
        .rules = rules,
        .n_rules = ARRAY_SIZE(rules),
    };

    return confine(&left, err);
}

static bool has_server(void)
{
    struct stat info;

    return fstat(SSHD_CONTROL, &info) == 0 && S_ISSOCK(info.st_mode);
}

/* Waits for the server's connection; it may be long in coming. */
static int await_begin(struct sshd *sshd)
{
    if (ssh_wire_receive(SSHD_CONTROL, sshd->message, 0) <= 0 ||
        sshd->message->header.type != SSH_WIRE_BEGIN || sshd->message->n_fds != 1)
        return -1;
    int fd = ssh_wire_take(sshd->message, 0);
    int result = sshd_begin(sshd, sshd->message, fd);
    explicit_bzero(sshd->message->payload, sizeof sshd->message->payload);
    return result;
}

/* 0: keys are exchanged, and the session runs by its event. */
static int exchange_keys(struct sshd *sshd)
{
    struct pollfd fds[2];
    int result;

    while ((result = ssh_handle_key_exchange(sshd->session)) == SSH_AGAIN) {
        int flags = ssh_get_poll_flags(sshd->session);
        fds[0] =
            (struct pollfd){.fd = ssh_get_fd(sshd->session),
                            .events = (short)(POLLIN | (flags & SSH_WRITE_PENDING ? POLLOUT : 0))};
        fds[1] = (struct pollfd){.fd = SSHD_CONTROL, .events = POLLIN};
        (void)poll(fds, 2, sshd_has_ahead() ? 0 : -1);
        if (fds[1].revents)
            return -1; // nothing is to be said before somebody logs in
    }
    sshd->event = ssh_event_new();
    return result == SSH_OK && sshd->event ? ssh_event_add_session(sshd->event, sshd->session) : -1;
}

static bool is_any_ready(struct sshd *sshd)
{
    for (struct line *line = sshd->lines; line; line = line->next) {
        if (line_is_ready(line))
            return true;
    }
    return false;
}

/* For poll. */
static int time_left(int64_t until_ms)
{
    int64_t left = until_ms - sshd_now_ms();

    if (until_ms == INT64_MAX)
        return -1;
    return left > 0 ? (int)left : 0;
}

static void wait_for_any(struct sshd *sshd)
{
    struct pollfd fds[DESCRIPTORS];
    int64_t until_ms = INT64_MAX;
    unsigned count = 2;
    int status = ssh_get_status(sshd->session);

    fds[0] =
        (struct pollfd){.fd = ssh_get_fd(sshd->session),
                        .events = (short)(POLLIN | (status & SSH_WRITE_PENDING ? POLLOUT : 0))};
    fds[1] = (struct pollfd){.fd = SSHD_CONTROL, .events = POLLIN};
    for (struct line *line = sshd->lines; line; line = line->next)
        count += line->outward ? forward_poll(line, fds + count, &until_ms)
                               : line_poll(line, fds + count);
    unsigned listeners = listen_poll(sshd, fds + count);
    bool is_due = is_any_ready(sshd) || sshd->waiting || sshd_has_ahead();
    (void)poll(fds, count + listeners, is_due ? 0 : time_left(until_ms));
    listen_end_broken(sshd, fds + count, listeners);
    if (sshd_has_ahead())
        fds[0].revents |= POLLIN;
    if (fds[0].revents && ssh_event_dopoll(sshd->event, 0) == SSH_ERROR)
        sshd->is_over = true;
    for (int i = 0; i < PACKETS && (fds[0].revents & POLLIN) && !sshd->is_over; i++) {
        if (ssh_event_dopoll(sshd->event, 0) != SSH_OK)
            break; // nothing more has come
    }
    if (fds[1].revents || sshd->waiting)
        sshd_hear(sshd);
    listen_accept(sshd);
}

/* libssh reads nothing any more of who broke the protocol, and does not hang up. */
static bool has_failed(const struct sshd *sshd)
{
    return ssh_get_status(sshd->session) & (SSH_CLOSED | SSH_CLOSED_ERROR);
}

static void serve(struct sshd *sshd)
{
    while (!sshd->is_over && ssh_is_connected(sshd->session) && !has_failed(sshd)) {
        wait_for_any(sshd);
        for (struct line *line = sshd->lines; line; line = line->next)
            line_move(line);
        line_sweep(sshd);
    }
    ssh_disconnect(sshd->session);
}

int main(void)
{
    struct sshd *sshd = xnew(struct sshd);
    struct error err = {0};

    sshd->message = xnew(struct ssh_wire_message);
    if (!has_server()) {
        (void)fputs("burrow-ssh is started by burrow's server\n", stderr);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    if (warm_up() < 0 || give_up_rights(&err) < 0)
        return 1;
    sshd_tell(SSH_WIRE_READY, 0, 0, NULL, 0);
    if (await_begin(sshd) < 0)
        return 0;
    if (exchange_keys(sshd) == 0)
        serve(sshd);
    _exit(0); // what atexit would do needs calls that are gone
}
