/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners, and the connections that came through them. */
#include "net/http_server.h"

#include "base/descriptors.h"
#include "base/mem.h"
#include "net/connection.h"
#include "net/door.h"
#include "net/listener.h"

#include <fcntl.h>
#include <unistd.h>

#define MAX_LISTENERS 8
// When all connections or descriptors are in use and nobody is idle, whoever has one in so many of them loses the oldest.
#define CROWD_PARTS 8
#define SPARES 8 // descriptors that are kept for accepting where there are no others
// Strangers of this machine's own addresses may have all connections but one in so many.
#define OWN_PARTS 8
// With fewer descriptors left than one in SCARCE_PART, a connection is accepted in place of another, or every so often. Strangers leave
// one in LEFT_PART to others, within a moment.
#define SCARCE_PART 8
#define SCARCE_LEAST 96
#define SCARCE_MS 50
#define LEFT_PART 4
#define LEFT_LEAST 128
#define TRIM_MS 100   // between two looks at that
#define TRIM_MOST 512 // closed at one look

const struct http_limits http_limits_default = {
    .connections = 16384,
    .strangers = 1024,
    .head_bytes = 32 << 10,
    .target_bytes = 8 << 10,
    .headers = 100,
    .body_bytes = 64 << 20,
    .gather_bytes = 512 << 20,
    .head_ms = 10 * 1000,
    .body_ms = 30 * 1000,
    .stranger_ms = 5 * 1000,
    .idle_ms = 5 * 1000,
    .write_ms = 60 * 1000,
    .write_pace = 1024,
    .linger_ms = 2 * 1000,
};

struct http_server {
    struct connection_home home; // first: what connections have is the server
    struct listener *listeners[MAX_LISTENERS];
    size_t listener_count;
    bool is_paused; // for want of room
    struct connection_list connections;
    struct connection_list idle; // the longest first
    struct door *door;           // those that have shown no key
    struct door *keys;           // those that have
    int spares[SPARES];          // -1: used up
    size_t left;        // descriptors when they were last counted, less what was accepted since
    size_t scarce_left; // with fewer they are scarce
    struct loop_timer trim_timer; // runs while there are strangers
    struct loop_timer drain_timer;
    uint64_t drain_until_ms;
    uint64_t scarce_until_ms; // until then one more is accepted in place of another only
    bool has_looked;          // for what came at the last moment, while draining
    void (*on_drained)(void *data);
    void *drain_data;
};

static struct http_server *server_of(struct connection_home *home)
{
    return (struct http_server *)home;
}

static void resume(struct http_server *server)
{
    if (!server->is_paused)
        return;
    server->is_paused = false;
    for (size_t i = 0; i < server->listener_count; i++)
        listener_resume(server->listeners[i]);
}

static void on_idle(struct connection_home *home, struct connection *connection, bool is_idle)
{
    struct http_server *server = server_of(home);

    if (!is_idle) {
        connection_list_remove(&server->idle, connection, CONNECTION_IDLE);
        return;
    }
    connection_list_add(&server->idle, connection, CONNECTION_IDLE);
    resume(server); // it can make room
}

static struct door *door_of(struct http_server *server, const struct connection *connection)
{
    return connection_is_known(connection) ? server->keys : server->door;
}

static void on_known(struct connection_home *home, struct connection *connection, uint64_t who)
{
    struct http_server *server = server_of(home);

    door_leave(door_of(server, connection), connection);
    connection_set_known(connection, who);
    (void)door_enter(server->keys, connection); // which has no limit of its own
    resume(server);                             // one of them may be able to go
}

static void fill_spares(struct http_server *server)
{
    for (size_t i = 0; i < SPARES; i++) {
        if (server->spares[i] < 0)
            server->spares[i] = open("/dev/null", O_PATH | O_CLOEXEC);
    }
}

static void on_close(struct connection_home *home, struct connection *connection)
{
    struct http_server *server = server_of(home);

    door_leave(door_of(server, connection), connection);
    connection_list_remove(&server->connections, connection, CONNECTION_ALL);
    server->left++;
    resume(server);
}

static bool is_at_limit(const struct http_server *server)
{
    return server->connections.count >= server->home.limits.connections;
}

/* Of whoever has a large part of all there can be: otherwise one key that follows many streams would keep all others out. Strangers
 * get no larger part this way. */
static struct connection *choose_of_crowd(const struct http_server *server)
{
    size_t all = server->home.limits.connections, files = descriptors_limit();
    size_t part = (all < files ? all : files) / CROWD_PARTS + 1;

    return door_count(server->door) < part ? door_largest(server->keys, part) : NULL;
}

