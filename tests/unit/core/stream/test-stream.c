/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/stream.c: what callers may do with streams of their own. */
#include "core/stream/stream.h"

#include "base/clock.h"
#include "stream_fixture.h"
#include "test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void count(void *data)
{
    ++*(int *)data;
}

TEST(a_new_stream_is_empty_open_and_has_a_file_of_its_own)
{
    struct core *core = stream_core();
    struct stream_label label = {"team", "a"};
    struct stream_request request = {.name = "n",
                                     .metadata = "{\"team\":\"a\"}",
                                     .headers = "{}",
                                     .labels = &label,
                                     .n_labels = 1,
                                     .ttl_ms = 5000};
    int64_t before = (int64_t)clock_wall_ms();
    autoclear(stream_info) record = {0}, again = {0};
    struct error err = {0};
    struct stat file, folder;

    CHECK_OK(stream_create(core->streams, &one_of_us, &request, &record, &err), err);
    CHECK_STR(record.name, "n");
    CHECK_STR(record.metadata, "{\"team\":\"a\"}");
    CHECK_STR(record.owner.organisation, ORGANISATION);
    CHECK_INT(record.state, STREAM_OPEN);
    CHECK_INT(record.kind, STREAM_USER);
    CHECK(record.expires_at >= before + 5000 &&
          record.expires_at <= (int64_t)clock_wall_ms() + 5000);
    char path[256];
    (void)snprintf(path, sizeof path, "%s", stream_file(record.id));
    CHECK(stat(path, &file) == 0);
    CHECK_INT(file.st_mode, S_IFREG | 0600);
    CHECK_INT(file.st_size, 0);
    *strrchr(path, '/') = '\0';
    CHECK(stat(path, &folder) == 0);
    CHECK_INT(folder.st_mode, S_IFDIR | 0700);
    CHECK_OK(stream_get(core->streams, &one_of_us, record.id, &again, &err), err);
    CHECK_STR(again.headers, "{}");
    stream_core_end();
}

TEST(a_stream_is_kept_as_long_as_such_streams_are_or_not_for_ever)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    struct stream_request request = {.name = "n", .ttl_ms = INT64_MAX};
    int64_t now = (int64_t)clock_wall_ms();
    autoclear(stream_info) record = {0};
    struct error err = {0};

    CHECK(row_number(core, "expires_at", id) <= now + KEEP_MS);
    CHECK(row_number(core, "expires_at", id) > now + KEEP_MS - 60000);
    CHECK_OK(stream_create(core->streams, &one_of_us, &request, &record, &err), err);
    CHECK(record.expires_at > now + KEEP_MS);
    stream_core_end();
}

TEST(what_is_appended_is_there_for_readers_and_they_are_told)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    struct error err = {0};
    int told = 0;
    struct watch *watch = hub_watch(core->hub, id, count, &told);

    append(core, id, "one ");
    autoptr(stream) stream = NULL;
    CHECK_OK(stream_open(core->streams, id, &stream, &err), err);
    CHECK_STR(content_of(stream), "one ");
    append(core, id, "two");
    append(core, id, "");
    CHECK_STR(content_of(stream), "one two");
    CHECK(!progress_of(stream).is_complete);
    CHECK_INT(told, 3);
    CHECK_OK(stream_complete(core->streams, &one_of_us, id, &err), err);
    CHECK_INT(told, 4);
    CHECK(progress_of(stream).is_complete);
    CHECK_INT(progress_of(stream).size_bytes, 7);
    watch_free(watch);
    stream_free(take(stream));
    stream_core_end();
}

TEST(a_complete_stream_stays_so_and_takes_no_more)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    struct error err = {0};

    append(core, id, "all");
    CHECK_OK(stream_complete(core->streams, &one_of_us, id, &err), err);
    CHECK_OK(stream_complete(core->streams, &one_of_us, id, &err), err);
    CHECK(stream_append(core->streams, &one_of_us, id, "x", 1, &err) < 0);
    CHECK_INT(err.reason, ERROR_COMPLETE);
    CHECK_STR(err.noun, "stream");
    CHECK_INT(err.reason, ERROR_COMPLETE);
    core = stream_core_again();
    autoptr(stream) stream = NULL;
    CHECK_OK(stream_open(core->streams, id, &stream, &err), err);
    CHECK_STR(content_of(stream), "all");
    CHECK(progress_of(stream).is_complete);
    CHECK_INT(row_number(core, "size_bytes", id), 3);
    CHECK(row_number(core, "completed_at", id) > 0);
    stream_free(take(stream));
    stream_core_end();
}

static void check_missing(int result, const struct error *err)
{
    CHECK(result < 0);
    CHECK_INT(error_kind(err), ERROR_NOT_FOUND);
    CHECK_STR(err->noun, "stream");
}

