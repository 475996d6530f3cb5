/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that leave a terminal; see detach_keys.h. */
#include "cli/detach_keys.h"

#include <string.h>

#define CONTROL(letter) ((letter)&0x1f)

void detach_keys_init(struct detach_keys *keys)
{
    *keys = (struct detach_keys){.keys = {CONTROL('P'), CONTROL('Q')}, .count = 2};
}

/* The held ones that are still the first of them, where the next key is another one. */
static size_t still_held(const struct detach_keys *keys)
{
    size_t length = keys->n_held - 1;

    while (memcmp(keys->keys, keys->keys + keys->n_held - length, length) != 0)
        length--;
    return length;
}

bool detach_keys_take(struct detach_keys *keys, const char *from, size_t length, char *to,
                      size_t *out_length)
{
    size_t used = 0;

    for (size_t i = 0; i < length && keys->n_held < keys->count; i++) {
        while (keys->n_held && keys->keys[keys->n_held] != from[i]) {
            size_t held = still_held(keys);
            memcpy(to + used, keys->keys, keys->n_held - held);
            used += keys->n_held - held;
            keys->n_held = held;
        }
        if (keys->keys[keys->n_held] == from[i])
            keys->n_held++;
        else
            to[used++] = from[i];
    }
    *out_length = used;
    return keys->n_held == keys->count;
}

size_t detach_keys_hand_on(struct detach_keys *keys, char to[DETACH_KEYS_MOST])
{
    size_t held = keys->n_held;

    memcpy(to, keys->keys, held);
    keys->n_held = 0;
    return held;
}
