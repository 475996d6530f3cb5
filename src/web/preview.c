/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that lets people into exposed ports; see preview.h. */
#include "web/preview.h"

#include "base/id_table.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/core.h"
#include "core/port/port.h"
#include "loop/workers.h"
#include "net/listener.h"
#include "net/proxy.h"
#include "web/preview_name.h"
#include "web/preview_page.h"
#include "web/preview_protocol.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define OF_ONE 512  // connections to one exposed port
#define WAKERS 8    // threads that wake sandboxes and wait for them
#define WAKERS_OF 4 // for one sandbox
#define WAKE_QUEUE 8192
#define ADDRESS_TEXT 160

struct preview {
    struct preview_settings settings;
    struct http_elsewhere elsewhere;
    struct loop *loop;
    struct proxy *proxy;
    struct workers *workers;
    struct gate *gates;
    pthread_t thread;
    bool is_started;
};

/* An exposed port that somebody is connected to, or that has a port of the machine. */
struct gate {
    struct preview *preview;
    struct exposed *exposed;
    struct gate *next, **place;
    struct listener *listeners[PREVIEW_ADDRESSES];
    size_t n_listeners;
    uint16_t host_port;
    bool is_tcp;
    struct viewer *viewers;
    size_t count;
};

/* One client's connection. */
struct viewer {
    struct preview *preview;
    struct proxy_client *client;
    struct gate *gate; // NULL: it has named none so far
    struct viewer *next, **place;
    struct errand *errand;
    bool is_named;        // came by a name, which may change from request to request
    uint16_t port, asked; // of the sandbox: of the server's connection, of the request
    char sandbox_id[ID_TEXT];
    bool is_passage; // the request came by the protocol of a front
    struct preview_passage passage;
};

/* A connection that has to be waited for. */
struct errand {
    struct preview *preview;
    struct viewer *viewer; // NULL: its client went
    char sandbox_id[ID_TEXT];
    uint16_t port;
    enum port_result result;
    int fd;
    bool is_passage, is_shut; // its sandbox is not to be woken
    struct error err;
};

static struct ports *ports_of(const struct preview *preview)
{
    return preview->settings.core->ports;
}

// ---- gates ----

static struct gate *gate_of(struct preview *preview, struct exposed *exposed)
{
    struct gate *gate = exposed_attached(exposed);
    struct port_info info;

    if (gate)
        return gate;
    exposed_tell(ports_of(preview), exposed, &info);
    gate = xnew(struct gate);
    gate->preview = preview;
    gate->exposed = exposed_ref(exposed);
    gate->is_tcp = info.protocol == PORT_TCP;
    gate->next = preview->gates;
    gate->place = &preview->gates;
    if (gate->next)
        gate->next->place = &gate->next;
    preview->gates = gate;
    exposed_attach(exposed, gate);
    return gate;
}

static void gate_release(struct gate *gate)
{
    if (!gate || gate->viewers || gate->n_listeners)
        return;
    exposed_attach(gate->exposed, NULL);
    *gate->place = gate->next;
    if (gate->next)
        gate->next->place = gate->place;
    exposed_free(gate->exposed);
    free(gate);
}

static void gate_enter(struct gate *gate, struct viewer *viewer)
{
    viewer->gate = gate;
    viewer->next = gate->viewers;
    viewer->place = &gate->viewers;
    if (viewer->next)
        viewer->next->place = &viewer->next;
    gate->viewers = viewer;
    gate->count++;
}

static void gate_leave(struct viewer *viewer)
{
    struct gate *gate = take(viewer->gate);

    if (!gate)
        return;
    *viewer->place = viewer->next;
    if (viewer->next)
        viewer->next->place = viewer->place;
    gate->count--;
    gate_release(gate);
}

/* The oldest that nobody uses goes. False: all are in use. */
static bool make_room(const struct gate *gate)
{
    struct viewer *oldest = NULL;

    if (gate->count < OF_ONE)
        return true;
    for (struct viewer *at = gate->viewers; at; at = at->next) {
        if (proxy_is_idle(at->client))
            oldest = at;
    }
    if (oldest)
        proxy_close(oldest->client);
    return oldest != NULL;
}

// ---- connecting ----

