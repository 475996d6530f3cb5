/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "did you mean": the known word nearest to a misspelled one.
 * Threads: plain values.
 */
#pragma once

struct suggestion {
    const char *wanted;
    const char *nearest; // NULL while nothing is near enough
    unsigned distance;
};

/* Start with {.wanted = word} and show it every known word. */
void suggestion_consider(struct suggestion *suggestion, const char *known);
