/* SPDX-License-Identifier: Apache-2.0 */
/* Files and archives of real sandboxes, among them those that want out. Needs root. */
#include "archive_fixture.h"
#include "base/fd.h"
#include "core/core.h"
#include "core/sandbox/file.h"
#include "core/sandbox/temporary.h"
#include "core_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static char sandbox[ID_TEXT];

static void shell(const char *script)
{
    autoclear(execution_info) started = {0};
    autoclear(execution_info) end = {0};
    start_in(sandbox, EXECUTION_COMMAND, script, &started);
    await_execution(started.id, &end);
    if (end.exit.code != 0)
        test_fail(__FILE__, __LINE__, "'%s' ends with %lld", script, (long long)end.exit.code);
    await_state(sandbox, SANDBOX_IDLE);
}

static int try_write(const char *path, const char *text, struct error *err)
{
    struct sandbox_file file = {.path = path, .data = text, .length = strlen(text)};
    size_t written = 77;
    return file_write(core->sandboxes, &actor, sandbox, &file, 1, &written, err);
}

static void write_file(const char *path, const char *text)
{
    struct error err = {0};
    CHECK_OK(try_write(path, text, &err), err);
}

static int try_read(const char *path, char *text, size_t size, struct error *err)
{
    autoptr(temporary) file = NULL;
    if (file_read(core->sandboxes, &actor, sandbox, path, size - 1, &file, err) < 0)
        return -1;
    CHECK_INT(fd_read_full(file->fd, text, size - 1), file->size);
    text[file->size] = '\0';
    return 0;
}

static int pack(const char *path, enum archive_format format, int *fd, uint64_t *size,
                struct error *err)
{
    autoptr(temporary) file = NULL;
    if (file_pack(core->sandboxes, &actor, sandbox, path, format, &file, err) < 0)
        return -1;
    *fd = take_fd(file->fd);
    *size = file->size;
    return 0;
}

static void check_content(const char *path, const char *want)
{
    char text[4096];
    struct error err = {0};
    CHECK_OK(try_read(path, text, sizeof text, &err), err);
    CHECK_STR(text, want);
}

#define CHECK_ERROR(call, err, want_kind, want_noun)                                               \
    do {                                                                                           \
        CHECK((call) < 0);                                                                         \
        if (error_kind(&(err)) != (want_kind) || !(err).noun ||                                    \
            strcmp((err).noun, (want_noun)) != 0)                                                  \
            test_fail(__FILE__, __LINE__, "%s: reason %d of '%s': %s", #call, (err).reason,        \
                      (err).noun ? (err).noun : "nothing", (err).text);                            \
    } while (0)

static void check_missing(const char *path)
{
    char text[64];
    struct error err = {0};
    CHECK_ERROR(try_read(path, text, sizeof text, &err), err, ERROR_NOT_FOUND, "file");
}

CORE_TEST(files_are_written_read_and_listed)
{
    struct error err = {0};
    char text[64];
    size_t written = 77;
    autofiles list = {0};
    make_sandbox(sandbox);

    struct sandbox_file files[] = {
        {"a/b/c", "deep", 4}, {"/home/me/z", "absolute", 8}, {"z/x", "no", 2}, {"never", "no", 2}};
    CHECK_ERROR(file_write(core->sandboxes, &actor, sandbox, files, 4, &written, &err), err,
                ERROR_INVALID, "file");
    CHECK_INT(written, 2);
    check_content("a/b/c", "deep");
    check_content("z", "absolute");
    check_missing("never");
    check_missing("z/x");
    write_file("z", "");
    check_content("./z", "");
    CHECK_ERROR(try_read("a", text, sizeof text, &err), err, ERROR_INVALID, "file");
    CHECK_ERROR(try_write("a", "x", &err), err, ERROR_INVALID, "file");
    CHECK_ERROR(try_write("", "x", &err), err, ERROR_INVALID, "file");

    shell("chmod 640 z; ln -s a/b link; mkfifo fifo; printf '' >'new\nline'");
    CHECK_OK(file_list(core->sandboxes, &actor, sandbox, ".", 100, &list, &err), err);
    CHECK_INT(list.count, 5);
    CHECK_STR(list.entries[0].path, "a");
    CHECK(S_ISDIR(list.entries[0].mode));
    CHECK_STR(list.entries[1].path, "fifo");
    CHECK_STR(list.entries[2].target, "a/b");
    CHECK_STR(list.entries[3].path, "new\nline");
    CHECK_INT(list.entries[4].mode, S_IFREG | 0640);
    CHECK(list.entries[4].mtime_ms > 1700000000000);
    CHECK_ERROR(file_list(core->sandboxes, &actor, sandbox, ".", 4, &list, &err), err, ERROR_LIMIT,
                "file");
    CHECK_ERROR(file_list(core->sandboxes, &actor, sandbox, "nowhere", 4, &list, &err), err,
                ERROR_NOT_FOUND, "file");
    CHECK_ERROR(file_list(core->sandboxes, &actor, sandbox, "z", 4, &list, &err), err,
                ERROR_INVALID, "file");
    CHECK_ERROR(try_read("fifo", text, sizeof text, &err), err, ERROR_INVALID, "file");
    CHECK_ERROR(try_read("/proc/1/environ", text, sizeof text, &err), err, ERROR_DENIED, "file");
}

