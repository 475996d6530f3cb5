/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way into sandboxes' exposed ports: listens on their ports of this machine, and takes over connections whose Host is a name below the
 * preview domain. Has a thread of its own, so that large transfers delay no call of the API. Tokens, waking and pages for people are
 * here; what is passed on is net/proxy.h's, what is exposed core/port/port.h's.
 * Threads: any but loops.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "net/http_server.h"

#define PREVIEW_ADDRESSES 8
#define PREVIEW_TOKEN_HEADER "X-Burrow-Port-Token"

struct core;
struct preview_protocol;

/* How exposed ports are called from outside. Texts are borrowed. */
struct preview_names {
    const char *domain; // "preview.example.com", in lower case; NULL: there are no names
    const char *scheme; // "http", "https"
    const char *port;   // ":8443"; "": the scheme's own
};

struct preview_settings {
    struct core *core;
    struct preview_names names;
    const char *hosts[PREVIEW_ADDRESSES]; // where host ports are: "127.0.0.1", "[::1]", ""
    size_t n_hosts;
    size_t connections;                      // at once
    const struct preview_protocol *protocol; // of a front; NULL: none
    /* Takes a connection that turns out to be for another host, with the bytes that were read from it. On the preview's thread. */
    void (*give_back)(void *data, int fd, char *bytes, size_t length);
    void *data;
};

struct preview;

/* Starts its thread, and listens for all that is exposed. Texts of the settings stay the caller's. */
int preview_new(const struct preview_settings *settings, struct preview **out, struct error *err);
void preview_free(struct preview *preview);
DEFINE_AUTOPTR(preview)

/* For the http server; NULL where there are neither names nor a protocol. The preview's. */
const struct http_elsewhere *preview_elsewhere(struct preview *preview);
