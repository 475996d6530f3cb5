/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a server: where it leads, bytes both ways with deadlines, never blocking. https goes through the program burrow-tls,
 * which has the other end of a socket pair.
 * Threads: one per object.
 */
#pragma once
#include "burrow.h"

#include <stdbool.h>
#include <stddef.h>

#define WIRE_BUFFER ((size_t)64 << 10)

/* Where a URL leads. */
struct wire_target {
    bool is_unix, is_tls;
    char *host;      // of TCP; of a Unix socket its path
    char port[8];    // as digits
    char *base;      // path in front of /api/v1: "" mostly, without a slash at its end
    char *authority; // for the Host header
};

/* "http://…", "https://…", "unix:/path", or a path that begins with a slash. */
int wire_target_parse(const char *url, struct wire_target *out, struct burrow_error *err);
void wire_target_clear(struct wire_target *target);

struct wire_patience {
    int connect_ms; // for a connection
    int idle_ms;    // without a byte; negative: any
    int cancel_fd;  // -1: none
};

struct wire {
    int fd;
    pid_t helper;    // burrow-tls; 0: none
    bool is_cut;     // it has ended, and not as the server wanted
    size_t at, end;  // what is read and not yet taken
    char *in;        // WIRE_BUFFER bytes
    unsigned n_busy; // times that bytes went or came
};

struct wire_tls {
    const char *program, *ca_file;
};

int wire_open(const struct wire_target *target, const struct wire_patience *patience,
              const struct wire_tls *tls, struct wire **out, struct burrow_error *err);
void wire_free(struct wire *wire);

/* All of it. */
int wire_send(struct wire *wire, const struct wire_patience *patience, const void *data,
              size_t length, struct burrow_error *err);
/* What can be sent now: 0 when that is nothing. */
ssize_t wire_send_some(struct wire *wire, const void *data, size_t length,
                       struct burrow_error *err);
/* Reads more behind what is there: 1, 0 at the end of the connection, -1. */
int wire_receive(struct wire *wire, const struct wire_patience *patience, struct burrow_error *err);
/* The same without waiting: 2 when there is nothing now. */
int wire_receive_now(struct wire *wire, struct burrow_error *err);
/* Whether nothing came and nobody left, so that it can be used for another request. */
bool wire_is_fresh(const struct wire *wire);
