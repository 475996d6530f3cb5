/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that leave a terminal; see detach_keys.h. */
#include "cli/detach_keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CONTROL "ctrl-"

/* One of them: its byte, or -1. */
static int read_key(const char *word, size_t length)
{
    static const size_t prefix = sizeof CONTROL - 1;
    char last = length ? word[length - 1] : '\0';

    if (length == 1)
        return last > ' ' && last <= '~' ? last : -1;
    if (length != prefix + 1 || strncasecmp(word, CONTROL, prefix) != 0)
        return -1;
    if (last >= 'a' && last <= 'z')
        return last - 'a' + 1;
    return last >= '@' && last <= '_' ? last - '@' : -1;
}

int detach_keys_parse(const char *text, struct detach_keys *out, struct error *err)
{
    struct detach_keys keys = {0};

    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        int key = read_key(at, length);
        if (key < 0)
            return error_set(err, ERROR_INVALID,
                             "'%.40s' is not keys that leave: use characters, or ctrl- and a "
                             "letter or one of @[\\]^_, with commas: " DETACH_KEYS_USUAL,
                             text);
        if (keys.count == DETACH_KEYS_MOST)
            return error_set(err, ERROR_INVALID, "at most %u keys can leave", DETACH_KEYS_MOST);
        keys.keys[keys.count++] = (char)key;
        at += length;
        if (!*at)
            break;
    }
    *out = keys;
    return 0;
}

const char *detach_keys_name(const struct detach_keys *keys, char text[DETACH_KEYS_TEXT])
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < keys->count; i++) {
        char key = keys->keys[i];
        bool is_control = key < ' ';
        used += (size_t)snprintf(text + used, DETACH_KEYS_TEXT - used, "%s%s%c", i ? " " : "",
                                 is_control ? "Ctrl-" : "", is_control ? key + '@' : key);
    }
    return text;
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
