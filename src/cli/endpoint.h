/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which server a command talks to: --url or BURROW_URL, a context (--context, BURROW_CONTEXT, the current one), the socket of the local
 * server; where there is none of these, one is started in the background.
 * Threads: one thread.
 */
#pragma once
#include "cli/invocation.h"

enum endpoint_patience {
    ENDPOINT_LOOK, // fails with BURROW_UNREACHABLE where nothing is configured and no local server runs
    ENDPOINT_START, // starts one then
};

/* Makes invocation->client. */
int endpoint_connect(struct invocation *invocation, enum endpoint_patience patience,
                     struct burrow_error *err);
/* 1: a server is meant by an option, a variable or a context, 0: the local one is; -1: the contexts cannot be read, or have not the one that is named. */
int endpoint_is_named(const struct invocation *invocation, struct burrow_error *err);
/* The local server's data directory, an absolute path. */
const char *endpoint_data_dir(const struct invocation *invocation);
/* A descriptor that becomes readable at the first Ctrl-C (SIGINT, SIGTERM, SIGHUP); at the second the process ends. */
int endpoint_cancel_fd(void);
/* Whether it was: for what takes long and waits for nothing. */
bool endpoint_is_cancelled(void);
/* From here on Ctrl-C is the command's own business: signals are no longer taken. */
void endpoint_give_signals_back(void);
