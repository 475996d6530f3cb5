/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's terminal: raw while a command uses it, as it was afterwards.
 * Threads: one thread.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct terminal {
    int fd; // borrowed
    bool is_raw;
    struct termios before;
};

/* Raw, if `fd` is a terminal; otherwise nothing happens. */
int terminal_make_raw(struct terminal *terminal, int fd, struct error *err);
void terminal_restore(struct terminal *terminal);

/* Rows and columns of the terminal at `fd`; 24 and 80 where there is none or it does not say. */
void terminal_size(int fd, uint16_t *rows, uint16_t *cols);

/* Whether something that was written into the terminal's master is not read yet, an end of input included; true where that cannot be seen. */
bool terminal_has_unread(int master);

static inline void terminal_restorep(struct terminal *terminal)
{
    terminal_restore(terminal);
}
#define autoterminal __attribute__((cleanup(terminal_restorep))) struct terminal
