/* SPDX-License-Identifier: Apache-2.0 */
/* The runner behind test.h. */
#include "test.h"

#include <signal.h>
#include <stdarg.h>
#include <time.h>

struct test *test_list;
const struct test *test_running;

static jmp_buf end_of_test;
static char verdict[1024];
enum { OUTCOME_FAILED = 1, OUTCOME_SKIPPED };

bool race_goes_on(unsigned round, unsigned rounds)
{
    static time_t began;
    struct timespec now;
    const char *seconds = getenv("BURROW_RACE_SECONDS");

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (round == 0)
        began = now.tv_sec;
    return round < rounds || (seconds && now.tv_sec - began < strtol(seconds, NULL, 10));
}

void test_register(struct test *test)
{
    struct test **at = &test_list;
    while (*at)
        at = &(*at)->next;
    *at = test;
}

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    int used = snprintf(verdict, sizeof verdict, "%s:%d: ", file, line);
    va_start(args, format);
    (void)vsnprintf(verdict + used, sizeof verdict - (size_t)used, format, args);
    va_end(args);
    longjmp(end_of_test, OUTCOME_FAILED);
}

void test_skip(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(verdict, sizeof verdict, format, args);
    va_end(args);
    longjmp(end_of_test, OUTCOME_SKIPPED);
}

static void print_title(const char *name)
{
    for (; *name; name++)
        putchar(*name == '_' ? ' ' : *name);
}

static bool run_one(struct test *test, int number)
{
    test_running = test;
    int outcome = setjmp(end_of_test);
    if (outcome == 0)
        test->run();
    printf("%sok %d - ", outcome == OUTCOME_FAILED ? "not " : "", number);
    print_title(test->name);
    if (outcome == OUTCOME_SKIPPED)
        printf(" # SKIP %s", verdict);
    putchar('\n');
    if (outcome == OUTCOME_FAILED) {
        for (char *line = strtok(verdict, "\n"); line; line = strtok(NULL, "\n"))
            printf("# %s\n", line);
    }
    (void)fflush(stdout);
    return outcome != OUTCOME_FAILED;
}

static bool is_wanted(const struct test *test, char **words)
{
    for (; *words; words++) {
        bool is_unwanted = **words == '!';
        if ((strstr(test->name, *words + is_unwanted) != NULL) == is_unwanted)
            return false;
    }
    return true;
}

/* However the tests were started (nohup, in the background of a script), signals work in them. */
static void reset_signals(void)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD};
    sigset_t none;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)signal(signals[i], SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

int main(int argc, char **argv)
{
    char **words = argv + (argc > 0);
    int count = 0;
    int number = 0;
    int failed = 0;

    reset_signals();
    for (struct test *test = test_list; test; test = test->next)
        count += is_wanted(test, words);
    printf("TAP version 13\n1..%d\n", count);
    (void)fflush(stdout);
    for (struct test *test = test_list; test; test = test->next) {
        if (is_wanted(test, words))
            failed += !run_one(test, ++number);
    }
    return failed > 0;
}
