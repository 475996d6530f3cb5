/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pattern.c and pattern_parse.c share: a pattern as a program for an automaton. Jumps are relative, so that a part can be copied.
 * Threads: one per object.
 */
#pragma once
#include "base/pattern.h"

#define PATTERN_MAX_STEPS 2048u
#define PATTERN_MAX_SETS 128u
#define PATTERN_SEARCH_STEPS 3u // in front of a program: "anything, then"

enum pattern_op {
    OP_SET,        // takes a byte that is in the set `a`
    OP_SPLIT,      // goes on at both, `a` and `b`
    OP_JUMP,       // goes on at `a`
    OP_START,      // only at the start of a line
    OP_END,        // only at its end
    OP_WORD_EDGE,  // between a word and what is none
    OP_WORD_INNER, // not there
    OP_WORD_BEGIN,
    OP_WORD_END,
    OP_MATCH,
};

struct pattern_step {
    int16_t a, b;
    uint8_t op;
};

struct byte_set {
    uint64_t words[4];
};

struct pattern_program {
    struct pattern_step steps[PATTERN_MAX_STEPS];
    size_t length;
    struct byte_set sets[PATTERN_MAX_SETS];
    size_t n_sets;
};

static inline bool byte_set_has(const struct byte_set *set, uint8_t byte)
{
    return set->words[byte / 64] >> (byte % 64) & 1;
}

static inline bool pattern_is_word(uint8_t byte)
{
    return byte == '_' || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z');
}

/* The program of a pattern, from its first step to OP_MATCH. */
int pattern_parse(const char *text, enum pattern_kind kind, bool ignores_case,
                  struct pattern_program *program, struct error *err);
