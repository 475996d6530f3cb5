/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with a living box; launch.c starts it. See box.h. */
#include "engine/box.h"

#include "base/clock.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/strings.h"
#include "engine/kernel.h"
#include "engine/launch.h"
#include "engine/link.h"
#include "engine/box_listener.h"
#include "engine/box_view.h"
#include "engine/slot.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#ifndef PIDFD_GET_USER_NAMESPACE
#define PIDFD_GET_USER_NAMESPACE _IO(0xFF, 9)
#endif
#define EVENT_BUFFER 1024 // what PID 1 sends is small
#define FROZEN_PATIENCE_MS 200
#define SKIPPED_IDS 8 // of processes that were never started
#define HELLO_PATIENCE_MS 10000
#define INPUT_PATIENCE_MS 10000

static int gone(const struct box *box, struct error *err)
{
    return error_refuse(err, ERROR_ENDED, "box", "the sandbox has ended");
}

static int tell(struct box *box, uint16_t type, uint16_t flags, uint32_t process,
                const void *payload, uint32_t length, const int *fds, unsigned n_fds,
                struct error *err)
{
    if (link_send(box->control, type, flags, process, payload, length, fds, n_fds) == 0)
        return 0;
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
        return gone(box, err);
    return error_sys(err, "write to PID 1 of sandbox '%s'", box->name);
}

void box_settle(struct box *box)
{
    for (unsigned left = atomic_exchange(&box->n_spent, 0); left > 0; left--)
        closep(&box->spent[left - 1]);
}

/* One whose children live on is not found under its number alone: its end takes nothing from it. */
static void leaf_name(uint32_t id, bool is_kept, char *name, size_t size)
{
    (void)snprintf(name, size, "%s%" PRIu32, is_kept ? "k" : "", id);
}

static bool is_terminal(const struct process_spec *spec)
{
    return spec->output == OUTPUT_TTY || spec->output == OUTPUT_TTY_SPOOL;
}

/* The fds of a SPAWN in the order of enum link_spawn_fd, and the bits that say which are there. */
static unsigned gather_fds(const struct process_spec *spec, const struct cgroup_leaf *leaf,
                           int answer, int *fds, uint32_t *bits)
{
    const int wanted[SPAWN_FDS] = {
        [SPAWN_STDIN] = spec->stdin_fd,
        [SPAWN_STDOUT] = spec->stdout_fd,
        [SPAWN_STDERR] = spec->stderr_fd == spec->stdout_fd ? -1 : spec->stderr_fd,
        [SPAWN_LEAF_INTO] = leaf->into_fd,
        [SPAWN_LEAF_KILL] = leaf->kill_fd,
        [SPAWN_LEAF_TASKS] = leaf->tasks_fd,
        [SPAWN_LEAF_FREEZER] = leaf->freezer_fd,
        [SPAWN_LEAF_PROCS] = leaf->procs_fd,
        [SPAWN_ANSWER] = answer,
        [SPAWN_PROGRAM] = spec->program_fd > 0 ? spec->program_fd : -1,
    };
    unsigned count = 0;
    *bits = 0;
    for (unsigned i = 0; i < SPAWN_FDS; i++) {
        if (is_terminal(spec) && (i == SPAWN_STDIN || i == SPAWN_STDERR))
            continue;
        if (spec->output == OUTPUT_TTY && i == SPAWN_STDOUT)
            continue;
        if (wanted[i] >= 0) {
            fds[count++] = wanted[i];
            *bits |= 1u << i;
        }
    }
    return count;
}

static int add_strings(struct buffer *payload, const char *const *list, uint32_t *count,
                       struct error *err)
{
    *count = 0;
    for (; list && *list; list++, (*count)++) {
        if (buffer_add(payload, *list, strlen(*list) + 1, err) < 0)
            return -1;
    }
    return 0;
}

