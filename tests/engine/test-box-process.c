/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a box: how they are started, what they see of that, and how their ends are told. */
#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "box_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

BOX_TEST(exit_codes_come_back_as_they_are)
{
    struct box *box = launch_plain();
    static const int codes[] = {0, 1, 2, 42, 124, 126, 127, 137, 255};
    for (unsigned i = 0; i < ARRAY_SIZE(codes); i++) {
        char command[32];
        (void)snprintf(command, sizeof command, "exit %d", codes[i]);
        struct process_exit exit = run(box, command);
        CHECK_INT(exit.code, codes[i]);
        CHECK_INT(exit.cause, CAUSE_EXIT);
        CHECK_INT(exit.signal, 0);
        CHECK_STR(exit.text, "");
    }
}

BOX_TEST(a_signal_is_told_as_128_and_its_number)
{
    struct box *box = launch_plain();
    static const int signals[] = {SIGHUP, SIGINT, SIGABRT, SIGKILL, SIGPIPE, SIGTERM, SIGUSR1};
    for (unsigned i = 0; i < ARRAY_SIZE(signals); i++) {
        char command[32];
        (void)snprintf(command, sizeof command, "die %d", signals[i]);
        struct process_exit exit = run(box, command);
        CHECK_INT(exit.code, 128 + signals[i]);
        CHECK_INT(exit.signal, signals[i]);
        CHECK_INT(exit.cause, CAUSE_EXIT);
    }
    struct process_exit exit = run(box, "crash");
    CHECK_INT(exit.code, 128 + SIGSEGV);
    CHECK_INT(exit.cause, CAUSE_EXIT);
}

static struct process_exit run_program(struct box *box, const char *name,
                                       const struct process_spec *how)
{
    const char *const argv[] = {name, NULL};
    return finish(box, start_argv(box, how, argv));
}

static void check_not_run(struct process_exit exit, enum process_cause cause, int sys,
                          const char *words)
{
    CHECK_INT(exit.cause, cause);
    CHECK_INT(exit.code, cause == CAUSE_NOT_FOUND ? 127 : 126);
    CHECK_INT(exit.sys, sys);
    if (!strstr(exit.text, words))
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", exit.text, words);
}

BOX_TEST(a_command_that_is_not_there_is_127_and_named)
{
    struct box *box = launch_plain();
    check_not_run(run_program(box, "nothing-here", NULL), CAUSE_NOT_FOUND, ENOENT,
                  "'nothing-here'");
    check_not_run(run_program(box, "/no/such", NULL), CAUSE_NOT_FOUND, ENOENT, "'/no/such'");
    check_not_run(run_program(box, "/bin/guest/x", NULL), CAUSE_NOT_FOUND, ENOTDIR,
                  "'/bin/guest/x'");
    const char *const env[] = {"PATH=", NULL};
    check_not_run(run_program(box, "guest", &(struct process_spec){.command.env = env}),
                  CAUSE_NOT_FOUND, ENOENT, "'guest'");
}

BOX_TEST(what_cannot_be_executed_is_126_and_says_why)
{
    struct box *box = launch_plain();
    check_not_run(run_program(box, "/etc/text", NULL), CAUSE_NOT_RUN, EACCES, "'/etc/text'");
    check_not_run(run_program(box, "/etc", NULL), CAUSE_NOT_RUN, EACCES, "'/etc'");
    check_not_run(run_as(box, &(struct process_spec){.command.directory = "/etc/text"}, "exit 0"),
                  CAUSE_NOT_RUN, ENOTDIR, "'/etc/text'");
    check_not_run(
        run_as(box, &(struct process_spec){.command.directory = "/proc/self/root/x"}, "exit 0"),
        CAUSE_NOT_RUN, ELOOP, "working directory");
    check_not_run(run_as(box, &(struct process_spec){.command.user = "nobody-known"}, "exit 0"),
                  CAUSE_NOT_RUN, EINVAL, "'nobody-known'");
    check_not_run(run_as(box, &(struct process_spec){.command.user = "99999"}, "exit 0"),
                  CAUSE_NOT_RUN, EINVAL, "'99999'");
    check_not_run(
        run_as(box, &(struct process_spec){.command.user = "kim", .command.directory = "/root/new"},
               "exit 0"),
        CAUSE_NOT_RUN, ENOENT, "'/root/new'");
    run_well(box, "exit 0");
}