static void go(struct viewer *viewer, int fd)
{
    const struct preview_settings *settings = &viewer->preview->settings;
    char host[PREVIEW_HOST_TEXT];
    const struct proxy_target target = {
        .route = viewer,
        .host = host,
        .forwarded_proto = viewer->is_named ? settings->names.scheme : "http",
        .hidden_header = PREVIEW_TOKEN_HEADER,
        .hidden_too = viewer->is_passage ? settings->protocol->token_header : NULL,
        .cookie_port = viewer->is_named ? 0 : viewer->gate->host_port,
    };

    if (viewer->is_passage && viewer->passage.host[0])
        memcpy(host, viewer->passage.host, sizeof host);
    else
        (void)snprintf(host, sizeof host, "localhost:%u", viewer->asked);
    viewer->port = viewer->asked;
    proxy_go(viewer->client, fd, &target);
}

static void turn_away(struct viewer *viewer, enum preview_page page)
{
    struct proxy_client *client = viewer->client;

    if (viewer->is_passage)
        viewer->preview->settings.protocol->refuse(client, &viewer->passage, page);
    else
        preview_page_send(client, proxy_request(client), page, viewer->asked);
}

static void conclude(struct viewer *viewer, enum port_result result, int fd,
                     const struct error *err)
{
    switch (result) {
    case PORT_CONNECTED:
        go(viewer, fd);
        break;
    case PORT_REFUSED:
        turn_away(viewer, PREVIEW_NOBODY);
        break;
    case PORT_OVER:
        turn_away(viewer, PREVIEW_UNKNOWN);
        break;
    case PORT_WAITS:
    case PORT_FAILED:
        log_warn("a sandbox could not be reached", F("port", (uint64_t)viewer->asked),
                 F("error", (const char *)err->text));
        turn_away(viewer, PREVIEW_ASLEEP);
        break;
    }
}

static void end_errand(void *data)
{
    autofree struct errand *errand = data;
    struct viewer *viewer = errand->viewer;

    if (viewer && !exposed_is_gone(viewer->gate->exposed)) {
        viewer->errand = NULL;
        if (errand->is_shut)
            turn_away(viewer, PREVIEW_PAUSED);
        else
            conclude(viewer, errand->result, errand->fd, &errand->err);
        return;
    }
    if (errand->result == PORT_CONNECTED)
        (void)close(errand->fd);
    if (viewer) {
        viewer->errand = NULL;
        turn_away(viewer, PREVIEW_UNKNOWN);
    }
}

static void run_errand(void *data)
{
    struct errand *errand = data;
    const struct preview_settings *settings = &errand->preview->settings;

    errand->result = PORT_FAILED;
    if (!errand->is_passage ||
        settings->protocol->wake(settings->core, errand->sandbox_id, &errand->err) == 0)
        errand->result = port_connect(ports_of(errand->preview), errand->sandbox_id, errand->port,
                                      &errand->fd, &errand->err);
    else
        errand->is_shut = error_is(&errand->err, ERROR_ENDED);
    loop_post(errand->preview->loop, end_errand, errand);
}

/* The request waits with its client; of many at once one wakes the sandbox. */
static void send_errand(struct viewer *viewer)
{
    struct errand *errand = xnew(struct errand);
    struct turns_owner owner = {.what = id_hash(viewer->sandbox_id)};
    struct error err = {0};

    *errand = (struct errand){.preview = viewer->preview,
                              .viewer = viewer,
                              .port = viewer->asked,
                              .fd = -1,
                              .is_passage = viewer->is_passage};
    memcpy(errand->sandbox_id, viewer->sandbox_id, sizeof errand->sandbox_id);
    owner.who = owner.what;
    if (workers_submit_for(viewer->preview->workers, WORKERS_SLOW, &owner, run_errand, errand,
                           &err) == 0) {
        viewer->errand = errand;
        return;
    }
    free(errand);
    turn_away(viewer, PREVIEW_CROWDED);
}

static void connect_viewer(struct viewer *viewer)
{
    struct error err = {0};
    int fd = -1;

    if (viewer->port == viewer->asked && proxy_keeps(viewer->client, viewer) &&
        port_is_awake(ports_of(viewer->preview), viewer->sandbox_id)) {
        go(viewer, -1);
        return;
    }
    enum port_result result =
        port_connect_now(ports_of(viewer->preview), viewer->sandbox_id, viewer->asked, &fd, &err);
    if (result == PORT_WAITS)
        send_errand(viewer);
    else
        conclude(viewer, result, fd, &err);
}

// ---- requests ----

/* Which exposed port a name means; a reference, or NULL. */
static struct exposed *find_named(struct viewer *viewer, const struct http_request *request,
                                  struct preview_name *name)
{
    struct preview *preview = viewer->preview;

