/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands between the caller's stdin, stdout and stderr and those of a command in a box: bytes both
 * ways, signals and the command's end, in one poll loop. One relay a process: it blocks the signals
 * it takes.
 * Threads: one thread.
 */
#pragma once
#include "base/error.h"
#include "cli/pump.h"

#include <signal.h>

struct relay {
    struct pump in;     // the caller's stdin to the command's
    struct pump out[2]; // the command's stdout and stderr to the caller's

    int event_fd; // readable when on_event should be called; -1: the relay ends with the outputs
    int (*on_event)(void *context, struct error *err); // 1: the command has ended; 0; -1
    int (*on_signal)(void *context, int signal, struct error *err); // 0, or -1 to give up
    /* When wake_at_ms (of clock_monotonic_ms) comes while the command lives: it is set to 0 before; 0 is never. */
    int (*on_wake)(void *context, struct error *err); // 0, or -1 to give up
    uint64_t wake_at_ms;
    /* Once, when all of the caller's stdin has been delivered; or NULL. */
    void (*on_input_end)(void *context);
    void *context;

    /* The relay's own. */
    int signal_fd;
    bool has_ended, is_stopped, has_told_input_end;
    sigset_t mask_before;
};

/*
 * From here on SIGINT, SIGTERM, SIGHUP, SIGQUIT (unless ignored, as nohup does) and SIGWINCH wait
 * for relay_run instead of ending the process, and SIGPIPE is blocked. All pumps are empty:
 * pump_init those that are needed.
 */
int relay_init(struct relay *relay, struct error *err);

/*
 * Relays until the command has ended and its output is delivered. A signal that would end a
 * program, come after the command's end, drops the rest. -1 when something failed on the way; the
 * rest went on till the end.
 */
int relay_run(struct relay *relay, struct error *err);

/* Lets go of all fds and gives the signals back. */
void relay_clear(struct relay *relay);