BOX_TEST(a_command_without_a_name_is_refused)
{
    struct box *box = launch_plain();
    struct error err = {0};
    const char *const none[] = {NULL};
    const char *const empty[] = {"", NULL};
    struct process_spec spec = {
        .id = 1, .command.argv = none, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    CHECK(box_spawn(box, &spec, NULL, &err) < 0);
    spec.command.argv = empty;
    CHECK(box_spawn(box, &spec, NULL, &err) < 0);
    spec = (struct process_spec){.command.argv = (const char *const[]){"guest", NULL}};
    CHECK(box_spawn(box, &spec, NULL, &err) < 0); // id 0
    run_well(box, "exit 0");
}

BOX_TEST(the_environment_is_the_given_one_with_home_user_and_path_where_missing)
{
    struct box *box = launch_plain();
    const char *const env[] = {"A=1", "B=two words", "EMPTY=", NULL};
    CHECK_INT(run_as(box, &(struct process_spec){.command.env = env}, "env").code, 0);
    CHECK_STR(last_output(), "A=1\nB=two words\nEMPTY=\nHOME=/root\nUSER=root\n"
                             "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
    const char *const all[] = {"HOME=/x", "PATH=/bin", "USER=me", NULL};
    CHECK_INT(run_as(box, &(struct process_spec){.command.env = all}, "env").code, 0);
    CHECK_STR(last_output(), "HOME=/x\nPATH=/bin\nUSER=me\n");
    CHECK_INT(run_as(box, &(struct process_spec){.command.user = "kim"}, "env").code, 0);
    CHECK(strstr(last_output(), "HOME=/home/kim\nUSER=kim\n") != NULL);
    CHECK_INT(run_as(box, &(struct process_spec){.command.user = "4321"}, "env").code, 0);
    CHECK(strstr(last_output(), "HOME=/\n") != NULL);
}

BOX_TEST(the_working_directory_is_made_where_missing_and_is_the_users_home_by_default)
{
    struct box *box = launch_plain();
    run_well(box, "cwd");
    CHECK_STR(last_output(), "/root 0\n");
    CHECK_INT(run_as(box, &(struct process_spec){.command.directory = "/a/b/c"}, "cwd").code, 0);
    CHECK_STR(last_output(), "/a/b/c 0\n");
    CHECK_INT(run_as(box, &(struct process_spec){.command.user = "kim"}, "cwd").code, 0);
    CHECK_STR(last_output(), "/home/kim 1000\n");
    CHECK_INT(
        run_as(box,
               &(struct process_spec){.command.user = "kim", .command.directory = "/home/kim/x/y/"},
               "cwd")
            .code,
        0);
    CHECK_STR(last_output(), "/home/kim/x/y 1000\n");
    CHECK_INT(
        run_as(box,
               &(struct process_spec){.command.user = "kim", .command.directory = "/workspace"},
               "cwd")
            .code,
        0);
}

BOX_TEST(users_are_who_was_asked_for_with_their_groups)
{
    struct box *box = launch_plain();
    static const struct {
        const char *user, *ids;
    } cases[] = {
        {"root", "uid 0 0 0 gid 0 0 0 groups \n"},
        {"kim", "uid 1000 1000 1000 gid 1000 1000 1000 groups 29 \n"},
        {"1000", "uid 1000 1000 1000 gid 1000 1000 1000 groups 29 \n"},
        {"kim:audio", "uid 1000 1000 1000 gid 29 29 29 groups"},
        {"7:9", "uid 7 7 7 gid 9 9 9 groups"},
        {"65534", "uid 65534 65534 65534 gid"},
    };
    run_well(box, "ids");
    CHECK_STR(last_output(), "uid 0 0 0 gid 0 0 0 groups\n");
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct process_exit exit = run_as(
            box, &(struct process_spec){.command.user = cases[i].user, .command.directory = "/"},
            "ids");
        CHECK_INT(exit.code, 0);
        const char *got = last_output();
        if (strncmp(got, cases[i].ids, strlen(cases[i].ids) - 2) != 0)
            test_fail(__FILE__, __LINE__, "'%s' is '%s'", cases[i].user, got);
    }
}

BOX_TEST(a_user_loses_the_capabilities_that_root_has)
{
    struct box *box = launch_plain();
    CHECK_INT(run_as(box, &(struct process_spec){.command.user = "kim"},
                     "grep /proc/self/status CapPrm CapEff CapAmb NoNewPrivs")
                  .code,
              0);
    CHECK_STR(last_output(), "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
                             "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\n");
}

BOX_TEST(a_process_has_fds_0_to_2_and_a_session_of_its_own)
{
    struct box *box = launch_plain();
    run_well(box, "fds");
    CHECK_STR(last_output(), "0 1 2 \n");
    run_well(box, "session");
    CHECK_STR(last_output(), "session own group own\n");
    run_well(box, "grep /proc/self/status Seccomp: NoNewPrivs");
    CHECK_STR(last_output(), "NoNewPrivs:\t1\nSeccomp:\t2\n");
    struct box_spec spec = plain_spec();
    spec.is_one_shot = true;
    spec.owner_loss = BOX_STAY;
    run_well(launch(&spec), "fds");
    CHECK_STR(last_output(), "0 1 2 \n");
}

BOX_TEST(signals_are_the_default_whatever_the_owner_does_with_them)
{
    sigset_t some;
    sigset_t before;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigaddset(&some, SIGCHLD);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGRTMIN + 3, SIG_IGN);
    (void)sigprocmask(SIG_BLOCK, &some, &before);
    struct box *box = launch_plain();
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    (void)signal(SIGRTMIN + 3, SIG_DFL);
    run_well(box, "signals");
    CHECK_STR(last_output(), "done\n");
}

