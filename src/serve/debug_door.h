/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where E2B's clients in debug mode come in (--e2b-debug): listeners, connections and a router of their own, in which nothing is but the front
 * for them. So no request that came in elsewhere gets there whatever it says of itself, and none from there gets anywhere else.
 * Threads: one thread.
 */
#pragma once
#include "base/error.h"
#include "serve/config.h"

struct core;
struct debug_door;
struct loop;
struct workers;

/* All outlive the door. */
struct debug_door_settings {
    const struct config *config;
    struct core *core;
    struct loop *loop;
    struct workers *workers;
};

/* ERROR_INVALID for addresses that others could reach. Touches nothing. */
int debug_door_check(const struct config *config, struct error *err);

/* *out is NULL where the settings name no address; below, NULL is no door. Fails as listeners do. */
int debug_door_new(const struct debug_door_settings *settings, struct debug_door **out,
                   struct error *err);
void debug_door_drain(struct debug_door *door); // new calls are refused
void debug_door_close(struct debug_door *door); // cuts all connections
void debug_door_free(struct debug_door *door);  // closed, and no call may be under way
