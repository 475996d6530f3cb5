/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of SSH as the server has them: commands and terminals (ssh_forward.c has the rest). Bytes of commands do not come by here: burrow-ssh has the
 * ends of their pipes. Of terminals, input does, since whoever is attached to one may type; what they show burrow-ssh reads in their spool.
 */
#include "base/log.h"
#include "base/mem.h"
#include "base/strings.h"
#include "core/stream/stream.h"
#include "ssh/ssh_server_impl.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PIPE_BYTES (256 << 10)

static struct core *core_of(const struct ssh_connection *connection)
{
    return connection->server->settings.core;
}

struct ssh_channel *ssh_channel_find(struct ssh_connection *connection, uint32_t number)
{
    for (struct ssh_channel *at = connection->channels; at; at = at->next) {
        if (at->number == number)
            return at;
    }
    return NULL;
}

struct ssh_channel *ssh_channel_new(struct ssh_connection *connection, uint32_t number)
{
    struct ssh_channel *channel = xnew(struct ssh_channel);

    atomic_init(&channel->refs, 1);
    channel->connection = connection;
    channel->loop = connection->server->loop;
    channel->number = number;
    channel->next = connection->channels;
    connection->channels = channel;
    connection->n_channels++;
    return channel;
}

struct ssh_channel *ssh_channel_ref(struct ssh_channel *channel)
{
    if (channel)
        atomic_fetch_add(&channel->refs, 1);
    return channel;
}

void ssh_channel_unref(struct ssh_channel *channel)
{
    if (channel && atomic_fetch_sub(&channel->refs, 1) == 1)
        free(channel);
}

struct ssh_channel *ssh_channel_of(const struct ssh_errand *errand)
{
    bool is_there = errand->connection->place && errand->asker && errand->asker->connection;

    return is_there ? errand->asker : NULL;
}

void ssh_channel_close(struct ssh_channel *channel)
{
    struct ssh_connection *connection = take(channel->connection);
    struct ssh_channel **at = &connection->channels;

    while (*at != channel)
        at = &(*at)->next;
    *at = channel->next;
    connection->n_channels--;
    watch_free(take(channel->watch));
    watch_free(take(channel->stream_watch));
    stream_free(take(channel->stream));
    ssh_agent_free(take(channel->agent));
    free(take(channel->input));
    ssh_channel_unref(channel);
}

static bool tell(struct ssh_channel *channel, uint16_t type, const void *payload, size_t length)
{
    const struct ssh_wire_header header = {
        .type = type, .channel = channel->number, .length = (uint32_t)length};

    return ssh_connection_tell(channel->connection, &header, payload, NULL, 0);
}

void ssh_channel_refuse(struct ssh_channel *channel, const char *why)
{
    size_t length = strlen(why);

    (void)tell(channel, SSH_WIRE_REFUSED, why, length < 1000 ? length : 1000);
    ssh_channel_close(channel);
}

/* It will be tried again when burrow-ssh has read. */
static void fall_behind(struct ssh_channel *channel)
{
    struct ssh_connection *connection = channel->connection;

    if (connection->is_behind || !connection->watch)
        return;
    connection->is_behind = true;
    loop_watch_set(connection->watch, LOOP_READABLE | LOOP_WRITABLE);
}

// ---- changes ----

static void on_posted(void *data)
{
    struct ssh_channel *channel = data;

    atomic_store(&channel->is_posted, false);
    if (channel->connection)
        ssh_channel_advance(channel);
    ssh_channel_unref(channel);
}

/* On any thread. */
static void on_changed(void *data)
{
    struct ssh_channel *channel = data;

    if (atomic_exchange(&channel->is_posted, true))
        return;
    atomic_fetch_add(&channel->refs, 1);
    loop_post(channel->loop, on_posted, channel);
}

