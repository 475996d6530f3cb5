/* SPDX-License-Identifier: Apache-2.0 */
/* All clients of a proxy, and a look at their deadlines every second; see proxy.h. */
#include "net/proxy.h"

#include "base/mem.h"
#include "net/proxy_impl.h"

#define SWEEP_MS 1000

const struct proxy_limits proxy_limits_default = {
    .head_bytes = 64 << 10,
    .target_bytes = 16 << 10,
    .headers = 100,
    .head_ms = 10 * 1000,
    .idle_ms = 60 * 1000,
    .connect_ms = 10 * 1000,
    .stall_ms = 60 * 1000,
};

static void on_sweep(void *data)
{
    struct proxy *proxy = data;
    struct proxy_client *next;

    for (struct proxy_client *at = proxy->first; at; at = next) {
        next = at->next;
        proxy_client_check(at);
    }
    if (proxy->first)
        loop_timer_set(&proxy->sweep, SWEEP_MS);
}

int proxy_new(struct loop *loop, const struct proxy_limits *limits,
              const struct proxy_events *events, void *owner, struct proxy **out, struct error *err)
{
    if (limits->headers > HTTP1_MAX_HEADERS)
        return error_set(err, ERROR_INVALID, "at most %d headers can be allowed",
                         HTTP1_MAX_HEADERS);
    struct proxy *proxy = xnew(struct proxy);
    proxy->loop = loop;
    proxy->limits = *limits;
    proxy->parse_limits =
        (struct http1_limits){limits->head_bytes, limits->target_bytes, limits->headers};
    proxy->events = events;
    proxy->owner = owner;
    proxy->scratch = xcalloc(1, PROXY_SCRATCH);
    loop_timer_init(&proxy->sweep, loop, on_sweep, proxy);
    *out = proxy;
    return 0;
}

void proxy_free(struct proxy *proxy)
{
    if (!proxy)
        return;
    while (proxy->first)
        proxy_close(proxy->first);
    loop_timer_clear(&proxy->sweep);
    free(proxy->scratch);
    free(proxy);
}

size_t proxy_count(const struct proxy *proxy)
{
    return proxy->count;
}

void proxy_drain(struct proxy *proxy)
{
    proxy->is_draining = true;
}

static struct proxy_client *open_client(struct proxy *proxy, int fd, void *data, struct error *err)
{
    struct proxy_client *client;

    if (proxy_client_open(proxy, fd, data, &client, err) < 0)
        return NULL;
    if (!proxy->sweep.place)
        loop_timer_set(&proxy->sweep, SWEEP_MS);
    return client;
}

int proxy_accept(struct proxy *proxy, int fd, const char *bytes, size_t length, void *data,
                 struct proxy_client **out, struct error *err)
{
    struct proxy_client *client = open_client(proxy, fd, data, err);

    if (!client)
        return -1;
    *out = client;
    client->is_running = true; // what the callbacks ask for is done below
    if (length)
        proxy_client_feed(client, bytes, length);
    client->is_running = false;
    proxy_client_run(client);
    return 0;
}

int proxy_tunnel(struct proxy *proxy, int fd, void *data, struct proxy_client **out,
                 struct error *err)
{
    struct proxy_client *client = open_client(proxy, fd, data, err);

    if (!client)
        return -1;
    *out = client;
    client->is_tunnel = client->is_request_complete = true;
    client->phase = PROXY_ASKING;
    proxy_client_run(client);
    return 0;
}

void *proxy_client_data(const struct proxy_client *client)
{
    return client->data;
}

const struct http_request *proxy_request(const struct proxy_client *client)
{
    return client->request;
}

bool proxy_is_idle(const struct proxy_client *client)
{
    return client->phase == PROXY_IDLE;
}

void proxy_close(struct proxy_client *client)
{
    client->is_dead = true;
    proxy_client_run(client);
}
