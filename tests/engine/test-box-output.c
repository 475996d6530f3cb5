/* SPDX-License-Identifier: Apache-2.0 */
/* Output that PID 1 appends to spools: every byte, counted, capped, stamped, and after the process's end too. */
#include "base/auto.h"
#include "box_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_pattern(const char *text, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if ((unsigned char)text[i] != (unsigned char)(i * 7 + i / 256))
            test_fail(__FILE__, __LINE__, "byte %llu is wrong", (unsigned long long)i);
    }
}

BOX_TEST(a_spool_gets_every_byte_and_the_count_is_told)
{
    struct box *box = launch_plain();
    static const uint64_t counts[] = {0, 1, 4095, 65537, 1 << 20, 20000001};
    for (unsigned i = 0; i < ARRAY_SIZE(counts); i++) {
        char command[32];
        (void)snprintf(command, sizeof command, "bytes %llu", (unsigned long long)counts[i]);
        uint32_t id = start(box, NULL, command);
        struct process_exit exit = finish(box, id);
        CHECK_INT(exit.code, 0);
        CHECK_INT(exit.stdout_bytes, counts[i]);
        CHECK_INT(exit.stderr_bytes, 0);
        CHECK(!exit.is_truncated);
        CHECK_INT(output_size(id), counts[i]);
        check_pattern(output_of(id), counts[i]);
    }
}

BOX_TEST(stdout_and_stderr_are_spooled_apart)
{
    struct box *box = launch_plain();
    uint32_t id = start(box, NULL, "both one two three four");
    struct process_exit exit = finish(box, id);
    CHECK_STR(output_of(id), "one\nthree\n");
    CHECK_STR(errors_of(id), "two\nfour\n");
    CHECK_INT(exit.stdout_bytes, 10);
    CHECK_INT(exit.stderr_bytes, 9);
}

static int open_spool(void)
{
    int fd = memfd_create("spool", MFD_CLOEXEC);
    CHECK(fd > 0);
    return fd;
}

static const char *text_of(int fd)
{
    static char text[65536];
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    CHECK(got >= 0);
    text[got] = '\0';
    return text;
}

BOX_TEST(one_spool_for_both_keeps_their_order)
{
    struct box *box = launch_plain();
    autofd both = open_spool();
    struct process_spec how = {.stdout_fd = both, .stderr_fd = both};
    struct process_exit exit = run_as(box, &how, "both one two three four");
    CHECK_STR(text_of(both), "one\ntwo\nthree\nfour\n");
    CHECK_INT(exit.stdout_bytes + exit.stderr_bytes, 19);
}

BOX_TEST(a_spool_that_holds_something_is_appended_to)
{
    struct box *box = launch_plain();
    autofd spool = open_spool();
    struct process_spec how = {.stdout_fd = spool};
    CHECK_INT(write(spool, "before\n", 7), 7);
    CHECK_INT(run_as(box, &how, "echo after").stdout_bytes, 6);
    CHECK_INT(run_as(box, &how, "echo later").stdout_bytes, 6);
    CHECK_STR(text_of(spool), "before\nafter\nlater\n");
}

BOX_TEST(past_the_cap_output_is_dropped_counted_and_told)
{
    struct box *box = launch_plain();
    struct process_spec how = {.output_cap_bytes = 1000};
    uint32_t id = start(box, &how, "bytes 5000000");
    struct process_exit exit = finish(box, id);
    CHECK_INT(exit.code, 0);
    CHECK_INT(exit.stdout_bytes, 5000000);
    CHECK(exit.is_truncated);
    CHECK_INT(output_size(id), 1000);
    check_pattern(output_of(id), 1000);
    id = start(box, &how, "bytes 1000");
    exit = finish(box, id);
    CHECK(!exit.is_truncated);
    CHECK_INT(output_size(id), 1000);
}

/* "2026-01-02T03:04:05.678Z " before every line. */
static const char *skip_stamp(const char *line)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ ";
    for (const char *at = form; *at; at++, line++) {
        if (*at == 'd' ? *line < '0' || *line > '9' : *line != *at)
            test_fail(__FILE__, __LINE__, "'%.30s' begins with no time", line);
    }
    return line;
}

BOX_TEST(each_line_begins_with_its_time_where_asked)
{
    struct box *box = launch_plain();
    struct process_spec how = {.has_timestamps = true};
    uint32_t id = start(box, &how, "lines 5000");
    struct process_exit exit = finish(box, id);
    const char *at = output_of(id);
    size_t produced = 0;
    for (int i = 0; i < 5000; i++) {
        char want[32];
        int length = snprintf(want, sizeof want, "line %d\n", i);
        at = skip_stamp(at);
        CHECK(strncmp(at, want, (size_t)length) == 0);
        at += length;
        produced += (size_t)length;
    }
    CHECK_STR(at, "");
    CHECK_INT(exit.stdout_bytes, produced);
}

