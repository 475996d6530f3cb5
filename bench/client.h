/* SPDX-License-Identifier: Apache-2.0 */
/* A client just large enough to measure a server with: blocking, keep-alive, answers of known length or in chunks. */
#pragma once
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct client {
    int fd;
    char *data; // what was read; grows
    size_t capacity;
    size_t length; // read so far, beyond the present answer too
    size_t used;   // of it, by answers that were taken
    int status;    // of the last answer
    char *body;    // NUL-terminated until the next answer
    size_t body_length;
};

int client_open(struct client *client, const char *address, struct error *err); // "127.0.0.1:4747"
void client_close(struct client *client);

/* `body` NULL: none. */
int client_send(struct client *client, const char *method, const char *path, const char *key,
                const char *body, struct error *err);
int client_receive(struct client *client, struct error *err);

/* The text of "name":"…" in the last body; false when it is not there or too long. */
int client_field(const struct client *client, const char *name, char *out, size_t size,
                 struct error *err);