static void check_removed(const char *path, enum file_removal removal, bool want_found)
{
    struct error err = {0};
    bool is_found = !want_found;
    CHECK_OK(file_remove(core->sandboxes, &actor, sandbox, path, removal, &is_found, &err), err);
    CHECK_INT(is_found, want_found);
}

CORE_TEST(directories_are_made_and_removed_as_asked)
{
    struct error err = {0};
    bool found;
    make_sandbox(sandbox);
    CHECK_OK(file_mkdir(core->sandboxes, &actor, sandbox, "d/e/f", true, &err), err);
    CHECK_OK(file_mkdir(core->sandboxes, &actor, sandbox, "d/e/f", true, &err), err);
    CHECK_OK(file_mkdir(core->sandboxes, &actor, sandbox, ".", true, &err), err);
    CHECK_OK(file_mkdir(core->sandboxes, &actor, sandbox, "/", true, &err), err);
    CHECK_OK(file_mkdir(core->sandboxes, &actor, sandbox, "d/g", false, &err), err);
    CHECK_ERROR(file_mkdir(core->sandboxes, &actor, sandbox, "d/g", false, &err), err,
                ERROR_CONFLICT, "file");
    CHECK_ERROR(file_mkdir(core->sandboxes, &actor, sandbox, "x/y", false, &err), err,
                ERROR_NOT_FOUND, "file");
    write_file("file", "x");
    CHECK_ERROR(file_mkdir(core->sandboxes, &actor, sandbox, "file", true, &err), err,
                ERROR_CONFLICT, "file");
    CHECK_ERROR(file_remove(core->sandboxes, &actor, sandbox, "d", FILE_REMOVE_FILE, &found, &err),
                err, ERROR_INVALID, "file");
    CHECK_ERROR(
        file_remove(core->sandboxes, &actor, sandbox, "d", FILE_REMOVE_DIRECTORY, &found, &err),
        err, ERROR_INVALID, "file");
    CHECK_ERROR(
        file_remove(core->sandboxes, &actor, sandbox, "file", FILE_REMOVE_DIRECTORY, &found, &err),
        err, ERROR_INVALID, "file");
    CHECK_ERROR(
        file_remove(core->sandboxes, &actor, sandbox, "file", FILE_REMOVE_TREE, &found, &err), err,
        ERROR_INVALID, "file");
    check_removed("d/g", FILE_REMOVE_DIRECTORY, true);
    check_removed("d/g", FILE_REMOVE_DIRECTORY, false);
    check_removed("d", FILE_REMOVE_TREE, true);
    check_removed("d", FILE_REMOVE_TREE, false);
    check_removed("file", FILE_REMOVE_FILE, true);
    check_removed("file", FILE_REMOVE_FILE, false);
    check_removed("no/such/file", FILE_REMOVE_FILE, false);
}

static int try_unpack(const struct buffer *archive, const char *path, struct error *err)
{
    autofd fd = file_of(archive);
    return file_unpack(core->sandboxes, &actor, sandbox, path, ARCHIVE_ANY, fd, err);
}

/* A file of the host next to the data directory's files, which no sandbox may see or change. */
static void make_canary(char path[256])
{
    (void)snprintf(path, 256, "%s/canary", core_data_dir);
    autofd fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    CHECK(fd >= 0 && fd_write_all(fd, "outside", 7) == 0 && fchmod(fd, 0666) == 0);
}

static void check_canary(const char *path)
{
    char text[64];
    struct error err = {0};
    CHECK_OK(fd_read_knob(AT_FDCWD, path, text, sizeof text, &err), err);
    CHECK_STR(text, "outside");
}

static void check_link_leads_nowhere(const char *link, const char *target, const char *canary)
{
    char script[700];
    struct error err = {0};
    autobuffer tar = {0};
    (void)snprintf(script, sizeof script, "rm -rf %s; ln -s '%s' %s", link, target, link);
    shell(script);
    check_missing(link);
    (void)try_write(link, "inside", &err); // lands inside, or nowhere
    check_canary(canary);
    tar_add_file(&tar, link, "replaced");
    tar_end(&tar);
    CHECK_OK(try_unpack(&tar, ".", &err), err);
    check_content(link, "replaced"); // the link itself is gone
    check_canary(canary);
}

