/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A socket that strangers connect to.
 * When the process runs out of descriptors it waits a little between tries instead of spinning.
 * Threads: the loop.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "loop/loop.h"

struct listener;

struct listener_events {
    /* Takes fd: connected, non-blocking, close-on-exec. */
    void (*on_accept)(void *owner, int fd);
    /* May one more be accepted now? Asked before each; false pauses until listener_resume, and
     * asks again after a while. NULL: always. */
    bool (*may_accept)(void *owner);
    /* There is no descriptor for one more. True: there is now, try again. NULL: never. */
    bool (*on_shortage)(void *owner);
};

/* `address` is "127.0.0.1:4747", "[::1]:4747", "0.0.0.0:80" or ":80" (all addresses); numbers only,
 * port 0 takes a free one. */
int listener_open_tcp(struct loop *loop, const char *address, const struct listener_events *events,
                      void *owner, struct listener **out, struct error *err);

/* Takes the place of a dead socket at `path`; a living one is ERROR_CONFLICT. Nobody can connect
 * before `mode` holds. */
int listener_open_unix(struct loop *loop, const char *path, mode_t mode,
                       const struct listener_events *events, void *owner, struct listener **out,
                       struct error *err);

/* Accepts what is waiting, without waiting to be told of it. */
void listener_look(struct listener *listener);

/* Goes on after may_accept said no. */
void listener_resume(struct listener *listener);

/* Where it listens in fact: "127.0.0.1:43121" or the path. */
const char *listener_address(const struct listener *listener);

/* Closes; removes a Unix socket's path if it is still ours. */
void listener_free(struct listener *listener);
DEFINE_AUTOPTR(listener)
