/* SPDX-License-Identifier: Apache-2.0 */
/* A disk without room: a clear refusal, nothing lost, and work goes on once there is room again. */
#include "base/id.h"
#include "base/mem.h"
#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char filler[20000];

static int write_one(struct store *store, struct error *err)
{
    char id[ID_TEXT];
    struct sandbox_record sandbox = fixture_sandbox(id_make(id));

    memset(filler, 'm', sizeof filler - 1);
    sandbox.metadata = filler;
    sandbox.mode = SANDBOX_ONE_SHOT;
    return store_sandbox_put(store, &sandbox, err);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes == RLIM_INFINITY ? limit.rlim_max : bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

TEST(a_file_that_may_not_grow_is_a_full_disk_and_nothing_is_lost)
{
    struct store *store = fixture_store();
    struct error err = {0};
    int kept = 0, refused = 0;

    (void)signal(SIGXFSZ, SIG_IGN); // as the server does: then it is EFBIG
    limit_files(2 << 20);
    while (kept < 1000 && write_one(store, &err) == 0)
        kept++;
    for (int i = 0; i < 20; i++)
        refused += write_one(store, &err) < 0;
    limit_files(RLIM_INFINITY);
    CHECK(kept > 10 && kept < 1000);
    CHECK_INT(refused, 20);
    CHECK_INT(err.reason, ERROR_NO_SPACE);
    CHECK_INT(err.sys, EFBIG);
    CHECK(strstr(err.text, "make room on its disk"));
    CHECK_INT(fixture_number(store, "SELECT count(*) FROM sandboxes"), kept);
    CHECK_OK(write_one(store, &err), err);
    CHECK_INT(fixture_number(fixture_open(), "SELECT count(*) FROM sandboxes"), kept + 1);
}

// In a mount namespace of its own: fills a small file system, gives it room, goes on. A sentence
// when something is not so.
static const char *fill_small_disk(const char *directory, char *text)
{
    struct store *store = NULL;
    struct error err = {0};
    int kept = 0;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("small", directory, "tmpfs", 0, "size=3m") < 0)
        return errno == EPERM ? "skip" : strerror(errno);
    if (store_open(fixture_directory(), &store, &err) < 0)
        return strcpy(text, err.text);
    while (kept < 1000 && write_one(store, &err) == 0)
        kept++;
    if (kept < 10 || kept == 1000 || !error_is(&err, ERROR_NO_SPACE))
        return strcpy(text, err.text);
    autosandboxes list = {0};
    struct sandbox_filter all = {0};
    if (store_sandbox_list(store, &all, &list, &err) < 0 || list.total != kept)
        return "what was kept is not all there";
    if (mount("small", directory, "tmpfs", MS_REMOUNT, "size=30m") < 0)
        return "cannot make room";
    if (write_one(store, &err) < 0)
        return strcpy(text, err.text);
    store_free(store);
    if (store_open(fixture_directory(), &store, &err) < 0 ||
        store_sandbox_list(store, &all, &list, &err) < 0)
        return strcpy(text, err.text);
    store_free(store);
    return list.total == kept + 1 ? "ok" : "not all there after opening again";
}

/* The same, on one that others have filled. */
static const char *use_kept_room(const char *directory, char *text)
{
    struct store *store = NULL;
    struct error err = {0};

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("small", directory, "tmpfs", 0, "size=512m") < 0)
        return errno == EPERM ? "skip" : strerror(errno);
    if (store_open(fixture_directory(), &store, &err) < 0)
        return strcpy(text, err.text);
    if (mount("small", directory, "tmpfs", MS_REMOUNT, "size=8600k") < 0)
        return "cannot take the room away";
    for (int i = 0; i < 100; i++)
        if (write_one(store, &err) < 0)
            return strcpy(text, err.text);
    store_free(store);
    return "ok";
}

/* In a process with mounts of its own. */
static void try_small_disk(const char *(*try)(const char *directory, char *text))
{
    char text[sizeof((struct error *)0)->text] = "";
    int ends[2];

    const char *directory = fixture_fresh();
    CHECK(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        const char *said = try(directory, text);
        (void)!write(ends[1], said, strlen(said));
        _exit(0);
    }
    (void)close(ends[1]);
    char said[sizeof text] = "";
    (void)!read(ends[0], said, sizeof said - 1);
    (void)close(ends[0]);
    CHECK(waitpid(pid, NULL, 0) == pid);
    if (strcmp(said, "skip") == 0)
        SKIP("root may not mount here");
    CHECK_STR(said, "ok");
}

TEST(a_full_disk_is_a_fault_and_work_goes_on_when_there_is_room)
{
    if (geteuid() != 0)
        SKIP("needs root, to mount a small file system");
    try_small_disk(fill_small_disk);
}

TEST(what_ends_things_is_recorded_on_a_disk_that_others_have_filled)
{
    if (geteuid() != 0)
        SKIP("needs root, to mount a small file system");
    try_small_disk(use_kept_room);
}

// Whether root may write where modes forbid it, as others may not.
static void write_everywhere(bool may)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    const uint32_t bit = 1u << CAP_DAC_OVERRIDE;

    CHECK(syscall(SYS_capget, &header, sets) == 0);
    sets[0].effective =
        may ? sets[0].effective | (sets[0].permitted & bit) : sets[0].effective & ~bit;
    CHECK(syscall(SYS_capset, &header, sets) == 0);
}

TEST(a_database_that_may_not_be_written_says_so)
{
    struct store *store = NULL;
    struct error err = {0};

    fixture_store();
    fixture_close();
    CHECK(chmod(fixture_path(), 0400) == 0);
    write_everywhere(false);
    int result = store_open(fixture_directory(), &store, &err);
    write_everywhere(true);
    CHECK(result < 0);
    CHECK(strstr(err.text, fixture_path()) && strstr(err.text, "may not be written"));
}