static void tell_exit(struct ssh_channel *channel, const struct execution_info *info)
{
    struct ssh_wire_exit end = {.code = (int32_t)execution_info_exit_code(info),
                                .signal = (int32_t)info->exit.signal};

    if (channel->is_exit_told || !execution_info_is_over(info))
        return;
    if (info->error && !end.signal)
        (void)snprintf(end.text, sizeof end.text, "%s", info->error);
    channel->is_exit_told = tell(channel, SSH_WIRE_EXITED, &end, sizeof end);
    if (!channel->is_exit_told)
        fall_behind(channel);
}

static void work_look(struct ssh_errand *errand)
{
    errand->result = execution_get(errand->server->settings.core->executions, &errand->actor,
                                   errand->execution_id, NULL, &errand->info, &errand->err);
}

/* One that is known no more has ended with its sandbox. */
static void end_look(struct ssh_errand *errand)
{
    struct ssh_channel *channel = ssh_channel_of(errand);

    if (!channel)
        return;
    channel->is_asking = false;
    if (errand->result < 0) {
        const struct ssh_wire_exit end = {.code = 255};
        channel->is_exit_told = tell(channel, SSH_WIRE_EXITED, &end, sizeof end);
    } else {
        tell_exit(channel, &errand->info);
    }
}

static void look(struct ssh_channel *channel)
{
    struct ssh_connection *connection = channel->connection;
    autoclear(execution_info) info = {0};
    struct error err = {0};

    if (channel->is_exit_told || channel->is_asking)
        return;
    if (execution_get_quick(core_of(connection)->executions, &connection->actor,
                            channel->execution_id, NULL, &info, &err) == 1) {
        tell_exit(channel, &info);
        return;
    }
    struct ssh_errand *errand = ssh_errand_new(connection, channel->number, work_look, end_look);
    memcpy(errand->execution_id, channel->execution_id, sizeof errand->execution_id);
    channel->is_asking = ssh_errand_send(errand, WORKERS_QUICK);
}

static void tell_growth(struct ssh_channel *channel)
{
    struct stream_progress progress;

    if (!channel->stream)
        return;
    stream_progress(channel->stream, &progress);
    const struct ssh_wire_grown grown = {.first = progress.first_bytes,
                                         .size = progress.size_bytes,
                                         .is_complete = progress.is_complete};
    if (memcmp(&grown, &channel->told, sizeof grown) == 0)
        return;
    if (tell(channel, SSH_WIRE_GREW, &grown, sizeof grown))
        channel->told = grown;
    else
        fall_behind(channel);
}

// ---- input of terminals ----

static void input_taken(struct ssh_channel *channel)
{
    free(take(channel->input));
    channel->input_at = channel->input_length = 0;
    (void)tell(channel, SSH_WIRE_TAKEN, NULL, 0);
}

static void count_input(struct ssh_channel *channel, int status, size_t taken,
                        const struct error *err)
{
    if (status < 0 && error_is(err, ERROR_STATE))
        return;
    channel->input_at += taken;
    // What nobody will ever read is dropped; else the hub tells when there is room.
    if (status < 0 || channel->input_at >= channel->input_length)
        input_taken(channel);
}

static void work_input(struct ssh_errand *errand)
{
    const struct ssh_wire_message *message = errand->message;

    errand->result = execution_write_input(errand->server->settings.core->executions,
                                           &errand->actor, errand->execution_id, message->payload,
                                           message->header.length, &errand->taken, &errand->err);
}

static void end_input(struct ssh_errand *errand)
{
    struct ssh_channel *channel = ssh_channel_of(errand);

    if (!channel)
        return;
    channel->is_asking = false;
    count_input(channel, errand->result, errand->taken, &errand->err);
    ssh_channel_advance(channel);
}

/* A worker has to write it; it gets a copy. */
static void send_input(struct ssh_channel *channel)
{
    struct ssh_errand *errand =
        ssh_errand_new(channel->connection, channel->number, work_input, end_input);

    memcpy(errand->execution_id, channel->execution_id, sizeof errand->execution_id);
    errand->message = xnew(struct ssh_wire_message);
    errand->message->header.length = (uint32_t)(channel->input_length - channel->input_at);
    memcpy(errand->message->payload, channel->input + channel->input_at,
           errand->message->header.length);
    channel->is_asking = ssh_errand_send(errand, WORKERS_QUICK);
}

