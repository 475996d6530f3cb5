/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots as files: there and back, damaged ones, hostile ones, and a server killed meanwhile. Needs root. */
#include "archive_fixture.h"
#include "core/core.h"
#include "core/sandbox/temporary.h"
#include "core/snapshot/digest.h"
#include "core/snapshot/snapshot_archive.h"
#include "state_fixture.h"
#include "store/checkpoints.h"
#include "store/snapshots.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define ROOM ((uint64_t)1 << 30)

static int export(const char *id, uint64_t *size)
{
    struct error err = {0};
    autoptr(temporary) file = NULL;
    CHECK_OK(snapshot_export(core->snapshots, &actor, id, ROOM, &file, &err), err);
    *size = file->size;
    return take_fd(file->fd);
}

static int try_import(int fd, struct error *err)
{
    const struct snapshot_import_request request = {.name = "copy", .tag = "v1"};
    autoclear(snapshot_info) record = {0};
    return snapshot_import(core->snapshots, &actor, &request, fd, &record, err);
}

/* Everything in the sandbox's own files that travels, as text. */
#define LOOK                                                                                       \
    "cd / && ls -A etc; find home etc/passwd -type f -printf '%p %m %U:%G %n %T@\\n' | LC_ALL=C "  \
    "sort; "                                                                                       \
    "find home/me etc/passwd ! -type f -printf '%p %y %m %U:%G %l %T@\\n' | LC_ALL=C sort; "       \
    "find home -type f -exec sha256sum {} + | LC_ALL=C sort"

CORE_TEST(a_snapshot_comes_back_as_it_was)
{
    char first[ID_TEXT], snapshot[ID_TEXT], second[ID_TEXT];
    struct error err = {0};
    uint64_t size = 0, again = 0;

    make_sandbox(first);
    (void)shell_in(
        first,
        "echo text > text; : > empty; mkdir -p a/b/c closed; echo deep > a/b/c/deep; ln -s a/b "
        "link; "
        "ln text hard; ln text a/hard; chown 1000:1001 text; cp /bin/true setuid; chmod 6755 "
        "setuid; "
        "mkdir sticky; chmod 1777 sticky; mkdir setgid; chmod 2750 setgid; echo in > closed/in; "
        "chmod 0555 closed; printf x > \"$(printf 'new\\nline')\"; printf y > 'back\\slash'; "
        "printf z > \"$(printf 'latin-\\344')\"; rm /etc/passwd; mkdir /etc/passwd; echo in > "
        "/etc/passwd/in; "
        "rm -f /etc/hosts /etc/group; head -c 300000 /dev/urandom > random; chown -h 5:6 link; "
        "truncate -s 9M sparse; echo end >> sparse; touch -d 2001-02-03 setgid");
    autofree char *before = strdup(shell_in(first, LOOK));
    keep_snapshot(first, "original", snapshot);
    autofd archive = export(snapshot, &size);
    autofd twice = export(snapshot, &again);
    char sums[2][DIGEST_TEXT];
    CHECK_OK(digest_file(archive, sums[0], &err), err);
    CHECK_OK(digest_file(twice, sums[1], &err), err);
    CHECK_STR(sums[0], sums[1]);
    CHECK(size > 300000 && size < 500000);

    const struct snapshot_import_request request = {.is_public = true};
    autoclear(snapshot_info) copy = {0};
    CHECK_OK(snapshot_import(core->snapshots, &actor, &request, archive, &copy, &err), err);
    CHECK_STR(copy.name, "original");
    CHECK_STR(copy.tag, "latest");
    CHECK(copy.is_public && !copy.parent_id && strcmp(copy.id, snapshot) != 0);
    CHECK_INT(count_stray_scratches(), 0);
    make_sandbox_from(copy.id, second);
    CHECK_STR(shell_in(second, LOOK), before);
    CHECK_STR(shell_in(second, "test text -ef hard && test text -ef a/hard && test $(du -k sparse "
                               "| cut -f1) -lt 200 && cat text"),
              "text\n");
}

