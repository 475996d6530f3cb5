/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's terminal; see terminal.h. */
#include "cli/terminal.h"

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

int terminal_make_raw(struct terminal *terminal, int fd, struct error *err)
{
    *terminal = (struct terminal){.fd = fd};
    if (tcgetattr(fd, &terminal->before) < 0)
        return 0;
    struct termios raw = terminal->before;
    cfmakeraw(&raw);
    if (tcsetattr(fd, TCSADRAIN, &raw) < 0)
        return error_sys(err, "make the terminal raw");
    terminal->is_raw = true;
    return 0;
}

void terminal_restore(struct terminal *terminal)
{
    int saved = errno;
    if (terminal->is_raw)
        (void)tcsetattr(terminal->fd, TCSADRAIN, &terminal->before); // the terminal may be gone
    terminal->is_raw = false;
    errno = saved;
}

void terminal_size(int fd, uint16_t *rows, uint16_t *cols)
{
    struct winsize size = {0};

    if (ioctl(fd, TIOCGWINSZ, &size) < 0)
        size = (struct winsize){0};
    *rows = size.ws_row ? size.ws_row : 24;
    *cols = size.ws_col ? size.ws_col : 80;
}

bool terminal_has_unread(int master)
{
    // Only the other end knows, and only poll tells of an end of input: FIONREAD does not count it.
    autofd peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct pollfd question = {.fd = peer, .events = POLLIN};

    return peer < 0 || poll(&question, 1, 0) != 0;
}