CORE_TEST(links_that_name_files_of_the_host_lead_to_none)
{
    char canary[256], up[400], proc[400];
    struct error err = {0};
    autofd fd = -1;
    uint64_t size = 0;
    make_sandbox(sandbox);
    make_canary(canary);
    (void)snprintf(up, sizeof up, "../../../../../../../..%s", canary);
    (void)snprintf(proc, sizeof proc, "/proc/1/root%s", canary);
    check_link_leads_nowhere("absolute", canary, canary);
    check_link_leads_nowhere("up", up, canary);
    check_missing(canary);
    check_missing(up);
    char text[64];
    CHECK(try_read(proc, text, sizeof text, &err) < 0);

    char script[700];
    (void)snprintf(script, sizeof script, "mkdir t; ln -s '%s' t/dir; ln -s '%s' t/file",
                   core_data_dir, canary);
    shell(script);
    CHECK_OK(pack("t", ARCHIVE_TAR_GZIP, &fd, &size, &err), err);
    autobuffer archive = {0};
    CHECK_OK(fd_read_buffer(fd, &archive, &err), err);
    autounpacked out;
    struct archive_task task = plain_task();
    unpack(&task, &archive, &out);
    (void)snprintf(script, sizeof script, "120777 dir -> %s\n120777 file -> %s\n", core_data_dir,
                   canary);
    CHECK_STR(out.text.data, script);
    check_removed("t", FILE_REMOVE_TREE, true);
    check_canary(canary);
}

CORE_TEST(archives_that_plant_a_link_and_write_through_it_are_refused)
{
    char canary[256];
    struct error err = {0};
    make_sandbox(sandbox);
    make_canary(canary);
    shell("mkdir safe; echo mine >safe/file");

    autobuffer through = {0}, hard = {0}, up = {0}, device = {0}, none = {0};
    tar_add_file(&through, "before", "1");
    tar_add(&through, &(struct tar_entry){.name = "l", .type = '2', .link = "../safe"});
    tar_add_file(&through, "l/file", "planted");
    tar_add_file(&through, "after", "2");
    tar_end(&through);
    CHECK_ERROR(try_unpack(&through, "in", &err), err, ERROR_DENIED, "file");
    check_content("safe/file", "mine\n");
    check_content("in/before", "1");
    check_missing("in/after");

    tar_add(&hard, &(struct tar_entry){.name = "s", .type = '2', .link = "../safe/file"});
    tar_add(&hard, &(struct tar_entry){.name = "h", .type = '1', .link = "s"});
    tar_end(&hard);
    CHECK_ERROR(try_unpack(&hard, "in", &err), err, ERROR_DENIED, "file");

    tar_add_file(&up, "good", "1");
    tar_add_file(&up, "../safe/file", "planted");
    tar_add_file(&up, "after", "2");
    tar_end(&up);
    gzip(&up);
    CHECK_ERROR(try_unpack(&up, "up", &err), err, ERROR_INVALID, "archive");
    check_content("safe/file", "mine\n");
    check_content("up/good", "1");
    check_missing("up/after");

    tar_add(&device, &(struct tar_entry){.name = "null", .type = '3'});
    tar_end(&device);
    CHECK_ERROR(try_unpack(&device, "dev", &err), err, ERROR_INVALID, "archive");
    CHECK_ERROR(try_unpack(&none, "trace", &err), err, ERROR_INVALID, "archive");
    check_removed("dev", FILE_REMOVE_TREE, false); // nothing was begun for them
    check_removed("trace", FILE_REMOVE_TREE, false);
    check_canary(canary);
}

