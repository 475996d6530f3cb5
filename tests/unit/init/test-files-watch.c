/* SPDX-License-Identifier: Apache-2.0 */
/* Directories that are watched by the file server of PID 1. */
#include "file_rig.h"

#include "base/buffer.h"

#include <poll.h>
#include <stdio.h>

/* What was told so far: "+a -b ~c >d,e !" for created, removed, changed, moved and overflow; directories end with a slash. */
struct told {
    struct buffer text;
    int result;
    struct error err;
};
#define autotold __attribute__((cleanup(told_clear))) struct told

static void told_clear(struct told *told)
{
    buffer_clear(&told->text);
}

static void on_event(void *data, const struct files_event *event)
{
    static const char signs[] = {
        [FILES_STARTED] = '?',    [FILES_CREATED] = '+', [FILES_CHANGED] = '~',
        [FILES_ATTRIBUTES] = '@', [FILES_REMOVED] = '-', [FILES_MOVED] = '>',
        [FILES_OVERFLOW] = '!'};
    struct told *told = data;
    struct error err;

    (void)buffer_addf(&told->text, &err, " %c%s%s%s%s", signs[event->kind], event->path,
                      event->kind == FILES_MOVED ? "," : "", event->second,
                      event->is_directory ? "/" : "");
}

/* Takes events until `want` was told; fails after a minute. */
static void wait_for(struct rig *rig, struct told *told, const char *want)
{
    static uint8_t buffer[FILES_MAX_FRAME];

    for (int i = 0;
         i < 600 && told->result >= 0 && !strstr(told->text.data ? told->text.data : "", want);
         i++) {
        struct pollfd ready = {.fd = rig->conv, .events = POLLIN};
        (void)poll(&ready, 1, 100);
        told->result = files_take_events(rig->conv, buffer, on_event, told, &told->err);
    }
    CHECK(told->text.data && strstr(told->text.data, want));
    if (!told->text.data || !strstr(told->text.data, want))
        printf("# '%s' is not in '%s'\n", want, told->text.data ? told->text.data : "");
}

static void wait_for_end(struct rig *rig, struct told *told)
{
    static uint8_t buffer[FILES_MAX_FRAME];

    for (int i = 0; i < 600 && told->result >= 0; i++) {
        struct pollfd ready = {.fd = rig->conv, .events = POLLIN};
        (void)poll(&ready, 1, 100);
        told->result = files_take_events(rig->conv, buffer, on_event, told, &told->err);
    }
    CHECK(told->result < 0);
}

static void watch(struct rig *rig, const char *path, bool is_recursive)
{
    struct error err = {0};

    CHECK_OK(files_watch(rig->conv, path, is_recursive, 0, &err), err);
}

TEST(files_that_come_change_and_go_are_told)
{
    RIG(rig);
    autotold told = {0};

    put_file(rig.fd, "old", "1", 0644);
    watch(&rig, ".", false);
    put_file(rig.fd, "new", "1", 0644);
    wait_for(&rig, &told, " +new");
    wait_for(&rig, &told, " ~new");
    CHECK(unlinkat(rig.fd, "old", 0) == 0);
    wait_for(&rig, &told, " -old");
    CHECK(fchmodat(rig.fd, "new", 0600, 0) == 0);
    wait_for(&rig, &told, " @new");
    CHECK(mkdirat(rig.fd, "dir", 0755) == 0);
    wait_for(&rig, &told, " +dir/");
}

TEST(what_is_below_is_told_only_when_asked_for)
{
    RIG(rig);
    autotold told = {0};

    CHECK(mkdirat(rig.fd, "dir", 0755) == 0);
    watch(&rig, ".", false);
    put_file(rig.fd, "dir/inner", "1", 0644);
    put_file(rig.fd, "outer", "1", 0644);
    wait_for(&rig, &told, "+outer");
    CHECK(!strstr(told.text.data, "inner"));
}

