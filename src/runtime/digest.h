/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A 64-bit digest that notices changes and damage. Not for secrets or against forgery.
 * Threads: one per object.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct digest {
    uint64_t state;
    uint64_t length;
};

static inline void digest_mix(struct digest *digest, uint64_t word)
{
    digest->state = (digest->state ^ word) * 0x9e3779b97f4a7c15ULL;
    digest->state ^= digest->state >> 32;
}

/* Pieces count: adding "ab" differs from adding "a" and "b". */
static inline void digest_add(struct digest *digest, const void *data, size_t length)
{
    const unsigned char *at = data;
    uint64_t word;

    digest->length += length;
    for (; length >= sizeof word; length -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        digest_mix(digest, word);
    }
    word = length;
    for (size_t i = 0; i < length; i++)
        word = word << 8 | at[i];
    digest_mix(digest, word);
}

static inline void digest_add_text(struct digest *digest, const char *text)
{
    digest_add(digest, text, strlen(text));
}

static inline uint64_t digest_end(struct digest *digest)
{
    digest_mix(digest, digest->length);
    digest_mix(digest, 0);
    return digest->state;
}