static int describe_spawn(struct box *box, const struct process_spec *spec, uint32_t fd_bits,
                          struct buffer *payload, struct error *err)
{
    struct link_spawn spawn = {
        .fds = fd_bits,
        .output = is_terminal(spec) ? OUTPUT_TTY : spec->output, // one with a file has SPAWN_STDOUT
        .rows = spec->rows,
        .cols = spec->cols,
        .timeout_ms = (uint64_t)spec->command.timeout_ms,
        .output_cap_bytes = spec->output_cap_bytes,
    };
    const struct command *command = &spec->command;
    const char *user = command->user ? command->user : "";
    const char *directory = command->directory ? command->directory : "";

    spawn.flags |= spec->has_timestamps ? SPAWN_TIMESTAMPS : 0;
    spawn.flags |= spec->has_input ? SPAWN_INPUT : 0;
    spawn.flags |=
        spec->stderr_fd >= 0 && spec->stderr_fd == spec->stdout_fd ? SPAWN_ONE_OUTPUT : 0;
    if (buffer_add(payload, &spawn, sizeof spawn, err) < 0 ||
        buffer_add(payload, user, strlen(user) + 1, err) < 0 ||
        buffer_add(payload, directory, strlen(directory) + 1, err) < 0 ||
        add_strings(payload, command->argv, &spawn.n_argv, err) < 0 ||
        add_strings(payload, command->env, &spawn.n_env, err) < 0)
        return error_wrap(err, "the command with its environment is too long");
    spawn.strings = (uint32_t)(payload->length - sizeof spawn);
    memcpy(payload->data, &spawn, sizeof spawn);
    return 0;
}

/* PID 1's answer to a SPAWN that asked for one. */
static int receive_started(struct box *box, int sock, uint32_t id, int *tty_fd, struct error *err)
{
    char buffer[EVENT_BUFFER] __attribute__((aligned(16)));
    struct link_message message;

    int got = link_receive(sock, buffer, sizeof buffer, &message, 0);
    if (got == 0)
        return gone(box, err);
    if (got < 0)
        return error_sys(err, "read from PID 1 of sandbox '%s'", box->name);
    if (message.header.type != LINK_STARTED || message.header.process != id) {
        link_message_clear(&message);
        return error_set(err, ERROR_SYSTEM, "PID 1 of sandbox '%s' gave an unexpected answer",
                         box->name);
    }
    *tty_fd = -1;
    if (message.n_fds > 0) {
        *tty_fd = message.fds[0];
        message.fds[0] = -1;
    }
    link_message_clear(&message);
    return 0;
}

/* Pipes are made private to us; the guest must be able to open its own again, as /dev/stdout. */
static void open_pipes(const struct process_spec *spec)
{
    const int fds[] = {spec->stdin_fd, spec->stdout_fd, spec->stderr_fd};
    struct stat info;
    for (unsigned i = 0; i < ARRAY_SIZE(fds); i++) {
        if (fds[i] >= 0 && fstat(fds[i], &info) == 0 && S_ISFIFO(info.st_mode))
            (void)fchmod(fds[i], 0666);
    }
}

