/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals and inputs that PID 1 holds: what they show is spooled, what is sent into them arrives, and owners may change. */
#include "base/auto.h"
#include "base/disk.h"
#include "base/fd.h"
#include "box_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct terminal {
    uint32_t id;
    int spool;
};

static void start_in(struct box *box, struct process_spec *spec, const char *command)
{
    char words[256];
    const char *argv[64];
    struct error err = {0};

    (void)snprintf(words, sizeof words, "%s", command);
    split_words(words, argv);
    spec->command.argv = argv;
    CHECK_OK(box_spawn(box, spec, NULL, &err), err);
}

static struct terminal open_terminal(struct box *box, uint64_t cap_bytes, const char *command)
{
    struct terminal t = {.id = next_id(), .spool = memfd_create("spool", MFD_CLOEXEC)};
    struct process_spec spec = {.id = t.id,
                                .output = OUTPUT_TTY_SPOOL,
                                .stdin_fd = -1,
                                .stdout_fd = t.spool,
                                .stderr_fd = -1,
                                .rows = 30,
                                .cols = 100,
                                .output_cap_bytes = cap_bytes};

    start_in(box, &spec, command);
    return t;
}

/* One with an open input, and a file for what it writes. */
static struct terminal open_command(struct box *box, const char *command)
{
    struct terminal t = {.id = next_id(), .spool = memfd_create("spool", MFD_CLOEXEC)};
    struct process_spec spec = {.id = t.id,
                                .output = OUTPUT_SPOOL,
                                .stdin_fd = -1,
                                .has_input = true,
                                .stdout_fd = t.spool,
                                .stderr_fd = -1};

    start_in(box, &spec, command);
    return t;
}

static const char *text_of(const struct terminal *t)
{
    static char text[65536];
    ssize_t got = pread(t->spool, text, sizeof text - 1, 0);
    CHECK(got >= 0);
    text[got] = '\0';
    return text;
}

static void await_text(const struct terminal *t, const char *text)
{
    AWAIT(strstr(text_of(t), text));
}

static int open_input(struct box *box, const struct terminal *t)
{
    struct error err = {0};
    int fd = -1;

    CHECK_OK(box_open_input(box, t->id, &fd, &err), err);
    return fd;
}

static void type(int fd, const char *text)
{
    CHECK_INT(send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL), strlen(text));
}

static void check_no_input(struct box *box, uint32_t id)
{
    struct error err = {0};
    int fd = -1;

    CHECK(box_open_input(box, id, &fd, &err) < 0);
    CHECK_INT(err.reason, ERROR_COMPLETE);
    CHECK_INT(fd, -1);
}

BOX_TEST(what_a_terminal_shows_is_spooled_and_counted)
{
    struct box *box = launch_plain();
    struct terminal t = open_terminal(box, 0, "tty");
    struct process_exit exit = finish(box, t.id);
    CHECK_INT(exit.code, 0);
    CHECK(strstr(text_of(&t), "isatty 111\r\ncontrolling 1 foreground 1\r\nsize 30x100\r\n"));
    CHECK_INT(exit.stdout_bytes, strlen(text_of(&t)));
    CHECK(!exit.is_truncated);
    (void)close(t.spool);
    t = open_terminal(box, 0, "fds");
    CHECK_INT(finish(box, t.id).code, 0);
    CHECK_STR(text_of(&t), "0 1 2 \r\n");
    (void)close(t.spool);
}

BOX_TEST(what_is_sent_is_typed_and_an_end_is_ctrl_d)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct terminal t = open_terminal(box, 0, "cat");
    autofd input = open_input(box, &t);
    type(input, "hello\n");
    await_text(&t, "hello\r\nhello\r\n"); // its echo, and cat's
    type(input, "there\n");
    CHECK_OK(box_end_input(box, t.id, &err), err);
    CHECK_INT(finish(box, t.id).code, 0);
    CHECK(strstr(text_of(&t), "there\r\n"));
    CHECK(send(input, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0);
    check_no_input(box, t.id);
    (void)close(t.spool);
}

BOX_TEST(control_characters_signal_the_foreground_and_sizes_are_told)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct terminal t = open_terminal(box, 0, "catch 3");
    autofd input = open_input(box, &t);
    await_text(&t, "ready\r\n");
    type(input, "\003");
    await_text(&t, "got 2"); // the echo of ^C may come before the end of its line
    CHECK_OK(box_resize(box, t.id, 50, 132, &err), err);
    await_text(&t, "got 28 size 50x132");
    CHECK_OK(box_signal(box, t.id, SIGHUP, false, &err), err);
    await_text(&t, "got 1\r\n");
    CHECK_INT(finish(box, t.id).code, 0);
    (void)close(t.spool);
}

BOX_TEST(a_command_reads_an_open_input_to_its_end)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct terminal t = open_command(box, "cat");
    autofd input = open_input(box, &t);
    type(input, "one\n");
    await_text(&t, "one\n");
    type(input, "two\n");
    CHECK_OK(box_end_input(box, t.id, &err), err);
    CHECK_INT(finish(box, t.id).code, 0);
    CHECK_STR(text_of(&t), "one\ntwo\n");
    (void)close(t.spool);
    t = open_command(box, "cat"); // ended before anything was sent
    CHECK_OK(box_end_input(box, t.id, &err), err);
    CHECK_INT(finish(box, t.id).code, 0);
    (void)close(t.spool);
}

