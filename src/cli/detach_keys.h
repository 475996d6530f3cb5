/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys that leave a terminal, one after the other: looked for in what is typed. Those that may be the first of them are held back until
 * it is known; who sees that nothing follows hands them on.
 * Threads: one per object.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define DETACH_KEYS_MOST 16
#define DETACH_KEYS_BYTES 64 // of what is typed for one of them, at most
#define DETACH_KEYS_HELD (DETACH_KEYS_MOST * DETACH_KEYS_BYTES)

struct detach_keys {
    char keys[DETACH_KEYS_MOST];
    size_t count;
    size_t n_held; // of them were typed, as this:
    char held[DETACH_KEYS_HELD];
    size_t lengths[DETACH_KEYS_MOST]; // of each
};

#define DETACH_KEYS_USUAL "ctrl-p,ctrl-q"

/*
 * As docker has them: characters, and "ctrl-" with a letter or one of @[\]^_, with commas between them. ERROR_INVALID says what is wrong;
 * `out` is left alone then.
 */
int detach_keys_parse(const char *text, struct detach_keys *out, struct error *err);
/* For people: "Ctrl-P Ctrl-Q". */
#define DETACH_KEYS_TEXT (DETACH_KEYS_MOST * sizeof "Ctrl-P")
const char *detach_keys_name(const struct detach_keys *keys, char text[DETACH_KEYS_TEXT]);

/*
 * Of what was typed, what is input goes to `to`, which has room for DETACH_KEYS_HELD more. True: all keys were typed; the input ends before
 * them, and what is behind them is dropped. A key counts as well where a terminal spells it as kitty and xterm do for programs that want that
 * (ESC[112;5u, ESC[27;5;112~ for Ctrl-P), in one piece.
 */
bool detach_keys_take(struct detach_keys *keys, const char *from, size_t length, char *to,
                      size_t *out_length);
/* Those that are held are input after all: how many. */
size_t detach_keys_hand_on(struct detach_keys *keys, char to[DETACH_KEYS_HELD]);
