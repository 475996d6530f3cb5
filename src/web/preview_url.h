/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of exposed ports, as whoever asks can use them.
 * Threads: one per object; a call is its handler's.
 */
#pragma once
#include "core/port/port.h"
#include "web/call.h"

/*
 * "http://3000-ID.DOMAIN" where there are names, else the host that the client reached us by, with the port of the machine. Of all ports:
 * with "{port}" in it. NULL: it has none. Goes with the call.
 */
const char *preview_url(struct call *call, const struct port_info *info);
/* The same with its token in the name; NULL where there are no names, or no token. */
const char *preview_token_url(struct call *call, const struct port_info *info);
/* Below which names of exposed ports are, "preview.example.com:8443"; NULL: there are none. Goes with the call. */
const char *preview_domain(struct call *call);
