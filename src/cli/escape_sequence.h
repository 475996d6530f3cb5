/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One escape sequence that a program sent to its terminal, taken apart (ECMA-48 and what xterm adds): a control sequence as ESC[?25h, a string
 * as ESC]0;title BEL, or a plain one as ESC=. C1 controls in UTF-8 (U+009B for ESC[) count as well.
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define ESCAPE_NUMBERS 32

enum escape_kind {
    ESCAPE_PLAIN = 0,
    ESCAPE_CONTROL = '[',
    ESCAPE_SYSTEM = ']',  // OSC
    ESCAPE_DEVICE = 'P',  // DCS
    ESCAPE_PROGRAM = '_', // APC
    ESCAPE_PRIVACY = '^', // PM
    ESCAPE_START = 'X',   // SOS
};

struct escape_sequence {
    enum escape_kind kind;
    char prefix;       // '?', '>', '<' or '=' of a control sequence; 0: none
    char intermediate; // the last one, as '$' in ESC[?1$p; 0: none
    char final;        // 0 for strings
    const char
        *text; // numbers of a control sequence, what a string says; lives as long as the bytes
    size_t length;
};

/* The kind that the byte behind ESC begins. */
enum escape_kind escape_kind_of(char byte);
bool escape_kind_is_string(enum escape_kind kind);

/* `bytes` is one whole sequence of at least two bytes; a string may lack its end. */
void escape_sequence_read(const char *bytes, size_t length, struct escape_sequence *out);

/* Its numbers, 0 for those that are left out: one at least. Behind a colon are details of a number, which are skipped. */
size_t escape_sequence_numbers(const struct escape_sequence *sequence,
                               unsigned numbers[ESCAPE_NUMBERS]);

/* Whether a terminal answers it, as if the answer were typed. */
bool escape_sequence_is_query(const struct escape_sequence *sequence);
