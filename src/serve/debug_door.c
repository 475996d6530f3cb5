/* SPDX-License-Identifier: Apache-2.0 */
/* The listeners of debug mode; see debug_door.h. */
#include "serve/debug_door.h"

#include "base/log.h"
#include "base/mem.h"
#include "front/e2b/e2b.h"
#include "net/http_server.h"
#include "web/router.h"

#include <stdlib.h>
#include <string.h>

#define CONNECTIONS 256 // at once

struct debug_door {
    struct front front;
    const struct front *fronts[2];
    struct router *router;
    struct http_server *http;
};

static bool find_address(const struct config *config, size_t index, char out[CONFIG_ADDRESS])
{
    return config->e2b_debug && config_find_address(config->e2b_debug, index, out);
}

/* Nobody shows a key there. */
int debug_door_check(const struct config *config, struct error *err)
{
    char address[CONFIG_ADDRESS];

    for (size_t i = 0; find_address(config, i, address); i++)
        if (!config_is_loopback(address) || strtoul(strrchr(address, ':') + 1, NULL, 10) > 65535)
            return error_set(err, ERROR_INVALID,
                             "e2b-debug '%.100s' is no address of loopback, and others would reach "
                             "a sandbox without a key: write 127.0.0.1:49983 or [::1]:49983",
                             address);
    return 0;
}

static int open_door(struct debug_door *door, const struct debug_door_settings *settings,
                     struct error *err)
{
    const struct router_settings routing = {.core = settings->core,
                                            .loop = settings->loop,
                                            .workers = settings->workers,
                                            .fronts = door->fronts};
    struct http_limits limits = http_limits_default;
    char address[CONFIG_ADDRESS];
    const char *bound;

    limits.connections = CONNECTIONS;
    e2b_debug_front_init(&door->front, &settings->config->e2b);
    door->fronts[0] = &door->front;
    if (router_new(&routing, &door->router, err) < 0 ||
        http_server_new(settings->loop, &limits, &router_handler, door->router, &door->http, err) <
            0)
        return -1;
    for (size_t i = 0; find_address(settings->config, i, address); i++) {
        if (http_server_listen_tcp(door->http, address, &bound, err) < 0)
            return error_wrap(err, "--e2b-debug");
        log_warn("E2B's debug mode: one sandbox for whoever is on this machine, without a key",
                 F("at", bound), F("sandbox", E2B_DEBUG_NAME));
    }
    return 0;
}

int debug_door_new(const struct debug_door_settings *settings, struct debug_door **out,
                   struct error *err)
{
    char address[CONFIG_ADDRESS];

    *out = NULL;
    if (!find_address(settings->config, 0, address))
        return 0;
    *out = xnew(struct debug_door); // the caller frees what was opened of it
    return open_door(*out, settings, err);
}

void debug_door_drain(struct debug_door *door)
{
    if (door)
        router_drain(door->router);
}

void debug_door_close(struct debug_door *door)
{
    if (door)
        http_server_free(take(door->http));
}

void debug_door_free(struct debug_door *door)
{
    if (!door)
        return;
    router_free(door->router);
    e2b_front_clear(&door->front);
    free(door);
}
