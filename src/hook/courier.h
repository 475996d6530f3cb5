/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's end of burrow-courier, the program that makes requests to strangers' servers: what they answer is read there, without rights, and not in the
 * server.
 * Threads: one per object; does not block, but for the start and the end of the program.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "hook/courier_wire.h"

#include <stdbool.h>
#include <stddef.h>

struct courier;

struct courier_settings {
    const char *program;  // path; NULL: next to this program
    const char *networks; // allowed beside public addresses; NULL: none
    bool is_http_allowed;
};

/* Starts it. */
int courier_new(const struct courier_settings *settings, struct courier **out, struct error *err);
void courier_free(struct courier *courier); // with whatever it is doing
DEFINE_AUTOPTR(courier)

/* Readable when there is a result. */
int courier_fd(const struct courier *courier);

struct courier_post {
    uint64_t id;
    const char *url;
    const char *headers; // a line each, with \n behind it
    const char *body;
    size_t length;
};
/* ERROR_BUSY: not now. ERROR_GONE: it has ended. */
int courier_send(struct courier *courier, const struct courier_post *post, struct error *err);
/* 1: there is one; 0: not now; -1: it has ended, and there will be none. */
int courier_receive(struct courier *courier, struct courier_result *out);
