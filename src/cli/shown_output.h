/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of a program on its way to the caller's terminal. Of what is shown again, queries to the terminal are left out: their answers would
 * be typed where nobody waits for them. All else, and all that comes live, goes on byte for byte, however it is cut into pieces. What it
 * switches on is known, and can be switched off.
 *
 * A sequence of what is shown again is held until it is whole; one past SHOWN_SEQUENCE bytes is let through, as it is an image or a clipboard:
 * no query is that long. This keeps answers of honest programs away, and is no wall: one that is hostile can ask live.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"
#include "cli/screen_modes.h"

#define SHOWN_SEQUENCE 4096

/* All zero is the beginning. */
struct shown_output {
    struct screen_modes modes;
    enum escape_kind kind; // of the sequence that has begun
    unsigned state;
    bool is_again; // the bytes under way are shown again
    bool is_held;  // the sequence that has begun was not let through
    bool is_long;  // it is past what is kept
    char before;   // the byte that was taken last
    bool is_cut;   // the terminal has got a part of a sequence or character before it
    size_t length;
    char sequence[SHOWN_SEQUENCE];
};

/* Adds to `to`, which has no maximum, what of it is for the terminal: */
void shown_output_again(struct shown_output *shown, const char *data, size_t length,
                        struct buffer *to);
void shown_output_live(struct shown_output *shown, const char *data, size_t length,
                       struct buffer *to);
/* The rest, and what makes the terminal as it usually is; nothing where it is. */
void shown_output_leave(struct shown_output *shown, struct buffer *to);
