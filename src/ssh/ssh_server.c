/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that lets people into sandboxes by SSH, and its processes; see ssh_server.h. */
#include "ssh/ssh_server.h"

#include "base/child.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/account/ssh_login.h"
#include "core/stream/stream.h"
#include "ssh/ssh_server_impl.h"

#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "burrow-ssh"
#define QUICK_THREADS 4
#define SLOW_THREADS 8
#define QUEUE 4096
#define CONTROL_BYTES (512 << 10)
#define TOUCH_MS 10000

// ---- errands ----

struct ssh_errand *ssh_errand_new(struct ssh_connection *connection, uint32_t channel,
                                  void (*work)(struct ssh_errand *),
                                  void (*end)(struct ssh_errand *))
{
    struct ssh_errand *errand = xnew(struct ssh_errand);

    errand->server = connection->server;
    errand->connection = ssh_connection_ref(connection);
    errand->channel = channel;
    errand->asker = channel ? ssh_channel_ref(ssh_channel_find(connection, channel)) : NULL;
    errand->work = work;
    errand->end = end;
    errand->actor = connection->actor;
    memcpy(errand->sandbox_id, connection->sandbox_id, sizeof errand->sandbox_id);
    memcpy(errand->fingerprint, connection->fingerprint, sizeof errand->fingerprint);
    for (unsigned i = 0; i < ARRAY_SIZE(errand->fds); i++)
        errand->fds[i] = -1;
    return errand;
}

static void errand_free(struct ssh_errand *errand)
{
    ssh_channel_unref(errand->asker);
    if (errand->connection)
        ssh_connection_unref(errand->connection);
    for (unsigned i = 0; i < ARRAY_SIZE(errand->fds); i++)
        closep(&errand->fds[i]);
    stream_free(errand->stream);
    execution_info_clear(&errand->info);
    free(errand->message);
    free(errand);
}

static void end_errand(void *data)
{
    struct ssh_errand *errand = data;

    errand->end(errand);
    errand_free(errand);
}

static void run_errand(void *data)
{
    struct ssh_errand *errand = data;

    errand->work(errand);
    loop_post(errand->server->loop, end_errand, errand);
}

bool ssh_errand_send(struct ssh_errand *errand, enum workers_lane lane)
{
    const struct ssh_connection *connection = errand->connection;
    const struct turns_owner owner = {.who = connection ? id_hash(connection->sandbox_id) : 0,
                                      .what = (uint64_t)(uintptr_t)connection};
    struct error err = {0};

    if (workers_submit_for(errand->server->workers, lane, &owner, run_errand, errand, &err) == 0)
        return true;
    errand_free(errand);
    return false;
}

// ---- processes ----