static void push_input(struct ssh_channel *channel)
{
    struct ssh_connection *connection = channel->connection;
    struct error err = {0};
    size_t taken = 0;

    if (!channel->input || channel->is_asking)
        return;
    int status =
        execution_write_input_quick(core_of(connection)->executions, &connection->actor,
                                    channel->execution_id, channel->input + channel->input_at,
                                    channel->input_length - channel->input_at, &taken, &err);
    if (status == 0)
        send_input(channel);
    else
        count_input(channel, status, taken, &err);
}

void ssh_channel_input(struct ssh_channel *channel, const struct ssh_wire_message *message)
{
    if (!channel->is_terminal || !channel->is_started || channel->input)
        return; // one at a time, as burrow-ssh knows
    channel->input_length = message->header.length;
    channel->input = xcalloc(1, channel->input_length);
    memcpy(channel->input, message->payload, channel->input_length);
    push_input(channel);
}

void ssh_channel_advance(struct ssh_channel *channel)
{
    if (!channel->is_started)
        return;
    push_input(channel);
    tell_growth(channel);
    look(channel);
}

// ---- orders ----

static void work_order(struct ssh_errand *errand)
{
    struct executions *executions = errand->server->settings.core->executions;
    const struct ssh_wire_message *message = errand->message;
    struct ssh_wire_size size;

    switch (message->header.type) {
    case SSH_WIRE_RESIZE:
        memcpy(&size, message->payload, sizeof size);
        (void)execution_resize(executions, &errand->actor, errand->execution_id,
                               (struct terminal_size){size.rows, size.cols}, &errand->err);
        break;
    case SSH_WIRE_SIGNAL:
        (void)execution_signal(executions, &errand->actor, errand->execution_id,
                               (int)message->header.value, false, &errand->err);
        break;
    case SSH_WIRE_INPUT_ENDS:
        (void)execution_close_input(executions, &errand->actor, errand->execution_id, &errand->err);
        break;
    default:
        break;
    }
}

static void end_order(struct ssh_errand *errand)
{
    if (errand->err.reason) // there is nobody to be told: SSH has no answers to these
        log_debug("SSH: an order was refused", F("error", (const char *)errand->err.text));
}

void ssh_channel_order(struct ssh_channel *channel, const struct ssh_wire_message *message)
{
    if (!channel->is_started)
        return;
    struct ssh_errand *errand =
        ssh_errand_new(channel->connection, channel->number, work_order, end_order);
    memcpy(errand->execution_id, channel->execution_id, sizeof errand->execution_id);
    errand->message = xnew(struct ssh_wire_message);
    memcpy(&errand->message->header, &message->header, sizeof message->header);
    memcpy(errand->message->payload, message->payload, message->header.length);
    (void)ssh_errand_send(errand, WORKERS_QUICK);
}

// ---- commands and terminals ----

/* Whoever has bash is used to it. */
#define EITHER_SHELL(how)                                                                          \
    "if [ -x /bin/bash ]; then SHELL=/bin/bash; else SHELL=/bin/sh; fi; export SHELL; exec "       \
    "\"$SHELL\" " how

static void choose_program(const struct ssh_wire_start *start, const char *command,
                           const char *argv[6])
{
    const char *const shell[] = {"/bin/sh", "-c", EITHER_SHELL("-l"), "sh", NULL};
    const char *const run[] = {"/bin/sh", "-c", EITHER_SHELL("-c \"$1\""), "sh", command, NULL};

    memset(argv, 0, 6 * sizeof *argv);
    if (start->program == SSH_WIRE_SHELL)
        memcpy(argv, shell, sizeof shell);
    else
        memcpy(argv, run, sizeof run);
}

