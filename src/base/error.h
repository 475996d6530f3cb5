/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong, as a value: a kind for programs, a sentence for people.
 * Lives on the first caller's stack; nothing to free. A function that can fail returns 0 or -1 and
 * takes `struct error *err` last (never NULL).
 * Threads: plain values.
 */
#pragma once

enum error_kind {
    ERROR_NONE,
    ERROR_INVALID,     // the caller asked for something that cannot be
    ERROR_NOT_FOUND,   // the named thing does not exist
    ERROR_DENIED,      // not allowed
    ERROR_CONFLICT,    // not in this state
    ERROR_LIMIT,       // more than there is room for
    ERROR_TIMEOUT,     // took too long
    ERROR_GONE,        // existed, ended
    ERROR_UNAVAILABLE, // this machine or this moment cannot
    ERROR_SYSTEM,      // the kernel or a disk said no
};

struct error {
    enum error_kind kind;
    int sys;            // errno, or 0
    const char *noun;   // what the error is about ("runtime", "sandbox"); a literal, or NULL
    const char *reason; // a word for programs ("busy", "oom"); a literal, or NULL
    char text[768];
};

/* Each returns -1, so that `return error_set(...)` reads as one step. */
int error_set(struct error *err, enum error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Keeps errno (as it is on entry) and appends its text; the kind follows from it. */
int error_sys(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for an errno that travelled (over a socket, out of a child). */
int error_sys_code(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts what the caller was doing in front: "start box 'b7': open memory.max: ...". */
int error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Names the thing and the reason for programs. Both must be literals. */
int error_about(struct error *err, const char *noun, const char *reason);

/* "there is no sandbox 'x'": ERROR_NOT_FOUND, with the noun, a literal. */
int error_missing(struct error *err, const char *noun, const char *id);

const char *error_kind_name(enum error_kind kind);