/* Whoever has shown no key goes first, and last somebody for whom work is done. NULL: nobody can go now. */
static struct connection *choose_closed(const struct http_server *server)
{
    struct connection *stranger = door_oldest(server->door), *idle = server->idle.first;

    if (stranger)
        return stranger;
    return idle && !connection_is_young(idle) ? idle : choose_of_crowd(server);
}

static bool may_accept(void *owner)
{
    struct http_server *server = owner;

    bool is_scarce = loop_now_ms(server->home.loop) < server->scarce_until_ms;
    server->is_paused = (is_at_limit(server) || is_scarce) && !choose_closed(server);
    return !server->is_paused;
}

static bool make_room(struct http_server *server)
{
    struct connection *closed = choose_closed(server);

    if (closed)
        connection_close(closed);
    return closed != NULL;
}

static bool on_shortage(void *owner)
{
    struct http_server *server = owner;

    if (make_room(server))
        return true;
    for (size_t i = 0; i < SPARES; i++) {
        if (server->spares[i] >= 0) {
            closep(&server->spares[i]);
            return true;
        }
    }
    return false;
}

/* One in `parts` of all descriptors; where there are few, so many, but never more than half. */
static size_t part_of_limit(size_t parts, size_t least)
{
    size_t limit = descriptors_limit(), part = limit / parts;

    part = part < least ? least : part;
    return part < limit / 2 ? part : limit / 2;
}

/* Sandboxes need descriptors as well, and take them without asking here. */
static void trim_strangers(void *data)
{
    struct http_server *server = data;
    size_t wanted = part_of_limit(LEFT_PART, LEFT_LEAST);
    struct connection *oldest;

    server->left = descriptors_left();
    for (int i = 0; i < TRIM_MOST && server->left < wanted; i++) {
        oldest = door_oldest(server->door);
        if (!oldest)
            break;
        connection_close(oldest);
    }
    if (door_count(server->door))
        loop_timer_set(&server->trim_timer, TRIM_MS);
}

/* Serves one connected socket, which it takes. */
static int adopt(struct http_server *server, int fd, const char *bytes, size_t length,
                 struct error *err)
{
    struct connection *connection, *closed = NULL;

    if (connection_open(&server->home, fd, bytes, length, &connection, err) < 0)
        return -1;
    connection_list_add(&server->connections, connection, CONNECTION_ALL);
    closed = door_enter(door_of(server, connection), connection);
    if (connection_is_known(connection))
        closed = NULL;
    else if (!server->trim_timer.place)
        loop_timer_set(&server->trim_timer, TRIM_MS);
    if (closed)
        connection_close(closed);
    if (closed != connection)
        connection_start(connection);
    return 0;
}

/* One more descriptor is in use. How many are left now? */
static size_t count_one(struct http_server *server)
{
    if (!server->trim_timer.place) // they were not counted for a while
        server->left = descriptors_left();
    else if (server->left)
        server->left--;
    return server->left;
}

void http_server_adopt(struct http_server *server, int fd, const char *bytes, size_t length)
{
    struct error err;

    bool is_scarce = count_one(server) < server->scarce_left;
    bool has_room = is_at_limit(server) || is_scarce ? make_room(server) : true;
    server->scarce_until_ms =
        is_scarce && !has_room ? loop_now_ms(server->home.loop) + SCARCE_MS : 0;
    if (!is_scarce)
        fill_spares(server);
    if (adopt(server, fd, bytes, length, &err) < 0)
        (void)close(fd);
}

void http_server_set_elsewhere(struct http_server *server, const struct http_elsewhere *elsewhere)
{
    server->home.elsewhere = elsewhere;
}

static void on_accept(void *owner, int fd)
{
    http_server_adopt(owner, fd, NULL, 0);
}

static const struct listener_events listener_events = {
    .on_accept = on_accept, .may_accept = may_accept, .on_shortage = on_shortage};

static void on_quiet(struct connection_home *home);
static void end_drain(void *data);

int http_server_new(struct loop *loop, const struct http_limits *limits,
                    const struct http_handler *handler, void *owner, struct http_server **out,
                    struct error *err)
{
    if (limits->headers > HTTP1_MAX_HEADERS)
        return error_set(err, ERROR_INVALID, "at most %d headers can be allowed",
                         HTTP1_MAX_HEADERS);
    struct http_server *server = xnew(struct http_server);
    server->home = (struct connection_home){
        .loop = loop,
        .limits = *limits,
        .parse_limits = {limits->head_bytes, limits->target_bytes, limits->headers},
        .handler = handler,
        .owner = owner,
        .budget = gather_budget_new(limits->gather_bytes),
        .scratch = xcalloc(1, CONNECTION_SCRATCH),
        .on_idle = on_idle,
        .on_known = on_known,
        .on_close = on_close,
        .on_quiet = on_quiet,
    };
    server->door = door_new(limits->strangers, limits->connections / OWN_PARTS * (OWN_PARTS - 1));
    server->keys = door_new(SIZE_MAX, SIZE_MAX);
    server->scarce_left = part_of_limit(SCARCE_PART, SCARCE_LEAST);
    for (size_t i = 0; i < SPARES; i++)
        server->spares[i] = -1;
    fill_spares(server);
    loop_timer_init(&server->trim_timer, loop, trim_strangers, server);
    loop_timer_init(&server->drain_timer, loop, end_drain, server);
    *out = server;
    return 0;
}

