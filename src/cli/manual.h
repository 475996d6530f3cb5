/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help that is longer than a command's: the manual page of all commands, made of their tables, and topics.
 * Threads: one thread.
 */
#pragma once
#include <stdio.h>

/* burrow-commands(1) for scdoc. */
void manual_print(FILE *out);

struct topic {
    const char *name, *text;
};
/* Ended by an empty row. */
extern const struct topic topics[];
/* NULL: there is none of this name. */
const struct topic *topic_find(const char *name);
