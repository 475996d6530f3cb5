/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that leave a terminal; see detach_keys.h. */
#include "cli/detach_keys.h"

#include <stdio.h>
#include <stdlib.h>
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

// ---- what is typed ----

#define ESCAPE '\x1b'
#define NO_KEY (-1)      // that could leave
#define KEY_BETWEEN (-2) // is none: one is released, or one like Ctrl pressed
#define SHIFT 1u
#define CONTROL_KEY 4u
#define LOCKS 192u           // of capitals and numbers
#define RELEASED 3           // of its events: pressed, repeated, released
#define MODIFIER_FIRST 57441 // Shift, Ctrl and the like have codes of their own
#define MODIFIER_LAST 57454

/* Bytes of ESC[112;5u or ESC[27;5;112~; 0: it is none, or longer than those of a key. */
static size_t spelled_length(const char *from, size_t length)
{
    size_t end = 2;

    if (length < 4 || from[0] != ESCAPE || from[1] != '[')
        return 0;
    while (end < length && end < DETACH_KEYS_BYTES / 2 && strchr("0123456789;:", from[end]))
        end++;
    bool is_xterm = end > 5 && memcmp(from + 2, "27;", 3) == 0;
    bool is_key = end < length && end < DETACH_KEYS_BYTES / 2 &&
                  (from[end] == 'u' || (from[end] == '~' && is_xterm));
    return is_key ? end + 1 : 0;
}

static int key_of(unsigned long code, unsigned long modifiers)
{
    unsigned held = (unsigned)(modifiers ? modifiers - 1 : 0) & ~LOCKS;

    if (held == CONTROL_KEY && code >= 'a' && code <= 'z')
        return (int)code - 'a' + 1;
    if ((held & ~SHIFT) == CONTROL_KEY && code >= '@' && code <= '_')
        return (int)code - '@';
    return held == 0 && code > ' ' && code <= '~' ? (int)code : NO_KEY;
}

/* What the next bytes are, and how many. */
static int read_typed(const char *from, size_t length, size_t *used)
{
    size_t spelled = spelled_length(from, length);
    char text[DETACH_KEYS_BYTES], *rest;

    *used = spelled ? spelled : 1;
    if (!spelled)
        return (unsigned char)*from;
    memcpy(text, from, spelled);
    text[spelled] = '\0';
    bool is_xterm = text[spelled - 1] == '~';
    unsigned long code = is_xterm ? 0 : strtoul(text + 2, NULL, 10);
    const char *at = strchr(text, ';');
    unsigned long modifiers = at ? strtoul(at + 1, &rest, 10) : 0;
    bool is_released = at && *rest == ':' && strtoul(rest + 1, NULL, 10) == RELEASED;
    if (is_released || (code >= MODIFIER_FIRST && code <= MODIFIER_LAST))
        return KEY_BETWEEN;
    if (is_xterm)
        code = at && *rest == ';' ? strtoul(rest + 1, NULL, 10) : 0;
    return key_of(code, modifiers);
}

/* The held ones that are still the first of them, where the next key is another one. */
static size_t still_held(const struct detach_keys *keys)
{
    size_t length = keys->n_held - 1;

    while (memcmp(keys->keys, keys->keys + keys->n_held - length, length) != 0)
        length--;
    return length;
}

static size_t held_bytes(const struct detach_keys *keys, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += keys->lengths[i];
    return bytes;
}

/* The first so many of the held ones are input: how many bytes. */
static size_t let_go(struct detach_keys *keys, size_t count, char *to)
{
    size_t all = held_bytes(keys, keys->n_held), bytes = held_bytes(keys, count);

    memcpy(to, keys->held, bytes);
    memmove(keys->held, keys->held + bytes, all - bytes);
    keys->n_held -= count;
    memmove(keys->lengths, keys->lengths + count, keys->n_held * sizeof *keys->lengths);
    return bytes;
}

/* Behind the held ones; false: with no room for it. */
static bool hold(struct detach_keys *keys, size_t number, const char *from, size_t length)
{
    size_t *kept = &keys->lengths[number];
    size_t all = held_bytes(keys, keys->n_held);

    if (number == keys->n_held)
        *kept = 0;
    if (*kept + length > DETACH_KEYS_BYTES)
        return false;
    memcpy(keys->held + all, from, length);
    *kept += length;
    keys->n_held = number + 1;
    return true;
}

bool detach_keys_take(struct detach_keys *keys, const char *from, size_t length, char *to,
                      size_t *out_length)
{
    size_t used = 0, step;

    for (size_t i = 0; i < length && keys->n_held < keys->count; i += step) {
        int key = read_typed(from + i, length - i, &step);
        if (key == KEY_BETWEEN && keys->n_held && hold(keys, keys->n_held - 1, from + i, step))
            continue;
        while (keys->n_held && keys->keys[keys->n_held] != key)
            used += let_go(keys, keys->n_held - still_held(keys), to + used);
        if (keys->keys[keys->n_held] == key && hold(keys, keys->n_held, from + i, step))
            continue;
        memcpy(to + used, from + i, step);
        used += step;
    }
    *out_length = used;
    return keys->n_held == keys->count;
}

size_t detach_keys_hand_on(struct detach_keys *keys, char to[DETACH_KEYS_HELD])
{
    return let_go(keys, keys->n_held, to);
}