static void gather_env(const struct ssh_errand *errand, const struct ssh_wire_start *start,
                       const char *const *strings, struct strings *out)
{
    const struct peer *peer = &errand->connection->peer;
    char address[PEER_TEXT] = "127.0.0.1", text[2 * PEER_TEXT];

    if (!errand->connection->is_tunnel) {
        bool is_four = IN6_IS_ADDR_V4MAPPED(&peer->address);
        (void)inet_ntop(is_four ? AF_INET : AF_INET6, &peer->address.s6_addr[is_four ? 12 : 0],
                        address, sizeof address);
    }
    (void)snprintf(text, sizeof text, "SSH_CONNECTION=%s %u 127.0.0.1 22", address, peer->port);
    strings_add(out, text);
    (void)snprintf(text, sizeof text, "SSH_CLIENT=%s %u 22", address, peer->port);
    strings_add(out, text);
    if (start->has_terminal && strings[0][0]) {
        autofree char *kind = xasprintf("TERM=%s", strings[0]);
        strings_add(out, kind);
    }
    for (const char *const *at = strings + 2; *at; at++)
        strings_add(out, *at);
    if (errand->agent_path[0]) {
        autofree char *agent = xasprintf("SSH_AUTH_SOCK=%s", errand->agent_path);
        strings_add(out, agent);
    }
}

