/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots and checkpoints of real sandboxes. */
#include "core_fixture.h"

#include "base/clock.h"
#include "core/snapshot/checkpoint.h"
#include "core/core.h"
#include "core/snapshot/difference.h"
#include "core/snapshot/snapshot.h"
#include "base/strings.h"
#include "core/snapshot/snapshot_archive.h"
#include "store/accounts.h"

#include <unistd.h>

static void run_in(const char *sandbox, const char *script, int64_t code)
{
    autoclear(execution_info) begun = {0};
    autoclear(execution_info) end = {0};

    start_in(sandbox, EXECUTION_COMMAND, script, &begun);
    await_execution(begun.id, &end);
    if (end.exit.code != code)
        test_fail(__FILE__, __LINE__, "'%s' gave %lld: %s", script, (long long)end.exit.code,
                  content_of(end.stderr_stream));
    await_state(sandbox, SANDBOX_IDLE);
}

static void make_from(const char *snapshot, char id[ID_TEXT])
{
    struct sandbox_request request = {.home = "/home/me",
                                      .usual.directory = "/home/me",
                                      .max_executions = 1,
                                      .snapshot = snapshot};
    autoclear(sandbox_info) made = {0};
    struct error err = {0};

    CHECK_OK(sandbox_create(core, &actor, &request, &made, NULL, &err), err);
    CHECK_STR(made.snapshot, snapshot);
    (void)snprintf(id, ID_TEXT, "%s", made.id);
}

