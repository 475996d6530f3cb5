/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces for boxes: loopback up, nothing else. Owned by the host, so root in a box rules nothing in
 * them. Making one takes longer than all else of a launch, so it can be done beside the rest: by a child that
 * shares our memory and fds for as long as it lives.
 */
#pragma once
#include "base/error.h"

#include <sys/types.h>

#define NETWORK_STACK 4096

struct network_maker {
    char stack[NETWORK_STACK] __attribute__((aligned(16)));
    pid_t child;
    int fd;
    int code; // errno, or 0
    const char *step;
};

/* Begins; the maker must stay where it is until network_finish. */
int network_start(struct network_maker *maker, struct error *err);
/* Waits, and gives the namespace's fd, the caller's. Must be called once after a network_start that went well. */
int network_finish(struct network_maker *maker, int *out, struct error *err);

/* Both. */
int network_create(int *out, struct error *err);