CORE_TEST(a_directory_comes_back_as_it_went)
{
    struct error err = {0};
    make_sandbox(sandbox);
    shell("mkdir -p t/d/e t/empty; echo one >t/d/run; chmod 750 t/d/run; echo two >t/d/e/two; ln "
          "-s d/run t/link; "
          "ln t/d/run t/hard; mkfifo t/pipe; chmod 4711 t/d/e/two; head -c 3000000 /dev/urandom "
          ">t/big");
    for (int is_zip = 0; is_zip < 2; is_zip++) {
        autofd fd = -1;
        uint64_t size = 0;
        CHECK_OK(pack("t/", is_zip ? ARCHIVE_ZIP : ARCHIVE_TAR_GZIP, &fd, &size, &err), err);
        CHECK(size > 3000000);
        CHECK_OK(file_unpack(core->sandboxes, &actor, sandbox, "back/to", ARCHIVE_ANY, fd, &err),
                 err);
        shell(
            "cmp t/big back/to/big && test $(stat -c %a back/to/d/run) = 750 && test $(readlink "
            "back/to/link) = d/run &&"
            " test -d back/to/empty && test ! -e back/to/pipe && test $(stat -c %a "
            "back/to/d/e/two) = 711 &&"
            " test $(stat -c %u back/to/big) = $(id -u) && cmp back/to/hard t/d/run && rm -r back");
    }
    autofd fd = -1;
    uint64_t size = 0;
    CHECK_ERROR(pack("nowhere", ARCHIVE_ZIP, &fd, &size, &err), err, ERROR_NOT_FOUND, "file");
    CHECK_OK(pack("t/empty", ARCHIVE_ZIP, &fd, &size, &err), err);
    CHECK_OK(file_unpack(core->sandboxes, &actor, sandbox, "none", ARCHIVE_ZIP, fd, &err), err);
    check_removed("none", FILE_REMOVE_DIRECTORY, true);
}

CORE_TEST(what_is_larger_than_allowed_is_refused)
{
    struct error err = {0};
    char text[64];
    autofd fd = -1;
    uint64_t size = 0;
    make_sandbox(sandbox);
    shell("mkdir t; head -c 2000000 /dev/zero >t/big; truncate -s 1T huge");
    core->settings.file_limit_bytes = 1000000;
    CHECK_ERROR(try_read("t/big", text, sizeof text, &err), err, ERROR_LIMIT, "file");
    CHECK_INT(err.reason, ERROR_TOO_LARGE);
    CHECK_ERROR(try_read("huge", text, sizeof text, &err), err, ERROR_LIMIT, "file");
    CHECK_ERROR(pack("t", ARCHIVE_ZIP, &fd, &size, &err), err, ERROR_LIMIT, "file");
    CHECK_INT(err.reason, ERROR_TOO_LARGE);
    CHECK_INT(fd, -1);
    char *large = calloc(1, 1000002);
    CHECK(large);
    memset(large, 'x', 1000001);
    CHECK_ERROR(try_write("x", large, &err), err, ERROR_LIMIT, "file");
    autobuffer tar = {0};
    tar_add(&tar, &(struct tar_entry){.name = "bomb", .content = large, .length = 1000001});
    tar_end(&tar);
    gzip(&tar);
    free(large);
    CHECK_ERROR(try_unpack(&tar, "in", &err), err, ERROR_LIMIT, "archive");
    check_missing("in/bomb");
}

CORE_TEST(sandboxes_that_are_not_there_have_no_files)
{
    struct error err = {0};
    char text[64];
    make_sandbox(sandbox);
    write_file("x", "1");
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, sandbox, &err), err);
    CHECK(try_read("x", text, sizeof text, &err) < 0);
    CHECK_STR(err.noun, "sandbox");
    (void)snprintf(sandbox, sizeof sandbox, "%s", "nonesuch");
    CHECK_ERROR(try_read("x", text, sizeof text, &err), err, ERROR_NOT_FOUND, "sandbox");
    autobuffer tar = {0};
    tar_end(&tar);
    CHECK_ERROR(try_unpack(&tar, ".", &err), err, ERROR_NOT_FOUND, "sandbox");
}

#define WORKERS 6

static void *work(void *data)
{
    char path[32];
    struct error err = {0};
    (void)snprintf(path, sizeof path, "w%d", *(int *)data);
    for (int i = 0; i < 4; i++) {
        autofd fd = -1;
        uint64_t size = 0;
        if (pack("t", i % 2 ? ARCHIVE_ZIP : ARCHIVE_TAR_GZIP, &fd, &size, &err) < 0 ||
            file_unpack(core->sandboxes, &actor, sandbox, path, ARCHIVE_ANY, fd, &err) < 0)
            return strdup(err.text);
    }
    return NULL;
}

CORE_TEST(many_threads_pack_and_unpack_at_once)
{
    pthread_t threads[WORKERS];
    int numbers[WORKERS];
    make_sandbox(sandbox);
    shell("mkdir t; for i in 1 2 3 4 5 6 7 8 9; do seq $i$i$i >t/$i; done");
    for (int i = 0; i < WORKERS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    char *failed = NULL;
    for (int i = 0; i < WORKERS; i++) {
        void *result = NULL;
        CHECK(pthread_join(threads[i], &result) == 0);
        failed = result ? result : failed;
    }
    if (failed)
        test_fail(__FILE__, __LINE__, "%s", failed);
    shell("for i in 0 1 2 3 4 5; do diff -r t w$i || exit 1; done");
}