BOX_TEST(guests_are_taken_before_PID_1_when_memory_runs_out)
{
    struct box *box = launch_plain();
    for (int i = 0; i < 20; i++) {
        run_well(box, "cat /proc/self/oom_score_adj");
        CHECK_STR(last_output(), "500\n");
    }
    run_well(box, "await /proc/1/oom_score_adj 0");
}

static char *fill_word(size_t length)
{
    char *word = xcalloc(1, length + 1);
    memset(word, 'w', length);
    word[length] = '\0';
    return word;
}

/* 8 words of 127 KiB: the kernel takes no single one above 128. */
BOX_TEST(arguments_and_environment_of_a_mebibyte_each_arrive)
{
    struct box *box = launch_plain();
    autofree char *word = fill_word(127 << 10);
    autofree char *value = fill_word(127 << 10);
    const char *argv[12] = {"guest", "sizes"};
    const char *env[10] = {NULL};
    value[0] = 'K';
    value[1] = '=';
    for (int i = 0; i < 8; i++) {
        argv[2 + i] = word;
        env[i] = value;
    }
    uint32_t id = start_argv(box, &(struct process_spec){.command.env = env}, argv);
    CHECK_INT(finish(box, id).code, 0);
    int words = 0;
    size_t arguments = 0;
    size_t environment = 0;
    CHECK_INT(sscanf(output_of(id), "%d %zu %zu", &words, &arguments, &environment), 3);
    CHECK_INT(words, 9);
    CHECK_INT(arguments, 8 * ((127 << 10) + 1) + sizeof "sizes");
    CHECK(environment > 8u * (127 << 10));
}

