/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a request is called in answers, logs and letters to whoever runs the server: as its client calls it (X-Request-Id), or
 * a UUID. Unlike other ids it is no secret, and may be a client's choice: it says nothing about who asked.
 * Threads: one per object.
 */
#pragma once
#include "net/request.h"

#include <stdint.h>

#define REQUEST_ID_TEXT 128 // bytes, with the NUL

/* Where UUIDs come from; one of these, asked for randomness once, gives any number. */
struct request_ids {
    uint64_t state[2];
};
void request_ids_init(struct request_ids *ids);

/* The client's, where it is 1 to 127 printable ASCII characters once blanks around it are gone; else a new one. `request` may
 * be NULL. */
void request_id_read(struct request_ids *ids, const struct http_request *request,
                     char out[REQUEST_ID_TEXT]);
