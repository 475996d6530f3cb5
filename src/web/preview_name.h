/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of exposed ports: PORT-ID.DOMAIN, and PORT-TOKEN.DOMAIN of a private one.
 * Threads: plain values.
 */
#pragma once
#include "core/port/port.h"

#include <stdbool.h>
#include <stddef.h>

struct preview_names;

struct preview_name {
    uint16_t port;
    char word[PORT_TOKEN_TEXT]; // an id, or a token: they differ in length
    bool is_token;
};

/* Whether a host, with or without its port, is below the domain (in lower case). */
bool preview_name_is_below(const char *host, size_t length, const char *domain);
/* The same of the first Host in the bytes of a head. */
bool preview_name_is_asked(const char *head, size_t length, const char *domain);
/* False: it is below the domain, but no name of a port; or not below it. */
bool preview_name_read(const char *host, const char *domain, struct preview_name *out);
