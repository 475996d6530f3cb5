/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of channels on their way between a client and the sandbox; see sshd.h. */
#include "ssh/sshd.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECES 8 // before others get their turn
#define NAMES 32

struct line *line_new(struct sshd *sshd)
{
    if (sshd->n_lines >= SSH_WIRE_CHANNELS)
        return NULL;
    struct line *line = calloc(1, sizeof *line);
    if (!line)
        return NULL;
    line->sshd = sshd;
    line->number = ++sshd->last_number;
    line->in_fd = line->out_fds[0] = line->out_fds[1] = line->spool_fd = -1;
    line->next = sshd->lines;
    sshd->lines = line;
    sshd->n_lines++;
    return line;
}

struct line *line_find(struct sshd *sshd, uint32_t number)
{
    for (struct line *line = sshd->lines; line; line = line->next) {
        if (line->number == number)
            return line;
    }
    return NULL;
}

static void line_free(struct line *line)
{
    listen_end(line->sshd, line->number);
    forward_free(line);
    if (line->is_asked)
        sshd_tell(SSH_WIRE_CLOSE, line->number, 0, NULL, 0);
    if (line->channel) {
        (void)ssh_remove_channel_callbacks(line->channel, &line->callbacks);
        ssh_channel_free(line->channel);
    }
    if (line->out_fds[0] != line->in_fd)
        closep(&line->out_fds[0]);
    closep(&line->in_fd);
    closep(&line->out_fds[1]);
    closep(&line->spool_fd);
    for (unsigned i = 0; i < line->n_variables; i++)
        free(line->variables[i]);
    free(line->held);
    free(line->back);
    free(line);
}

void line_sweep(struct sshd *sshd)
{
    for (struct line **at = &sshd->lines; *at;) {
        struct line *line = *at;
        if (!line->is_closed) {
            at = &line->next;
            continue;
        }
        *at = line->next;
        sshd->n_lines--;
        line_free(line);
        at = &sshd->lines; // others may have ended with it
    }
}

