/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that attacks a box from inside: one sub-command per attack. Each tries the thing for
 * real and complains about what was not refused as promised; it ends with 1 when there was a
 * complaint. Static, needs nothing of an image.
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

struct attack {
    const char *name;
    void (*run)(int argc, char **argv); // argv[0] is the first word behind the name
};

extern const struct attack look_attacks[];  // attacker_look.c: what can be seen
extern const struct attack call_attacks[];  // attacker_calls.c: what can be called
extern const struct attack reach_attacks[]; // attacker_reach.c: who can be reached
extern const struct attack write_attacks[]; // attacker_write.c: what can be changed or used up
extern const struct attack count_attacks[]; // attacker_counts.c: what the kernel counts by user

void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

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