/* Sends the SPAWN, and takes the answer on a socket of its own when there is a terminal to get. */
static int request_spawn(struct box *box, const struct process_spec *spec,
                         const struct cgroup_leaf *leaf, int *tty_fd, struct error *err)
{
    autobuffer payload = {.maximum = LINK_MAX_PAYLOAD};
    int fds[SPAWN_FDS];
    uint32_t bits = 0;
    int pair[2] = {-1, -1};

    if (spec->output == OUTPUT_TTY &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make a socket pair");
    autofd own = pair[0];
    autofd peer = pair[1];
    open_pipes(spec);
    unsigned n_fds = gather_fds(spec, leaf, peer, fds, &bits);
    if (describe_spawn(box, spec, bits, &payload, err) < 0 ||
        tell(box, LINK_SPAWN, 0, spec->id, payload.data, (uint32_t)payload.length, fds, n_fds,
             err) < 0)
        return -1;
    closep(&peer);
    box_settle(box);
    return own < 0 ? 0 : receive_started(box, own, spec->id, tty_fd, err);
}

void box_prepare(struct box *box, uint32_t id)
{
    struct error ignored = {0};
    char name[16];

    leaf_name(id, false, name, sizeof name);
    if (!box->is_one_shot && box->ahead_id == 0 &&
        cgroup_leaf_make(box->cgroup, name, &ignored) == 0)
        box->ahead_id = id;
}

/* The leaf made ahead is for this process; one for another goes. */
static bool take_ahead(struct box *box, uint32_t id)
{
    struct error ignored = {0};
    char name[16];

    uint32_t ahead = atomic_exchange(&box->ahead_id, 0);
    if (ahead == id)
        return true;
    if (ahead != 0) {
        leaf_name(ahead, false, name, sizeof name);
        (void)cgroup_leaf_remove(box->cgroup, name, &ignored); // goes with the box at the latest
    }
    return false;
}

void box_unprepare(struct box *box, uint32_t id)
{
    struct error ignored = {0};
    char name[16];

    for (uint32_t i = id; i < id + SKIPPED_IDS && !box->is_one_shot; i++) {
        leaf_name(i, false, name, sizeof name);
        (void)cgroup_leaf_remove(box->cgroup, name, &ignored); // missing is fine
    }
}

static int make_leaf(struct box *box, uint32_t id, const char *name, struct cgroup_leaf *leaf,
                     struct error *err)
{
    if (take_ahead(box, id))
        return cgroup_leaf_open(box->cgroup, name, leaf, err);
    return cgroup_leaf_create(box->cgroup, name, leaf, err);
}

int box_spawn(struct box *box, const struct process_spec *spec, int *tty_fd, struct error *err)
{
    struct cgroup_leaf leaf = {-1, -1, -1, -1, -1};
    char name[16];

    if (command_check(&spec->command, err) < 0)
        return -1;
    if (spec->id == 0)
        return error_set(err, ERROR_INVALID, "a process needs an id other than 0");
    leaf_name(spec->id, spec->keeps_children, name, sizeof name);
    if (!box->is_one_shot &&
        (spec->keeps_children ? cgroup_leaf_create(box->cgroup, name, &leaf, err)
                              : make_leaf(box, spec->id, name, &leaf, err)) < 0)
        return -1;
    int result = request_spawn(box, spec, &leaf, tty_fd, err);
    cgroup_leaf_close(&leaf);
    if (result < 0)
        cgroup_leaf_drop(box->cgroup, name); // or it goes with the box
    return result < 0 ? error_wrap(err, "start '%s'", spec->command.argv[0]) : 0;
}

int box_event_fd(const struct box *box)
{
    return box->control;
}

static void read_exit(const struct link_message *message, struct process_exit *out)
{
    struct link_exit exit;
    memcpy(&exit, message->payload, sizeof exit);
    exit.text[sizeof exit.text - 1] = '\0';
    quote_scrub(exit.text);
    *out = (struct process_exit){
        .id = message->header.process,
        .cause = exit.cause <= CAUSE_BOX_ENDED ? exit.cause : CAUSE_EXIT,
        .code = exit.code & 0xff,
        .signal = exit.signal & 0x7f,
        .sys = exit.sys,
        .cpu_user_us = exit.cpu_user_us,
        .cpu_system_us = exit.cpu_system_us,
        .max_rss_bytes = exit.max_rss_bytes,
        .duration_us = exit.duration_us,
        .stdout_bytes = exit.stdout_bytes,
        .stderr_bytes = exit.stderr_bytes,
        .is_truncated = exit.truncation != 0,
        .is_output_lost = exit.truncation & OUTPUT_IS_LOST,
    };
    (void)snprintf(out->text, sizeof out->text, "%s", exit.text);
}

/* False for messages that say nothing to the caller. */
static bool read_event(const struct link_message *message, struct box_event *out)
{
    switch (message->header.type) {
    case LINK_EXITED:
        if (message->header.length != sizeof(struct link_exit))
            return false;
        out->kind = BOX_EVENT_EXIT;
        read_exit(message, &out->exit);
        return true;
    case LINK_OUTPUT: {
        struct link_output output;
        if (message->header.length != sizeof output)
            return false;
        memcpy(&output, message->payload, sizeof output);
        *out = (struct box_event){.kind = BOX_EVENT_OUTPUT,
                                  .id = message->header.process,
                                  .stdout_bytes = output.stdout_bytes,
                                  .stderr_bytes = output.stderr_bytes};
        return true;
    }
    default:
        return false;
    }
}

/* The next message that says something, until the deadline (-1: none). */
static int receive_event(struct box *box, struct box_event *out, int64_t deadline_ms,
                         struct error *err)
{
    char buffer[EVENT_BUFFER] __attribute__((aligned(16)));
    struct link_message message;

    for (;;) {
        if (deadline_ms >= 0) {
            int64_t left_ms = deadline_ms - (int64_t)clock_monotonic_ms();
            struct pollfd ready = {.fd = box->control, .events = POLLIN};
            int count = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
            if (count < 0 && errno == EINTR)
                continue;
            if (count == 0) {
                out->kind = BOX_EVENT_NONE;
                return 0;
            }
        }
        int got = link_receive(box->control, buffer, sizeof buffer, &message, 0);
        if (got == 0) {
            out->kind = BOX_EVENT_ENDED;
            return 0;
        }
        if (got < 0)
            return error_sys(err, "read from PID 1 of sandbox '%s'", box->name);
        bool is_event = read_event(&message, out);
        link_message_clear(&message);
        if (is_event)
            return 0;
    }
}

static void keep_exit(struct box *box, const struct process_exit *exit)
{
    struct kept_exit **at = &box->exits;
    while (*at)
        at = &(*at)->next;
    *at = xnew(struct kept_exit);
    (*at)->exit = *exit;
}

/* Takes the kept end of process `id` (0: the oldest of all). */
static bool take_exit(struct box *box, uint32_t id, struct process_exit *out)
{
    for (struct kept_exit **at = &box->exits; *at; at = &(*at)->next) {
        struct kept_exit *kept = *at;
        if (id != 0 && kept->exit.id != id)
            continue;
        *out = kept->exit;
        *at = kept->next;
        free(kept);
        return true;
    }
    return false;
}

int box_next(struct box *box, struct box_event *out, int timeout_ms, struct error *err)
{
    if (take_exit(box, 0, &out->exit)) {
        out->kind = BOX_EVENT_EXIT;
        return 0;
    }
    return receive_event(box, out, timeout_ms < 0 ? -1 : (int64_t)clock_monotonic_ms() + timeout_ms,
                         err);
}

static int await_exit(struct box *box, uint32_t id, int timeout_ms, struct process_exit *out,
                      struct error *err)
{
    int64_t deadline_ms = timeout_ms < 0 ? -1 : (int64_t)clock_monotonic_ms() + timeout_ms;
    struct box_event event;

    if (take_exit(box, id, out))
        return 0;
    for (;;) {
        if (receive_event(box, &event, deadline_ms, err) < 0)
            return -1;
        if (event.kind == BOX_EVENT_ENDED)
            return gone(box, err);
        if (event.kind == BOX_EVENT_EXIT && event.exit.id == id) {
            *out = event.exit;
            return 0;
        }
        if (event.kind == BOX_EVENT_EXIT)
            keep_exit(box, &event.exit);
        if (event.kind == BOX_EVENT_NONE ||
            (deadline_ms >= 0 && (int64_t)clock_monotonic_ms() > deadline_ms))
            return error_set(err, ERROR_TIMEOUT, "process %" PRIu32 " has not ended yet", id);
    }
}

int box_wait(struct box *box, uint32_t id, int timeout_ms, struct process_exit *out,
             struct error *err)
{
    struct process_exit exit;
    if (await_exit(box, id, timeout_ms, &exit, err) < 0)
        return -1;
    *out = exit;
    return box->is_one_shot ? 0 : box_collect(box, id, err);
}

int box_collect(struct box *box, uint32_t id, struct error *err)
{
    char name[16];
    leaf_name(id, true, name, sizeof name);
    if (tell(box, LINK_COLLECT, 0, id, NULL, 0, NULL, 0, err) < 0)
        return -1;
    cgroup_leaf_drop(box->cgroup, name); // a one-shot box has none of either
    leaf_name(id, false, name, sizeof name);
    return box->is_one_shot ? 0 : cgroup_leaf_remove(box->cgroup, name, err);
}

int box_signal(struct box *box, uint32_t id, int signal, bool is_whole_tree, struct error *err)
{
    struct link_signal request = {.signal = signal, .is_whole_tree = is_whole_tree};
    char name[16];
    autofd list = -1;

    if (signal <= 0 || signal > 64)
        return error_set(err, ERROR_INVALID, "there is no signal %d", signal);
    leaf_name(id, false, name, sizeof name);
    if (is_whole_tree && signal != SIGKILL && !box->is_one_shot)
        list = cgroup_leaf_procs_open(box->cgroup, name);
    return tell(box, LINK_SIGNAL, 0, id, &request, sizeof request, &list, list >= 0, err);
}

int box_resize(struct box *box, uint32_t id, uint16_t rows, uint16_t cols, struct error *err)
{
    struct link_resize request = {.rows = rows, .cols = cols};
    return tell(box, LINK_RESIZE, 0, id, &request, sizeof request, NULL, 0, err);
}

/* PID 1 says at once whether the process takes input. */
static int await_input(struct box *box, int sock, uint32_t id, struct error *err)
{
    struct pollfd ready = {.fd = sock, .events = POLLIN};
    char answer = 0;
    int count;

    do
        count = poll(&ready, 1, INPUT_PATIENCE_MS);
    while (count < 0 && errno == EINTR);
    if (count == 0)
        return error_set(err, ERROR_TIMEOUT, "PID 1 of sandbox '%s' does not answer", box->name);
    ssize_t got = recv(sock, &answer, 1, MSG_DONTWAIT);
    (void)shutdown(sock, SHUT_RD); // nothing else ever comes back
    if (got == 1 && answer == INPUT_IS_OPEN)
        return 0;
    return error_set(err, ERROR_COMPLETE, "process %" PRIu32 " takes no input", id);
}

int box_open_input(struct box *box, uint32_t id, int *out_fd, struct error *err)
{
    const int room = BOX_INPUT_BYTES;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make a socket pair");
    autofd own = pair[0];
    autofd peer = pair[1];
    (void)setsockopt(own, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (tell(box, LINK_INPUT, 0, id, NULL, 0, &peer, 1, err) < 0)
        return -1;
    closep(&peer);
    if (await_input(box, own, id, err) < 0)
        return -1;
    *out_fd = take_fd(own);
    return 0;
}

int box_end_input(struct box *box, uint32_t id, struct error *err)
{
    return tell(box, LINK_END_INPUT, 0, id, NULL, 0, NULL, 0, err);
}

int box_freeze(struct box *box, struct error *err)
{
    if (cgroup_freeze(box->cgroup, err) < 0)
        return -1;
    box->is_frozen = true;
    return 0;
}

int box_thaw(struct box *box, struct error *err)
{
    if (cgroup_thaw(box->cgroup, err) < 0)
        return -1;
    box->is_frozen = false;
    return 0;
}

int box_usage(struct box *box, struct cgroup_usage *out, struct error *err)
{
    return cgroup_usage(box->cgroup, out, err);
}

int box_disk_usage(struct box *box, uint64_t *bytes, struct error *err)
{
    return volume_scratch_usage(box->engine->volume, box->scratch, false, bytes, err);
}

int box_set_limits(struct box *box, const struct limits *limits, struct error *err)
{
    const struct volume_limits disk = {.bytes = (uint64_t)limits->disk_bytes};

    if (cgroup_set_limits(box->cgroup, limits, err) < 0 ||
        volume_scratch_limit(box->engine->volume, box->scratch, &disk, err) < 0)
        return -1;
    return box_view_set(box, limits, err);
}

int box_set_cpu(struct box *box, int64_t millicores, struct error *err)
{
    return cgroup_set_cpu(box->cgroup, millicores, err);
}

int box_files(struct box *box, const char *user, const char *base, int *out_fd, struct error *err)
{
    int pair[2];
    autobuffer who = {.maximum = 8192};

    if (buffer_add(&who, user ? user : "", user ? strlen(user) + 1 : 1, err) < 0 ||
        buffer_add(&who, base ? base : "", base ? strlen(base) + 1 : 1, err) < 0)
        return error_wrap(err, "user and directory are too long");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make a socket pair");
    autofd own = pair[0];
    autofd peer = pair[1];
    if (tell(box, LINK_FILES, 0, 0, who.data, (uint32_t)who.length, &peer, 1, err) < 0)
        return -1;
    *out_fd = take_fd(own);
    return 0;
}

bool box_has_resident(const struct box *box)
{
    return box->has_resident;
}

unsigned box_process_count(const struct box *box)
{
    return box->n_processes;
}

pid_t box_pid(const struct box *box)
{
    return box->pid;
}

unsigned box_slot(const struct box *box)
{
    return box->slot;
}

const char *box_scratch(const struct box *box)
{
    return box->scratch;
}

/* PID 1 greets whoever comes, and hands over the slot's lock, so that the slot stays ours until the box is removed. */
static int receive_hello(struct box *box, struct error *err)
{
    char buffer[EVENT_BUFFER] __attribute__((aligned(16)));
    struct link_message message;
    struct link_hello hello = {0};
    struct pollfd ready = {.fd = box->control, .events = POLLIN};

    int n_ready = 0;
    do
        n_ready = poll(&ready, 1, HELLO_PATIENCE_MS);
    while (n_ready < 0 && errno == EINTR);
    if (n_ready == 0)
        return error_set(err, ERROR_TIMEOUT, "PID 1 of sandbox '%s' does not answer", box->name);
    int got = link_receive(box->control, buffer, sizeof buffer, &message, 0);
    if (got > 0 && message.header.type == LINK_HELLO && message.n_fds == 1 &&
        message.header.length == sizeof hello) {
        memcpy(&hello, message.payload, sizeof hello);
        box->is_one_shot = hello.is_one_shot;
        box->n_processes = hello.n_processes;
        box->slot_fd = message.fds[0];
        box->has_slot = true;
        slot_add(&box->engine->own_slots, box->slot);
        message.fds[0] = -1;
    }
    if (got > 0)
        link_message_clear(&message);
    if (!box->has_slot)
        return gone(box, err);
    slot_keep(box->engine->holder_fd, box->slot, &box->slot_fd);
    if (hello.version != LINK_VERSION)
        return error_set(err, ERROR_CONFLICT, "sandbox '%s' speaks version %u of the link, not %u",
                         box->name, hello.version, LINK_VERSION);
    return 0;
}

/* PID 1 holds its slot; a socket that was kept for the next box is nobody's. */
static bool is_lived_in(const struct engine *engine, unsigned slot)
{
    autofd held = slot_try(engine->slots_fd, slot);
    return held < 0;
}

static int no_box(unsigned slot, struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, "box", "no sandbox lives in slot %u", slot);
}

int box_adopt(struct engine *engine, unsigned slot, const char *scratch, struct box **out,
              struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    autoptr(box) box = xnew(struct box);

    *box = (struct box){.engine = engine,
                        .slot = slot,
                        .slot_fd = -1,
                        .control = -1,
                        .owner_loss = BOX_STAY,
                        .has_network = true,
                        .is_scratch_kept = scratch != NULL};
    if (engine_open_run_dir(engine, err) < 0)
        return -1;
    if (!is_lived_in(engine, slot))
        return no_box(slot, err);
    (void)snprintf(box->name, sizeof box->name, "%u", slot);
    if (scratch)
        (void)snprintf(box->scratch, sizeof box->scratch, "%s", scratch);
    else
        (void)snprintf(box->scratch, sizeof box->scratch, "run-%u", slot);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%u", engine->run_fd,
                   slot);
    box->control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (box->control < 0)
        return error_sys(err, "make a socket");
    if (connect(box->control, (struct sockaddr *)&address, sizeof address) < 0)
        return no_box(slot, err);
    if (receive_hello(box, err) < 0 || engine_open_group(engine, box->name, &box->cgroup, err) < 0)
        return error_wrap(err, "adopt the sandbox in slot %u", slot);
    *out = take(box);
    return 0;
}