CORE_TEST(layers_and_environments_of_chains_are_merged)
{
    char first[ID_TEXT], one[ID_TEXT], second[ID_TEXT], two[ID_TEXT], third[ID_TEXT];
    struct error err = {0};
    uint64_t size = 0;

    make_sandbox(first);
    (void)shell_in(first, "mkdir d; echo 1 > d/a; echo 1 > d/b; echo 1 > kept");
    keep_snapshot(first, "one", one);
    make_sandbox_from(one, second);
    (void)shell_in(second, "rm d/a; echo 2 > d/b; mv d e");
    keep_snapshot(second, "two", two);
    autofd archive = export(two, &size);
    CHECK_OK(try_import(archive, &err), err);
    autoclear(snapshot_info) copy = {0};
    CHECK_OK(snapshot_resolve(core->snapshots, &actor, "copy:v1", &copy, &err), err);
    make_sandbox_from(copy.id, third);
    CHECK_STR(shell_in(third, "ls; cat e/b kept; ls e"), "e\nkept\n2\n1\nb\n");
}

// ---- archives made by hand ----

struct made {
    struct buffer tar, sums, files;
};

static void made_clear(struct made *made)
{
    buffer_clear(&made->tar);
    buffer_clear(&made->sums);
    buffer_clear(&made->files);
}
#define automade __attribute__((cleanup(made_clear))) struct made

/* A file with its sum, in the part that comes last. */
static void put_file(struct made *made, const char *name, const char *content)
{
    struct error err = {0};
    struct digest sum = {0};
    char hex[DIGEST_TEXT];

    tar_add_file(&made->files, name, content);
    digest_begin(&sum);
    digest_add(&sum, content, strlen(content));
    digest_end(&sum, hex);
    CHECK_OK(buffer_addf(&made->sums, &err, "%s  %s\n", hex, name), err);
}

static int finish(struct made *made, const char *about)
{
    struct error err = {0};

    struct digest sum = {0};
    char hex[DIGEST_TEXT];

    digest_begin(&sum);
    digest_add(&sum, about, strlen(about));
    digest_end(&sum, hex);
    CHECK_OK(buffer_addf(&made->sums, &err, "%s  burrow-snapshot\n", hex), err);
    tar_add_file(&made->tar, "burrow-snapshot", about);
    tar_add_file(&made->tar, "SHA256SUMS", made->sums.length ? made->sums.data : "");
    if (made->files.length)
        CHECK_OK(buffer_add(&made->tar, made->files.data, made->files.length, &err), err);
    tar_end(&made->tar);
    return file_of(&made->tar);
}

#define ABOUT "burrow-snapshot 1\nname: made\nruntime: host:latest\n"

static void check_nothing_left(void)
{
    const struct snapshot_filter filter = {.states = ~0u >> 1, .page = {.limit = 10}};
    autosnapshots snapshots = {0};
    autolayers layers = {0};
    struct error err = {0};

    CHECK_OK(store_snapshot_list(core->store, &filter, &snapshots, &err), err);
    CHECK_INT(snapshots.count, 0);
    CHECK_OK(store_layer_list(core->store, false, &layers, &err), err);
    CHECK_INT(layers.count, 0);
    CHECK_INT(count_layers(), 0);
    CHECK_INT(count_stray_scratches(), 0);
}

static void check_refused(struct made *made, const char *about, enum error_reason reason,
                          const char *noun)
{
    struct error err = {0};
    autofd fd = finish(made, about);

    int result = try_import(fd, &err);
    printf("# %s\n", err.text);
    CHECK(result < 0);
    CHECK_INT(err.reason, reason);
    CHECK_STR(err.noun ? err.noun : "", noun);
    check_nothing_left();
    made_clear(made);
    *made = (struct made){0};
}

CORE_TEST(an_archive_made_by_hand_is_taken)
{
    automade made = {0};
    struct error err = {0};
    char id[ID_TEXT];

    put_file(&made, "files/opt/one/two", "content");
    autofd fd = finish(&made, ABOUT "env: A=b\nremoved: etc/hosts\nunknown: fine\n");
    CHECK_OK(try_import(fd, &err), err);
    autoclear(snapshot_info) copy = {0};
    CHECK_OK(snapshot_resolve(core->snapshots, &actor, "copy:v1", &copy, &err), err);
    CHECK_STR(copy.env[0], "A=b");
    CHECK(!copy.env[1]);
    make_sandbox_from(copy.id, id);
    CHECK_STR(shell_in(id, "cat /opt/one/two; echo $A"), "contentb\n");
}