    if (viewer->is_passage) {
        name->port = viewer->passage.port;
        return viewer->passage.sandbox_id[0]
                   ? exposed_find(ports_of(preview), viewer->passage.sandbox_id, name->port)
                   : NULL;
    }
    if (!preview_name_read(request->host, preview->settings.names.domain, name))
        return NULL;
    return name->is_token ? exposed_find_token(ports_of(preview), name->word, name->port)
                          : exposed_find(ports_of(preview), name->word, name->port);
}

/* By a front's protocol, or by a name below the domain. False: neither. */
static bool read_way(struct viewer *viewer, const struct http_request *request)
{
    const struct preview_settings *settings = &viewer->preview->settings;
    const char *domain = settings->names.domain, *host = request->host;
    bool is_below = domain && host && preview_name_is_below(host, strlen(host), domain);

    viewer->is_passage = settings->protocol && settings->protocol->read(settings->core, request,
                                                                        is_below, &viewer->passage);
    return viewer->is_passage || is_below;
}

/* False: it was answered. */
static bool enter_named(struct viewer *viewer, const struct http_request *request, bool *is_opened)
{
    struct preview_name name = {0};
    struct port_info info;

    viewer->asked = 0;
    if (!read_way(viewer, request)) {
        turn_away(viewer, PREVIEW_WRONG);
        return false;
    }
    autoptr(exposed) exposed = find_named(viewer, request, &name);
    if (!exposed) {
        turn_away(viewer, PREVIEW_UNKNOWN);
        return false;
    }
    exposed_tell(ports_of(viewer->preview), exposed, &info);
    bool is_other = !viewer->gate || viewer->gate->exposed != exposed;
    if (is_other) {
        viewer->port = 0;
        gate_leave(viewer);
        if (info.protocol == PORT_TCP) {
            turn_away(viewer, PREVIEW_UNKNOWN);
            return false;
        }
        if (!make_room(gate_of(viewer->preview, exposed))) {
            turn_away(viewer, PREVIEW_CROWDED);
            return false;
        }
        gate_enter(gate_of(viewer->preview, exposed), viewer);
    }
    memcpy(viewer->sandbox_id, info.sandbox_id, sizeof viewer->sandbox_id);
    viewer->asked = name.port;
    *is_opened =
        viewer->is_passage ? viewer->passage.is_opened && info.port == PORT_ALL : name.is_token;
    return true;
}

static void on_request(void *owner, struct proxy_client *client, const struct http_request *request)
{
    struct viewer *viewer = proxy_client_data(client);
    struct preview *preview = owner;
    bool is_opened = false;

    viewer->client = client;
    if (viewer->is_named && !enter_named(viewer, request, &is_opened))
        return;
    const struct exposed *exposed = viewer->gate->exposed;
    const char *token = request ? http_request_header(request, PREVIEW_TOKEN_HEADER) : NULL;
    if (exposed_is_gone(exposed))
        turn_away(viewer, PREVIEW_UNKNOWN);
    else if (!is_opened && !exposed_opens(ports_of(preview), exposed, token))
        turn_away(viewer, PREVIEW_PRIVATE);
    else
        connect_viewer(viewer);
}

static void on_failure(void *owner, struct proxy_client *client, const struct http_request *request,
                       enum proxy_failure failure)
{
    static const enum preview_page pages[] = {
        [PROXY_REFUSED] = PREVIEW_NOBODY,
        [PROXY_SLOW] = PREVIEW_SLOW,
        [PROXY_NO_ANSWER] = PREVIEW_NO_ANSWER,
        [PROXY_MALFORMED] = PREVIEW_MALFORMED,
    };
    const struct viewer *viewer = proxy_client_data(client);
    const struct preview *preview = owner;

    if (viewer->is_passage)
        preview->settings.protocol->refuse(client, &viewer->passage, pages[failure]);
    else
        preview_page_send(client, request, pages[failure], viewer->asked);
}

static void on_bad_request(void *owner, struct proxy_client *client, int status, const char *text)
{
    (void)owner;
    preview_page_refuse(client, status, text);
}

static void on_traffic(void *owner, struct proxy_client *client)
{
    const struct viewer *viewer = proxy_client_data(client);

    if (viewer->gate && viewer->sandbox_id[0])
        port_touch(ports_of(owner), viewer->sandbox_id);
}

static void on_close(void *owner, struct proxy_client *client)
{
    struct viewer *viewer = proxy_client_data(client);

    (void)owner;
    if (viewer->errand)
        viewer->errand->viewer = NULL;
    gate_leave(viewer);
    free(viewer);
}

