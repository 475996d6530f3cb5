/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong, as a value: a reason for programs, a sentence for people.
 * Lives on the first caller's stack; nothing to free. A function that can fail returns 0 or -1 and
 * takes `struct error *err` last (never NULL).
 *
 * A refusal is the caller's to mend, a fault is the machine's. What the kernel answers to burrow
 * itself is a fault (ERROR_SYSTEM), whatever its errno: a caller that is told "not found" because a
 * mount failed would look for its own mistake. Only where a caller's own path is followed does
 * errno say something about the caller: error_path.
 *
 * Threads: plain values.
 */
#pragma once

#include <stdbool.h>

/*
 * Why. The first ones are also kinds: each of the others belongs to one of them, and is told by it
 * wherever nobody knows it better. One table in error.c says for each its name, its kind, its HTTP
 * status and the exit code of `burrow`.
 */
enum error_reason {
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

    // ERROR_INVALID
    ERROR_REFUSED,       // an archive that nobody should unpack
    ERROR_DAMAGED,       // what was sent is cut off or no longer what it was
    ERROR_METHOD,        // not with this method
    ERROR_LONG_TARGET,   // the request's target is too long
    ERROR_EXPECTATION,   // "Expect:" something that is not offered
    ERROR_UPGRADE,       // only as a WebSocket
    ERROR_LONG_HEAD,     // the request's head is too long
    ERROR_UNKNOWN_HTTP,  // a method or coding that is not known here
    ERROR_HTTP_VERSION,  // a version of HTTP that is not spoken
    ERROR_UNKNOWN_FIELD, // a member or parameter that there is not
    ERROR_PRECONDITION,  // it is not as the caller's If-Match or If-None-Match says
    ERROR_MEDIA_TYPE,    // a body of a type that is not read here
    ERROR_RANGE,         // a part that is not there

    // ERROR_DENIED
    ERROR_UNAUTHORIZED, // who asks is not known
    ERROR_SCOPE,        // the key may do less than this

    // ERROR_CONFLICT
    ERROR_BUSY,      // something is being done with it
    ERROR_STATE,     // it is in a state that does not allow it
    ERROR_EXISTS,    // there is one already
    ERROR_MISMATCH,  // the same key for another request
    ERROR_PENDING,   // the same request is being answered
    ERROR_DIFFERS,   // what it builds on is another here
    ERROR_AMBIGUOUS, // several are meant
    ERROR_COMPLETE,  // a stream that takes nothing more

    // ERROR_LIMIT
    ERROR_FULL,      // as many as there may be
    ERROR_TOO_LARGE, // larger than one may be
    ERROR_DISK_FULL, // the disk a sandbox was given is full
    ERROR_RATE,      // more requests than the key may send in this time
    ERROR_QUOTA,     // more than the key's quota allows
    ERROR_NO_SPACE,  // the server's own disk is full: its capacity, and its operator's to mend

    // ERROR_TIMEOUT
    ERROR_SLOW,         // the client took too long to send its request
    ERROR_SLOW_SANDBOX, // the sandbox took too long, as its programs can make it

    // ERROR_GONE
    ERROR_ENDED,     // the sandbox or box has ended
    ERROR_CANCELLED, // given up as asked
    ERROR_EXPIRED,   // it was kept for some time, which is over

    // ERROR_UNAVAILABLE
    ERROR_RESTARTING, // the server is about to end
    ERROR_NOT_BUILT,  // a runtime that has to be built first
    ERROR_TOOL,       // a program that was called for help failed, and said why
    ERROR_RETRY,      // nothing of it is kept, and the same again may well succeed

    // ERROR_SYSTEM
    ERROR_LOST, // it may be kept, or not: look before doing it again

    ERROR_REASONS // how many there are
};

struct error {
    enum error_reason reason;
    int sys;          // errno, or 0
    const char *noun; // what the error is about ("runtime", "sandbox"); a literal, or NULL
    char text[768];
    char field
        [96]; // which member of a body or parameter of a query it is about: "env.PATH"; "": none
};

/* Each returns -1, so that `return error_set(...)` reads as one step. */
int error_set(struct error *err, enum error_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, and names the thing it is about; `noun` must be a literal, or NULL. */
int error_refuse(struct error *err, enum error_reason reason, const char *noun, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));

/* A fault of the machine: keeps errno (as it is on entry) and appends its text.
 * ERROR_SYSTEM, whatever errno is. */
int error_sys(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for an errno that travelled (over a socket, out of a child). */
int error_sys_code(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_sys, where the path is one the caller named: errno says what is wrong with it. */
int error_path(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
int error_path_code(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts what the caller was doing in front: "start box 'b7': open memory.max: ...". */
int error_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "there is no sandbox 'x'": ERROR_NOT_FOUND, about the noun, a literal. */
int error_missing(struct error *err, const char *noun, const char *id);

/* Names the thing it is about; must be a literal. */
int error_about(struct error *err, const char *noun);

/* Says which field of what was asked for it is about: "files[2].path". Returns -1. */
int error_field(struct error *err, const char *path);

/* Says what an error of a lower layer means in this one's terms: its sentence and errno stay. */
int error_restate(struct error *err, enum error_reason reason, const char *noun);

/* Whether this is its reason, or its kind. */
bool error_is(const struct error *err, enum error_reason reason);
/* Whether it is the machine's and not the caller's to mend: an operator has to know. */
bool error_is_fault(const struct error *err);
/* Whether it is about this. */
bool error_is_about(const struct error *err, const char *noun);

/* One of the kinds. */
enum error_reason error_kind(const struct error *err);
/* The HTTP status; 500 for ERROR_NONE. */
int error_status(const struct error *err);
/* The exit code of a command of `burrow` other than run. */
int error_exit_code(const struct error *err);
/* "too large" */
const char *error_reason_name(enum error_reason reason);
/* The reason whose status this is, for what has one already: ERROR_INVALID or ERROR_SYSTEM where
 * none has it. */
enum error_reason error_reason_of_status(int status);
