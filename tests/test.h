/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests: TEST(a_sentence_about_behaviour) { CHECK(...); } Prints TAP.
 * A failed CHECK ends its test; SKIP says what is missing. With arguments, only tests run whose name contains all
 * of them, and none of those written as '!word'.
 */
#pragma once
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test {
    const char *name;
    void (*run)(void);
    struct test *next;
};

extern struct test *test_list;          // in reverse order of definition; run in order
extern const struct test *test_running; // for tests that share a function
void test_register(struct test *test);
void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#define TEST(title)                                                                                \
    static void title(void);                                                                       \
    static struct test title##_test = {.name = #title, .run = (title)};                            \
    __attribute__((constructor)) static void title##_register(void)                                \
    {                                                                                              \
        test_register(&title##_test);                                                              \
    }                                                                                              \
    static void title(void)

#define CHECK(claim)                                                                               \
    do {                                                                                           \
        if (!(claim))                                                                              \
            test_fail(__FILE__, __LINE__, "not so: %s", #claim);                                   \
    } while (0)

#define CHECK_INT(got, want)                                                                       \
    do {                                                                                           \
        long long got_ = (long long)(got), want_ = (long long)(want);                              \
        if (got_ != want_)                                                                         \
            test_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #got, got_, want_);              \
    } while (0)

#define CHECK_STR(got, want)                                                                       \
    do {                                                                                           \
        const char *got_ = (got), *want_ = (want);                                                 \
        if (!got_ || strcmp(got_, want_) != 0)                                                     \
            test_fail(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #got,                        \
                      got_ ? got_ : "(null)", want_);                                              \
    } while (0)

/* For calls that take `struct error *`: fails with the error's sentence. */
#define CHECK_OK(call, err)                                                                        \
    do {                                                                                           \
        if ((call) < 0)                                                                            \
            test_fail(__FILE__, __LINE__, "%s failed: %s", #call, (err).text);                     \
    } while (0)

#define SKIP(...) test_skip(__VA_ARGS__)

/* Whether a race goes on: for so many rounds, and where BURROW_RACE_SECONDS is set (tools/check races) for at least as long. Round 0
 * starts the clock. */
bool race_goes_on(unsigned round, unsigned rounds);

/* Set under sanitizers, where the size of a process says little: freed memory stays, and a byte costs several. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MEMORY_IS_KEPT 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define MEMORY_IS_KEPT 1
#endif
#ifndef MEMORY_IS_KEPT
#define MEMORY_IS_KEPT 0
#endif