static int has_room(const struct http_server *server, struct error *err)
{
    if (server->listener_count < MAX_LISTENERS)
        return 0;
    return error_set(err, ERROR_LIMIT, "a server listens on at most %d addresses", MAX_LISTENERS);
}

int http_server_listen_tcp(struct http_server *server, const char *address,
                           const char **address_out, struct error *err)
{
    struct listener **place = &server->listeners[server->listener_count];

    if (has_room(server, err) < 0 ||
        listener_open_tcp(server->home.loop, address, &listener_events, server, place, err) < 0)
        return -1;
    server->listener_count++;
    if (address_out)
        *address_out = listener_address(*place);
    return 0;
}

int http_server_listen_unix(struct http_server *server, const char *path, mode_t mode,
                            struct error *err)
{
    struct listener **place = &server->listeners[server->listener_count];

    if (has_room(server, err) < 0 ||
        listener_open_unix(server->home.loop, path, mode, &listener_events, server, place, err) < 0)
        return -1;
    server->listener_count++;
    return 0;
}

void http_server_stats(const struct http_server *server, struct http_stats *out)
{
    *out = (struct http_stats){
        .connections = server->connections.count,
        .idle = server->idle.count,
        .strangers = door_count(server->door),
        .requests = server->home.requests,
        .bad_requests = server->home.bad_requests,
        .gathered_bytes = gather_budget_used(server->home.budget),
    };
}

static void close_listeners(struct http_server *server)
{
    while (server->listener_count)
        listener_free(server->listeners[--server->listener_count]);
}

/* Whoever sent something until now is answered; what is still silent then is closed with the server. */
static void look_once_more(struct http_server *server)
{
    server->has_looked = true;
    for (size_t i = 0; i < server->listener_count; i++)
        listener_look(server->listeners[i]);
    for (struct connection *at = server->idle.first, *next; at; at = next) {
        next = connection_after(at, CONNECTION_IDLE);
        connection_look(at);
    }
}

static void end_drain(void *data)
{
    struct http_server *server = data;
    void (*fn)(void *) = server->on_drained;
    uint64_t now_ms = loop_now_ms(server->home.loop);

    if (now_ms < server->drain_until_ms && !server->has_looked)
        look_once_more(server);
    if (now_ms < server->drain_until_ms && server->home.under_way) {
        loop_timer_set(&server->drain_timer, server->drain_until_ms - now_ms);
        return; // on_quiet comes before that, or it is time then
    }
    loop_timer_clear(&server->drain_timer);
    server->on_drained = NULL;
    if (fn)
        fn(server->drain_data);
}

static void on_quiet(struct connection_home *home)
{
    struct http_server *server = server_of(home);

    if (server->on_drained)
        loop_timer_set(&server->drain_timer, 0); // not from inside a connection's end
}

void http_server_drain(struct http_server *server, uint64_t within_ms,
                       void (*on_drained)(void *data), void *data)
{
    server->home.is_draining = true;
    server->on_drained = on_drained;
    server->drain_data = data;
    server->drain_until_ms = loop_now_ms(server->home.loop) + within_ms;
    // Told later also when nothing is left already: a caller is never called from its own call.
    loop_timer_set(&server->drain_timer, server->home.under_way ? within_ms : 0);
}

void http_server_end_key(struct http_server *server, uint64_t number, uint64_t mask)
{
    struct connection *next;

    for (struct connection *at = server->connections.first; at; at = next) {
        next = connection_after(at, CONNECTION_ALL);
        if (connection_is_known(at) && (connection_group(at) & mask) == (number & mask))
            connection_close(at);
    }
}

void http_server_free(struct http_server *server)
{
    if (!server)
        return;
    close_listeners(server);
    server->on_drained = NULL;
    while (server->connections.first)
        connection_close(server->connections.first);
    loop_timer_clear(&server->drain_timer);
    loop_timer_clear(&server->trim_timer);
    for (size_t i = 0; i < SPARES; i++)
        closep(&server->spares[i]);
    door_free(server->door);
    door_free(server->keys);
    gather_budget_free(server->home.budget);
    free(server->home.scratch);
    free(server);
}
