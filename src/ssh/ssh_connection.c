/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of SSH as the server has it: who it is, and what its burrow-ssh asks for; see ssh_server.h. */
#include "base/base64.h"
#include "base/log.h"
#include "base/log_ids.h"
#include "base/mem.h"
#include "base/quote.h"
#include "core/account/ssh_login.h"
#include "core/sandbox/sandbox.h"
#include "ssh/ssh_server_impl.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PREFIX "sbx_"
#define REFUSAL_MS 250 // after which every refusal comes, whatever was wrong
#define MESSAGES 32    // read before others get their turn

struct ssh_connection *ssh_connection_ref(struct ssh_connection *connection)
{
    atomic_fetch_add(&connection->refs, 1);
    return connection;
}

void ssh_connection_unref(struct ssh_connection *connection)
{
    if (atomic_fetch_sub(&connection->refs, 1) == 1)
        free(connection);
}

bool ssh_connection_tell(struct ssh_connection *connection, const struct ssh_wire_header *header,
                         const void *payload, const int *fds, unsigned n_fds)
{
    if (!connection->process || connection->process->control < 0)
        return false;
    return ssh_wire_send(connection->process->control, header, payload, fds, n_fds) == 0;
}

// ---- the end ----

void ssh_connection_end(struct ssh_connection *connection, const char *why)
{
    struct ssh_server *server = connection->server;

    if (!connection->place)
        return;
    *connection->place = connection->next;
    if (connection->next)
        connection->next->place = connection->place;
    connection->place = NULL;
    server->n_connections--;
    while (connection->channels)
        ssh_channel_close(connection->channels);
    watch_free(take(connection->sandbox_watch));
    loop_timer_clear(&connection->grace);
    loop_timer_clear(&connection->answer);
    loop_watch_free(take(connection->watch));
    if (connection->process)
        ssh_process_kill(take(connection->process));
    closep(&connection->fd);
    if (connection->is_in)
        log_info("SSH connection closed", F_SANDBOX(connection->sandbox_id),
                 F("peer", (const char *)connection->peer_text), F("reason", why));
    else
        log_debug("SSH connection closed before login",
                  F("peer", (const char *)connection->peer_text), F("reason", why));
    ssh_connection_unref(connection);
}

// ---- sandboxes that end ----

static void end_status(struct ssh_errand *errand)
{
    if (errand->is_over)
        ssh_connection_end(errand->connection, "the sandbox has ended");
}

static void work_status(struct ssh_errand *errand)
{
    struct sandbox_status status;

    errand->is_over = sandbox_status(errand->server->settings.core->sandboxes, &errand->actor,
                                     errand->sandbox_id, &status, &errand->err) < 0 ||
                      !(sandbox_in(status.state) & SANDBOX_ALIVE);
}

static void look_at_sandbox(void *data)
{
    struct ssh_connection *connection = data;
    struct sandbox_status status;

    atomic_store(&connection->is_posted, false);
    if (connection->place) {
        int known = sandbox_status_quick(connection->server->settings.core->sandboxes,
                                         &connection->actor, connection->sandbox_id, &status);
        if (known == 0)
            (void)ssh_errand_send(ssh_errand_new(connection, 0, work_status, end_status),
                                  WORKERS_QUICK);
        else if (!(sandbox_in(status.state) & SANDBOX_ALIVE))
            ssh_connection_end(connection, "the sandbox has ended");
    }
    ssh_connection_unref(connection);
}

/* On any thread. */
static void on_sandbox_changed(void *data)
{
    struct ssh_connection *connection = data;

    if (!atomic_exchange(&connection->is_posted, true))
        loop_post(connection->server->loop, look_at_sandbox, ssh_connection_ref(connection));
}

// ---- logging in ----

/* Whether the actor may be in the sandbox. */
static int check_sandbox(struct ssh_errand *errand, const struct actor *actor, const char *id)
{
    struct sandboxes *sandboxes = errand->server->settings.core->sandboxes;
    struct sandbox_status status;
    struct error *err = &errand->err;

    if (sandbox_status(sandboxes, actor, id, &status, err) < 0 ||
        sandbox_check_selected(sandboxes, actor, id, err) < 0)
        return -1;
    if (*actor->sandbox && strcmp(actor->sandbox, id) != 0)
        return -1; // a token is for one
    return sandbox_in(status.state) & SANDBOX_ALIVE ? 0 : -1;
}

