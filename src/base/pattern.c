/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a pattern's program over text, all ways at once: a state is the set of steps that are possible. States and the ways between
 * them are kept as they are met, up to a number; then they are forgotten and met again.
 */
#include "base/pattern_impl.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STATES 192
#define BUCKETS 512
#define SYMBOL_END 256 // behind the last byte of a line
#define WORDS (PATTERN_MAX_STEPS / 64)
#define LOCATE_BYTES 65536 // looked at in all, to find where a match begins

enum { STATE_UNKNOWN = 0, STATE_MATCHED, STATE_DEAD, STATE_FIRST };

struct state {
    uint64_t steps[WORDS]; // before anything that takes no byte is followed
    bool is_start;         // of a line
    bool is_after_word;
    uint16_t next[SYMBOL_END + 1]; // STATE_UNKNOWN: not met so far
};

struct pattern {
    struct pattern_program program;
    bool is_glob;
    unsigned n_states; // those below STATE_FIRST are none
    unsigned now;
    uint16_t buckets[BUCKETS]; // by hash; 0: free
    struct state states[MAX_STATES];
    struct state made;
    uint16_t stack[PATTERN_MAX_STEPS];
    uint64_t seen[WORDS];
};

static bool bit_is_set(const uint64_t *bits, size_t at)
{
    return bits[at / 64] >> (at % 64) & 1;
}

static void bit_set(uint64_t *bits, size_t at)
{
    bits[at / 64] |= (uint64_t)1 << (at % 64);
}

static size_t used_words(const struct pattern *pattern)
{
    return (pattern->program.length + 63) / 64;
}

static void forget_states(struct pattern *pattern)
{
    memset(pattern->buckets, 0, sizeof pattern->buckets);
    pattern->n_states = STATE_FIRST;
}

static uint32_t hash_of(const struct pattern *pattern, const struct state *state)
{
    uint64_t hash = (uint64_t)state->is_start * 2 + state->is_after_word;

    for (size_t i = 0; i < used_words(pattern); i++)
        hash = (hash ^ state->steps[i]) * 0x9e3779b97f4a7c15u + (hash >> 29);
    return (uint32_t)(hash >> 32) % BUCKETS;
}

static bool is_same(const struct pattern *pattern, const struct state *a, const struct state *b)
{
    return a->is_start == b->is_start && a->is_after_word == b->is_after_word &&
           memcmp(a->steps, b->steps, used_words(pattern) * sizeof *a->steps) == 0;
}

/* The number of the state that pattern->made is. *was_full: all others have been forgotten. */
static unsigned intern(struct pattern *pattern, bool *was_full)
{
    uint32_t bucket = hash_of(pattern, &pattern->made);

    for (; pattern->buckets[bucket]; bucket = (bucket + 1) % BUCKETS) {
        if (is_same(pattern, &pattern->states[pattern->buckets[bucket]], &pattern->made))
            return pattern->buckets[bucket];
    }
    if (pattern->n_states == MAX_STATES) {
        forget_states(pattern);
        *was_full = true;
        bucket = hash_of(pattern, &pattern->made);
    }
    unsigned index = pattern->n_states++;
    struct state *state = &pattern->states[index];
    memcpy(state->steps, pattern->made.steps, sizeof state->steps);
    state->is_start = pattern->made.is_start;
    state->is_after_word = pattern->made.is_after_word;
    memset(state->next, 0, sizeof state->next);
    pattern->buckets[bucket] = (uint16_t)index;
    return index;
}

/* Whether a step that takes no byte may be passed between what was before and `symbol`. */
static bool is_passable(const struct state *state, enum pattern_op op, unsigned symbol)
{
    bool is_before_word = symbol != SYMBOL_END && pattern_is_word((uint8_t)symbol);

    switch (op) {
    case OP_START:
        return state->is_start;
    case OP_END:
        return symbol == SYMBOL_END;
    case OP_WORD_EDGE:
        return state->is_after_word != is_before_word;
    case OP_WORD_INNER:
        return state->is_after_word == is_before_word;
    case OP_WORD_BEGIN:
        return !state->is_after_word && is_before_word;
    case OP_WORD_END:
        return state->is_after_word && !is_before_word;
    default:
        return false;
    }
}

struct walk_steps {
    struct pattern *pattern;
    size_t depth;
};

static void push_step(struct walk_steps *walk, size_t step)
{
    if (bit_is_set(walk->pattern->seen, step))
        return;
    bit_set(walk->pattern->seen, step);
    walk->pattern->stack[walk->depth++] = (uint16_t)step;
}

