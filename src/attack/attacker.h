/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that attacks a box from inside (burrow-attacker): one word names the attack. Each tries the thing for
 * real and complains about what was not refused as promised. Static, needs nothing of an image. It holds no secret and
 * no right: it makes system calls and tells how they were answered.
 * Its exit code is the verdict (enum attacker_code), its output the reasons, one a line.
 * Threads: one thread; the attacks fork.
 */
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum attacker_code {
    INSIDE_HELD = 0,
    INSIDE_OPEN = 1,
    INSIDE_UNKNOWN = 2,        // no such attack
    INSIDE_NOT_APPLICABLE = 3, // this kernel or this user has nothing to attack here
};

struct inside_attack {
    const char *name;
    void (*run)(int argc, char **argv); // argv[0] is the first word behind the name
};

extern const struct inside_attack inside_calls[];  // what can be called
extern const struct inside_attack inside_kernel[]; // parts of the kernel behind a call of their own
extern const struct inside_attack inside_look[];   // what can be seen
extern const struct inside_attack inside_reach[];  // who can be reached
extern const struct inside_attack inside_network[]; // what of a network
extern const struct inside_attack inside_use[];     // what can be changed or used up
extern const struct inside_attack inside_counts[];  // what the kernel counts

/* Runs the attack that argv[1] names; its exit code. `more` (or NULL) is asked first. */
int inside_main(const struct inside_attack *const *more, int argc, char **argv);

void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says why there is nothing to attack, and ends the program. */
void not_applicable(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The call gave -1 and this errno; anything else is a complaint. */
void expect_refused(const char *what, long result, int want);
#define REFUSED(call, want) expect_refused(#call, (errno = 0, (long)(call)), want)

/* The call gave -1 with one of two. */
void expect_either(const char *what, long result, int one, int two);
#define REFUSED_AS(call, one, two) expect_either(#call, (errno = 0, (long)(call)), one, two)

/* The call worked: without this the attack would prove nothing. */
void expect_works(const char *what, long result);
#define WORKS(call) expect_works(#call, (errno = 0, (long)(call)))

/* Six arguments, nothing pushed on a stack that a vforked child would share. */
static inline long raw_call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Runs it in a child: its exit code, or minus the signal that ended it. */
int in_child(int (*body)(void *data), void *data);

/* A whole small file; "" when it cannot be read. Static buffer. */
const char *read_text(const char *path);
/* Whether this user gets at least one byte of it. */
bool is_readable(const char *path);
bool is_number(const char *name);

/* The line is out; then it waits until it is ended. */
void say_and_wait(const char *line) __attribute__((noreturn));

/* A listening socket without a file; -1 with errno. */
int listen_abstract(const char *name);