/* Through a tunnel it is the tunnel's, whatever the user is called. *is_by_name: others may call another one so. */
static int find_sandbox(struct ssh_errand *errand, const struct actor *actor, char id[ID_TEXT],
                        bool *is_by_name)
{
    const char *user = errand->login.user;
    struct sandboxes *sandboxes = errand->server->settings.core->sandboxes;

    *is_by_name = false;
    if (errand->login.has_none)
        memcpy(id, errand->sandbox_id, ID_TEXT);
    else if (strncmp(user, PREFIX, strlen(PREFIX)) == 0 && id_is_valid(user + strlen(PREFIX)))
        memcpy(id, user + strlen(PREFIX), ID_TEXT);
    else if (!id_from_uuid(user, id)) {
        *is_by_name = true;
        if (sandbox_find_name(sandboxes, actor, user, id, &errand->err) < 0)
            return -1;
    }
    return check_sandbox(errand, actor, id);
}

/* Of those who have added a key, who is let in. */
struct login_search {
    struct ssh_errand *errand;
    struct actor actor;
    char id[ID_TEXT];
    bool is_found, is_unclear;
};

/*
 * An id says which sandbox is meant, and whoever sees it will do. A name does not: somebody who added another's public key could have a sandbox of that name.
 * So all must mean the same one by it.
 */
static bool on_owner(void *data, const struct actor *actor)
{
    struct login_search *search = data;
    char id[ID_TEXT];
    bool is_by_name;
    const bool is_first = !*search->actor.organisation;

    search->errand->err = (struct error){0};
    bool is_here = find_sandbox(search->errand, actor, id, &is_by_name) == 0;
    if (!is_by_name && !is_here)
        return true;
    if (!is_first && (is_here != search->is_found || (is_here && strcmp(id, search->id) != 0))) {
        search->is_unclear = true;
        return false;
    }
    if (is_first)
        search->actor = *actor;
    if (is_here)
        memcpy(search->id, id, sizeof search->id);
    search->is_found = is_here;
    return is_by_name;
}

/* Both questions are asked in any case: which of them was answered with no cannot be told by the time it takes. */
static int search_login(struct login_search *search)
{
    struct ssh_errand *errand = search->errand;
    const struct actor nobody = {.organisation = "nobody"};
    bool is_by_name;

    if (errand->login.has_none) {
        search->actor = errand->actor;
        search->is_found = find_sandbox(errand, &errand->actor, search->id, &is_by_name) == 0;
    } else if (ssh_login(errand->server->settings.core->accounts, errand->fingerprint, on_owner,
                         search, &errand->err) < 0) {
        (void)find_sandbox(errand, &nobody, search->id, &is_by_name);
        search->is_found = false;
    }
    if (search->is_unclear)
        log_info("SSH: several owners have added this key, and the name of the sandbox is not the "
                 "same to all: use its id",
                 F("key", (const char *)errand->fingerprint));
    return search->is_found && !search->is_unclear && (search->actor.scopes & SCOPE_RUN) ? 0 : -1;
}

static void work_login(struct ssh_errand *errand)
{
    struct login_search search = {.errand = errand};

    errand->result = search_login(&search);
    if (errand->result < 0)
        return;
    errand->actor = search.actor;
    memcpy(errand->sandbox_id, search.id, sizeof errand->sandbox_id);
    if (errand->login.is_signed)
        ssh_login_used(errand->server->settings.core->accounts, &errand->actor,
                       errand->fingerprint);
}

static void answer(struct ssh_connection *connection, bool is_allowed)
{
    const struct ssh_wire_header header = {.type = SSH_WIRE_ANSWER, .value = is_allowed};

    connection->is_asking = false;
    (void)ssh_connection_tell(connection, &header, NULL, NULL, 0);
}

static void on_answer_due(void *data)
{
    struct ssh_connection *connection = data;

    answer(connection, false);
    if (connection->failures >= connection->server->settings.tries)
        log_info("SSH login refused", F("peer", (const char *)connection->peer_text),
                 F("tries", connection->failures));
}

static size_t count_of_sandbox(const struct ssh_server *server, const char *sandbox_id)
{
    size_t count = 0;

    for (const struct ssh_connection *at = server->connections; at; at = at->next)
        count += at->is_in && strcmp(at->sandbox_id, sandbox_id) == 0;
    return count;
}

/* Whether both are one owner's: a member's, or where a key is nobody's in particular, that key's. */
static bool is_same_owner(const struct actor *one, const struct actor *other)
{
    return strcmp(one->organisation, other->organisation) == 0 &&
           strcmp(one->member, other->member) == 0 &&
           (*one->member || strcmp(one->key_id, other->key_id) == 0);
}