/* Whether a head is for the preview: names below the domain, but for what a front answers there. */
static bool is_ours(void *owner, const char *head, size_t length)
{
    const struct preview_settings *settings = &((const struct preview *)owner)->settings;
    enum preview_claim claim =
        settings->protocol ? settings->protocol->claim(head, length) : PREVIEW_NOT_MINE;

    if (claim != PREVIEW_NOT_MINE)
        return claim == PREVIEW_PORT;
    return settings->names.domain && preview_name_is_asked(head, length, settings->names.domain);
}

static bool is_elsewhere(void *owner, struct proxy_client *client, const char *head, size_t length)
{
    const struct viewer *viewer = proxy_client_data(client);

    return viewer->is_named && !is_ours(owner, head, length);
}

static void on_leave(void *owner, int fd, char *bytes, size_t length)
{
    struct preview *preview = owner;

    preview->settings.give_back(preview->settings.data, fd, bytes, length);
}

static const struct proxy_events proxy_events = {
    .is_elsewhere = is_elsewhere,
    .on_leave = on_leave,
    .on_request = on_request,
    .on_failure = on_failure,
    .on_bad_request = on_bad_request,
    .on_traffic = on_traffic,
    .on_close = on_close,
};

// ---- connections that come ----

static bool has_room(const struct preview *preview)
{
    return proxy_count(preview->proxy) < preview->settings.connections;
}

static bool may_accept(void *owner)
{
    const struct gate *gate = owner;

    return has_room(gate->preview);
}

static void on_accept(void *owner, int fd)
{
    struct gate *gate = owner;
    struct preview *preview = gate->preview;
    struct error err = {0};
    struct port_info info;

    if (exposed_is_gone(gate->exposed) || !make_room(gate)) {
        (void)close(fd);
        return;
    }
    struct viewer *viewer = xnew(struct viewer);
    viewer->preview = preview;
    exposed_tell(ports_of(preview), gate->exposed, &info);
    memcpy(viewer->sandbox_id, info.sandbox_id, sizeof viewer->sandbox_id);
    viewer->asked = info.port;
    gate_enter(gate, viewer);
    int result = gate->is_tcp
                     ? proxy_tunnel(preview->proxy, fd, viewer, &viewer->client, &err)
                     : proxy_accept(preview->proxy, fd, NULL, 0, viewer, &viewer->client, &err);
    if (result == 0)
        return;
    gate_leave(viewer);
    free(viewer);
    (void)close(fd);
}

static const struct listener_events listener_events = {.on_accept = on_accept,
                                                       .may_accept = may_accept};

struct arrival {
    struct preview *preview;
    int fd;
    char *bytes;
    size_t length;
};

static void on_arrival(void *data)
{
    autofree struct arrival *arrival = data;
    autofree char *bytes = arrival->bytes;
    struct preview *preview = arrival->preview;
    struct error err = {0};

    struct viewer *viewer = xnew(struct viewer);
    viewer->preview = preview;
    viewer->is_named = true;
    if (preview->proxy && has_room(preview) &&
        proxy_accept(preview->proxy, arrival->fd, bytes, arrival->length, viewer, &viewer->client,
                     &err) == 0)
        return;
    free(viewer);
    (void)close(arrival->fd);
}

/* On the http server's loop. */
static void take_over(void *owner, int fd, char *bytes, size_t length)
{
    struct arrival *arrival = xnew(struct arrival);

    *arrival = (struct arrival){owner, fd, bytes, length};
    loop_post(arrival->preview->loop, on_arrival, arrival);
}

const struct http_elsewhere *preview_elsewhere(struct preview *preview)
{
    const struct preview_settings *settings = &preview->settings;

    return settings->names.domain || settings->protocol ? &preview->elsewhere : NULL;
}

// ---- ports of the machine ----

struct opening {
    struct preview *preview;
    struct exposed *exposed;
    uint16_t host_port;
    sem_t done;
    int result;
    struct error *err;
};

static void shut_gate(struct gate *gate)
{
    while (gate->n_listeners)
        listener_free(gate->listeners[--gate->n_listeners]);
}