TEST(strangers_may_read_what_they_know_of_and_nothing_else)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    autoclear(stream_info) record = {0};
    struct error err = {0};

    append(core, id, "mine");
    check_missing(stream_append(core->streams, &stranger, id, "x", 1, &err), &err);
    check_missing(stream_complete(core->streams, &stranger, id, &err), &err);
    check_missing(stream_remove(core->streams, &stranger, id, &err), &err);
    check_missing(stream_get(core->streams, &stranger, id, &record, &err), &err);
    autoptr(stream) stream = NULL;
    CHECK_OK(stream_open(core->streams, id, &stream, &err), err);
    CHECK_STR(content_of(stream), "mine");
    stream_free(take(stream));
    stream_core_end();
}

TEST(ids_that_are_none_are_not_found)
{
    static const char *const ids[] = {"",
                                      "x",
                                      "../../../etc/passwd",
                                      "00/../../burrow.db",
                                      "zzzzzzzzzzzzzzzzzzzzzzzzzz",
                                      "ZZZZZZZZZZZZZZZZZZZZZZZZZZ"};
    struct core *core = stream_core();
    struct stream *stream = NULL;
    autoclear(stream_info) record = {0};
    struct error err = {0};

    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        check_missing(stream_open(core->streams, ids[i], &stream, &err), &err);
        check_missing(stream_append(core->streams, &one_of_us, ids[i], "x", 1, &err), &err);
        check_missing(stream_complete(core->streams, &one_of_us, ids[i], &err), &err);
        check_missing(stream_remove(core->streams, &one_of_us, ids[i], &err), &err);
        check_missing(stream_get(core->streams, &one_of_us, ids[i], &record, &err), &err);
        CHECK(!stream_open_quick(core->streams, ids[i]));
    }
    CHECK_STR(err.text, "there is no stream 'ZZZZZZZZZZZZZZZZZZZZZZZZZZ'");
    stream_core_end();
}

TEST(a_stream_has_a_limit_and_past_it_nothing_is_taken)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    autofree char *bytes = calloc(1, STREAM_LIMIT);
    struct error err = {0};
    autoclear(stream_info) record = {0};

    CHECK_OK(stream_append(core->streams, &one_of_us, id, bytes, STREAM_LIMIT - 2, &err), err);
    CHECK(stream_append(core->streams, &one_of_us, id, bytes, 3, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK_INT(err.reason, ERROR_LIMIT);
    CHECK(stream_append(core->streams, &one_of_us, id, bytes, SIZE_MAX, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK_OK(stream_get(core->streams, &one_of_us, id, &record, &err), err);
    CHECK_INT(record.size_bytes, STREAM_LIMIT - 2);
    CHECK_OK(stream_append(core->streams, &one_of_us, id, bytes, 2, &err), err);
    stream_core_end();
}

TEST(a_removed_stream_ends_its_readers_and_is_gone)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    struct stream *none = NULL;
    struct error err = {0};
    int told = 0;

    append(core, id, "bytes");
    autoptr(stream) reader = NULL;
    CHECK_OK(stream_open(core->streams, id, &reader, &err), err);
    struct watch *watch = hub_watch(core->hub, id, count, &told);
    CHECK_OK(stream_remove(core->streams, &one_of_us, id, &err), err);
    CHECK_INT(told, 1);
    CHECK(progress_of(reader).is_complete);
    CHECK_STR(content_of(reader), "bytes");
    for (int round = 0; round < 2; round++) { // while it is still read, and after
        check_missing(stream_open(core->streams, id, &none, &err), &err);
        CHECK(!stream_open_quick(core->streams, id));
        check_missing(stream_append(core->streams, &one_of_us, id, "x", 1, &err), &err);
        check_missing(stream_complete(core->streams, &one_of_us, id, &err), &err);
        check_missing(stream_remove(core->streams, &one_of_us, id, &err), &err);
        watch_free(take(watch));
        stream_free(take(reader));
    }
    CHECK(access(stream_file(id), F_OK) < 0);
    CHECK_INT(fixture_number(core->store, "SELECT count(*) FROM streams"), 0);
    stream_core_end();
}

TEST(a_stream_whose_file_is_missing_can_only_be_removed)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    struct stream *none = NULL;
    struct error err = {0};

    CHECK(unlink(stream_file(id)) == 0);
    check_missing(stream_open(core->streams, id, &none, &err), &err);
    check_missing(stream_append(core->streams, &one_of_us, id, "x", 1, &err), &err);
    CHECK_OK(stream_remove(core->streams, &one_of_us, id, &err), err);
    CHECK_INT(fixture_number(core->store, "SELECT count(*) FROM streams"), 0);
    stream_core_end();
}

TEST(a_stream_that_somebody_holds_is_opened_from_memory)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    struct error err = {0};

    CHECK(!stream_open_quick(core->streams, id));
    autoptr(stream) first = NULL;
    autoptr(stream) second = NULL;
    CHECK_OK(stream_open(core->streams, id, &first, &err), err);
    CHECK_OK(stream_open(core->streams, id, &second, &err), err);
    autoptr(stream) third = stream_open_quick(core->streams, id);
    CHECK(first == second && second == third);
    CHECK_STR(stream_id(first), id);
    stream_free(take(first));
    stream_free(stream_ref(second));
    stream_free(take(second));
    CHECK(stream_open_quick(core->streams, id) == third);
    stream_free(third);
    stream_free(take(third));
    CHECK(!stream_open_quick(core->streams, id));
    stream_core_end();
}