static size_t count_of_owner(const struct ssh_server *server, const struct actor *actor)
{
    size_t count = 0;

    for (const struct ssh_connection *at = server->connections; at; at = at->next)
        count += at->is_in && is_same_owner(&at->actor, actor);
    return count;
}

/* Half of all places: whoever has as many as he can leaves as many to others. */
static size_t places_of_owner(const struct ssh_server *server)
{
    size_t half = server->settings.connections / 2;
    return half ? half : 1;
}

/* Whether there is no place for one more of these; says so in the log. */
static bool is_full(const struct ssh_errand *errand)
{
    const struct ssh_server *server = errand->server;

    if (count_of_sandbox(server, errand->sandbox_id) >= server->settings.connections_of_sandbox) {
        log_warn("SSH: too many connections to one sandbox", F_SANDBOX(errand->sandbox_id));
        return true;
    }
    size_t count = count_of_owner(server, &errand->actor);
    if (count < places_of_owner(server))
        return false;
    log_warn("SSH: too many connections of one owner", F("connections", (uint64_t)count),
             F("owner", (const char *)errand->actor.member),
             F("apiKey", (const char *)errand->actor.key_id), F_SANDBOX(errand->sandbox_id));
    return true;
}

static void let_in(struct ssh_connection *connection, const struct ssh_errand *errand)
{
    struct ssh_server *server = connection->server;

    connection->is_in = true;
    connection->actor = errand->actor;
    memcpy(connection->sandbox_id, errand->sandbox_id, sizeof connection->sandbox_id);
    memcpy(connection->fingerprint, errand->fingerprint, sizeof connection->fingerprint);
    loop_timer_clear(&connection->grace);
    connection->sandbox_watch = hub_watch(server->settings.core->hub, connection->sandbox_id,
                                          on_sandbox_changed, connection);
    on_sandbox_changed(connection); // it may have ended since it was looked at
    port_touch(server->settings.core->ports, connection->sandbox_id);
    log_info("SSH login", F_SANDBOX(connection->sandbox_id),
             F("peer", (const char *)connection->peer_text),
             F("key", connection->is_tunnel ? "" : (const char *)connection->fingerprint),
             F("apiKey", (const char *)connection->actor.key_id));
    answer(connection, true);
    if (!connection->is_tunnel)
        ssh_connection_recheck(connection); // and so may its key
}

static void end_login(struct ssh_errand *errand)
{
    struct ssh_connection *connection = errand->connection;
    struct ssh_server *server = errand->server;
    bool is_final = errand->login.is_signed || errand->login.has_none;

    if (!connection->place)
        return;
    if (errand->result == 0 && !is_final) {
        answer(connection, true);
    } else if (errand->result == 0 && !is_full(errand)) {
        let_in(connection, errand);
    } else {
        connection->failures++;
        uint64_t passed = loop_now_ms(server->loop) - errand->asked_ms;
        loop_timer_set(&connection->answer, passed < REFUSAL_MS ? REFUSAL_MS - passed : 0);
    }
}

static void write_fingerprint(const uint8_t hash[SSH_WIRE_HASH], char out[SSH_HOST_KEY_FINGERPRINT])
{
    char text[64];

    base64_encode(hash, SSH_WIRE_HASH, text);
    (void)snprintf(out, SSH_HOST_KEY_FINGERPRINT, "SHA256:%.43s", text);
}

/* False: it is not to be asked now, and this is no burrow-ssh of ours any more. */
static bool log_in(struct ssh_connection *connection, const struct ssh_wire_message *message)
{
    struct ssh_server *server = connection->server;

    if (connection->is_in || connection->is_asking ||
        connection->failures >= server->settings.tries + 1)
        return false;
    struct ssh_errand *errand = ssh_errand_new(connection, 0, work_login, end_login);
    memcpy(&errand->login, message->payload, sizeof errand->login);
    if (errand->login.has_none && !connection->is_tunnel) {
        (void)ssh_errand_send(errand, WORKERS_QUICK);
        return false;
    }
    errand->asked_ms = loop_now_ms(server->loop);
    if (!errand->login.has_none)
        write_fingerprint(errand->login.hash, errand->fingerprint);
    connection->is_asking = true;
    return ssh_errand_send(errand, WORKERS_QUICK);
}

// ---- keys that go ----

/* What the key may do now counts: it may see less than when the connection began. */
static bool on_owner_again(void *data, const struct actor *now)
{
    struct ssh_errand *errand = data;

    if (strcmp(now->key_id, errand->actor.key_id) != 0 || !is_same_owner(now, &errand->actor))
        return true;
    errand->is_over = check_sandbox(errand, now, errand->sandbox_id) < 0;
    errand->actor = *now;
    return false;
}