static int listen_all(struct gate *gate, uint16_t host_port, struct error *err)
{
    const struct preview_settings *settings = &gate->preview->settings;
    char address[ADDRESS_TEXT];

    gate->host_port = host_port;
    for (size_t i = 0; i < settings->n_hosts; i++) {
        (void)snprintf(address, sizeof address, "%s:%u", settings->hosts[i], host_port);
        if (listener_open_tcp(gate->preview->loop, address, &listener_events, gate,
                              &gate->listeners[gate->n_listeners], err) < 0) {
            shut_gate(gate);
            return err->sys == EADDRINUSE ? error_restate(err, ERROR_CONFLICT, "port") : -1;
        }
        gate->n_listeners++;
    }
    return 0;
}

static void open_on_loop(void *data)
{
    struct opening *opening = data;
    struct gate *gate = gate_of(opening->preview, opening->exposed);

    opening->result = listen_all(gate, opening->host_port, opening->err);
    gate_release(gate);
    (void)sem_post(&opening->done);
}

static int open_host_port(void *data, struct exposed *exposed, uint16_t host_port,
                          struct error *err)
{
    struct opening opening = {
        .preview = data, .exposed = exposed, .host_port = host_port, .err = err};

    (void)sem_init(&opening.done, 0, 0);
    loop_post(opening.preview->loop, open_on_loop, &opening);
    while (sem_wait(&opening.done) < 0)
        ;
    (void)sem_destroy(&opening.done);
    return opening.result;
}

struct closing {
    struct exposed *exposed;
    bool is_over;
};

static void close_on_loop(void *data)
{
    autofree struct closing *closing = data;
    autoptr(exposed) exposed = closing->exposed;
    struct gate *gate = exposed_attached(exposed);

    if (gate && closing->is_over)
        shut_gate(gate);
    // The last viewer takes a gate without listeners along, so it is looked up each time.
    while ((gate = exposed_attached(exposed)) && gate->viewers)
        proxy_close(gate->viewers->client);
    gate_release(exposed_attached(exposed));
}

static void post_closing(struct preview *preview, struct exposed *exposed, bool is_over)
{
    struct closing *closing = xnew(struct closing);

    *closing = (struct closing){exposed_ref(exposed), is_over};
    loop_post(preview->loop, close_on_loop, closing);
}

static void close_host_port(void *data, struct exposed *exposed)
{
    post_closing(data, exposed, true);
}

static void cut_viewers(void *data, struct exposed *exposed)
{
    post_closing(data, exposed, false);
}

// ---- the thread ----

static void *run_thread(void *data)
{
    struct preview *preview = data;
    sigset_t all;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    thread_set_name("preview");
    loop_run(preview->loop);
    return NULL;
}

static int start(struct preview *preview, struct error *err)
{
    const struct workers_settings lanes = {
        .lane = {[WORKERS_SLOW] = {WAKERS, WAKE_QUEUE, "waker", .per_what = WAKERS_OF}}};

    if (loop_new(&preview->loop, err) < 0 || workers_new(&lanes, &preview->workers, err) < 0 ||
        proxy_new(preview->loop, &proxy_limits_default, &proxy_events, preview, &preview->proxy,
                  err) < 0)
        return -1;
    int code = pthread_create(&preview->thread, NULL, run_thread, preview);
    if (code)
        return error_sys_code(err, code, "start the preview's thread");
    preview->is_started = true;
    return 0;
}

int preview_new(const struct preview_settings *settings, struct preview **out, struct error *err)
{
    autoptr(preview) preview = xnew(struct preview);
    const struct port_host host = {open_host_port, close_host_port, cut_viewers, preview};

    preview->settings = *settings;
    preview->elsewhere = (struct http_elsewhere){is_ours, take_over, preview};
    if (start(preview, err) < 0)
        return -1;
    ports_set_host(ports_of(preview), &host);
    *out = take(preview);
    return 0;
}

static void run_leftovers(struct preview *preview)
{
    for (int round = 0; round < 8; round++) {
        loop_stop(preview->loop);
        loop_run(preview->loop);
    }
}

void preview_free(struct preview *preview)
{
    if (!preview)
        return;
    ports_set_host(ports_of(preview), NULL);
    if (preview->is_started) {
        loop_stop(preview->loop);
        (void)pthread_join(preview->thread, NULL);
    }
    workers_stop(preview->workers);
    if (preview->loop)
        run_leftovers(preview);
    proxy_free(take(preview->proxy));
    while (preview->gates) {
        struct gate *gate = preview->gates;
        shut_gate(gate);
        gate_release(gate);
    }
    if (preview->loop)
        run_leftovers(preview);
    loop_free(preview->loop);
    workers_free(preview->workers);
    free(preview);
}