static void do_not_wait(int fd)
{
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void line_start(struct line *line, struct ssh_wire_message *message)
{
    if (line->is_started)
        return;
    line->is_started = true;
    if (line->has_terminal) {
        line->spool_fd = ssh_wire_take(message, 0);
    } else {
        line->in_fd = ssh_wire_take(message, 0);
        line->out_fds[0] = ssh_wire_take(message, 1);
        line->out_fds[1] = ssh_wire_take(message, 2);
    }
    do_not_wait(line->in_fd);
    do_not_wait(line->out_fds[0]);
    do_not_wait(line->out_fds[1]);
    if (message->header.value) {
        unsigned behind = line->has_terminal ? 1 : 3;
        int fd = ssh_wire_take(message, behind);
        listen_agent(line, fd, ssh_wire_take(message, behind + 1));
    }
}

void line_connect(struct line *line, int fd)
{
    do_not_wait(fd);
    line->is_started = true;
    line->in_fd = line->out_fds[0] = fd;
}

void line_exit(struct line *line, const struct ssh_wire_exit *exit)
{
    memcpy(&line->exit, exit, sizeof line->exit);
    line->has_exit = true;
}

static void give_back(struct line *line, const char *data, size_t length, bool is_error)
{
    free(line->back);
    line->back = malloc(length);
    if (!line->back)
        _exit(1);
    memcpy(line->back, data, length);
    line->back_at = 0;
    line->back_length = length;
    line->is_back_error = is_error;
}

void line_refuse(struct line *line, const char *why)
{
    static const char end[] = "\r\n";
    char text[1100] = "burrow: ";

    (void)strncat(text, why, sizeof text - 16);
    (void)strcat(text, end);
    if (!line->back_length)
        give_back(line, text, strlen(text), !line->has_terminal);
    line->has_exit = line->is_started = true;
    line->exit = (struct ssh_wire_exit){.code = 255};
    line->grown.is_complete = 1;
}

// ---- from the client ----

/* How much a descriptor takes now; what nobody reads any more is dropped. */
static size_t push(struct line *line, const char *data, size_t length)
{
    ssize_t wrote = line->in_fd < 0 ? (ssize_t)length : write(line->in_fd, data, length);

    if (wrote >= 0)
        return (size_t)wrote;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    if (!line->is_forward)
        closep(&line->in_fd);
    return length;
}

/* A terminal's input goes by the server, one piece at a time. */
static size_t push_terminal(struct line *line, const char *data, size_t length)
{
    if (line->is_input_under_way)
        return 0;
    if (line->has_exit)
        return length;
    if (length > SSH_WIRE_INPUT)
        length = SSH_WIRE_INPUT;
    sshd_tell(SSH_WIRE_INPUT_IS, line->number, 0, data, length);
    line->is_input_under_way = true;
    return length;
}

int line_take(struct line *line, const char *data, size_t length)
{
    size_t took = 0;

    if (line->is_started && !line->held_length)
        took = line->has_terminal ? push_terminal(line, data, length) : push(line, data, length);
    line->is_kept = took < length; // by libssh, and the client is told of no more room
    return (int)took;
}

static void end_now(struct line *line)
{
    if (line->has_terminal)
        sshd_tell(SSH_WIRE_INPUT_ENDS, line->number, 0, NULL, 0);
    else if (line->is_forward && line->in_fd >= 0)
        (void)shutdown(line->in_fd, SHUT_WR);
    else
        closep(&line->in_fd);
}

/* All that libssh has kept: with any read of a part it would tell the client of a whole window more, however much is left. */
static bool fetch(struct line *line)
{
    int length = line->is_kept ? ssh_channel_poll(line->channel, 0) : 0;

    line->is_kept = false;
    if (length <= 0)
        return false;
    free(line->held);
    line->held = malloc((size_t)length);
    if (!line->held)
        _exit(1);
    int got = ssh_channel_read_nonblocking(line->channel, line->held, (uint32_t)length, 0);
    line->held_at = 0;
    line->held_length = got > 0 ? (size_t)got : 0;
    return got > 0;
}

static void drain(struct line *line)
{
    for (int i = 0; i < PIECES; i++) {
        if (line->held_length == 0 && !fetch(line))
            return;
        const char *from = line->held + line->held_at;
        size_t took = line->has_terminal ? push_terminal(line, from, line->held_length)
                                         : push(line, from, line->held_length);
        line->held_at += took;
        line->held_length -= took;
        if (line->held_length)
            return;
    }
}

static bool has_unread(const struct line *line)
{
    return line->held_length || line->is_kept;
}

void line_end_input(struct line *line)
{
    if (!line->is_remote_eof || !line->is_started || has_unread(line) || line->is_input_under_way)
        return;
    line->is_remote_eof = false; // once
    end_now(line);
}

// ---- to the client ----

static uint32_t room(const struct line *line)
{
    if (ssh_get_status(line->sshd->session) & SSH_WRITE_PENDING)
        return 0; // its connection is full: what it would be told of stays where it is
    return line->channel ? ssh_channel_window_size(line->channel) : 0;
}

/* False: not all of it went. */
static bool send_piece(struct line *line, const char *data, size_t length, bool is_error)
{
    int sent = is_error ? ssh_channel_write_stderr(line->channel, data, (uint32_t)length)
                        : ssh_channel_write(line->channel, data, (uint32_t)length);

    if (sent < 0) {
        line->is_closed = true;
        return false;
    }
    if ((size_t)sent < length) // while keys are exchanged anew
        give_back(line, data + sent, length - (size_t)sent, is_error);
    return (size_t)sent == length;
}

static bool send_back(struct line *line)
{
    if (!line->back_length)
        return true;
    if (room(line) < line->back_length)
        return false;
    autofree char *data = take(line->back);
    size_t length = line->back_length;
    line->back_length = 0;
    return send_piece(line, data + line->back_at, length, line->is_back_error);
}

/* True: more may be there. */
static bool send_output(struct line *line, unsigned which)
{
    uint32_t fits = room(line);
    struct sshd *sshd = line->sshd;

    if (line->out_fds[which] < 0 || fits == 0)
        return false;
    ssize_t got = read(line->out_fds[which], sshd->piece,
                       fits < sizeof sshd->piece ? fits : sizeof sshd->piece);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        if (line->is_forward)
            line->out_fds[which] = -1; // in_fd holds it
        else
            closep(&line->out_fds[which]);
        return false;
    }
    return send_piece(line, sshd->piece, (size_t)got, which == 1);
}

