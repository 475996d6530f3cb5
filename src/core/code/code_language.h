/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Languages that code can be run in, and what runs them inside a box: a script of ours for a program of the runtime (drivers/).
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum code_language {
    CODE_PYTHON,
    CODE_JAVASCRIPT,
    CODE_TYPESCRIPT,
    CODE_BASH,
    CODE_R,
    CODE_JAVA,
    CODE_LANGUAGES,
};

struct code_driver {
    const char *program; // found in the PATH of the box
    const char *word;    // that the script is started with; NULL: none
    const char *script;
    size_t length;
    const char
        *needs; // what else the script needs, or NULL: without it the script ends with CODE_LACKS
    const char *package; // of Debian that has it; NULL: none has one that is new enough
};
#define CODE_LACKS 127

extern const char *const code_language_names[]; // by language; ended by NULL
#define CODE_LANGUAGE_LIST "python, javascript, typescript, bash, r and java"

/* By a name, or what others call it ("js", "node", "shell" …). False: there is no such language. */
bool code_language_find(const char *name, enum code_language *out);

struct code_driver code_language_driver(enum code_language language);