CORE_TEST(what_does_not_agree_with_its_sums_is_damaged)
{
    automade made = {0};
    struct error err = {0};

    put_file(&made, "files/a", "content");
    made.sums.data[3] ^= 1;
    check_refused(&made, ABOUT, ERROR_DAMAGED, "archive");
    put_file(&made, "files/a", "content");
    tar_add_file(&made.files, "files/b", "no sum");
    check_refused(&made, ABOUT, ERROR_DAMAGED, "archive");
    put_file(&made, "files/a", "content");
    buffer_clear(&made.files);
    check_refused(&made, ABOUT, ERROR_DAMAGED, "archive");
    put_file(&made, "files/empty", "");
    made.sums.data[0] = made.sums.data[0] == 'e' ? 'f' : 'e';
    check_refused(&made, ABOUT, ERROR_DAMAGED, "archive");
    put_file(&made, "files/a", "content");
    check_refused(&made, "name: made\n", ERROR_DAMAGED, "archive");
    check_refused(&made, "burrow-snapshot 1\nname: made\n", ERROR_DAMAGED, "archive");
    check_refused(&made, "burrow-snapshot 2\n", ERROR_REFUSED, "archive");
    check_refused(&made, "burrow-snapshot 1\nname: a/b\nruntime: host:latest\n", ERROR_INVALID, "");
    check_refused(&made, "burrow-snapshot 1\nname: made\nruntime: nowhere:latest\n",
                  ERROR_NOT_FOUND, "runtime");
    check_refused(&made, ABOUT "runtime-hash: 0123456789abcdef\n", ERROR_DIFFERS, "runtime");
    autobuffer nothing = {0};
    CHECK_OK(buffer_add_text(&nothing, "this is no archive, and never was one", &err), err);
    autofd fd = file_of(&nothing);
    CHECK(try_import(fd, &err) < 0);
    CHECK_STR(err.noun, "archive");
    check_nothing_left();
}

CORE_TEST(hostile_archives_are_harmless)
{
    automade made = {0};

    put_file(&made, "files/../../escaped", "x");
    check_refused(&made, ABOUT, ERROR_REFUSED, "archive");
    put_file(&made, "elsewhere/file", "x");
    check_refused(&made, ABOUT, ERROR_REFUSED, "archive");
    tar_add(&made.files,
            &(struct tar_entry){.name = "files/etc", .type = '3'}); // a whiteout: device 0, 0
    check_refused(&made, ABOUT, ERROR_REFUSED, "archive");
    tar_add(&made.files, &(struct tar_entry){.name = "files/fifo", .type = '6'});
    check_refused(&made, ABOUT, ERROR_REFUSED, "archive");
    tar_add(&made.files,
            &(struct tar_entry){.name = "files/hard", .link = "/etc/shadow", .type = '1'});
    check_refused(&made, ABOUT, ERROR_REFUSED, "archive");
    tar_add(&made.files,
            &(struct tar_entry){.name = "files/hard", .link = "burrow-snapshot", .type = '1'});
    check_refused(&made, ABOUT, ERROR_REFUSED, "archive");
    tar_add(&made.files, &(struct tar_entry){.name = "files/opt/out", .link = "/tmp", .type = '2'});
    put_file(&made, "files/opt/out/through", "x");
    check_refused(&made, ABOUT, ERROR_REFUSED, "archive");
    check_refused(&made, ABOUT "removed: ../../etc\n", ERROR_REFUSED, "archive");
    check_refused(&made, ABOUT "removed: /etc\n", ERROR_REFUSED, "archive");
    put_file(&made, "files/usr/bin/sh", "x"); // of the machine, read-only in the box
    check_refused(&made, ABOUT, ERROR_REFUSED, "archive");
    put_file(&made, "files/proc/sys/kernel/core_pattern", "x");
    check_refused(&made, ABOUT, ERROR_REFUSED, "archive");
    check_refused(&made, ABOUT "removed: proc\n", ERROR_REFUSED, "archive");
}