static void work_recheck(struct ssh_errand *errand)
{
    errand->is_over = true;
    if (ssh_login(errand->server->settings.core->accounts, errand->fingerprint, on_owner_again,
                  errand, &errand->err) < 0)
        errand->is_over = true;
}

static void end_recheck(struct ssh_errand *errand)
{
    if (errand->is_over)
        ssh_connection_end(errand->connection, "its key was removed or may less");
    else
        errand->connection->actor = errand->actor;
}

void ssh_connection_recheck(struct ssh_connection *connection)
{
    if (!ssh_errand_send(ssh_errand_new(connection, 0, work_recheck, end_recheck), WORKERS_QUICK))
        ssh_connection_end(connection, "its key could not be checked again");
}

// ---- what burrow-ssh says ----

/* False: it makes no sense. */
static bool handle_channel(struct ssh_connection *connection, struct ssh_wire_message *message)
{
    const struct ssh_wire_header *header = &message->header;
    bool is_new = header->type == SSH_WIRE_START || header->type == SSH_WIRE_CONNECT ||
                  header->type == SSH_WIRE_LISTEN;

    if (!connection->is_in)
        return false;
    if (is_new) {
        if (header->channel == 0 || connection->n_channels >= 2 * SSH_WIRE_CHANNELS ||
            ssh_channel_find(connection, header->channel))
            return false;
        if (header->type == SSH_WIRE_START)
            ssh_channel_start(connection, message);
        else if (header->type == SSH_WIRE_LISTEN)
            ssh_forward_listen(connection, message);
        else
            ssh_forward_connect(connection, message);
        return true;
    }
    struct ssh_channel *channel = ssh_channel_find(connection, header->channel);
    if (!channel)
        return true; // it has just been closed here
    if (header->type == SSH_WIRE_CLOSE)
        ssh_channel_close(channel);
    else if (header->type == SSH_WIRE_INPUT_IS)
        ssh_channel_input(channel, message);
    else
        ssh_channel_order(channel, message);
    return true;
}

static bool handle(struct ssh_connection *connection, struct ssh_wire_message *message)
{
    switch (message->header.type) {
    case SSH_WIRE_READY:
        return true;
    case SSH_WIRE_LOGIN:
        return log_in(connection, message);
    case SSH_WIRE_START:
    case SSH_WIRE_CONNECT:
    case SSH_WIRE_LISTEN:
    case SSH_WIRE_CLOSE:
    case SSH_WIRE_INPUT_IS:
    case SSH_WIRE_INPUT_ENDS:
    case SSH_WIRE_RESIZE:
    case SSH_WIRE_SIGNAL:
        return handle_channel(connection, message);
    default:
        return false;
    }
}

static void catch_up(struct ssh_connection *connection)
{
    struct ssh_channel *next;

    connection->is_behind = false;
    loop_watch_set(connection->watch, LOOP_READABLE);
    for (struct ssh_channel *at = connection->channels; at; at = next) {
        next = at->next;
        ssh_channel_advance(at);
    }
}

static void on_control(void *data, unsigned events)
{
    struct ssh_connection *connection = data;
    struct ssh_wire_message *message = connection->server->message;

    if (events & LOOP_WRITABLE)
        catch_up(connection);
    ssh_connection_ref(connection);
    for (int i = 0; i < MESSAGES && connection->place && connection->process; i++) {
        int got = ssh_wire_receive(connection->process->control, message, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN)
            break;
        if (got == 0) {
            // Its end is told by its pidfd, with how it ended.
            loop_watch_set(connection->watch, 0);
            break;
        }
        bool is_good = got > 0 && handle(connection, message);
        if (got > 0)
            ssh_wire_message_clear(message);
        if (!is_good) {
            log_error("burrow-ssh said what makes no sense; its connection is ended",
                      F("peer", (const char *)connection->peer_text));
            ssh_connection_end(connection, "nonsense");
        }
    }
    ssh_connection_unref(connection);
}

// ---- the beginning ----

static bool send_begin(struct ssh_connection *connection)
{
    const struct ssh_server *server = connection->server;
    char payload[sizeof(struct ssh_wire_begin) + SSH_HOST_KEYS * SSH_HOST_KEY_PEM];
    struct ssh_wire_begin begin = {.is_trusted = connection->is_tunnel,
                                   .tries = server->settings.tries,
                                   .allows = server->settings.allows};
    size_t length = sizeof begin;

    for (unsigned i = 0; i < SSH_HOST_KEYS; i++) {
        begin.keys[i] = (uint32_t)strlen(server->keys[i].pem);
        memcpy(payload + length, server->keys[i].pem, begin.keys[i]);
        length += begin.keys[i];
    }
    memcpy(payload, &begin, sizeof begin);
    const struct ssh_wire_header header = {.type = SSH_WIRE_BEGIN, .length = (uint32_t)length};
    bool is_sent = ssh_connection_tell(connection, &header, payload, &connection->fd, 1);
    explicit_bzero(payload, sizeof payload);
    return is_sent;
}

