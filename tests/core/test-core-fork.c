/* SPDX-License-Identifier: Apache-2.0 */
/* Forks of living sandboxes: what they have, what they share, and what is left of that when they are gone. */
#include "core_fixture.h"
#include "state_fixture.h"

#include "base/auto.h"
#include "core/fork.h"
#include "core/snapshot/snapshot.h"

#include <stdio.h>
#include <time.h>

#define PATIENCE 6000 // naps

static void fork_of(const char *id, char fork[ID_TEXT])
{
    const struct sandbox_changes none = {0};
    autoclear(sandbox_info) info = {0};
    struct error err = {0};

    CHECK_OK(sandbox_fork(core, &actor, id, &none, NULL, &info, &err), err);
    (void)snprintf(fork, ID_TEXT, "%s", info.id);
}

static void remove_sandbox(const char *id)
{
    struct error err = {0};
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
}

static void await_layers(unsigned wanted)
{
    const struct timespec nap = {.tv_nsec = 10000000};

    for (unsigned i = 0; i < PATIENCE && count_layers() != wanted; i++)
        (void)nanosleep(&nap, NULL);
    CHECK_INT(count_layers(), wanted);
}

CORE_TEST(what_forks_share_goes_when_nobody_needs_it)
{
    const struct snapshot_filter all = {.page.limit = 100};
    autoclear(snapshot_infos) snapshots = {0};
    char first[ID_TEXT], second[ID_TEXT], third[ID_TEXT];
    struct error err = {0};

    make_sandbox(first);
    (void)shell_in(first, "echo one >f");
    fork_of(first, second);
    CHECK_INT(count_layers(), 1);
    (void)shell_in(second, "echo two >>f");
    fork_of(second, third);
    CHECK_INT(count_layers(), 2);
    CHECK_OK(snapshot_list(core->snapshots, &actor, &all, &snapshots, &err), err);
    CHECK_INT(snapshots.count, 0);
    remove_sandbox(first);
    remove_sandbox(second);
    reopen_core();
    CHECK_STR(shell_in(third, "cat f; echo three >>f; cat f"), "one\ntwo\none\ntwo\nthree\n");
    CHECK_INT(count_layers(), 2);
    remove_sandbox(third);
    await_layers(0);
}

CORE_TEST(a_fork_that_cannot_be_made_leaves_nothing)
{
    const struct sandbox_changes named = {
        .has_name = true, .name = "taken", .is_name_unique = true};
    const struct sandbox_request request = {
        .name = "taken", .mode = SANDBOX_INTERACTIVE, .usual.directory = "/home/me"};
    autoclear(sandbox_info) info = {0}, fork = {0};
    struct error err = {0};

    CHECK_OK(sandbox_create(core, &actor, &request, &info, NULL, &err), err);
    CHECK(sandbox_fork(core, &actor, info.id, &named, NULL, &fork, &err) < 0);
    CHECK_INT(err.reason, ERROR_EXISTS);
    await_layers(0);
    remove_sandbox(info.id);
    CHECK(sandbox_fork(core, &actor, info.id, &named, NULL, &fork, &err) < 0);
    CHECK(error_is(&err, ERROR_NOT_FOUND));
}
