/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real server on its own loop thread with workers, and plain blocking clients on loopback.
 * Paths say what is done: see net_fixture.c for the list.
 */
#pragma once
#include "base/auto.h"
#include "base/buffer.h"
#include "loop/loop.h"
#include "loop/workers.h"
#include "net/http_server.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

struct fixture {
    struct loop *loop;
    struct workers *workers;
    struct http_server *server;
    const char *address;
    int port;
    pthread_t thread;
    char *file; // of FILE_BYTES, served by /file
    int file_fd;
    // What happened, counted on the loop; waited for by fixture_wait.
    atomic_int gone, delivered, undelivered, requests, bad, produced_mib, read_failed, asked;
    pthread_mutex_t lock; // guards the list
    struct parked *parked;
    atomic_int parked_count;
    struct http_request *question; // of /ask, until it is decided
    struct response *questioner;
    /* What /socket does; takes the response. On the loop. */
    void (*on_socket)(struct fixture *fixture, struct response *response);
};
#define FILE_BYTES (32u << 20)

struct fixture *fixture_new(const struct http_limits *limits);
void fixture_free(struct fixture *fixture);
DEFINE_AUTOPTR(fixture)

/* Small times, so that tests of them are short. */
struct http_limits quick_limits(void);

int client_connect(struct fixture *fixture);
void client_dial(struct fixture *fixture, int fd); // connects a socket
void client_send(int fd, const void *data, size_t length);
void client_say(int fd, const char *text);

struct reply {
    int status;
    bool is_closing, is_chunked;
    char *head;
    struct buffer body;
};
void reply_clear(struct reply *reply);
#define autoreply __attribute__((cleanup(reply_clear))) struct reply

/* Reads one whole answer; status -1 when the connection ended before it was complete. */
void client_read(int fd, struct reply *reply, bool is_to_head);

/* Is the connection closed by the server, with nothing more to read? Waits for it. */
bool client_is_closed(int fd);

/* One request, one answer, one connection. */
int client_ask(struct fixture *fixture, const char *text, struct reply *reply);

/* Answers all parked responses; waits until there are `count`. */
void fixture_release(struct fixture *fixture, int count);

/* Says what to do with the body of the last /ask, of which there was one. */
void fixture_decide(struct fixture *fixture, enum http_body body);

/* Waits until the counter is at least `value`; fails the test after ten seconds. */
void fixture_wait(atomic_int *counter, int value);

size_t memory_kib(void); // resident set of this process
