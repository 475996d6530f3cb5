/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hexadecimal digits.
 * Threads: plain values.
 */
#pragma once

/* Its value, or -1 where it is none. */
static inline int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}