CORE_TEST(marks_of_overlay_mean_nothing_in_an_archive)
{
    automade made = {0};
    struct error err = {0};
    char id[ID_TEXT];

    tar_add_pax(&made.files, "SCHILY.xattr.trusted.overlay.opaque", "y", 1);
    tar_add(&made.files, &(struct tar_entry){.name = "files/etc/", .type = '5', .mode = 0755});
    tar_add_pax(&made.files, "SCHILY.xattr.trusted.overlay.redirect", "/root", 5);
    tar_add(&made.files, &(struct tar_entry){.name = "files/opt/", .type = '5', .mode = 0755});
    put_file(&made, "files/etc/.wh.passwd", "");
    put_file(&made, "files/etc/.wh..wh..opq", "");
    autofd fd = finish(&made, ABOUT);
    CHECK_OK(try_import(fd, &err), err);
    autoclear(snapshot_info) copy = {0};
    CHECK_OK(snapshot_resolve(core->snapshots, &actor, "copy:v1", &copy, &err), err);
    make_sandbox_from(copy.id, id);
    CHECK_STR(shell_in(id, "test -s /etc/passwd && ls -A /opt"), "");
}

CORE_TEST(a_cut_off_export_is_damaged_wherever_it_is_cut)
{
    char id[ID_TEXT], snapshot[ID_TEXT];
    struct error err = {0};
    uint64_t size = 0;

    make_sandbox(id);
    (void)shell_in(id, "seq 1 20000 > numbers; head -c 100000 /dev/urandom > random");
    keep_snapshot(id, "one", snapshot);
    autofd archive = export(snapshot, &size);
    for (unsigned i = 1; i < 6; i++) {
        CHECK_INT(ftruncate(archive, (off_t)(size * (6 - i) / 6)), 0);
        CHECK(try_import(archive, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK_INT(err.reason, ERROR_DAMAGED);
    }
    CHECK_INT(count_layers(), 1);
    CHECK_INT(count_stray_scratches(), 0);
}

CORE_TEST(an_export_that_is_too_large_is_said_so_and_others_are_not_found)
{
    char id[ID_TEXT], snapshot[ID_TEXT];
    struct error err = {0};
    struct temporary *file = NULL;

    make_sandbox(id);
    (void)shell_in(id, "head -c 300000 /dev/urandom > random");
    keep_snapshot(id, "one", snapshot);
    CHECK(snapshot_export(core->snapshots, &actor, snapshot, 100000, &file, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK_STR(err.noun, "snapshot");
    CHECK(snapshot_export(core->snapshots, &actor, id, ROOM, &file, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK_STR(err.noun, "snapshot");
    CHECK(!file);
}

// ---- a server that is killed ----

static void kill_after(int archive, long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    struct error err = {0};
    int ready[2];
    char byte;

    core_free(core);
    core = NULL;
    CHECK_INT(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        reopen_core();
        (void)!write(ready[1], "x", 1);
        (void)try_import(archive, &err);
        _exit(0);
    }
    (void)close(ready[1]);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)nanosleep(&pause, NULL); // any moment will do
    (void)kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    reopen_core();
}

CORE_TEST(a_killed_server_leaves_a_whole_snapshot_or_none)
{
    const struct snapshot_filter filter = {.states = ~0u >> 1, .page = {.limit = 100}};
    char id[ID_TEXT], snapshot[ID_TEXT];
    struct error err = {0};
    uint64_t size = 0;
    unsigned done = 0;

    make_sandbox(id);
    (void)shell_in(
        id, "for i in $(seq 1 300); do echo $i > f$i; done; head -c 8000000 /dev/urandom > random");
    keep_snapshot(id, "one", snapshot);
    autofd archive = export(snapshot, &size);
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
    for (long ms = 0; ms < 400; ms += 40) {
        kill_after(archive, ms);
        autosnapshots all = {0};
        autolayers layers = {0};
        CHECK_OK(store_snapshot_list(core->store, &filter, &all, &err), err);
        CHECK_OK(store_layer_list(core->store, false, &layers, &err), err);
        CHECK(all.count >= 1 + done);
        CHECK_INT(layers.count, all.count);
        CHECK_INT(count_layers(), all.count);
        CHECK_INT(count_stray_scratches(), 0);
        done = (unsigned)all.count - 1;
    }
    printf("# %u of 10 were done\n", done);
    if (done == 0)
        CHECK_OK(try_import(archive, &err), err);
    autoclear(snapshot_info) copy = {0};
    CHECK_OK(snapshot_resolve(core->snapshots, &actor, "copy:v1", &copy, &err), err);
    make_sandbox_from(copy.id, id);
    CHECK_STR(shell_in(id, "ls | wc -l; cat f300; stat -c %s random"), "301\n300\n8000000\n");
}
