/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of `burrow run`: what its box may connect to, by --network, --allow and --deny.
 * Threads: one thread.
 */
#pragma once
#include "cli/run_report.h"
#include "policy/policy.h"

struct egress;

struct run_network {
    struct policy policy;
    struct egress *egress; // what answers the box's questions for names; or NULL
    unsigned slot;
};

/* Reads the rules; whoever names one wants a network. ERROR_INVALID says which is none. */
int run_network_read(struct run_options *options, struct run_network *network, struct error *err);
/* Lets the box out. It has an interface already, through which nothing goes. */
int run_network_open(struct run_network *network, const struct run_options *options,
                     struct engine *engine, struct box *box, struct error *err);
/* After the box has ended; also where it never was. */
void run_network_clear(struct run_network *network);
