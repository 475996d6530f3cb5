/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A router with a small front of its own on a real server, loop and workers, and plain blocking clients on loopback. Paths say what
 * is done: see front_fixture.c for the table.
 */
#pragma once
#include "base/auto.h"
#include "base/buffer.h"
#include "web/router.h"
#include "loop/loop.h"
#include "loop/workers.h"
#include "net/http_server.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

struct front_fixture {
    struct loop *loop;
    struct workers *workers;
    struct http_server *server;
    struct router *router;
    const char *address;
    char dir[32];
    char unix_path[64];
    const struct front **fronts;
    pthread_t thread;
    // What happened; waited for with fixture_wait.
    atomic_int handled, failed, parked, blocked, bytes;
    sem_t unblock; // for each call of /block
};

struct front_options {
    struct core *core;
    const struct front *front; // instead of the fixture's own; copied
    const char *public_url;
    bool is_open;
};

struct front_fixture *front_fixture_new(const struct front_options *options);
void front_fixture_free(struct front_fixture *fixture);
DEFINE_AUTOPTR(front_fixture)

void fixture_wait(atomic_int *counter, int value);

struct answer {
    int status;
    bool is_closing;
    char *head;
    struct buffer body;
};
void answer_clear(struct answer *answer);
#define autoanswer __attribute__((cleanup(answer_clear))) struct answer

int client_connect(struct front_fixture *fixture);
int client_connect_unix(struct front_fixture *fixture);
void client_send(int fd, const void *data, size_t length);
void client_say(int fd, const char *text);
/* Status -1 when the connection ended before the answer was complete. */
void client_read(int fd, struct answer *answer);
void client_read_head(int fd, struct answer *answer); // and no body, whatever it says

/* One request on a connection of its own: "GET /path" and extra header lines, each ended by CR LF; body may be NULL. The answer's
 * status. */
int ask(struct front_fixture *fixture, const char *what, const char *headers, const char *body,
        struct answer *answer);
