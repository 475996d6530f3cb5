/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers when everything fails: each operation is run with kill -9 before each of its system calls, and with each of them failing.
 * Afterwards there is the old state or the new one, and a sweep leaves nothing else. Needs root and ptrace.
 */
#include "base/mem.h"
#include "engine/layer_fixture.h"
#include "engine/layer_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct volume_options in_memory = {.scheme = VOLUME_TMPFS};
static const struct volume_limits no_limits = {0};
static const char *const pair[] = {"l1", "l0"};

struct deed {
    const char *name;
    int (*run)(struct volume *volume, struct error *err);
};

static int do_save(struct volume *volume, struct error *err)
{
    return layer_save(volume, "s", "new", NULL, err);
}

static int do_merge(struct volume *volume, struct error *err)
{
    return layer_merge(volume, pair, 2, "new", NULL, NULL, err);
}

static int do_restore(struct volume *volume, struct error *err)
{
    return layer_restore(volume, "l0", 0, "s", &no_limits, err);
}

static int do_remove(struct volume *volume, struct error *err)
{
    return layer_remove(volume, "victim", err);
}

enum way { KILLED, FAILED };

/* Failing these means nothing to what is done, or ends the process by itself. */
static bool is_spared(long long number)
{
    static const long numbers[] = {SYS_mmap,       SYS_munmap,         SYS_brk,
                                   SYS_mremap,     SYS_madvise,        SYS_close,
                                   SYS_exit_group, SYS_rt_sigprocmask, SYS_rt_sigaction,
                                   SYS_getrandom,  SYS_futex,          SYS_mprotect,
                                   SYS_gettid,     SYS_getpid,         SYS_tgkill};
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (number == numbers[i])
            return true;
    }
    return false;
}

static bool await_stop(pid_t child, int *status)
{
    CHECK(waitpid(child, status, __WALL) == child);
    return WIFSTOPPED(*status);
}

/* Lets the child come to its call `at` (counted from 1), and there dies or fails. False when it has ended before. */
static bool meddle(pid_t child, enum way way, unsigned at, int *status)
{
    struct user_regs_struct regs;
    bool is_entry = true;

    for (unsigned seen = 0;;) {
        CHECK(ptrace(PTRACE_SYSCALL, child, 0, 0) == 0);
        if (!await_stop(child, status))
            return false;
        if (WSTOPSIG(*status) != (SIGTRAP | 0x80))
            continue;
        bool is_call = is_entry;
        is_entry = !is_entry;
        if (!is_call)
            continue;
        CHECK(ptrace(PTRACE_GETREGS, child, 0, &regs) == 0);
        if (is_spared((long long)regs.orig_rax) || ++seen < at)
            continue;
        if (way == KILLED) {
            CHECK(kill(child, SIGKILL) == 0);
            CHECK(waitpid(child, status, __WALL) == child);
            return true;
        }
        regs.orig_rax = (unsigned long long)-1;
        CHECK(ptrace(PTRACE_SETREGS, child, 0, &regs) == 0);
        CHECK(ptrace(PTRACE_SYSCALL, child, 0, 0) == 0 && await_stop(child, status));
        CHECK(ptrace(PTRACE_GETREGS, child, 0, &regs) == 0);
        regs.rax = (unsigned long long)-EIO;
        CHECK(ptrace(PTRACE_SETREGS, child, 0, &regs) == 0);
        CHECK(ptrace(PTRACE_DETACH, child, 0, 0) == 0);
        CHECK(waitpid(child, status, __WALL) == child);
        return true;
    }
}

static bool run_meddled(struct volume *volume, const struct deed *deed, enum way way, unsigned at,
                        bool *is_done)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct error err = {0};
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
            _exit(7);
        (void)raise(SIGSTOP);
        _exit(deed->run(volume, &err) < 0 ? 1 : 0);
    }
    CHECK(child > 0);
    CHECK(await_stop(child, &status));
    CHECK(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0);
    bool is_met = meddle(child, way, at, &status);
    *is_done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (way == FAILED || !is_met)
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return is_met;
}

/* The state, as text */

static char *tell_scratch(struct volume *volume)
{
    struct error err = {0};
    autofd fd = -1;
    CHECK_OK(layer_open_scratch(volume, "s", &fd, &err), err);
    return tell_tree(fd);
}

static char *tell_layer(struct volume *volume, const char *name)
{
    struct error err = {0};
    autofd fd = -1;
    if (layer_open(volume, name, &fd, &err) < 0)
        return xstrdup("none");
    return tell_tree(fd);
}

static char *tell_state(struct volume *volume)
{
    autofree char *scratch = tell_scratch(volume);
    autofree char *new = tell_layer(volume, "new");
    autofree char *victim = tell_layer(volume, "victim");
    autofree char *first = tell_layer(volume, "l0");
    return xasprintf("scratch:\n%s\nnew:\n%s\nvictim:\n%s\nl0:\n%s", scratch, new, victim, first);
}

