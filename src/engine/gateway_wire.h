/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the gateway's files: pairs of interfaces, their addresses and routes. What can fail gives 0 or an error number.
 * Threads: any.
 */
#pragma once
#include "engine/netlink.h"

struct wire_end {
    const char *name;
    uint32_t index;    // 0: the kernel's choice
    int ns_fd;         // the namespace it is put into; -1: where the pair is made
    const char *alias; // or NULL
};

/* Makes a pair of interfaces, both up; `here` in the namespace `ns_fd` (-1: the caller's). EEXIST, EBUSY: such a one is there. */
int wire_make(int ns_fd, const struct wire_end *here, const struct wire_end *there);
int wire_remove(int ns_fd, const char *name);
/* The number of an interface by its name. */
int wire_index(int ns_fd, const char *name, uint32_t *index);
/* Every interface with an alias. */
int wire_list(int ns_fd, void (*fn)(const char *name, const char *alias, void *data), void *data);
/* How many interfaces a namespace has, loopback among them. */
int wire_count(int ns_fd, unsigned *count);

void message_add_address(struct messages *messages, uint32_t index, uint32_t address,
                         unsigned bits);
/* `via` 0: its hosts are on the wire itself. */
void message_add_route(struct messages *messages, uint32_t index, uint32_t to, unsigned bits,
                       uint32_t via);
