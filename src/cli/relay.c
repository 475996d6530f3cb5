/* SPDX-License-Identifier: Apache-2.0 */
/* The poll loop between a command in a box and its caller; see relay.h. */
#include "cli/relay.h"

#include "base/auto.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>

enum { LINGER_MS = 200 }; // for a terminal's last output, which the kernel delivers a little late

static const int taken_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};

static bool is_ignored(int signal)
{
    struct sigaction now;
    return signal != SIGWINCH && sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

int relay_init(struct relay *relay, struct error *err)
{
    sigset_t taken, blocked;

    *relay = (struct relay){.event_fd = -1, .signal_fd = -1};
    pump_init(&relay->in, -1, -1, "standard input");
    pump_init(&relay->out[0], -1, -1, "standard output");
    pump_init(&relay->out[1], -1, -1, "standard error");
    (void)sigemptyset(&taken);
    for (size_t i = 0; i < ARRAY_SIZE(taken_signals); i++) {
        if (!is_ignored(taken_signals[i]))
            (void)sigaddset(&taken, taken_signals[i]);
    }
    blocked = taken;
    (void)sigaddset(&blocked, SIGPIPE);
    (void)sigprocmask(SIG_BLOCK, &blocked, &relay->mask_before);
    relay->signal_fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (relay->signal_fd < 0)
        return error_sys(err, "take signals");
    return 0;
}

/* A broken pipe is told by EPIPE; its signal must not arrive once it is unblocked. */
static void forget_sigpipe(void)
{
    static const struct timespec now = {0};
    sigset_t broken;
    (void)sigemptyset(&broken);
    (void)sigaddset(&broken, SIGPIPE);
    while (sigtimedwait(&broken, NULL, &now) < 0 && errno == EINTR)
        continue;
}

void relay_clear(struct relay *relay)
{
    pump_clear(&relay->in);
    pump_clear(&relay->out[0]);
    pump_clear(&relay->out[1]);
    closep(&relay->signal_fd);
    forget_sigpipe();
    (void)sigprocmask(SIG_SETMASK, &relay->mask_before, NULL);
}

/* The first failure is the one to tell; what came of the others follows from it. */
struct failure {
    bool happened;
    struct error *err;
};

static void note(struct failure *failure, int status, const struct error *err)
{
    if (status < 0 && !failure->happened) {
        *failure->err = *err;
        failure->happened = true;
    }
}

static void take_signals(struct relay *relay, struct failure *failure)
{
    struct signalfd_siginfo info;
    struct error err;

    while (read(relay->signal_fd, &info, sizeof info) == sizeof info) {
        if (relay->has_ended && info.ssi_signo != SIGWINCH) {
            relay->is_stopped = true;
        } else if (!relay->has_ended && relay->on_signal) {
            int status = relay->on_signal(relay->context, (int)info.ssi_signo, &err);
            note(failure, status, &err);
            relay->is_stopped |= status < 0;
        }
    }
}

static void end_command(struct relay *relay)
{
    relay->has_ended = true;
    pump_stop(&relay->in);
    pump_finish(&relay->out[0]);
    pump_finish(&relay->out[1]);
}

static void take_event(struct relay *relay, struct failure *failure)
{
    struct error err;
    int status = relay->on_event(relay->context, &err);

    note(failure, status, &err);
    if (status != 0)
        end_command(relay);
}

/* What poll is asked, with its answers. */
struct questions {
    struct pollfd fds[8];
    nfds_t count;
    int event, signal; // index in fds, or -1
    int from[3], to[3];
};

static int ask(struct questions *questions, int fd, short events, bool is_wanted)
{
    if (!is_wanted || fd < 0)
        return -1;
    questions->fds[questions->count] = (struct pollfd){.fd = fd, .events = events};
    return (int)questions->count++;
}

static bool is_answered(const struct questions *questions, int index)
{
    return index >= 0 && questions->fds[index].revents != 0;
}

static struct pump *pump_of(struct relay *relay, int i)
{
    return i == 0 ? &relay->in : &relay->out[i - 1];
}

static void gather(struct relay *relay, struct questions *questions)
{
    questions->count = 0;
    questions->signal = ask(questions, relay->signal_fd, POLLIN, true);
    questions->event = ask(questions, relay->event_fd, POLLIN, !relay->has_ended);
    for (int i = 0; i < 3; i++) {
        struct pump *pump = pump_of(relay, i);
        questions->from[i] = ask(questions, pump->from, POLLIN, pump_wants_input(pump));
        questions->to[i] = ask(questions, pump->to, POLLOUT, pump_wants_output(pump));
    }
}

static void move_all(struct relay *relay, const struct questions *questions,
                     struct failure *failure)
{
    for (int i = 0; i < 3; i++) {
        struct pump *pump = pump_of(relay, i);
        struct error err;
        pump_ready(pump, is_answered(questions, questions->from[i]),
                   is_answered(questions, questions->to[i]));
        if (!pump->is_done)
            note(failure, pump_move(pump, &err), &err);
    }
}

/* Nothing came in time: a terminal has given its last. */
static void stop_lingering(struct relay *relay)
{
    for (int i = 0; i < 2; i++) {
        if (pump_is_lingering(&relay->out[i]))
            pump_stop(&relay->out[i]);
    }
}

static int until_wake_ms(const struct relay *relay)
{
    if (!relay->wake_at_ms || relay->has_ended)
        return -1;
    uint64_t now = clock_monotonic_ms();
    return relay->wake_at_ms > now ? (int)(relay->wake_at_ms - now) : 0;
}

static void take_wake(struct relay *relay, struct failure *failure)
{
    struct error err;

    if (until_wake_ms(relay) != 0)
        return;
    relay->wake_at_ms = 0;
    int status = relay->on_wake(relay->context, &err);
    note(failure, status, &err);
    relay->is_stopped |= status < 0;
}

static void tell_input_end(struct relay *relay)
{
    if (!relay->on_input_end || relay->has_told_input_end || !relay->in.is_done || relay->has_ended)
        return;
    relay->has_told_input_end = true;
    relay->on_input_end(relay->context);
}

static bool is_lingering(const struct relay *relay)
{
    return pump_is_lingering(&relay->out[0]) || pump_is_lingering(&relay->out[1]);
}

/* A command that has ended is not woken any more, so the two waits never meet. */
static int patience_ms(struct relay *relay)
{
    for (int i = 0; i < 3; i++) {
        if (pump_is_eager(pump_of(relay, i)))
            return 0;
    }
    return is_lingering(relay) ? LINGER_MS : until_wake_ms(relay);
}

static bool is_over(const struct relay *relay)
{
    bool is_delivered = relay->out[0].is_done && relay->out[1].is_done;
    return relay->is_stopped || (is_delivered && (relay->has_ended || relay->event_fd < 0));
}

int relay_run(struct relay *relay, struct error *err)
{
    struct failure failure = {.err = err};
    struct questions questions;

    while (!is_over(relay)) {
        gather(relay, &questions);
        int wait_ms = patience_ms(relay);
        int ready = poll(questions.fds, questions.count, wait_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready < 0)
            return error_sys(err, "wait for output");
        if (ready == 0 && wait_ms > 0)
            stop_lingering(relay);
        take_wake(relay, &failure);
        if (is_answered(&questions, questions.signal))
            take_signals(relay, &failure);
        move_all(relay, &questions, &failure);
        tell_input_end(relay);
        if (is_answered(&questions, questions.event))
            take_event(relay, &failure);
    }
    return failure.happened ? -1 : 0;
}