BOX_TEST(a_child_may_go_on_writing_after_its_parents_end)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct process_exit exit;
    struct box_event event = {0};
    uint32_t id = start(box, NULL, "linger");
    // not box_wait: collecting would end the child
    while (event.kind != BOX_EVENT_EXIT)
        CHECK_OK(box_next(box, &event, PATIENCE_MS, &err), err);
    exit = event.exit;
    CHECK_INT(exit.code, 3);
    await_output(id, "parent\nchild\n");
    CHECK_OK(box_collect(box, id, &err), err);
}

BOX_TEST(growing_output_is_news)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct box_event event;
    int in[2];
    CHECK(pipe2(in, O_CLOEXEC) == 0);
    uint32_t id = start(box, &(struct process_spec){.stdin_fd = in[0]}, "cat");
    (void)close(in[0]);
    for (uint64_t told = 0, sent = 1; sent <= 5; sent++) {
        CHECK_INT(write(in[1], "x", 1), 1);
        while (told < sent) {
            CHECK_OK(box_next(box, &event, PATIENCE_MS, &err), err);
            CHECK_INT(event.kind, BOX_EVENT_OUTPUT);
            CHECK_INT(event.id, id);
            told = event.stdout_bytes;
        }
        CHECK_INT(told, sent);
    }
    (void)close(in[1]);
    CHECK_INT(finish(box, id).stdout_bytes, 5);
}

BOX_TEST(many_processes_spool_at_once)
{
    struct box *box = launch_plain();
    unsigned count = is_in_vm() ? 20 : 100;
    uint32_t ids[100];
    for (unsigned i = 0; i < count; i++) {
        char command[32];
        (void)snprintf(command, sizeof command, "bytes %u", 200000 + i);
        ids[i] = start(box, NULL, command);
    }
    for (unsigned i = 0; i < count; i++) {
        CHECK_INT(finish(box, ids[i]).stdout_bytes, 200000 + i);
        CHECK_INT(output_size(ids[i]), 200000 + i);
        check_pattern(output_of(ids[i]), 200000 + i);
    }
}

BOX_TEST(a_full_disk_behind_a_spool_loses_output_and_nothing_else)
{
    struct box *box = launch_plain();
    char dir[256];
    char path[300];
    (void)snprintf(dir, sizeof dir, "%s/small", data_dir);
    CHECK(mkdir(dir, 0700) == 0 && mount("tmpfs", dir, "tmpfs", 0, "size=64k") == 0);
    (void)snprintf(path, sizeof path, "%s/spool", dir);
    int spool = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    (void)umount2(dir, MNT_DETACH); // the file keeps it until closed
    CHECK(spool > 0);
    struct process_exit exit =
        run_as(box, &(struct process_spec){.stdout_fd = spool}, "bytes 1000000");
    CHECK_INT(exit.code, 0);
    CHECK_INT(exit.stdout_bytes, 1000000);
    CHECK(exit.is_truncated);
    CHECK_INT(lseek(spool, 0, SEEK_END), 64 << 10);
    (void)close(spool);
    run_well(box, "exit 0");
}

BOX_TEST(an_engine_that_does_not_listen_stops_nobody)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct cgroup_usage before;
    struct cgroup_usage after;
    uint32_t ids[60];
    for (unsigned i = 0; i < 60; i++)
        ids[i] = start(box, &(struct process_spec){.output_cap_bytes = 10}, "bytes 3000000");
    // thousands of news that nobody takes: the socket is full, and PID 1 has to wait, not to spin
    uint32_t noisy =
        start(box, &(struct process_spec){.output_cap_bytes = 10}, "bytes 100000000000");
    for (int64_t end = now_ms() + 3000; now_ms() < end;)
        nap();
    CHECK_OK(box_signal(box, noisy, SIGKILL, true, &err), err);
    for (unsigned i = 0; i < 60; i++)
        CHECK_INT(finish(box, ids[i]).stdout_bytes, 3000000);
    CHECK_INT(finish(box, noisy).code, 137);
    CHECK_OK(box_usage(box, &before, &err), err);
    for (int64_t end = now_ms() + 500; now_ms() < end;)
        nap();
    CHECK_OK(box_usage(box, &after, &err), err);
    CHECK(after.cpu_usec - before.cpu_usec < 250000);
}

NOTHING_IS_LEFT_TEST
