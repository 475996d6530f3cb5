/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces for boxes: loopback up, nothing else. Owned by the host, so root in a box rules nothing in
 * them; what it expects to be allowed there, the launch allows everybody. Making one takes longer than all else of a launch, so it can be done beside the rest: by a child that
 * shares our memory and fds for as long as it lives.
 * Threads: one per object; the maker.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

#define NETWORK_STACK 4096

struct network_maker {
    char stack[NETWORK_STACK] __attribute__((aligned(16)));
    int parent; // a namespace to make this one from; borrowed, or -1
    bool is_parent;
    pid_t child;
    int fd;
    int code; // errno, or 0
    const char *step;
};

/* Begins, from a parent (-1: none), which makes the end of a namespace cheaper; the maker must stay where it is until
 * network_finish. */
int network_start(struct network_maker *maker, int parent, struct error *err);
/* Waits, and gives the namespace's fd, the caller's. Must be called once after a network_start that went well. */
int network_finish(struct network_maker *maker, int *out, struct error *err);

/* Both. */
int network_create(int parent, int *out, struct error *err);

/* A namespace for nobody but to make others from. */
int network_make_parent(int *out, struct error *err);
