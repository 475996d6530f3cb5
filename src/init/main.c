/* SPDX-License-Identifier: Apache-2.0 */
/* Program burrow-init: PID 1 of every box; see init.h. */
#include "init/init.h"

#include "base/auto.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define LAST_WISHES 1024
#define MAX_POLLED (4 * INIT_MAX_PROCESSES + 2)

static volatile sig_atomic_t has_dead_children;

static void on_child(int signal)
{
    (void)signal;
    has_dead_children = 1;
}

uint64_t init_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Whatever the engine's user ignores (servers ignore SIGPIPE) would be ignored by every guest. */
static void set_signals(void)
{
    struct sigaction action = {.sa_handler = on_child};
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t all;

    for (int signal = 1; signal < NSIG; signal++)
        (void)sigaction(signal, &usual, NULL);
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)sigaction(SIGCHLD, &action, NULL);
}

static bool read_boot(struct init *init)
{
    char buffer[1024] __attribute__((aligned(16)));
    struct link_message message;
    struct link_boot boot;

    if (link_receive(BOOT_CONTROL, buffer, sizeof buffer, &message, 0) != 1)
        return false;
    if (message.header.type != LINK_BOOT || message.header.length != sizeof boot)
        return false;
    memcpy(&boot, message.payload, sizeof boot);
    explicit_bzero(buffer, sizeof buffer);
    *init = (struct init){
        .control = BOOT_CONTROL,
        .listener = boot.fds & (1u << BOOT_LISTENER) ? BOOT_LISTENER : -1,
        .oom_fd = boot.fds & (1u << BOOT_OOM) ? BOOT_OOM : -1,
        .oom_adj_fd = boot.fds & (1u << BOOT_OOM_ADJ) ? BOOT_OOM_ADJ : -1,
        .nothing_fd = -1,
        .secret = boot.secret,
        .max_files = boot.max_files,
        .is_one_shot = boot.is_one_shot,
        .is_staying = boot.owner_loss == BOX_STAY,
        .drops_set_ids = boot.drops_set_ids,
    };
    for (int fd = BOOT_CONTROL; fd < BOOT_FDS_END; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(init->control, F_SETFL, O_NONBLOCK);
    return true;
}

/* Another engine has come; it is the one to talk to now. What the one before asked for is still done. */
static void accept_engine(struct init *init)
{
    int sock = accept4(init->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (sock < 0)
        return;
    for (unsigned i = 0; i < LAST_WISHES && init->control >= 0 && serve_control(init) > 0; i++)
        ;
    closep(&init->control);
    init->control = sock;
    init->is_control_full = false;
    serve_hello(init);
}

struct polled {
    struct pollfd fds[MAX_POLLED];
    struct output *outputs[MAX_POLLED]; // or NULL: then it is about the owner's input
    struct process *owners[MAX_POLLED]; // or NULL: the engine
    unsigned count;
};

static void watch(struct polled *p, int fd, short events, struct process *owner,
                  struct output *output)
{
    if (fd < 0 || p->count == MAX_POLLED)
        return;
    p->fds[p->count] = (struct pollfd){.fd = fd, .events = events};
    p->owners[p->count] = owner;
    p->outputs[p->count++] = output;
}

/* A process with a pipe may close its end at any time; one with a terminal has it until it ends. */
static void watch_input(struct polled *p, struct process *process)
{
    const struct input *input = &process->input;
    if (input->sink_fd < 0)
        return;
    if (input->is_full || !input->is_terminal)
        watch(p, input->sink_fd, input->is_full ? POLLOUT : 0, process, NULL);
    if (!input->is_full)
        watch(p, input->sock_fd, POLLIN, process, NULL);
}

static void gather(struct init *init, struct polled *p)
{
    p->count = 0;
    watch(p, init->control, init->is_control_full ? POLLIN | POLLOUT : POLLIN, NULL, NULL);
    watch(p, init->listener, POLLIN, NULL, NULL);
    for (struct process *process = init->processes; process; process = process->next) {
        for (int i = 0; i < 2; i++)
            watch(p, process->outputs[i].pipe_fd, POLLIN, process, &process->outputs[i]);
        watch_input(p, process);
    }
}

/* Until the next deadline or the next turn to tell of output. */
static bool next_wakeup(struct init *init, struct timespec *out)
{
    bool may_tell = init->control >= 0 && !init->is_control_full;
    uint64_t first = UINT64_MAX;
    for (struct process *process = init->processes; process; process = process->next) {
        if (process->deadline_us && process->deadline_us < first)
            first = process->deadline_us;
        if (process->has_new_output && may_tell &&
            init->output_announced_us + OUTPUT_EVERY_US < first)
            first = init->output_announced_us + OUTPUT_EVERY_US;
    }
    if (first == UINT64_MAX && !init->is_rank_raised)
        return false;
    uint64_t now = init_now_us();
    if (init->is_rank_raised && init->settle_at_us < first)
        first = init->settle_at_us;
    uint64_t wait = first > now ? first - now : 0;
    *out = (struct timespec){(time_t)(wait / 1000000), (long)(wait % 1000000) * 1000};
    return true;
}

static void enforce_deadlines(struct init *init)
{
    uint64_t now = init->processes ? init_now_us() : 0;
    for (struct process *process = init->processes; process; process = process->next) {
        if (process->deadline_us && process->deadline_us <= now) {
            process->is_timed_out = true;
            process->deadline_us = 0;
            process_kill_tree(init, process);
        }
    }
}

static void pump_input(struct input *input, const struct pollfd *polled)
{
    if (polled->fd == input->sink_fd && polled->revents & (POLLERR | POLLNVAL))
        input_close(input); // nobody reads it any more
    else if (polled->fd == input->sink_fd || polled->fd == input->sock_fd)
        input_pump(input);
}

static void pump(struct polled *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        if (!p->owners[i] || !p->fds[i].revents)
            continue;
        if (!p->outputs[i]) {
            pump_input(&p->owners[i]->input, &p->fds[i]);
            continue;
        }
        uint64_t before = p->outputs[i]->produced;
        if (!output_pump(p->outputs[i]))
            closep(&p->outputs[i]->pipe_fd);
        if (p->outputs[i]->produced != before)
            p->owners[i]->has_new_output = true;
    }
}

static bool is_ready(const struct polled *p, int fd, short events)
{
    for (unsigned i = 0; i < p->count && i < 2; i++) {
        if (p->fds[i].fd == fd && p->fds[i].revents & (events | POLLHUP | POLLERR))
            return true;
    }
    return false;
}

/* One round: wait, then whatever is due. */
static void wait_and_serve(struct init *init, struct polled *p)
{
    sigset_t open_mask;
    struct timespec wait;

    sigemptyset(&open_mask);
    gather(init, p);
    bool has_wait = next_wakeup(init, &wait);
    int ready = ppoll(p->fds, p->count, has_wait ? &wait : NULL, &open_mask);
    if (ready > 0)
        pump(p);
    if (has_dead_children) {
        has_dead_children = 0;
        process_reap(init);
    }
    enforce_deadlines(init);
    if (ready > 0 && init->control >= 0 && is_ready(p, init->control, POLLOUT))
        init->is_control_full = false;
    if (ready > 0 && init->control >= 0 && is_ready(p, init->control, POLLIN) &&
        serve_control(init) < 0) {
        closep(&init->control);
        if (!init->is_staying)
            _exit(0); // with PID 1 everything in the box ends
    }
    if (ready > 0 && init->listener >= 0 && is_ready(p, init->listener, POLLIN))
        accept_engine(init);
    serve_output(init);
    spawn_settle(init);
}

int main(void)
{
    static struct polled polled;
    struct init init;

    if (getpid() != 1)
        return 1;
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    // Out of the bounding set, so that nobody it starts has it; PID 1 itself keeps it.
    if (prctl(PR_CAPBSET_DROP, LINK_INIT_MARK, 0, 0, 0) < 0)
        return 1;
    set_signals();
    (void)setsid();
    (void)umask(022);
    if (!read_boot(&init))
        return 1;
    for (;;)
        wait_and_serve(&init, &polled);
}
