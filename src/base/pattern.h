/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns for text and for paths, from strangers: POSIX extended regular expressions, plain texts and globs. Whatever the pattern
 * and the text, a match takes time in proportion to the text and a fixed amount of memory: there is no backtracking, and a pattern
 * that would become too large is refused.
 *
 * Expressions: . [] () | * + ? {n,m} ^ $, and \w \W \s \S \d \D \b \B \< \>. No references to groups. "." and a negated bracket
 * stand for one character of UTF-8, or for one byte that is none.
 * Globs: * and ? within a name, ** for any number of directories, [] and {a,b}; \ takes a meaning away. They have to match all
 * of a path. Names that begin with a dot are like others.
 *
 * Threads: one per object; matching changes it.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_MAX_TEXT 1024u // bytes of a pattern

struct pattern;

enum pattern_kind {
    PATTERN_EXPRESSION,
    PATTERN_FIXED,
    PATTERN_GLOB,
};

/* ERROR_INVALID, with a sentence about what is wrong with it; ERROR_LIMIT without memory. */
int pattern_new(const char *text, enum pattern_kind kind, bool ignores_case, struct pattern **out,
                struct error *err);
void pattern_free(struct pattern *pattern);
DEFINE_AUTOPTR(pattern)

/* A glob: all of the text matches. Else: something in it does; a newline is a character like others then. */
bool pattern_matches(struct pattern *pattern, const char *text, size_t length);

/* Whether something that begins with this text could match. */
bool pattern_may_begin(struct pattern *pattern, const char *text, size_t length);

/* Where the first match in a line begins; false when there is none, or finding it takes too long. */
bool pattern_locate(struct pattern *pattern, const char *line, size_t length, size_t *start);

/* A line that comes in pieces. */
void pattern_begin(struct pattern *pattern);
/* Whether anything that follows can make it match. */
bool pattern_may_go_on(const struct pattern *pattern);
/* True as soon as the line is known to match; then `*used` tells how much of this piece it took. */
bool pattern_feed(struct pattern *pattern, const char *bytes, size_t length, size_t *used);
/* The line ends here. */
bool pattern_end(struct pattern *pattern);