BOX_TEST(a_command_longer_than_the_kernel_takes_is_126_and_one_longer_than_ours_an_error)
{
    struct box *box = launch_plain();
    autofree char *word = fill_word(300 << 10);
    const char *argv[40] = {"guest", "sizes"};
    struct error err = {0};
    argv[2] = word;
    struct process_exit exit = finish(box, start_argv(box, NULL, argv));
    check_not_run(exit, CAUSE_NOT_RUN, E2BIG, "guest");
    for (int i = 2; i < 22; i++)
        argv[i] = word;
    struct process_spec spec = {
        .id = 999, .command.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    CHECK(box_spawn(box, &spec, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    run_well(box, "exit 0");
}

struct pipes {
    int in, out, err; // our ends
};

static struct pipes start_piped(struct box *box, uint32_t id, const char *command)
{
    char text[256];
    const char *argv[64];
    struct error err = {0};
    int in[2];
    int out[2];
    int errors[2];
    (void)snprintf(text, sizeof text, "%s", command);
    split_words(text, argv);
    CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(errors, O_CLOEXEC) == 0);
    struct process_spec spec = {.id = id,
                                .command.argv = argv,
                                .output = OUTPUT_PIPE,
                                .stdin_fd = in[0],
                                .stdout_fd = out[1],
                                .stderr_fd = errors[1]};
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    (void)close(in[0]);
    (void)close(out[1]);
    (void)close(errors[1]);
    return (struct pipes){in[1], out[0], errors[0]};
}

static void close_pipes(struct pipes *p)
{
    closep(&p->in);
    closep(&p->out);
    closep(&p->err);
}

BOX_TEST(pipes_carry_stdin_stdout_and_stderr_apart_and_end_with_the_process)
{
    struct box *box = launch_plain();
    char text[64] = "";
    struct pipes p = start_piped(box, 1, "both one two three");
    CHECK_INT(fd_read_full(p.out, text, sizeof text - 1), 10);
    CHECK_STR(text, "one\nthree\n");
    memset(text, 0, sizeof text);
    CHECK_INT(fd_read_full(p.err, text, sizeof text - 1), 4);
    CHECK_STR(text, "two\n");
    CHECK_INT(finish(box, 1).code, 0);
    close_pipes(&p);
    p = start_piped(box, 2, "cat");
    static const char bytes[] = {0, 1, 2, (char)255, '\n', 0, 'x'};
    CHECK(fd_write_all(p.in, bytes, sizeof bytes) == 0);
    CHECK_INT(fd_read_full(p.out, text, sizeof bytes), sizeof bytes);
    CHECK(memcmp(text, bytes, sizeof bytes) == 0);
    closep(&p.in); // the end of its input
    CHECK_INT(fd_read_full(p.out, text, 1), 0);
    CHECK_INT(finish(box, 2).code, 0);
    close_pipes(&p);
}

BOX_TEST(binary_output_is_exact_through_a_pipe)
{
    struct box *box = launch_plain();
    struct pipes p = start_piped(box, 1, "bytes 5000000");
    static unsigned char data[65536];
    uint64_t at = 0;
    for (ssize_t got; (got = read(p.out, data, sizeof data)) > 0;) {
        for (ssize_t i = 0; i < got; i++, at++)
            CHECK_INT(data[i], (unsigned char)(at * 7 + at / 256));
    }
    CHECK_INT(at, 5000000);
    CHECK_INT(finish(box, 1).code, 0);
    close_pipes(&p);
}

BOX_TEST(without_files_a_process_has_dev_null)
{
    struct box *box = launch_plain();
    struct error err = {0};
    const char *const argv[] = {"guest", "cat", NULL};
    struct process_spec spec = {.id = 5,
                                .command.argv = argv,
                                .output = OUTPUT_SPOOL,
                                .stdin_fd = -1,
                                .stdout_fd = -1,
                                .stderr_fd = -1};
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    CHECK_INT(finish(box, 5).code, 0);
}

BOX_TEST(an_id_in_use_is_refused_and_free_again_once_collected)
{
    struct box *box = launch_plain();
    struct error err = {0};
    const char *const argv[] = {"guest", "exit", "3", NULL};
    struct process_spec spec = {
        .id = 5, .command.argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    CHECK(box_spawn(box, &spec, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_INT(finish(box, 5).code, 3);
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    CHECK_INT(finish(box, 5).code, 3);
}

BOX_TEST(waiting_for_one_process_loses_no_other_ones_end)
{
    struct box *box = launch_plain();
    struct box_event event;
    struct error err = {0};
    uint32_t slow = start_ready(box, NULL, "catch 1");
    uint32_t quick[3];
    for (int i = 0; i < 3; i++)
        quick[i] = start(box, NULL, "exit 4");
    uint32_t last = start(box, NULL, "exit 5");
    CHECK_INT(finish(box, last).code, 5);
    for (int i = 2; i >= 0; i--)
        CHECK_INT(finish(box, quick[i]).code, 4);
    CHECK_OK(box_next(box, &event, 0, &err), err);
    CHECK_INT(event.kind, BOX_EVENT_NONE);
    CHECK_OK(box_signal(box, slow, SIGTERM, false, &err), err);
    CHECK_INT(finish(box, slow).code, 0);
}

BOX_TEST(a_wait_ends_in_time_also_while_others_talk)
{
    struct box *box = launch_plain();
    struct process_exit exit;
    struct error err = {0};
    const char *const argv[] = {"guest", "bytes", "100000000000", NULL};
    autofd null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct process_spec how = {.stdout_fd = null, .output_cap_bytes = 1};
    uint32_t chatty = start_argv(box, &how, argv);
    uint32_t quiet = start(box, NULL, "sleep 100");
    CHECK(box_wait(box, quiet, 300, &exit, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_TIMEOUT);
    CHECK_OK(box_signal(box, chatty, SIGKILL, true, &err), err);
    CHECK_INT(finish(box, chatty).code, 137);
}

BOX_TEST(what_a_process_used_is_told_with_its_end)
{
    struct box *box = launch_plain();
    struct process_exit exit = run(box, "spin 50");
    CHECK(exit.cpu_user_us + exit.cpu_system_us >= 40000);
    CHECK(exit.duration_us >= 40000 && exit.duration_us < 60000000);
    exit = run(box, "eat 20");
    CHECK(exit.max_rss_bytes >= 19u << 20 && exit.max_rss_bytes < 40u << 20);
}

BOX_TEST(a_one_shot_box_runs_its_process_and_knows_its_end)
{
    struct box_spec spec = plain_spec();
    spec.is_one_shot = true;
    struct box *box = launch(&spec);
    struct process_exit exit =
        run_as(box, &(struct process_spec){.command.user = "kim"}, "echo hello");
    CHECK_INT(exit.code, 0);
    CHECK_STR(last_output(), "hello\n");
    box = launch(&spec);
    CHECK_INT(run_program(box, "nothing-here", NULL).code, 127);
}

NOTHING_IS_LEFT_TEST