void box_drop_slot(struct box *box, bool is_clean)
{
    struct engine *engine = box->engine;

    if (!box->has_slot)
        return;
    box->has_slot = false;
    if (box->slot_fd < 0) {
        slot_release(engine->holder_fd, &engine->own_slots, box->slot, is_clean);
        return;
    }
    if (is_clean)
        slot_is_clean(box->slot_fd);
    slot_drop(&engine->own_slots, box->slot, &box->slot_fd);
}

/*
 * PID 1 ends after everything in its process namespace, and on v1 what is frozen does not: then the whole group is
 * killed, which thaws.
 */
static void await_namespace(struct box *box)
{
    struct error ignored = {0};
    bool is_v1 = cgroup_root_mode(box->engine->cgroups) == CGROUP_V1;
    autofd pidfd = is_v1 ? sys_pidfd_open(box->pid) : -1;
    struct pollfd end = {.fd = pidfd, .events = POLLIN};

    if (!is_v1)
        return;
    if (box->is_frozen || poll(&end, 1, FROZEN_PATIENCE_MS) == 0)
        (void)cgroup_kill(box->cgroup, &ignored);
}

/*
 * Kills PID 1 and waits until it, and with it everything in its process namespace, is gone. Until it is waited for, which nobody else
 * does, its number is not given to another.
 */
