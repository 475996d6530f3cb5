/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a front's own protocol leads to exposed ports: its headers and hosts, its tokens, its words where nobody answers. The preview asks it first.
 * Threads: any; what is on a loop says so.
 */
#pragma once
#include "base/error.h"
#include "base/id.h"
#include "web/preview_page.h"

#include <stdbool.h>
#include <stdint.h>

struct core;

#define PREVIEW_HOST_TEXT 300

enum preview_claim {
    PREVIEW_NOT_MINE, // says nothing of this protocol
    PREVIEW_PORT,     // for a port of a sandbox
    PREVIEW_FRONT,    // for what the front itself answers, whatever its host is
};

/* One request, as the protocol reads it. */
struct preview_passage {
    char sandbox_id[ID_TEXT]; // "": there is no such sandbox
    uint16_t port;
    bool is_opened;               // it shows the token of all ports, where they are private
    char host[PREVIEW_HOST_TEXT]; // for Host; "": the usual one
};

struct preview_protocol {
    const char *token_header; // is not passed on
    /* By the bytes of a head. On the loops of the server and of the preview. */
    enum preview_claim (*claim)(const char *head, size_t length);
    /* False: it is not for this protocol after all, but a name below the preview domain (is_below). On the preview's loop. */
    bool (*read)(struct core *core, const struct http_request *request, bool is_below,
                 struct preview_passage *out);
    /* Wakes a sandbox, or says that it is not to be woken: ERROR_ENDED. Blocks. */
    int (*wake)(struct core *core, const char *sandbox_id, struct error *err);
    /* proxy_answer, in the protocol's words. On the preview's loop. */
    void (*refuse)(struct proxy_client *client, const struct preview_passage *passage,
                   enum preview_page page);
};