static void keep(const char *sandbox, const char *name, char id[ID_TEXT])
{
    struct snapshot_request request = {.name = name};
    autoclear(snapshot_info) made = {0};
    struct error err = {0};

    CHECK_OK(snapshot_create(core->snapshots, &actor, sandbox, &request, &made, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", made.id);
}

CORE_TEST(sandboxes_from_a_snapshot_have_its_files_and_not_each_others)
{
    char first[ID_TEXT], snapshot[ID_TEXT], one[ID_TEXT], two[ID_TEXT];

    make_sandbox(first);
    run_in(first, "echo kept > file; mkdir d; echo x > d/x; rm -f /etc/hostname", 0);
    keep(first, "base", snapshot);
    run_in(first, "echo later > later", 0);
    make_from(snapshot, one);
    make_from(snapshot, two);
    run_in(one, "[ \"$(cat file)\" = kept ] && [ -e d/x ] && [ ! -e later ] && echo one > mine", 0);
    run_in(two, "[ \"$(cat file)\" = kept ] && [ ! -e mine ] && rm -r d && echo two > file", 0);
    run_in(one, "[ \"$(cat file)\" = kept ] && [ -e d/x ]", 0);
}

CORE_TEST(a_snapshot_of_a_snapshot_knows_its_parents_and_outlives_them)
{
    char first[ID_TEXT], second[ID_TEXT], third[ID_TEXT], a[ID_TEXT], b[ID_TEXT];
    autoclear(snapshot_infos) lineage = {0};
    autoclear(snapshot_info) got = {0};
    struct error err = {0};

    make_sandbox(first);
    run_in(first, "echo 1 > one", 0);
    keep(first, "a", a);
    make_from(a, second);
    run_in(second, "echo 2 > two", 0);
    keep(second, "b", b);
    CHECK_OK(snapshot_delete(core->snapshots, &actor, a, &err), err);
    CHECK(snapshot_resolve(core->snapshots, &actor, "a", &got, &err) < 0);
    CHECK_OK(snapshot_resolve(core->snapshots, &actor, "b:latest", &got, &err), err);
    CHECK_STR(got.id, b);
    make_from(b, third);
    run_in(third, "[ -e one ] && [ -e two ]", 0);
    run_in(second, "[ -e one ]", 0);
    CHECK_OK(snapshot_lineage(core->snapshots, &actor, b, 10, &lineage, &err), err);
    CHECK_INT(lineage.count, 2);
    CHECK_STR(lineage.items[1].id, a);
    CHECK_INT(lineage.items[1].state, SNAPSHOT_DELETED);
    reopen_core();
    run_in(third, "[ -e one ] && [ -e two ]", 0);
}

CORE_TEST(the_files_of_a_snapshot_are_counted_and_hashed)
{
    char sandbox[ID_TEXT], id[ID_TEXT];
    autoclear(snapshot_info) got = {0};
    struct snapshot_files files = {0};
    struct error err = {0};

    make_sandbox(sandbox);
    run_in(sandbox, "printf abc > a; printf '' > b; chmod 600 b; mkdir c; ln -s a l", 0);
    keep(sandbox, "f", id);
    CHECK_OK(snapshot_get(core->snapshots, &actor, id, &got, &err), err);
    CHECK_OK(snapshot_files(core->snapshots, &got, &files, &err), err);
    CHECK_INT(got.file_count, files.count);
    bool has_abc = false;
    for (size_t i = 0; i < files.count; i++) {
        if (strcmp(files.files[i].path, "home/me/a") == 0) {
            CHECK_STR(files.files[i].sha256,
                      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
            has_abc = true;
        }
    }
    snapshot_files_clear(&files);
    CHECK(has_abc);
}

static bool is_counted(const char *id, int64_t count)
{
    autoclear(snapshot_info) record = {0};
    struct error err = {0};

    CHECK_OK(snapshot_look(core->snapshots, &actor, id, &record, &err), err);
    return record.file_count == count;
}

CORE_TEST(files_are_counted_though_nobody_asks_and_the_server_is_restarted)
{
    char sandbox[ID_TEXT], id[ID_TEXT];

    make_sandbox(sandbox);
    run_in(sandbox, "for n in $(seq 20000); do : > $n; done", 0);
    keep(sandbox, "many", id);
    reopen_core(); // in the middle of it, or before
    uint64_t deadline = clock_monotonic_ms() + 60000;
    while (!is_counted(id, 20000) && clock_monotonic_ms() < deadline)
        (void)usleep(1000);
    CHECK(is_counted(id, 20000));
}

CORE_TEST(going_back_to_a_checkpoint_brings_the_files_back_and_ends_what_runs)
{
    char id[ID_TEXT];
    autoclear(checkpoint_info) one = {0};
    autoclear(checkpoint_info) two = {0};
    autoclear(checkpoint_info) again = {0};
    autoclear(checkpoint_infos) all = {0};
    autoclear(execution_info) job = {0};
    autoclear(execution_info) end = {0};
    struct error err = {0};

    make_sandbox(id);
    run_in(id, "echo first > file; mkdir keep", 0);
    CHECK_OK(checkpoint_create(core->snapshots, &actor, id, "one", &one, &err), err);
    CHECK_STR(one.parent, "");
    run_in(id, "echo second > file; rmdir keep; echo new > new", 0);
    CHECK_OK(checkpoint_create(core->snapshots, &actor, id, "two", &two, &err), err);
    CHECK_STR(two.parent, "one");
    CHECK(checkpoint_create(core->snapshots, &actor, id, "one", &again, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    start_in(id, EXECUTION_JOB, "sleep 600", &job);
    CHECK_OK(checkpoint_restore(core->snapshots, &actor, id, "one", &err), err);
    await_execution(job.id, &end);
    CHECK_INT(end.state, EXECUTION_CANCELLED);
    run_in(id, "[ \"$(cat file)\" = first ] && [ -d keep ] && [ ! -e new ]", 0);
    CHECK_OK(checkpoint_restore(core->snapshots, &actor, id, two.id, &err), err);
    run_in(id, "[ \"$(cat file)\" = second ] && [ ! -d keep ] && [ -e new ]", 0);
    CHECK_OK(checkpoint_remove(core->snapshots, &actor, id, "one", &err), err);
    CHECK(checkpoint_restore(core->snapshots, &actor, id, "one", &err) < 0);
    CHECK_STR(err.noun, "checkpoint");
    CHECK_OK(checkpoint_list(core->snapshots, &actor, id, &all, &err), err);
    CHECK_INT(all.count, 1);
}

/* An actor of another organisation, which is called so. */
static struct actor make_stranger(const char *name)
{
    struct actor stranger = {.is_admin = true, .scopes = SCOPES_ALL};
    struct error err = {0};
    const struct organisation_record other = {
        .id = id_make(stranger.organisation), .name = name, .created_at = (int64_t)clock_wall_ms()};

    CHECK_OK(store_organisation_put(core->store, &other, &err), err);
    return stranger;
}

static void check_missing(int result, const struct error *err, const char *noun)
{
    CHECK(result < 0);
    CHECK_INT(error_kind(err), ERROR_NOT_FOUND);
    CHECK_STR(err->noun, noun);
}

CORE_TEST(another_organisation_reaches_no_snapshot_or_checkpoint)
{
    struct actor stranger = make_stranger("strangers");
    struct difference_request diff = {.from = "base", .to = "now", .max_entries = 10};
    char sandbox[ID_TEXT], id[ID_TEXT];
    autoclear(checkpoint_info) one = {0};
    autoclear(checkpoint_infos) points = {0};
    autoclear(snapshot_info) got = {0};
    autoclear(snapshot_infos) list = {0};
    autodifference found = {0};
    const struct snapshot_filter filter = {.page = {.limit = 10}};
    struct snapshot_request take = {.name = "stolen"};
    struct error err = {0};
    struct temporary *file = NULL;

    make_sandbox(sandbox);
    keep(sandbox, "mine", id);
    CHECK_OK(checkpoint_create(core->snapshots, &actor, sandbox, "one", &one, &err), err);
    check_missing(snapshot_get(core->snapshots, &stranger, id, &got, &err), &err, "snapshot");
    check_missing(snapshot_resolve(core->snapshots, &stranger, id, &got, &err), &err, "snapshot");
    check_missing(snapshot_resolve(core->snapshots, &stranger, "mine:latest", &got, &err), &err,
                  "snapshot");
    check_missing(snapshot_resolve(core->snapshots, &stranger, "@default/mine", &got, &err), &err,
                  "snapshot");
    check_missing(snapshot_resolve_public(core->snapshots, id, &got, &err), &err, "snapshot");
    check_missing(snapshot_set_tag(core->snapshots, &stranger, id, "x", &got, &err), &err,
                  "snapshot");
    check_missing(snapshot_delete(core->snapshots, &stranger, id, &err), &err, "snapshot");
    check_missing(snapshot_export(core->snapshots, &stranger, id, 1 << 20, &file, &err), &err,
                  "snapshot");
    check_missing(snapshot_create(core->snapshots, &stranger, sandbox, &take, &got, &err), &err,
                  "sandbox");
    check_missing(checkpoint_list(core->snapshots, &stranger, sandbox, &points, &err), &err,
                  "sandbox");
    check_missing(checkpoint_restore(core->snapshots, &stranger, sandbox, "one", &err), &err,
                  "sandbox");
    check_missing(checkpoint_remove(core->snapshots, &stranger, sandbox, one.id, &err), &err,
                  "sandbox");
    check_missing(difference_get(core->snapshots, &stranger, sandbox, &diff, &found, &err), &err,
                  "sandbox");
    CHECK_OK(snapshot_list(core->snapshots, &stranger, &filter, &list, &err), err);
    CHECK_INT(list.count, 0);
}

/* As `keep`, of whoever it is, and public. */
static void publish(const struct actor *who, const char *name, char id[ID_TEXT])
{
    const struct sandbox_request request = {
        .home = "/home/me", .usual.directory = "/home/me", .max_executions = 1};
    const struct snapshot_request take = {.name = name, .is_public = true};
    autoclear(sandbox_info) made = {0};
    autoclear(snapshot_info) snapshot = {0};
    struct error err = {0};

    CHECK_OK(sandbox_create(core, who, &request, &made, NULL, &err), err);
    CHECK_OK(snapshot_create(core->snapshots, who, made.id, &take, &snapshot, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", snapshot.id);
    CHECK_OK(sandbox_delete(core->sandboxes, who, made.id, &err), err);
}

CORE_TEST(a_name_means_nobody_elses_snapshot)
{
    struct actor stranger = make_stranger("strangers");
    char mine[ID_TEXT], theirs[ID_TEXT];
    struct snapshot_info got[4] = {0};
    struct error err = {0};

    publish(&actor, "app", mine);
    publish(&stranger, "app", theirs); // the newest of this name and tag
    CHECK_OK(snapshot_resolve(core->snapshots, &actor, "app:latest", &got[0], &err), err);
    CHECK_STR(got[0].id, mine);
    CHECK_STR(got[0].tag, "latest"); // the stranger's did not take it over
    CHECK_OK(snapshot_resolve(core->snapshots, &actor, "@strangers/app:latest", &got[1], &err),
             err);
    CHECK_STR(got[1].id, theirs);
    CHECK_OK(snapshot_resolve(core->snapshots, &stranger, "@default/app", &got[2], &err), err);
    CHECK_STR(got[2].id, mine);
    CHECK_OK(snapshot_resolve_public(core->snapshots, "@strangers/app", &got[3], &err), err);
    CHECK_STR(got[3].id, theirs);
    CHECK_OK(snapshot_delete(core->snapshots, &actor, mine, &err), err);
    check_missing(snapshot_resolve(core->snapshots, &actor, "app:latest", &got[0], &err), &err,
                  "snapshot");
    check_missing(snapshot_resolve(core->snapshots, &actor, "latest", &got[0], &err), &err,
                  "snapshot");
    check_missing(snapshot_resolve(core->snapshots, &actor, "@nobody/app", &got[0], &err), &err,
                  "snapshot");
    CHECK_OK(snapshot_resolve(core->snapshots, &actor, theirs, &got[0], &err), err);
    for (size_t i = 0; i < ARRAY_SIZE(got); i++)
        snapshot_info_clear(&got[i]);
}