static bool send_screen(struct line *line)
{
    uint32_t fits = room(line);
    struct sshd *sshd = line->sshd;

    if (line->shown < line->grown.first)
        line->shown = line->grown.first;
    if (line->spool_fd < 0 || fits == 0 || line->shown >= line->grown.size)
        return false;
    uint64_t left = line->grown.size - line->shown;
    size_t length = fits < sizeof sshd->piece ? fits : sizeof sshd->piece;
    if (left < length)
        length = (size_t)left;
    ssize_t got = pread(line->spool_fd, sshd->piece, length, (off_t)line->shown);
    if (got <= 0) { // it is gone: what cannot be read is not waited for
        line->shown = line->grown.size;
        return false;
    }
    line->shown += (uint64_t)got;
    return send_piece(line, sshd->piece, (size_t)got, false);
}

static bool is_silent(const struct line *line)
{
    if (line->back_length || !line->is_started)
        return false;
    if (line->has_terminal)
        return line->grown.is_complete && line->shown >= line->grown.size;
    return line->out_fds[0] < 0 && line->out_fds[1] < 0;
}

static const char *signal_word(int number)
{
    static const char *const names[NAMES] = {
        [1] = "HUP",   [2] = "INT",   [3] = "QUIT",  [4] = "ILL",   [5] = "TRAP",  [6] = "ABRT",
        [7] = "BUS",   [8] = "FPE",   [9] = "KILL",  [10] = "USR1", [11] = "SEGV", [12] = "USR2",
        [13] = "PIPE", [14] = "ALRM", [15] = "TERM", [24] = "XCPU", [25] = "XFSZ", [31] = "SYS"};

    return number > 0 && number < NAMES ? names[number] : NULL;
}

static void tell_exit(struct line *line)
{
    const char *word = signal_word(line->exit.signal);

    if (line->is_exit_told || !line->has_exit)
        return;
    line->is_exit_told = true;
    if (line->exit.text[0] && !line->back_length) {
        char text[256] = "burrow: ";
        (void)strncat(text, line->exit.text, sizeof text - 16);
        (void)strcat(text, "\r\n");
        give_back(line, text, strlen(text), !line->has_terminal);
        (void)send_back(line);
    }
    if (word)
        (void)ssh_channel_request_send_exit_signal(line->channel, word, 0, "", "");
    else
        (void)ssh_channel_request_send_exit_status(line->channel, line->exit.code);
}

static void finish(struct line *line)
{
    if (!line->channel || line->is_closed || !is_silent(line))
        return;
    if (!line->is_forward)
        tell_exit(line);
    if (!is_silent(line))
        return;
    if (!line->is_eof_told && (line->is_forward || line->has_exit)) {
        line->is_eof_told = true;
        (void)ssh_channel_send_eof(line->channel);
    }
    bool is_done = line->is_forward ? ssh_channel_is_eof(line->channel) && !has_unread(line)
                                    : line->is_exit_told;
    if (!is_done)
        return;
    (void)ssh_channel_close(line->channel);
    line->is_closed = true;
}

void line_move(struct line *line)
{
    if (line->outward && !line->is_closed)
        forward_move(line);
    if (line->is_answered && !line->is_closed)
        listen_move(line);
    if (!line->is_started || !line->channel || line->is_closed)
        return;
    drain(line);
    line_end_input(line);
    bool has_more = send_back(line);
    for (int i = 0; i < PIECES && has_more && !line->is_closed; i++) {
        has_more = line->has_terminal ? send_screen(line) : send_output(line, 0);
        if (!line->has_terminal && send_output(line, 1))
            has_more = true;
    }
    finish(line);
}

bool line_is_ready(struct line *line)
{
    return line->is_started && line->has_terminal && !line->is_closed &&
           line->shown < line->grown.size && room(line) > 0;
}

unsigned line_poll(struct line *line, struct pollfd *out)
{
    unsigned count = 0;
    bool has_room = !line->back_length && room(line) > 0;
    bool is_full = line->in_fd >= 0 && line->is_started && has_unread(line);

    if (line->is_forward && line->in_fd >= 0) {
        short events =
            (short)((has_room && line->out_fds[0] >= 0 ? POLLIN : 0) | (is_full ? POLLOUT : 0));
        if (events)
            out[count++] = (struct pollfd){.fd = line->in_fd, .events = events};
        return count;
    }
    if (is_full)
        out[count++] = (struct pollfd){.fd = line->in_fd, .events = POLLOUT};
    for (int i = 0; i < 2 && has_room; i++) {
        if (line->out_fds[i] >= 0)
            out[count++] = (struct pollfd){.fd = line->out_fds[i], .events = POLLIN};
    }
    return count;
}