/* The reading end again, by itself: what burrow-ssh gets it cannot write to. */
static int open_spool(struct ssh_errand *errand)
{
    char path[40];

    if (stream_open(errand->server->settings.core->streams, errand->info.stdout_stream,
                    &errand->stream, &errand->err) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", stream_fd(errand->stream));
    errand->fds[0] = open(path, O_RDONLY | O_CLOEXEC);
    return errand->fds[0] < 0 ? error_sys(&errand->err, "open what the terminal shows") : 0;
}

static int start_terminal(struct ssh_errand *errand, struct execution_request *request,
                          const struct ssh_wire_start *start)
{
    request->kind = EXECUTION_TERMINAL;
    request->terminal = (struct terminal_size){start->rows, start->cols};
    if (execution_start(errand->server->settings.core->executions, &errand->actor,
                        errand->sandbox_id, request, &errand->info, &errand->err) < 0)
        return -1;
    return open_spool(errand);
}

static int make_pipe(int ends[2])
{
    ends[0] = ends[1] = -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    (void)fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
    return 0;
}

static int start_command(struct ssh_errand *errand, struct execution_request *request)
{
    int input[2], output[2], errors[2];
    int made = make_pipe(input); // all of them: each sets its ends
    made |= make_pipe(output);
    made |= make_pipe(errors);
    bool is_made = made == 0;
    autofd their_input = input[0];
    autofd their_output = output[1];
    autofd their_errors = errors[1];

    errand->fds[0] = input[1];
    errand->fds[1] = output[0];
    errand->fds[2] = errors[0];
    const struct execution_pipes pipes = {their_input, their_output, their_errors};
    request->kind = EXECUTION_JOB;
    request->pipes = &pipes;
    request->standard_output.target = request->standard_error.target = OUTPUT_TO_NONE;
    int result = is_made
                     ? execution_start(errand->server->settings.core->executions, &errand->actor,
                                       errand->sandbox_id, request, &errand->info, &errand->err)
                     : error_sys(&errand->err, "make pipes");
    return result;
}

static void work_start(struct ssh_errand *errand)
{
    const char *strings[SSH_WIRE_STRINGS + 1], *argv[6];
    struct ssh_wire_start start;
    autostrings env = {0};

    memcpy(&start, errand->message->payload, sizeof start);
    ssh_wire_strings(errand->message, strings);
    gather_env(errand, &start, strings, &env);
    choose_program(&start, strings[1], argv);
    struct execution_request request = {
        .command = {.argv = argv, .env = (const char *const *)env.items},
        .tag = "ssh",
        .keeps_children = true,
    };
    static const char *const sftp[] = {"sftp-server", NULL};
    if (start.program == SSH_WIRE_SFTP) {
        request.command.argv = sftp;
        request.program_fd = errand->server->settings.sftp_fd;
    }
    errand->result = start.has_terminal ? start_terminal(errand, &request, &start)
                                        : start_command(errand, &request);
}

/* It was started for nobody: a command sees that by its pipes; a shell that nobody has ever seen ends. */
static void work_stop(struct ssh_errand *errand)
{
    autoclear(execution_info) info = {0};

    (void)execution_stop(errand->server->settings.core->executions, &errand->actor,
                         errand->execution_id, NULL, true, "its SSH connection has ended", &info,
                         &errand->err);
}

static void end_stop(struct ssh_errand *errand)
{
    (void)errand;
}

static void stop_unseen(const struct ssh_errand *errand)
{
    if (errand->result < 0 || !errand->stream)
        return;
    struct ssh_errand *other = ssh_errand_new(errand->connection, 0, work_stop, end_stop);
    other->actor = errand->actor;
    (void)snprintf(other->execution_id, sizeof other->execution_id, "%s", errand->info.id);
    (void)ssh_errand_send(other, WORKERS_QUICK);
}

static void end_start(struct ssh_errand *errand)
{
    struct ssh_connection *connection = errand->connection;
    struct ssh_channel *channel = ssh_channel_of(errand);
    bool has_agent = errand->agent_path[0];
    const struct ssh_wire_header header = {
        .type = SSH_WIRE_STARTED, .channel = errand->channel, .value = has_agent};

    if (!channel) {
        stop_unseen(errand);
        return;
    }
    if (errand->result < 0) {
        ssh_channel_refuse(channel, errand->err.text);
        return;
    }
    struct hub *hub = core_of(connection)->hub;
    channel->is_started = true;
    channel->stream = take(errand->stream);
    (void)snprintf(channel->execution_id, sizeof channel->execution_id, "%s", errand->info.id);
    channel->watch = hub_watch(hub, channel->execution_id, on_changed, channel);
    if (channel->stream)
        channel->stream_watch = hub_watch(hub, stream_id(channel->stream), on_changed, channel);
    if (!ssh_connection_tell(connection, &header, NULL, errand->fds,
                             (channel->stream ? 1 : 3) + (has_agent ? 2 : 0))) {
        ssh_connection_end(connection, "its process does not listen");
        return;
    }
    ssh_channel_advance(channel);
}

void ssh_channel_launch(struct ssh_channel *channel, struct ssh_wire_message *message,
                        struct ssh_agent *agent)
{
    struct ssh_errand *errand =
        ssh_errand_new(channel->connection, channel->number, work_start, end_start);
    unsigned behind = channel->is_terminal ? 1 : 3;

    errand->message = message;
    if (agent) {
        memcpy(errand->agent_path, agent->path, sizeof errand->agent_path);
        errand->fds[behind] = take_fd(agent->listener);
        errand->fds[behind + 1] = take_fd(agent->leash);
    }
    if (!ssh_errand_send(errand, WORKERS_SLOW))
        ssh_channel_refuse(channel, SSH_TOO_MUCH);
}

void ssh_channel_start(struct ssh_connection *connection, struct ssh_wire_message *message)
{
    struct ssh_channel *channel = ssh_channel_new(connection, message->header.channel);
    struct ssh_wire_message *copy = xnew(struct ssh_wire_message);
    struct ssh_wire_start start;

    memcpy(&start, message->payload, sizeof start);
    channel->is_terminal = start.has_terminal;
    memcpy(&copy->header, &message->header, sizeof message->header);
    memcpy(copy->payload, message->payload, message->header.length + 1);
    if (start.has_agent && (connection->server->settings.allows & SSH_WIRE_ALLOWS_AGENT))
        ssh_agent_start(channel, copy);
    else
        ssh_channel_launch(channel, copy, NULL);
}