static unsigned count_entries(struct volume *volume)
{
    struct error err = {0};
    struct layer_names names = {0};
    autofd all = layer_open_all(volume, false, &err);
    CHECK(all >= 0);
    CHECK_OK(layer_names_read(&names, all, &err), err);
    unsigned count = (unsigned)names.count;
    layer_names_clear(&names);
    return count;
}

static bool owns_those(const char *name, void *unused)
{
    return true;
}

static unsigned n_new_scratches;
static bool counts_new(const char *name, void *unused)
{
    n_new_scratches += strncmp(name, "layer-new-", 10) == 0;
    return true;
}

static void fill_scratch(struct volume *volume, unsigned seed)
{
    struct error err = {0};
    int dir = make_scratch(volume, "s", 64 * MIB, 0);
    closep(&dir);
    autofd fd = -1;
    CHECK_OK(layer_open_scratch(volume, "s", &fd, &err), err);
    disturb(fd, &seed, 25);
}

/* Layers l0, l1 and victim, and a scratch with something else. */
static void prepare(struct volume *volume)
{
    struct error err = {0};
    static const char *const names[] = {"l0", "l1", "victim", "new"};
    for (size_t i = 0; i < 4; i++) {
        CHECK_OK(layer_remove(volume, names[i], &err), err);
        if (i == 3)
            break;
        fill_scratch(volume, 11 + (unsigned)i);
        CHECK_OK(layer_save(volume, "s", names[i], NULL, &err), err);
    }
    fill_scratch(volume, 99);
}

static void check_after(struct volume *volume, const char *old, const char *new, enum way way,
                        bool is_done, unsigned at)
{
    struct error err = {0};
    CHECK_OK(layer_sweep(volume, owns_those, NULL, &err), err);
    autofree char *now = tell_state(volume);
    bool is_old = strcmp(now, old) == 0, is_new = strcmp(now, new) == 0;
    if (!is_old && !is_new)
        test_fail(__FILE__, __LINE__, "neither old nor new after call %u: %s", at, now);
    if (way == FAILED && is_done != is_new)
        test_fail(__FILE__, __LINE__, "call %u failed, and it said %d, but was %d", at, is_done,
                  is_new);
    CHECK_INT(count_entries(volume),
              2 + layer_exists(volume, "new") + layer_exists(volume, "victim"));
    n_new_scratches = 0;
    CHECK_OK(volume_sweep(volume, counts_new, NULL, &err), err);
    CHECK_INT(n_new_scratches, 0);
}

/* Not each of very many: of those that look at one slot of the machine after the other, few. */
static unsigned next_call(unsigned at, unsigned step)
{
    return at + (at < 12 ? 1 : at < 150 ? step : 400);
}

static void check_deed(struct volume *volume, const struct deed *deed, enum way way, unsigned step)
{
    struct error err = {0};
    bool is_done = false;
    unsigned at = 1;

    prepare(volume);
    autofree char *old = tell_state(volume);
    CHECK_OK(deed->run(volume, &err), err);
    autofree char *new = tell_state(volume);
    CHECK(strcmp(old, new) != 0);
    prepare(volume);
    for (;; at = next_call(at, step)) {
        bool is_met = run_meddled(volume, deed, way, at, &is_done);
        check_after(volume, old, new, way, is_done, at);
        if (!is_met)
            break;
        autofree char *now = tell_state(volume);
        if (strcmp(now, old) != 0)
            prepare(volume);
    }
    printf("# %s: %s, %s before each of %u calls\n", volume_scheme_name(volume_scheme(volume)),
           deed->name, way == KILLED ? "killed" : "failed", at);
    CHECK(is_done);
}

static const struct deed deeds[] = {
    {"save", do_save}, {"merge", do_merge}, {"remove", do_remove}, {"restore", do_restore}};

static const unsigned steps[] = {1, 7, 7, 1}, steps_of_copies[] = {7, 7, 7};

TEST(killed_before_any_call_there_is_the_old_state_or_the_new_on_a_loop_volume)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &loop);
    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++)
        check_deed(volume, &deeds[i], KILLED, steps[i]);
}

TEST(what_fails_at_any_call_says_so_and_changes_nothing_on_a_loop_volume)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &loop);
    for (size_t i = 0; i < ARRAY_SIZE(deeds); i++)
        check_deed(volume, &deeds[i], FAILED, steps[i]);
}

/* Scratches in memory die with who restores them. */
TEST(killed_or_failing_at_any_call_a_copied_layer_is_whole_or_not_there)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &in_memory);
    for (size_t i = 0; i < 3; i++) {
        check_deed(volume, &deeds[i], KILLED, steps_of_copies[i]);
        check_deed(volume, &deeds[i], FAILED, steps_of_copies[i]);
    }
}
