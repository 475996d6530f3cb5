/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out of boxes: a network namespace of ours, one for each data directory, that all their interfaces end in. It has one
 * interface to the host, a constant set of rules, and for each box an address, a class and counters. Kept by the kernel until
 * `burrow detach`: it outlives every process. docs/internals/network.md has the packets' way through it.
 * Threads: any; all calls may share one. They block for the kernel's answer, gateway_open also for programs.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GATEWAY_ADDRESSES "10.213.0.0/16"
#define GATEWAY_MOST_BITS 17 // half of a /17 is for boxes, by their slots
#define GATEWAY_MAX_RULES 1024
#define GATEWAY_FLOWS_PORT 1080 // where the rules turn connections to
#define GATEWAY_HOST_PORT 1081

struct gateway;

struct gateway_options {
    const char *
        addresses; // a network of version 4 with 17 bits or fewer; NULL: whatever is there, else GATEWAY_ADDRESSES
    const char
        *uplink; // the host's interface that may be used; NULL or "": any, by the host's routes
};

/*
 * Opens the gateway of a data directory, and makes it first where there is none. ERROR_UNAVAILABLE, with what is to be done, where this machine
 * cannot forward; ERROR_CONFLICT when one with other settings is in use. `options` NULL: whatever is there.
 */
int gateway_open(const char *data_dir, const struct gateway_options *options, struct gateway **out,
                 struct error *err);
/* The same, but ERROR_NOT_FOUND where there is none. */
int gateway_find(const char *data_dir, struct gateway **out, struct error *err);
/* Forgets the handle. What the kernel has stays. */
void gateway_free(struct gateway *gateway);
DEFINE_AUTOPTR(gateway)
/* Removes all of it from the kernel, and what was changed on the host for it. No box may use it. Nothing where there is none. */
int gateway_remove(const char *data_dir, struct error *err);

/* Addresses are numbers in the host's byte order. Of the gateway itself, as boxes see it: their resolver. */
uint32_t gateway_address(const struct gateway *gateway);
uint32_t gateway_box_address(const struct gateway *gateway, unsigned slot);
/* The slot that has this address; -1: none. */
int gateway_slot_of(const struct gateway *gateway, uint32_t address);

/* Interfaces: from a namespace with nothing but loopback to one with a wire to the gateway, *index its end there; and its address. */
int gateway_wire(struct gateway *gateway, int network_fd, uint32_t *index, struct error *err);
int gateway_claim(struct gateway *gateway, int network_fd, uint32_t index, unsigned slot,
                  struct error *err);
/* So many bytes a second at most out of a namespace with a wire; 0: as many as there are. */
int gateway_limit(int network_fd, uint64_t bytes_per_second, struct error *err);

/*
 * Lets a box out, or changes what it may, at once and whole. Until then all of it is refused, as the boxes whose owner died are. Where there was a class before, its
 * connections are judged again, and cut where they are no longer allowed. `generation`: another number for each call about a slot.
 * Pins stay.
 */
int gateway_admit(struct gateway *gateway, unsigned slot, const struct policy_kernel *kernel,
                  uint32_t generation, struct error *err);
/* Nothing is left of the slot's: class, rules, pins, counters, connections. box_end does it. */
int gateway_dismiss(struct gateway *gateway, unsigned slot, struct error *err);

/* A box of POLICY_CLASS_NAMES may send to this address, by these protocols (enum policy_protocol) to this port (0: any) for so long. */
int gateway_pin(struct gateway *gateway, unsigned slot, uint32_t address, unsigned protocols,
                uint16_t port, uint32_t seconds, struct error *err);
/* Of all of a box's; its connections are judged again. */
int gateway_unpin_all(struct gateway *gateway, unsigned slot, struct error *err);
/* Its connections are judged again, by the next packet that it sends on each: what is not allowed any more is reset. */
int gateway_cut(struct gateway *gateway, unsigned slot, struct error *err);

struct gateway_counters {
    uint64_t sent_bytes, sent_packets; // out of the box, and let through
    uint64_t refused_bytes, refused_packets;
};

/* All 0 for a slot that was not admitted. */
int gateway_counters(struct gateway *gateway, unsigned slot, struct gateway_counters *out,
                     struct error *err);

enum gateway_listener {
    GATEWAY_DNS_UDP,
    GATEWAY_DNS_TCP,
    GATEWAY_FLOWS, // TCP to 80 and 443 of boxes of POLICY_CLASS_NAMES; where it was meant for: SO_ORIGINAL_DST
    GATEWAY_HOST, // TCP to any other port of the gateway's address: services of the host
};

/* A socket that is bound in the gateway, and listens where that can be said; not blocking. ERROR_CONFLICT when another has it. */
int gateway_listen(struct gateway *gateway, enum gateway_listener which, int *fd,
                   struct error *err);
/* Its network namespace; the gateway's. What runs in it reaches whatever the host does but the host itself, so it has to judge by itself. */
int gateway_namespace(const struct gateway *gateway);

struct gateway_refusal {
    unsigned slot;
    uint32_t address;
    uint8_t protocol;
    uint16_t port;     // 0 where the protocol has none
    bool would_refuse; // the policy observes: it went through
};

/* A socket on which the kernel tells of refused packets, some each second for each box; one reader at a time. Not blocking. */
int gateway_refusals(struct gateway *gateway, int *fd, struct error *err);
/* How many were read into `out`, 0 when none wait; -1 with *err. */
int gateway_read_refusals(struct gateway *gateway, int fd, struct gateway_refusal *out,
                          unsigned count, struct error *err);

/* Dismisses the slots that nobody owns. */
int gateway_sweep(struct gateway *gateway, bool (*is_owned)(unsigned slot, void *data), void *data,
                  struct error *err);