BOX_TEST(who_has_no_input_says_so)
{
    struct box *box = launch_plain();
    struct error err = {0};
    uint32_t id = start_ready(box, NULL, "sleep 1000");
    check_no_input(box, id);
    check_no_input(box, 4711);
    CHECK_OK(box_end_input(box, id, &err), err);
    CHECK_OK(box_end_input(box, 4711, &err), err);
    CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
    (void)finish(box, id);
}

/* All that goes in while nobody reads. Lines, because of one that has no end a terminal forgets the rest. */
static size_t fill(int fd)
{
    static char data[4096];
    size_t all = 0;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = i % 64 == 63 ? '\n' : 'a';
    for (int refused = 0; refused < 30;) { // PID 1 moves some of it on
        ssize_t sent = send(fd, data, sizeof data, MSG_DONTWAIT | MSG_NOSIGNAL);
        CHECK(sent > 0 || errno == EAGAIN);
        all += sent > 0 ? (size_t)sent : 0;
        CHECK(all < 1 << 20);
        refused = sent < 0 ? refused + 1 : 0;
        if (sent < 0)
            nap();
    }
    return all;
}

static uint64_t cpu_ticks(pid_t pid)
{
    char path[32], text[512] = "";
    unsigned long user = 0, kernel = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    CHECK_INT(sscanf(strrchr(text, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                     &user, &kernel),
              2);
    return user + kernel;
}

static void check_unread(struct box *box, const struct terminal *t)
{
    struct error err = {0};
    autofd input = open_input(box, t);
    size_t all = fill(input);

    CHECK(all >= BOX_INPUT_BYTES / 2);
    uint64_t before = cpu_ticks(box_pid(box));
    run_well(box, "spin 300");                                  // a while
    CHECK(is_in_vm() || cpu_ticks(box_pid(box)) - before < 20); // there, all takes long
    CHECK_OK(box_signal(box, t->id, SIGKILL, true, &err), err);
    CHECK_INT(finish(box, t->id).code, 137);
    (void)close(t->spool);
}

BOX_TEST(a_process_that_never_reads_costs_nothing_and_blocks_nobody)
{
    struct box *box = launch_plain();
    struct terminal t = open_command(box, "sleep 1000");
    await_text(&t, "ready\n");
    check_unread(box, &t);
    t = open_terminal(box, 0, "sleep 1000");
    await_text(&t, "ready\r\n");
    check_unread(box, &t);
}

BOX_TEST(of_a_flood_the_newest_is_kept_where_it_was)
{
    const uint64_t flood = 6u << 20, cap = 1u << 20;
    struct box *box = launch_plain();
    struct terminal t = open_terminal(box, cap, "bytes 6291456");
    struct process_exit exit = finish(box, t.id);
    struct stat info;
    unsigned char last;

    CHECK_INT(exit.code, 0);
    CHECK(exit.stdout_bytes >= flood); // with a CR before each LF
    CHECK(exit.is_truncated);
    CHECK(!exit.is_output_lost);
    CHECK_INT(fstat(t.spool, &info), 0);
    CHECK_INT((uint64_t)info.st_size, exit.stdout_bytes);
    CHECK((uint64_t)info.st_blocks * 512 <= cap + 4u * DISK_HOLE);
    uint64_t hole = disk_hole_end(t.spool, (uint64_t)info.st_size);
    CHECK(hole > 0 && hole % DISK_HOLE == 0);
    CHECK((uint64_t)info.st_size - hole >= cap + DISK_HOLE);
    CHECK_INT(pread(t.spool, &last, 1, info.st_size - 1), 1);
    CHECK_INT(last, (unsigned char)((flood - 1) * 7 + (flood - 1) / 256));
    (void)close(t.spool);
}

/* The handle of an owner that is gone. */
static void lose(struct box *box)
{
    disown(box);
    box_free(box);
}

static void check_adoption(bool is_terminal)
{
    struct box_spec spec = plain_spec();
    struct error err = {0};
    struct box *second = NULL;

    spec.owner_loss = BOX_STAY;
    struct box *first = launch(&spec);
    struct terminal t = is_terminal ? open_terminal(first, 0, "cat") : open_command(first, "cat");
    int old = open_input(first, &t);
    type(old, "before\n");
    CHECK_OK(box_adopt(engine, box_slot(first), NULL, &second, &err), err);
    own(second);
    autofd input = open_input(second, &t);
    type(input, "after\n"); // waits until the one before is done
    (void)close(old);
    lose(first);
    await_text(&t, "after");
    if (is_terminal)
        CHECK_OK(box_resize(second, t.id, 11, 22, &err), err);
    CHECK_OK(box_end_input(second, t.id, &err), err);
    CHECK_INT(finish(second, t.id).code, 0);
    CHECK(strstr(text_of(&t), "before"));
    CHECK(strstr(text_of(&t), "before") < strstr(text_of(&t), "after"));
    (void)close(t.spool);
    end(second);
}

BOX_TEST(terminals_and_inputs_outlive_their_owner)
{
    check_adoption(true);
    check_adoption(false);
}

BOX_TEST(a_terminal_hangs_up_when_its_process_ends)
{
    struct box *box = launch_plain();
    struct terminal t = open_terminal(box, 0, "linger"); // its child would speak later
    CHECK_INT(finish(box, t.id).code, 3);
    CHECK(strstr(text_of(&t), "parent\r\n"));
    (void)close(t.spool);
}

NOTHING_IS_LEFT_TEST