TEST(lists_tell_sizes_of_now)
{
    struct core *core = stream_core();
    const char *id = new_stream(core), *held_id = new_stream(core), *done = new_stream(core);
    struct stream_filter filter = {.page = {10, 0}};
    autoptr(stream) held = NULL;
    autoclear(stream_infos) list = {0};
    struct error err = {0};

    append(core, id, "1");
    CHECK_OK(stream_open(core->streams, held_id, &held, &err), err);
    append(core, held_id, "22");
    append(core, done, "333");
    CHECK_OK(stream_complete(core->streams, &one_of_us, done, &err), err);
    CHECK_OK(stream_list(core->streams, &one_of_us, &filter, &list, &err), err);
    CHECK_INT(list.total, 3);
    for (size_t i = 0; i < list.count; i++)
        CHECK_INT(list.items[i].size_bytes, strcmp(list.items[i].id, id) == 0        ? 1
                                            : strcmp(list.items[i].id, held_id) == 0 ? 2
                                                                                     : 3);
    autoclear(stream_infos) none = {0};
    CHECK_OK(stream_list(core->streams, &stranger, &filter, &none, &err), err);
    CHECK_INT(none.total, 0);
    stream_free(take(held));
    stream_core_end();
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes == RLIM_INFINITY ? limit.rlim_max : bytes;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

TEST(an_append_that_does_not_fit_leaves_nothing)
{
    struct core *core = stream_core();
    const char *id = new_stream(core);
    autofree char *bytes = calloc(1, 3 << 20);
    struct error err = {0};
    struct stat status;

    (void)signal(SIGXFSZ, SIG_IGN); // as the server does: then it is EFBIG
    append(core, id, "kept");
    limit_files(2 << 20);
    int result = stream_append(core->streams, &one_of_us, id, bytes, 3 << 20, &err);
    limit_files(RLIM_INFINITY);
    CHECK(result < 0);
    CHECK_INT(err.reason, ERROR_SYSTEM);
    CHECK(strstr(err.text, "File too large"));
    CHECK(stat(stream_file(id), &status) == 0);
    CHECK_INT(status.st_size, 4);
    append(core, id, " more");
    autoptr(stream) stream = NULL;
    CHECK_OK(stream_open(core->streams, id, &stream, &err), err);
    CHECK_STR(content_of(stream), "kept more");
    stream_free(take(stream));
    stream_core_end();
}

/* In a mount namespace of its own, with a small spool. A sentence about what happened. */
static const char *fill_small_spool(const char *spool)
{
    static char bytes[2 << 20];
    autoclear(stream_info) record = {0};
    struct error err = {0};

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("small", spool, "tmpfs", 0, "size=1m,mode=0700") < 0)
        return errno == EPERM ? "skip" : strerror(errno);
    struct core *core = stream_core_again();
    const char *id = new_stream(core);
    if (stream_append(core->streams, &one_of_us, id, "kept", 4, &err) < 0)
        return "nothing can be appended";
    if (stream_append(core->streams, &one_of_us, id, bytes, sizeof bytes, &err) == 0)
        return "more fits than there is room";
    if (!error_is(&err, ERROR_NO_SPACE) || !strstr(err.text, "No space left on device"))
        return "the error does not say that the disk is full";
    if (stream_append(core->streams, &one_of_us, id, " more", 5, &err) < 0)
        return "there is no room although the large append was refused";
    if (stream_get(core->streams, &one_of_us, id, &record, &err) < 0 || record.size_bytes != 9)
        return "not exactly what was taken is there";
    stream_core_end();
    return "ok";
}

TEST(a_full_disk_is_a_clear_refusal)
{
    char spool[256], said[128] = "";
    int ends[2];

    if (geteuid() != 0)
        SKIP("needs root, to mount a small file system");
    (void)snprintf(spool, sizeof spool, "%s/spool", stream_core()->settings.data_dir);
    stream_core_end();
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        const char *text = fill_small_spool(spool);
        (void)!write(ends[1], text, strlen(text));
        _exit(0);
    }
    (void)close(ends[1]);
    (void)!read(ends[0], said, sizeof said - 1);
    (void)close(ends[0]);
    CHECK(waitpid(child, NULL, 0) == child);
    if (strcmp(said, "skip") == 0)
        SKIP("root may not mount here");
    CHECK_STR(said, "ok");
}
