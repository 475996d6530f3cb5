/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs have made of a terminal: the alternate screen, reports of the mouse, a hidden cursor, colours. By it the terminal is given
 * back as it was, without a word that is not needed. All zero is a terminal as it usually is.
 * Threads: plain values.
 */
#pragma once
#include "base/buffer.h"
#include "cli/escape_sequence.h"

#include <stdint.h>

struct screen_modes {
    uint32_t changed;     // private modes, by their row in a table
    uint64_t styles;      // of characters: a bit for each number that ends one
    unsigned n_pushed[2]; // kitty's states of the keyboard, of the main and of the alternate screen
    bool has_keypad, has_modified_keys, has_cursor_shape;
    bool has_keys; // kitty's, of the main screen, set without a push
    bool inserts, has_margins, has_charset;
};

/* A sequence was shown. */
void screen_modes_take(struct screen_modes *modes, const struct escape_sequence *sequence);
/* Adds what switches back all that is not as usual; from then on all is. */
void screen_modes_undo(struct screen_modes *modes, struct buffer *to);
