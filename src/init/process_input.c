/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input of processes on its way from the engine's socket into a pipe or terminal; see init.h. Bytes stay in the socket until the
 * process has room for them, so one that does not read costs no memory here and stops whoever sends.
 */
#include "init/init.h"

#include "base/auto.h"

#include <errno.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#define PIECE 4096
#define PIECES 16 // at most, before others get their turn

enum step { STEP_MOVED, STEP_EMPTY, STEP_FULL, STEP_CLOSED };

void input_close(struct input *input)
{
    closep(&input->sink_fd);
    closep(&input->sock_fd);
    closep(&input->later_fd);
    input->is_full = input->is_ending = false;
}

bool input_attach(struct input *input, int sock)
{
    const char answer = INPUT_IS_OPEN;

    if (input->sink_fd < 0 || (input->is_ending && !input->is_terminal) ||
        send(sock, &answer, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
        return false;
    if (input->sock_fd < 0) {
        input->sock_fd = sock;
        return true;
    }
    if (input->later_fd >= 0) { // two engines have died since the process last read
        (void)close(input->sock_fd);
        input->sock_fd = input->later_fd;
    }
    input->later_fd = sock;
    return true;
}

/* The engine has closed its end, or has died. */
static enum step take_next(struct input *input)
{
    closep(&input->sock_fd);
    input->sock_fd = take_fd(input->later_fd);
    return input->sock_fd >= 0 ? STEP_MOVED : STEP_EMPTY;
}

static enum step move_piece(struct input *input)
{
    char piece[PIECE];

    if (input->sock_fd < 0)
        return STEP_EMPTY;
    ssize_t got = recv(input->sock_fd, piece, sizeof piece, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
        return STEP_MOVED;
    if (got < 0 && errno == EAGAIN)
        return STEP_EMPTY;
    if (got <= 0)
        return take_next(input);
    ssize_t wrote = write(input->sink_fd, piece, (size_t)got);
    if (wrote < 0)
        return errno == EAGAIN ? STEP_FULL : errno == EINTR ? STEP_MOVED : STEP_CLOSED;
    (void)recv(input->sock_fd, piece, (size_t)wrote, MSG_DONTWAIT);
    return STEP_MOVED;
}

/* As if somebody had pressed Ctrl-D. */
static enum step type_end(struct input *input)
{
    struct termios settings;

    if (tcgetattr(input->sink_fd, &settings) < 0)
        return STEP_CLOSED;
    if (settings.c_cc[VEOF] != _POSIX_VDISABLE &&
        write(input->sink_fd, &settings.c_cc[VEOF], 1) < 0)
        return errno == EAGAIN ? STEP_FULL : STEP_CLOSED;
    input->is_ending = false;
    return STEP_EMPTY;
}

void input_pump(struct input *input)
{
    enum step step = STEP_MOVED;

    for (int i = 0; i < PIECES && step == STEP_MOVED && input->sink_fd >= 0; i++)
        step = move_piece(input);
    if (step == STEP_EMPTY && input->is_ending)
        step = input->is_terminal ? type_end(input) : STEP_CLOSED;
    input->is_full = step == STEP_FULL;
    if (step == STEP_CLOSED)
        input_close(input);
}

void input_end(struct input *input)
{
    input->is_ending = input->sink_fd >= 0;
    if (input->is_ending)
        input_pump(input);
}
