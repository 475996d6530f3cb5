/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decimal numbers in texts ("12", "1.5"), exactly: what sizes, processors and durations are spelled
 * with; and whole numbers as texts where printf would take longer than all else.
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decimal {
    uint64_t whole;
    uint64_t fraction; // in units of 10^-18
    bool has_point;
    bool is_cut; // there were digits other than 0 behind the 18th
};

/* Reads digits, or digits, a point and digits. What follows the number, or NULL when there is none
 * or it is too large. */
const char *decimal_scan(const char *text, struct decimal *out);

/* number * unit, rounded up to a whole; false when that does not fit. */
bool decimal_times(const struct decimal *number, uint64_t unit, uint64_t *out);

/* The number as text, "-12"; returns how long that is. */
#define DECIMAL_TEXT 24
size_t decimal_format(int64_t number, char text[DECIMAL_TEXT]);
size_t decimal_format_natural(uint64_t number, char text[DECIMAL_TEXT]);
