/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals made in the box, held from outside. */
#include "base/auto.h"
#include "base/fd.h"
#include "box_fixture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

struct terminal {
    uint32_t id;
    int fd;
    char text[16384]; // all it said
    size_t length;
};

static struct terminal open_terminal(struct box *box, const char *user, const char *command)
{
    char words[256];
    const char *argv[64];
    struct error err = {0};
    struct terminal t = {.id = next_id(), .fd = -1};
    (void)snprintf(words, sizeof words, "%s", command);
    split_words(words, argv);
    struct process_spec spec = {.id = t.id,
                                .command.argv = argv,
                                .command.user = user,
                                .output = OUTPUT_TTY,
                                .stdin_fd = -1,
                                .stdout_fd = -1,
                                .stderr_fd = -1,
                                .rows = 30,
                                .cols = 100};
    CHECK_OK(box_spawn(box, &spec, &t.fd, &err), err);
    CHECK(t.fd >= 0);
    return t;
}

/* False at the end of the terminal. */
static bool read_more(struct terminal *t)
{
    struct pollfd ready = {.fd = t->fd, .events = POLLIN};
    if (poll(&ready, 1, PATIENCE_MS) != 1)
        test_fail(__FILE__, __LINE__, "the terminal only said '%s'", t->text);
    ssize_t got = read(t->fd, t->text + t->length, sizeof t->text - 1 - t->length);
    if (got <= 0)
        return false;
    t->length += (size_t)got;
    return true;
}

static void await_text(struct terminal *t, const char *text)
{
    while (!strstr(t->text, text)) {
        if (!read_more(t))
            test_fail(__FILE__, __LINE__, "the terminal ended with '%s'", t->text);
    }
}

static void await_end(struct terminal *t)
{
    while (read_more(t))
        ;
    closep(&t->fd);
}

static void check_says(const struct terminal *t, const char *words)
{
    if (!strstr(t->text, words))
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", t->text, words);
}

BOX_TEST(a_terminal_is_one_inside_with_size_and_session)
{
    struct box *box = launch_plain();
    struct terminal t = open_terminal(box, NULL, "tty");
    await_end(&t);
    CHECK_INT(finish(box, t.id).code, 0);
    check_says(&t, "isatty 111\r\ncontrolling 1 foreground 1\r\nsize 30x100\r\n");
    check_says(&t, "name /dev/pts/ owner 0 mode 620 access 0\r\n");
}

BOX_TEST(a_users_terminal_is_the_users)
{
    struct box *box = launch_plain();
    struct terminal t = open_terminal(box, "kim", "tty");
    await_end(&t);
    CHECK_INT(finish(box, t.id).code, 0);
    check_says(&t, "owner 1000 mode 620 access 0\r\n");
}

BOX_TEST(a_process_with_a_terminal_has_fds_0_to_2_only)
{
    struct box *box = launch_plain();
    struct terminal t = open_terminal(box, NULL, "fds");
    await_end(&t);
    CHECK_STR(t.text, "0 1 2 \r\n");
    CHECK_INT(finish(box, t.id).code, 0);
}

BOX_TEST(a_new_size_is_told_with_a_signal)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct terminal t = open_terminal(box, NULL, "catch 2");
    await_text(&t, "ready\r\n");
    CHECK_OK(box_resize(box, t.id, 50, 132, &err), err);
    await_text(&t, "got 28 size 50x132\r\n");
    CHECK_OK(box_resize(box, t.id, 24, 80, &err), err);
    await_text(&t, "got 28 size 24x80\r\n");
    await_end(&t);
    CHECK_INT(finish(box, t.id).code, 0);
}

BOX_TEST(ctrl_c_reaches_the_foreground)
{
    struct box *box = launch_plain();
    struct terminal t = open_terminal(box, NULL, "sleep 1000");
    await_text(&t, "ready\r\n");
    CHECK_INT(write(t.fd, "\003", 1), 1);
    struct process_exit exit = finish(box, t.id);
    CHECK_INT(exit.code, 128 + SIGINT);
    await_end(&t);
    t = open_terminal(box, NULL, "catch 2");
    await_text(&t, "ready\r\n");
    CHECK_INT(write(t.fd, "\003", 1), 1);
    await_text(&t, "got 2\r\n");
    CHECK_INT(write(t.fd, "\034", 1), 1);
    await_text(&t, "got 3\r\n");
    await_end(&t);
    CHECK_INT(finish(box, t.id).code, 0);
}

BOX_TEST(what_is_typed_arrives_and_ctrl_d_ends_it)
{
    struct box *box = launch_plain();
    struct terminal t = open_terminal(box, NULL, "cat");
    CHECK_INT(write(t.fd, "hello\n", 6), 6);
    await_text(&t, "hello\r\nhello\r\n"); // its echo, and cat's
    CHECK_INT(write(t.fd, "\004", 1), 1);
    CHECK_INT(finish(box, t.id).code, 0);
    await_end(&t);
}

BOX_TEST(closing_the_terminal_hangs_up)
{
    struct box *box = launch_plain();
    struct error err = {0};
    struct terminal t = open_terminal(box, NULL, "sleep 1000");
    await_text(&t, "ready\r\n");
    closep(&t.fd);
    // PID 1 has a copy of the master for resizing: nobody hung up yet
    CHECK_OK(box_resize(box, t.id, 10, 10, &err), err);
    run_well(box, "exit 0");
    CHECK_OK(box_signal(box, t.id, SIGHUP, false, &err), err);
    CHECK_INT(finish(box, t.id).code, 128 + SIGHUP);
}

BOX_TEST(terminals_open_while_others_end_and_talk)
{
    struct box *box = launch_plain();
    uint32_t quick[20];
    struct terminal t[20];
    for (int i = 0; i < 20; i++) { // news of these are on their way when a terminal is asked for
        quick[i] = start(box, NULL, "echo quick");
        t[i] = open_terminal(box, i % 2 ? "kim" : NULL, "tty");
    }
    for (int i = 0; i < 20; i++) {
        await_end(&t[i]);
        check_says(&t[i], "isatty 111");
        CHECK_INT(finish(box, t[i].id).code, 0);
        CHECK_INT(finish(box, quick[i]).code, 0);
    }
}

BOX_TEST(a_terminal_for_nobody_is_no_terminal)
{
    struct box *box = launch_plain();
    struct error err = {0};
    const char *const argv[] = {"guest", "tty", NULL};
    struct process_spec spec = {
        .id = 7, .command.argv = argv, .command.user = "nobody-known", .output = OUTPUT_TTY};
    int fd = 99;
    CHECK_OK(box_spawn(box, &spec, &fd, &err), err);
    CHECK_INT(fd, -1);
    CHECK_INT(finish(box, 7).code, 126);
    spec.command.user = NULL;
    spec.command.argv = (const char *const[]){"nothing-here", NULL};
    CHECK_OK(box_spawn(box, &spec, &fd, &err), err);
    CHECK_INT(finish(box, 7).code, 127);
    (void)close(fd);
}

NOTHING_IS_LEFT_TEST