static int start_process(const char *program, struct ssh_process *out, struct error *err)
{
    int pair[2], room = CONTROL_BYTES;
    char *argv[] = {(char *)PROGRAM, NULL};

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_sys(err, "make a socket for " PROGRAM);
    autofd ours = pair[0];
    autofd theirs = pair[1];
    (void)setsockopt(ours, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    const struct child child = {program, argv, NULL, {theirs, CHILD_NOTHING, CHILD_NOTHING}};
    int code = child_start(&child, &out->pid);
    if (code)
        return error_sys_code(err, code, "start '%s'", program);
    out->pidfd = pidfd_open(out->pid, 0);
    if (out->pidfd < 0) {
        (void)error_sys(err, "watch " PROGRAM);
        (void)kill(out->pid, SIGKILL);
        (void)waitpid(out->pid, NULL, 0);
        return -1;
    }
    out->control = take_fd(ours);
    return 0;
}

static void process_free(struct ssh_process *process)
{
    struct ssh_server *server = process->server;

    *process->place = process->next;
    if (process->next)
        process->next->place = process->place;
    if (process->is_spare)
        server->n_spares--;
    loop_watch_free(process->watch);
    closep(&process->control);
    closep(&process->pidfd);
    free(process);
}

void ssh_process_kill(struct ssh_process *process)
{
    process->is_killed = true;
    process->connection = NULL;
    closep(&process->control);
    (void)pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
}

/* One that crashed has met something that it should have refused: somebody should know. */
static void log_end(const struct ssh_process *process, const siginfo_t *info)
{
    const char *peer = process->connection ? process->connection->peer_text : "";

    if (info->si_code != CLD_EXITED && !process->is_killed)
        log_error(PROGRAM " has crashed; only its connection is lost",
                  F("signal", (int64_t)info->si_status), F("peer", peer));
    else if (info->si_code == CLD_EXITED && info->si_status != 0 && !process->is_killed)
        log_error(PROGRAM " could not run", F("exitCode", (int64_t)info->si_status));
}

static void on_process_end(void *data, unsigned events)
{
    struct ssh_process *process = data;
    struct ssh_connection *connection = process->connection;
    siginfo_t info = {0};

    (void)events;
    if (waitid(P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
        return;
    log_end(process, &info);
    if (connection) {
        connection->process = NULL; // what it said last is lost with it
        ssh_connection_end(connection, "closed");
    }
    process_free(process);
}

/* Puts one that a worker has started among those of the server. */
static struct ssh_process *add_process(struct ssh_server *server, struct ssh_errand *errand)
{
    struct ssh_process *process = xnew(struct ssh_process);
    struct error err = {0};

    *process = errand->process;
    process->server = server;
    if (loop_watch_new(server->loop, process->pidfd, on_process_end, process, &process->watch,
                       &err) < 0) {
        (void)pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
        (void)waitid(P_PIDFD, (id_t)process->pidfd, &(siginfo_t){0}, WEXITED);
        closep(&process->control);
        closep(&process->pidfd);
        free(process);
        return NULL;
    }
    loop_watch_set(process->watch, LOOP_READABLE);
    process->next = server->processes;
    process->place = &server->processes;
    if (process->next)
        process->next->place = &process->next;
    server->processes = process;
    return process;
}

static void work_process(struct ssh_errand *errand)
{
    errand->result = start_process(errand->server->program, &errand->process, &errand->err);
}

static void end_spare(struct ssh_errand *errand)
{
    struct ssh_server *server = errand->server;
    struct ssh_process *process = errand->result == 0 ? add_process(server, errand) : NULL;

    server->n_spares_coming--;
    if (errand->result < 0)
        log_warn("SSH has no process at hand", F("error", (const char *)errand->err.text));
    if (!process)
        return;
    process->is_spare = true;
    server->n_spares++;
    if (server->is_stopping)
        ssh_process_kill(process);
}

static void fill_spares(struct ssh_server *server)
{
    while (server->n_listeners && !server->is_stopping &&
           server->n_spares + server->n_spares_coming < SSH_SPARES) {
        struct ssh_errand *errand = xnew(struct ssh_errand);
        *errand = (struct ssh_errand){
            .server = server, .work = work_process, .end = end_spare, .fds = {-1, -1, -1, -1, -1}};
        server->n_spares_coming++;
        if (!ssh_errand_send(errand, WORKERS_SLOW)) {
            server->n_spares_coming--;
            return;
        }
    }
}

static void end_equip(struct ssh_errand *errand)
{
    struct ssh_connection *connection = errand->connection;
    struct ssh_process *process = errand->result == 0 ? add_process(errand->server, errand) : NULL;

    if (errand->result < 0)
        log_error("a connection of SSH has no process", F("error", (const char *)errand->err.text));
    if (!process)
        ssh_connection_end(connection, "no process");
    else if (!connection->place)
        ssh_process_kill(process);
    else
        ssh_connection_attach(connection, process);
}

void ssh_server_equip(struct ssh_connection *connection)
{
    struct ssh_server *server = connection->server;

    for (struct ssh_process *process = server->processes; process; process = process->next) {
        if (process->is_spare && !process->is_killed) {
            process->is_spare = false;
            server->n_spares--;
            ssh_connection_attach(connection, process);
            fill_spares(server);
            return;
        }
    }
    fill_spares(server);
    if (!ssh_errand_send(ssh_errand_new(connection, 0, work_process, end_equip), WORKERS_SLOW))
        ssh_connection_end(connection, "too many at once");
}

// ---- keys and sandboxes that go ----

static void recheck_all(void *data)
{
    struct ssh_server *server = data;
    struct ssh_connection *next;

    atomic_store(&server->is_keys_posted, false);
    for (struct ssh_connection *at = server->connections; at; at = next) {
        next = at->next;
        if (at->is_in && !at->is_tunnel)
            ssh_connection_recheck(at);
    }
}

static void on_keys_changed(void *data)
{
    struct ssh_server *server = data;

    if (!atomic_exchange(&server->is_keys_posted, true))
        loop_post(server->loop, recheck_all, server);
}

struct ended_key {
    struct ssh_server *server;
    char key_id[ID_TEXT];
};

static void end_key(void *data)
{
    autofree struct ended_key *ended = data;
    struct ssh_connection *next;

    for (struct ssh_connection *at = ended->server->connections; at; at = next) {
        next = at->next;
        if (strcmp(at->actor.key_id, ended->key_id) != 0)
            continue;
        if (at->is_tunnel) // it can be opened again by a key that is still good
            ssh_connection_end(at, "its key has ended or changed");
        else if (at->is_in)
            ssh_connection_recheck(at);
    }
}

void ssh_server_key_ended(struct ssh_server *server, const char *key_id)
{
    struct ended_key *ended = xnew(struct ended_key);

    ended->server = server;
    (void)snprintf(ended->key_id, sizeof ended->key_id, "%s", key_id);
    loop_post(server->loop, end_key, ended);
}

/* Whoever is connected uses the sandbox. */
static void on_touch(void *data)
{
    struct ssh_server *server = data;

    for (struct ssh_connection *at = server->connections; at; at = at->next) {
        if (at->is_in)
            port_touch(server->settings.core->ports, at->sandbox_id);
    }
    loop_timer_set(&server->touch, TOUCH_MS);
}

// ---- listening ----

static void on_accept(void *owner, int fd)
{
    ssh_connection_accept(owner, fd, NULL, NULL);
}

static const struct listener_events listener_events = {.on_accept = on_accept};

struct arrival {
    struct ssh_server *server;
    int fd;
    struct actor actor;
    char sandbox_id[ID_TEXT];
};

static void on_arrival(void *data)
{
    autofree struct arrival *arrival = data;

    if (arrival->server->is_stopping)
        (void)close(arrival->fd);
    else
        ssh_connection_accept(arrival->server, arrival->fd, &arrival->actor, arrival->sandbox_id);
}

void ssh_server_adopt(struct ssh_server *server, int fd, const struct actor *actor,
                      const char *sandbox_id)
{
    struct arrival *arrival = xnew(struct arrival);

    *arrival = (struct arrival){.server = server, .fd = fd, .actor = *actor};
    arrival->actor.tenant = arrival->actor.scope = arrival->actor.project = NULL; // borrowed
    arrival->actor.cancel = NULL;
    (void)snprintf(arrival->sandbox_id, sizeof arrival->sandbox_id, "%s", sandbox_id);
    loop_post(server->loop, on_arrival, arrival);
}

static int listen_everywhere(struct ssh_server *server, struct error *err)
{
    const struct ssh_settings *settings = &server->settings;

    for (size_t i = 0; i < settings->n_addresses; i++) {
        if (listener_open_tcp(server->loop, settings->addresses[i], &listener_events, server,
                              &server->listeners[i], err) < 0)
            return error_wrap(err, "--ssh-listen");
        server->n_listeners++;
        log_info("listening for SSH", F("address", listener_address(server->listeners[i])),
                 F("hostKey", (const char *)server->keys[0].fingerprint));
    }
    return 0;
}

const char *ssh_server_address(const struct ssh_server *server)
{
    return server->n_listeners ? listener_address(server->listeners[0]) : NULL;
}

const struct ssh_host_key *ssh_server_keys(const struct ssh_server *server)
{
    return server->keys;
}

// ---- what is off unless the operator allows it ----

int ssh_allow_parse(const char *words, unsigned *out, struct error *err)
{
    static const struct {
        const char *word;
        unsigned flag;
    } known[] = {{"remote-forward", SSH_WIRE_ALLOWS_LISTEN}, {"agent", SSH_WIRE_ALLOWS_AGENT}};

    *out = 0;
    while (words && *words) {
        size_t length = strcspn(words, ","), i = 0;
        while (i < ARRAY_SIZE(known) &&
               (strlen(known[i].word) != length || memcmp(words, known[i].word, length) != 0))
            i++;
        if (i == ARRAY_SIZE(known))
            return error_set(err, ERROR_INVALID,
                             "ssh-allow '%.*s' is not known: write remote-forward, agent or both "
                             "with a comma between",
                             (int)(length < 100 ? length : 100), words);
        *out |= known[i].flag;
        words += length + (words[length] == ',');
    }
    return 0;
}

// ---- start and end ----

static int find_program(struct ssh_server *server, struct error *err)
{
    char *out = server->program;

    if (server->settings.program) {
        (void)snprintf(out, sizeof server->program, "%s", server->settings.program);
        return 0;
    }
    ssize_t length = readlink("/proc/self/exe", out, sizeof server->program - sizeof PROGRAM - 1);
    if (length < 0)
        return error_sys(err, "find " PROGRAM);
    out[length] = '\0';
    char *slash = strrchr(out, '/');
    memcpy(slash ? slash + 1 : out, PROGRAM, sizeof PROGRAM);
    return 0;
}

static void set_lane(struct workers_settings *lanes, enum workers_lane which, unsigned threads,
                     const char *name)
{
    lanes->lane[which].threads = threads;
    lanes->lane[which].queue = QUEUE;
    lanes->lane[which].name = name;
}

static int start_workers(struct ssh_server *server, struct error *err)
{
    struct workers_settings lanes = {0};

    set_lane(&lanes, WORKERS_QUICK, QUICK_THREADS, "ssh_quick");
    set_lane(&lanes, WORKERS_SLOW, SLOW_THREADS, "ssh_slow");
    set_lane(&lanes, WORKERS_CONTROL, 1, "ssh_control");
    lanes.lane[WORKERS_QUICK].per_what = 1; // orders to a terminal stay in order
    lanes.lane[WORKERS_SLOW].per_who = SLOW_THREADS / 2;
    return workers_new(&lanes, &server->workers, err);
}

static void *run_thread(void *data)
{
    struct ssh_server *server = data;

    thread_set_name("ssh");
    thread_mark_loop(true);
    loop_run(server->loop);
    thread_mark_loop(false);
    return NULL;
}

static void begin(void *data)
{
    struct ssh_server *server = data;

    loop_timer_init(&server->touch, server->loop, on_touch, server);
    ssh_pace_init(server);
    loop_timer_set(&server->touch, TOUCH_MS);
    fill_spares(server);
}

static int start_thread(struct ssh_server *server, struct error *err)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&server->thread, NULL, run_thread, server);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code)
        return error_sys_code(err, code, "start the thread of SSH");
    server->is_started = true;
    loop_post(server->loop, begin, server);
    return 0;
}

