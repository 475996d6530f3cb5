/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of `burrow run`: what its box may connect to.
 * Threads: one thread.
 */
#pragma once
#include "cli/run_report.h"

/* Lets the box out, as the options say. It has an interface already, through which nothing goes. */
int run_connect(const struct run_options *options, struct engine *engine, struct box *box,
                struct error *err);