static int end_child(struct box *box, struct error *err)
{
    siginfo_t info;

    (void)kill(box->pid, SIGKILL);
    await_namespace(box);
    while (waitid(P_PID, (id_t)box->pid, &info, WEXITED | __WALL) < 0) {
        if (errno != EINTR)
            return errno == ECHILD ? 0 : error_sys(err, "wait for sandbox '%s'", box->name);
    }
    box->is_child = false;
    return 0;
}

static bool is_file(int fd, ino_t file)
{
    struct stat info;
    return fd >= 0 && fstat(fd, &info) == 0 && info.st_ino == file;
}

/* Linux 6.11 has a request for it. */
static int open_user_namespace(int pidfd, pid_t pid)
{
    char path[32];
    int fd = ioctl(pidfd, PIDFD_GET_USER_NAMESPACE, 0);

    if (fd >= 0)
        return fd;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* What PID 1 still has of that which goes to the next box of the slot, if it is what it was given. */
static void recycle(struct box *box)
{
    autofd pidfd =
        box->is_child && (box->ids_file || box->listener_file) ? sys_pidfd_open(box->pid) : -1;
    if (pidfd < 0)
        return;
    autofd ids = box->ids_file ? open_user_namespace(pidfd, box->pid) : -1;
    if (is_file(ids, box->ids_file))
        engine_keep_ids(box->engine, box->slot, &ids);
    autofd listener = box->listener_file ? sys_pidfd_getfd(pidfd, BOOT_LISTENER) : -1;
    if (is_file(listener, box->listener_file))
        listener_keep(box->engine, box->slot, &listener);
}

int box_end(struct box *box, struct error *err)
{
    struct error first = {0};

    box_settle(box);
    recycle(box);
    if (box->is_child)
        (void)end_child(box, &first);
    struct error later = {0};
    if (box->cgroup && cgroup_remove(box->cgroup, &later) < 0 && !first.reason)
        first = later;
    if (!box->is_scratch_kept &&
        volume_scratch_remove(box->engine->volume, box->scratch, &later) < 0 && !first.reason)
        first = later;
    if (box_leave_network(box, &later) < 0 && !first.reason)
        first = later;
    if (box->owner_loss == BOX_STAY)
        listener_drop(box->engine, box->slot);
    box_drop_slot(box, !first.reason);
    if (first.reason) {
        *err = first;
        return error_wrap(err, "end sandbox '%s'", box->name);
    }
    return 0;
}

/* Reaps a child that ends by losing its owner; a BOX_STAY box goes on, as our child until we end. */
static void let_go(struct box *box)
{
    struct error ignored = {0};
    if (box->is_child && box->owner_loss == BOX_END)
        (void)end_child(box, &ignored);
}

void box_free(struct box *box)
{
    if (!box)
        return;
    let_go(box);
    box_settle(box);
    closep(&box->control);
    box_drop_slot(box, false);
    for (struct process_exit ignored; take_exit(box, 0, &ignored);)
        ;
    cgroup_free(box->cgroup);
    free(box);
}