void ssh_connection_attach(struct ssh_connection *connection, struct ssh_process *process)
{
    struct error err = {0};

    connection->process = process;
    process->connection = connection;
    if (loop_watch_new(connection->server->loop, process->control, on_control, connection,
                       &connection->watch, &err) < 0 ||
        !send_begin(connection)) {
        ssh_connection_end(connection, "its process is not there");
        return;
    }
    closep(&connection->fd);
    loop_watch_set(connection->watch, LOOP_READABLE);
}

static void on_grace_over(void *data)
{
    ssh_connection_end(data, "no login in time");
}

/* Whether both came from one place: a tunnel from its owner, others from a machine. */
static bool is_same_source(const struct ssh_connection *one, const struct ssh_connection *other)
{
    if (one->is_tunnel != other->is_tunnel)
        return false;
    return one->is_tunnel ? is_same_owner(&one->actor, &other->actor)
                          : peer_group(&one->peer) == peer_group(&other->peer);
}

/*
 * Strangers make room for strangers: the oldest goes, of those from one place first. Tunnels and what comes over the network are counted
 * each for itself, and push each other out only where no place at all is left.
 */
static void make_room(struct ssh_server *server, const struct ssh_connection *newcomer)
{
    const struct ssh_settings *settings = &server->settings;
    struct ssh_connection *oldest = NULL, *oldest_alike = NULL, *oldest_here = NULL;
    size_t alike = 0, here = 0;

    for (struct ssh_connection *at = server->connections; at; at = at->next) {
        if (at->is_in)
            continue;
        oldest = at; // new ones are put in front
        if (at->is_tunnel == newcomer->is_tunnel) {
            oldest_alike = at;
            alike++;
        }
        if (is_same_source(at, newcomer)) {
            oldest_here = at;
            here++;
        }
    }
    if (here >= settings->strangers_of_address)
        ssh_connection_end(oldest_here, "too many before login from one address or owner");
    else if (alike >= settings->strangers)
        ssh_connection_end(oldest_alike, "too many before login");
    else if (oldest && server->n_connections >= settings->connections)
        ssh_connection_end(oldest_here    ? oldest_here
                           : oldest_alike ? oldest_alike
                                          : oldest,
                           "no place is left, and it had not logged in");
}

/* A client that is gone without a word is found out by TCP itself: after half of that time it is asked, three times. */
static void set_socket(int fd, uint64_t dead_after_ms)
{
    const unsigned dead_after = (unsigned)dead_after_ms;
    const int on = 1, idle = (int)(dead_after / 2000), count = 3;
    const int interval = dead_after < 6000 ? 1 : (int)(dead_after / 6000);

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_after, sizeof dead_after);
}

void ssh_connection_accept(struct ssh_server *server, int fd, const struct actor *actor,
                           const char *sandbox_id)
{
    struct ssh_connection *connection = xnew(struct ssh_connection);

    *connection = (struct ssh_connection){.server = server, .fd = fd, .is_tunnel = actor != NULL};
    atomic_init(&connection->refs, 1);
    peer_init(&connection->peer, fd);
    if (actor) {
        connection->actor = *actor;
        (void)snprintf(connection->sandbox_id, sizeof connection->sandbox_id, "%s", sandbox_id);
        (void)snprintf(connection->peer_text, sizeof connection->peer_text, "tunnel");
    } else {
        (void)peer_format(&connection->peer, connection->peer_text);
        set_socket(fd, server->settings.dead_after_ms);
    }
    make_room(server, connection);
    if (server->n_connections >= server->settings.connections) {
        log_warn("SSH: too many connections", F("connections", (uint64_t)server->n_connections));
        closep(&connection->fd);
        ssh_connection_unref(connection);
        return;
    }
    connection->next = server->connections;
    connection->place = &server->connections;
    if (connection->next)
        connection->next->place = &connection->next;
    server->connections = connection;
    server->n_connections++;
    loop_timer_init(&connection->grace, server->loop, on_grace_over, connection);
    loop_timer_init(&connection->answer, server->loop, on_answer_due, connection);
    loop_timer_set(&connection->grace, server->settings.grace_ms);
    ssh_pace_equip(connection);
}