TEST(directories_below_are_followed_also_those_that_come_later)
{
    RIG(rig);
    autotold told = {0};

    CHECK(mkdirat(rig.fd, "a", 0755) == 0 && mkdirat(rig.fd, "a/b", 0755) == 0);
    watch(&rig, ".", true);
    put_file(rig.fd, "a/b/file", "1", 0644);
    wait_for(&rig, &told, " +a/b/file");
    CHECK(mkdirat(rig.fd, "a/c", 0755) == 0 && mkdirat(rig.fd, "a/c/d", 0755) == 0);
    put_file(rig.fd, "a/c/d/early", "1", 0644); // perhaps before it is looked at
    wait_for(&rig, &told, " +a/c/d/early");
    put_file(rig.fd, "a/c/d/late", "1", 0644);
    wait_for(&rig, &told, " +a/c/d/late");
}

TEST(a_move_is_one_event_and_takes_the_directory_along)
{
    RIG(rig);
    autotold told = {0};

    CHECK(mkdirat(rig.fd, "a", 0755) == 0 && mkdirat(rig.fd, "a/deep", 0755) == 0 &&
          mkdirat(rig.fd, "b", 0755) == 0);
    put_file(rig.fd, "a/x", "1", 0644);
    watch(&rig, ".", true);
    CHECK(renameat(rig.fd, "a/x", rig.fd, "b/y") == 0);
    wait_for(&rig, &told, " >a/x,b/y");
    CHECK(renameat(rig.fd, "a", rig.fd, "b/a2") == 0);
    wait_for(&rig, &told, " >a,b/a2/");
    put_file(rig.fd, "b/a2/deep/file", "1", 0644);
    wait_for(&rig, &told, " +b/a2/deep/file");
}

TEST(what_moves_before_it_was_looked_at_is_found_where_it_is)
{
    RIG(rig);
    autotold told = {0};
    char from[32], to[32], file[64];

    watch(&rig, ".", true);
    for (int i = 0; i < 50; i++) {
        (void)snprintf(from, sizeof from, "a%d", i);
        (void)snprintf(to, sizeof to, "z%d", i);
        (void)snprintf(file, sizeof file, "a%d/b", i);
        CHECK(mkdirat(rig.fd, from, 0755) == 0 && mkdirat(rig.fd, file, 0755) == 0);
        (void)snprintf(file, sizeof file, "a%d/b/c", i);
        put_file(rig.fd, file, "1", 0644);
        CHECK(renameat(rig.fd, from, rig.fd, to) == 0);
        (void)snprintf(file, sizeof file, "z%d/b/d", i);
        put_file(rig.fd, file, "1", 0644);
        (void)snprintf(file, sizeof file, "+z%d/b/d", i);
        wait_for(&rig, &told, file);
        (void)snprintf(file, sizeof file, "%d/b/c", i);
        wait_for(&rig, &told, file);
        told.text.length = 0;
    }
}

TEST(what_moves_out_has_gone_and_what_moves_in_has_come)
{
    RIG(rig);
    autorig other = rig_make();
    autotold told = {0};

    CHECK(mkdirat(rig.fd, "out", 0755) == 0 && mkdirat(other.fd, "in", 0755) == 0);
    put_file(other.fd, "in/file", "1", 0644);
    watch(&rig, ".", true);
    CHECK(renameat(rig.fd, "out", other.fd, "out") == 0);
    wait_for(&rig, &told, " -out/");
    CHECK(renameat(other.fd, "in", rig.fd, "in") == 0);
    wait_for(&rig, &told, " +in/ +in/file");
    put_file(other.fd, "out/unseen", "1", 0644);
    put_file(rig.fd, "in/seen", "1", 0644);
    wait_for(&rig, &told, " +in/seen");
    CHECK(!strstr(told.text.data, "unseen"));
}

TEST(many_writes_to_one_file_are_few_events)
{
    RIG(rig);
    autotold told = {0};
    unsigned count = 0;

    put_file(rig.fd, "log", "", 0644);
    watch(&rig, ".", false);
    autofd fd = openat(rig.fd, "log", O_WRONLY | O_APPEND | O_CLOEXEC);
    for (int i = 0; i < 20000; i++)
        CHECK(write(fd, "x", 1) == 1);
    put_file(rig.fd, "end", "", 0644);
    wait_for(&rig, &told, "+end");
    for (const char *at = told.text.data; (at = strstr(at, "~log")); at++)
        count++;
    CHECK(count >= 1 && count < 2000);
}