/* Follows all that is possible from a state before `symbol`, then takes it: pattern->made. True: matched before that. */
static bool advance(struct pattern *pattern, const struct state *state, unsigned symbol)
{
    const struct pattern_program *program = &pattern->program;
    struct walk_steps walk = {pattern, 0};

    memset(pattern->seen, 0, used_words(pattern) * sizeof *pattern->seen);
    memset(pattern->made.steps, 0, sizeof pattern->made.steps);
    for (size_t i = 0; i < program->length; i++) {
        if (bit_is_set(state->steps, i))
            push_step(&walk, i);
        while (walk.depth > 0) {
            size_t at = pattern->stack[--walk.depth];
            const struct pattern_step *step = &program->steps[at];
            if (step->op == OP_MATCH)
                return true;
            if (step->op == OP_SET) {
                if (symbol != SYMBOL_END && byte_set_has(&program->sets[step->a], (uint8_t)symbol))
                    bit_set(pattern->made.steps, at + 1);
            } else if (step->op == OP_SPLIT || step->op == OP_JUMP) {
                push_step(&walk, at + (size_t)step->a);
                if (step->op == OP_SPLIT)
                    push_step(&walk, at + (size_t)step->b);
            } else if (is_passable(state, step->op, symbol)) {
                push_step(&walk, at + 1);
            }
        }
    }
    return false;
}

static bool is_empty(const struct pattern *pattern)
{
    for (size_t i = 0; i < used_words(pattern); i++) {
        if (pattern->made.steps[i])
            return false;
    }
    return true;
}

/* The state behind `symbol`, which is kept. */
static unsigned learn(struct pattern *pattern, unsigned from, unsigned symbol)
{
    bool was_full = false;
    unsigned to = STATE_MATCHED;

    if (!advance(pattern, &pattern->states[from], symbol)) {
        pattern->made.is_start = false;
        pattern->made.is_after_word = symbol != SYMBOL_END && pattern_is_word((uint8_t)symbol);
        to = is_empty(pattern) ? STATE_DEAD : intern(pattern, &was_full);
    }
    if (!was_full)
        pattern->states[from].next[symbol] = (uint16_t)to;
    return to;
}

static unsigned next_state(struct pattern *pattern, unsigned from, unsigned symbol)
{
    if (from < STATE_FIRST)
        return from;
    unsigned to = pattern->states[from].next[symbol];
    return to ? to : learn(pattern, from, symbol);
}

static void start_at(struct pattern *pattern, size_t step, bool is_start, bool is_after_word)
{
    bool was_full = false;

    memset(pattern->made.steps, 0, sizeof pattern->made.steps);
    bit_set(pattern->made.steps, step);
    pattern->made.is_start = is_start;
    pattern->made.is_after_word = is_after_word;
    pattern->now = intern(pattern, &was_full);
}

int pattern_new(const char *text, enum pattern_kind kind, bool ignores_case, struct pattern **out,
                struct error *err)
{
    autoptr(pattern) pattern = malloc(sizeof *pattern);

    if (!pattern)
        return error_set(err, ERROR_LIMIT, "there is no memory for a pattern");
    pattern->is_glob = kind == PATTERN_GLOB;
    if (pattern_parse(text, kind, ignores_case, &pattern->program, err) < 0)
        return -1;
    forget_states(pattern);
    pattern_begin(pattern);
    *out = take(pattern);
    return 0;
}

void pattern_free(struct pattern *pattern)
{
    free(pattern);
}

void pattern_begin(struct pattern *pattern)
{
    start_at(pattern, pattern->is_glob ? PATTERN_SEARCH_STEPS : 0, true, false);
}

bool pattern_feed(struct pattern *pattern, const char *bytes, size_t length, size_t *used)
{
    unsigned now = pattern->now;
    size_t at = 0;

    while (at < length && now >= STATE_FIRST)
        now = next_state(pattern, now, (uint8_t)bytes[at++]);
    pattern->now = now;
    *used = at;
    return now == STATE_MATCHED;
}

bool pattern_end(struct pattern *pattern)
{
    pattern->now = next_state(pattern, pattern->now, SYMBOL_END);
    return pattern->now == STATE_MATCHED;
}

bool pattern_matches(struct pattern *pattern, const char *text, size_t length)
{
    size_t used;

    pattern_begin(pattern);
    return pattern_feed(pattern, text, length, &used) || pattern_end(pattern);
}

bool pattern_may_begin(struct pattern *pattern, const char *text, size_t length)
{
    size_t used;

    pattern_begin(pattern);
    (void)pattern_feed(pattern, text, length, &used);
    return pattern_may_go_on(pattern);
}

bool pattern_may_go_on(const struct pattern *pattern)
{
    return pattern->now != STATE_DEAD;
}

/* Whether a match begins at `start`; *left bytes may be looked at. */
static bool match_from(struct pattern *pattern, const char *line, size_t length, size_t start,
                       size_t *left)
{
    start_at(pattern, PATTERN_SEARCH_STEPS, start == 0,
             start > 0 && pattern_is_word((uint8_t)line[start - 1]));
    for (size_t at = start; *left > 0; at++, --*left) {
        unsigned symbol = at < length ? (uint8_t)line[at] : SYMBOL_END;
        pattern->now = next_state(pattern, pattern->now, symbol);
        if (pattern->now == STATE_MATCHED)
            return true;
        if (pattern->now == STATE_DEAD || at == length)
            return false;
    }
    return false;
}

bool pattern_locate(struct pattern *pattern, const char *line, size_t length, size_t *start)
{
    size_t left = LOCATE_BYTES;

    for (size_t at = 0; at <= length && left > 0; at++) {
        if (match_from(pattern, line, length, at, &left)) {
            *start = at;
            return true;
        }
    }
    return false;
}