int ssh_server_new(const struct ssh_settings *settings, struct ssh_server **out, struct error *err)
{
    autoptr(ssh_server) server = xnew(struct ssh_server);

    server->settings = *settings;
    server->message = xnew(struct ssh_wire_message);
    if (ssh_host_keys_open(settings->data_dir, server->keys, err) < 0 ||
        find_program(server, err) < 0 || loop_new(&server->loop, err) < 0 ||
        start_workers(server, err) < 0 || listen_everywhere(server, err) < 0)
        return -1;
    server->keys_watch = hub_watch(settings->core->hub, SSH_KEYS_CHANGED, on_keys_changed, server);
    if (start_thread(server, err) < 0)
        return -1;
    *out = take(server);
    return 0;
}

static void stop(void *data)
{
    struct ssh_server *server = data;

    server->is_stopping = true;
    loop_timer_clear(&server->touch);
    loop_timer_clear(&server->pace);
    while (server->n_listeners)
        listener_free(server->listeners[--server->n_listeners]);
    while (server->connections)
        ssh_connection_end(server->connections, "the server stops");
    for (struct ssh_process *at = server->processes; at; at = at->next) {
        if (!at->is_killed)
            ssh_process_kill(at);
    }
    loop_stop(server->loop);
}

/* What is still to be done on the loop, by the thread that frees it. */
static void run_leftovers(struct ssh_server *server)
{
    loop_stop(server->loop);
    loop_run(server->loop);
}

void ssh_server_free(struct ssh_server *server)
{
    if (!server)
        return;
    watch_free(server->keys_watch);
    if (server->is_started) {
        loop_post(server->loop, stop, server);
        (void)pthread_join(server->thread, NULL);
    }
    while (server->n_listeners)
        listener_free(server->listeners[--server->n_listeners]);
    if (server->workers)
        workers_stop(server->workers);
    if (server->loop)
        run_leftovers(server);
    while (server->processes) {
        struct ssh_process *process = server->processes;
        (void)pidfd_send_signal(process->pidfd, SIGKILL, NULL, 0);
        (void)waitid(P_PIDFD, (id_t)process->pidfd, &(siginfo_t){0}, WEXITED);
        process_free(process);
    }
    loop_free(server->loop);
    workers_free(server->workers);
    if (server->settings.sftp_fd >= 0)
        (void)close(server->settings.sftp_fd);
    explicit_bzero(server->keys, sizeof server->keys);
    free(server->message);
    free(server);
}