TEST(when_too_much_happens_that_is_said_and_watching_goes_on)
{
    autorig rig = rig_make_in("/dev/shm");
    autotold told = {0};
    char name[2][200];

    rig_start(&rig);
    for (int i = 0; i < 2; i++) {
        memset(name[i], 'a' + i, sizeof name[i] - 1); // long ones fill what waits for the asker
        name[i][sizeof name[i] - 1] = '\0';
    }
    CHECK(mkdirat(rig.fd, "dir", 0755) == 0);
    watch(&rig, ".", true);
    for (int i = 0; i < 15000; i++) // nobody takes them meanwhile: more than the kernel keeps
        CHECK(mkdirat(rig.fd, name[i % 2], 0755) == 0 &&
              unlinkat(rig.fd, name[i % 2], AT_REMOVEDIR) == 0);
    wait_for(&rig, &told, " !");
    put_file(rig.fd, "dir/after", "1", 0644);
    wait_for(&rig, &told, " +dir/after");
}

TEST(the_end_of_the_directory_ends_it)
{
    RIG(rig);
    autotold told = {0};

    CHECK(mkdirat(rig.fd, "dir", 0755) == 0);
    watch(&rig, "dir", true);
    CHECK(unlinkat(rig.fd, "dir", AT_REMOVEDIR) == 0);
    wait_for_end(&rig, &told);
    CHECK(error_is(&told.err, ERROR_NOT_FOUND));
}

TEST(so_does_its_moving_away)
{
    RIG(rig);
    autotold told = {0};

    CHECK(mkdirat(rig.fd, "dir", 0755) == 0);
    watch(&rig, "dir", true);
    CHECK(renameat(rig.fd, "dir", rig.fd, "elsewhere") == 0);
    wait_for_end(&rig, &told);
    CHECK(error_is(&told.err, ERROR_NOT_FOUND));
}

TEST(what_cannot_be_watched_is_refused_and_the_conversation_goes_on)
{
    RIG(rig);
    struct error err = {0};
    char name[32];

    put_file(rig.fd, "file", "1", 0644);
    CHECK(files_watch(rig.conv, "missing", false, 0, &err) < 0);
    CHECK(error_is(&err, ERROR_NOT_FOUND));
    CHECK(files_watch(rig.conv, "file", false, 0, &err) < 0);
    CHECK_INT(err.sys, ENOTDIR);
    CHECK(files_watch(rig.conv, "/proc/self", false, 0, &err) < 0);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(name, sizeof name, "d%d", i);
        CHECK(mkdirat(rig.fd, name, 0755) == 0);
    }
    CHECK(files_watch(rig.conv, ".", true, 3, &err) < 0);
    CHECK(error_is(&err, ERROR_LIMIT));
    CHECK(strstr(err.text, "more than 3 directories"));
    CHECK_OK(files_stat(rig.conv, "file", false, NULL, NULL, &err), err);
}

TEST(links_are_not_followed_below)
{
    RIG(rig);
    autorig other = rig_make();
    autotold told = {0};

    CHECK(symlinkat(other.dir, rig.fd, "link") == 0 && symlinkat(".", rig.fd, "loop") == 0);
    watch(&rig, ".", true);
    put_file(other.fd, "secret", "1", 0644);
    CHECK(symlinkat(other.dir, rig.fd, "later") == 0);
    wait_for(&rig, &told, " +later");
    put_file(other.fd, "secret2", "1", 0644);
    put_file(rig.fd, "end", "1", 0644);
    wait_for(&rig, &told, " +end");
    CHECK(!strstr(told.text.data, "secret"));
}

TEST(a_sandbox_has_so_many_watchers_and_no_more)
{
    struct rig rigs[9];
    struct error err = {0};

    for (unsigned i = 0; i < ARRAY_SIZE(rigs); i++) {
        rigs[i] = rig_make();
        rig_start(&rigs[i]);
        int status = files_watch(rigs[i].conv, ".", false, 0, &err);
        CHECK(i < 8 ? status == 0 : status < 0 && error_is(&err, ERROR_LIMIT));
    }
    rig_stop(&rigs[0]); // which waits for its thread
    CHECK_OK(files_watch(rigs[8].conv, ".", false, 0, &err), err);
    for (unsigned i = 0; i < ARRAY_SIZE(rigs); i++)
        rig_clear(&rigs[i]);
}
