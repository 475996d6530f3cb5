/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the way a process is started in a box: working directory, user, arguments,
 * interpreter, environment. */
#include "threat_fixture.h"

#include "engine/capabilities.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>

static struct outcome run_in(struct box *box, const char *cwd, const char *const *argv)
{
    struct threat_command command = {.directory = cwd, .argv = argv};
    return run_command(box, &command);
}

static const char *const hello[] = {"/attacker", "hello", NULL};

static void check_cwd_refused(struct box *box, const char *cwd)
{
    struct outcome outcome = run_in(box, cwd, hello);
    if (outcome.exit.cause != CAUSE_NOT_RUN || outcome.exit.code != 126 || outcome.length > 0)
        test_fail(__FILE__, __LINE__, "in '%s': cause %d, code %d, '%s'", cwd, outcome.exit.cause,
                  outcome.exit.code, outcome.output);
}

/* CVE-2024-21626: a directory the runtime left open is a way out. One is open here, for good
 * measure. */
BOX_TEST(no_open_directory_serves_as_working_directory)
{
    const char *canary = canary_dir();
    uint64_t before = inventory(canary);
    autofd leaked = open(canary, O_RDONLY | O_DIRECTORY);
    CHECK(leaked >= 0 && fcntl(leaked, F_SETFD, 0) == 0);
    struct box *box = launch_attacker();

    for (int fd = 3; fd <= 1024; fd += is_in_vm() ? 31 : 1) {
        char cwd[64];
        (void)snprintf(cwd, sizeof cwd, "/proc/self/fd/%d", fd);
        check_cwd_refused(box, cwd);
    }
    CHECK(inventory(canary) == before);
    check_serves(box);
}

BOX_TEST(no_magic_link_serves_as_working_directory)
{
    static const char *const ways[] = {
        "/proc/self/cwd",
        "/proc/self/root",
        "/proc/self/root/etc",
        "/proc/1/cwd",
        "/proc/1/root",
        "/proc/1/fd/3",
        "/dev/fd/3",
        "/proc/thread-self/fd/3",
        "/proc/1/task/1/cwd",
        "/link-to-fd",
        "/link-to-root",
        "/link-to-fd/sub",
        "/proc/self/fd/3/../..",
        "/proc/self/fd/../fd/3",
    };
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    CHECK(symlinkat("/proc/self/fd/3", fd, "link-to-fd") == 0);
    CHECK(symlinkat("/proc/1/root", fd, "link-to-root") == 0);
    closep(&fd);
    struct box_spec spec = spec_with(layer);
    struct box *box = launch(&spec);
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
        check_cwd_refused(box, ways[i]);
    check_serves(box);
}

/* Whatever the launcher leaves open or ignores, also without close-on-exec, ends before PID 1. */
BOX_TEST(nothing_open_or_ignored_by_the_launcher_is_inherited)
{
    const char *canary = canary_dir();
    int leaked[8];
    for (size_t i = 0; i < ARRAY_SIZE(leaked); i++)
        leaked[i] = open(canary, O_RDONLY | O_DIRECTORY);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    struct box *box = launch_attacker();
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    for (size_t i = 0; i < ARRAY_SIZE(leaked); i++)
        (void)close(leaked[i]);

    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)box_pid(box));
    DIR *dir = opendir(path);
    CHECK(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char target[512] = "";
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
        if (length > 0 && strstr(target, "canary"))
            test_fail(__FILE__, __LINE__, "PID 1 has %s open", target);
    }
    (void)closedir(dir);
    ATTACK(box, "inherited", "/");
    ATTACK_AS(box, "guest", "inherited", "/");
}

BOX_TEST(a_process_starts_with_three_files_in_its_own_directory)
{
    struct box *box = launch_attacker();
    static const char *const argv[] = {"/attacker", "inherited", "/workspace/a/b", NULL};
    struct threat_command command = {.directory = "/workspace/a/b", .argv = argv};
    struct outcome outcome = run_command(box, &command);
    CHECK_STR(outcome.output, "");
    CHECK_INT(outcome.exit.code, 0);
    command.output = OUTPUT_TTY;
    outcome = run_command(box, &command);
    CHECK_STR(outcome.output, "");
    CHECK_INT(outcome.exit.code, 0);
}

/* CVE-2022-24769, CVE-2022-29162, CVE-2022-27650. */
BOX_TEST(root_and_users_have_the_declared_rights_and_no_more)
{
    struct box *box = launch_attacker();
    char all[32];
    (void)snprintf(all, sizeof all, "%016" PRIx64, capabilities_mask());
    ATTACK(box, "rights", all, all);
    ATTACK_AS(box, "guest", "rights", all, "0000000000000000");
    ATTACK_AS(box, "4242", "rights", all, "0000000000000000");
    ATTACK_AS(box, "0:1000", "rights", all, all);
}

/* CVE-2026-30892: the user is exactly the one named, or it is an error. */
BOX_TEST(a_user_is_exactly_who_is_named_or_refused)
{
    static const struct {
        const char *user, *is; // NULL: refused
    } cases[] = {
        {NULL, "0 0 0 0 0 0\n"},
        {"", "0 0 0 0 0 0\n"},
        {"0", "0 0 0 0 0 0\n"},
        {"root", "0 0 0 0 0 0\n"},
        {"guest", "1000 1000 1000 1000 1000 1000 +2000\n"},
        {"1000", "1000 1000 1000 1000 1000 1000 +2000\n"},
        {"1000:0", "1000 1000 1000 0 0 0\n"},
        {"guest:extra", "1000 1000 1000 2000 2000 2000\n"},
        {"0:65535", "0 0 0 65535 65535 65535\n"},
        {"65535", "65535 65535 65535 65535 65535 65535\n"},
        {"0x0", NULL},
        {" 1", NULL},
        {"1 ", NULL},
        {"1:", NULL},
        {":0", NULL},
        {":", NULL},
        {"4294967295", NULL},
        {"4294967296", NULL},
        {"65536", NULL},
        {"-1", NULL},
        {"+1", NULL},
        {"00", NULL},
        {"01", NULL},
        {"1e3", NULL},
        {"1.0", NULL},
        {"nobody-here", NULL},
        {"guest:nobody-here", NULL},
        {"guest:0:0", NULL},
        {"guest\n", NULL},
        {"\troot", NULL},
        {"root:x", NULL},
        {"root:x:0:0", NULL},
        {"../root", NULL},
        {"-root", NULL},
        {"%s", NULL},
        {"٣", NULL},
    };
    static const char *const argv[] = {"/attacker", "who", NULL};
    struct box *box = launch_attacker();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct threat_command command = {.user = cases[i].user, .directory = "/", .argv = argv};
        struct outcome outcome = run_command(box, &command);
        bool is_right = cases[i].is
                            ? outcome.exit.code == 0 && strcmp(outcome.output, cases[i].is) == 0
                            : outcome.exit.cause == CAUSE_NOT_RUN && outcome.exit.code == 126 &&
                                  outcome.length == 0;
        if (!is_right)
            test_fail(__FILE__, __LINE__, "user '%s': code %d '%s' '%s'", cases[i].user,
                      outcome.exit.code, outcome.output, outcome.exit.text);
    }
}

/* CVE-2024-32462: what begins with '-' is a name like any other. */
BOX_TEST(names_that_look_like_options_are_names)
{
    static const char *const names[] = {"-e", "--help", "--", "-", "ext::sh -c id", "a\nb", "; id"};
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    CHECK(mkdirat(fd, "bin", 0755) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "bin/%s", names[i]);
        put_attacker(fd, path, 0755);
        (void)snprintf(path, sizeof path, "dir%s", names[i]);
        CHECK(mkdirat(fd, path, 0755) == 0);
    }
    closep(&fd);
    struct box_spec spec = spec_with(layer);
    struct box *box = launch(&spec);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *argv[] = {names[i], "say", names[i], "", "--", "$(id)", NULL};
        char want[160], cwd[64];
        (void)snprintf(want, sizeof want, "[%s]\n[]\n[--]\n[$(id)]\n", names[i]);
        (void)snprintf(cwd, sizeof cwd, "/dir%s", names[i]);
        struct threat_command command = {.directory = cwd, .argv = argv};
        struct outcome outcome = run_command(box, &command);
        CHECK_STR(outcome.output, want);
        CHECK_INT(outcome.exit.code, 0);
    }
}

/* CVE-2019-5736: a script whose interpreter is whoever executes it. */
BOX_TEST(a_script_run_by_proc_self_exe_gains_nothing)
{
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    put_file(fd, "self", "#!/proc/self/exe\n", 0755);
    put_file(fd, "first", "#!/proc/1/exe\n", 0755);
    put_file(fd, "fd", "#!/proc/self/fd/3\n", 0755);
    closep(&fd);
    struct box_spec spec = spec_with(layer);
    struct box *box = launch(&spec);
    char exe[64];
    (void)snprintf(exe, sizeof exe, "/proc/%d/exe", (int)box_pid(box));
    check_serves(box); // so that it is PID 1's by now
    uint64_t before = file_sum(exe);

    struct outcome outcome = RUN(box, "/self");
    CHECK(outcome.exit.code != 0);
    CHECK_STR(outcome.output, "");
    outcome = RUN(box, "/first");
    CHECK_INT(outcome.exit.cause, CAUSE_NOT_RUN);
    outcome = RUN(box, "/fd");
    CHECK(outcome.exit.code != 0);
    CHECK(file_sum(exe) == before);
    check_serves(box);
}

BOX_TEST(the_program_of_pid_1_cannot_be_opened_while_processes_start)
{
    struct box *box = launch_attacker();
    char exe[64];
    (void)snprintf(exe, sizeof exe, "/proc/%d/exe", (int)box_pid(box));
    check_serves(box); // so that it is PID 1's by now
    uint64_t before = file_sum(exe);
    int ends[2];
    struct error err = {0};
    static const char *const argv[] = {"/attacker", "race-for-exe", NULL};

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    autofd reader = ends[0];
    autofd writer = ends[1];
    for (uint32_t i = 0; i < 2; i++) {
        struct process_spec racer = {.id = 900000 + i,
                                     .command.argv = argv,
                                     .command.directory = "/",
                                     .command.user = i ? "guest" : NULL,
                                     .stdin_fd = -1,
                                     .stdout_fd = writer,
                                     .stderr_fd = -1};
        CHECK_OK(box_spawn(box, &racer, NULL, &err), err);
        char line[16] = "";
        CHECK(read(reader, line, sizeof line - 1) > 0);
        CHECK_STR(line, "racing\n");
    }
    closep(&writer);
    for (int i = 0; i < (is_in_vm() ? 10 : 150); i++) {
        check_serves(box);
        struct outcome outcome = RUN_AS(box, "guest", "/attacker", "hello");
        CHECK_INT(outcome.exit.code, 0);
    }
    CHECK(file_sum(exe) == before);
    end(box);
    char said[512] = "";
    (void)fd_read_full(reader, said, sizeof said - 1);
    CHECK_STR(said, "");
}

/* CVE-2021-21261: what a caller sets for a process reaches that process only. */
BOX_TEST(the_environment_of_a_process_reaches_nothing_outside)
{
    static const char *const env[] = {"LD_PRELOAD=/evil.so",
                                      "BASH_ENV=/evil",
                                      "ENV=/evil",
                                      "PATH=/evil:/nowhere",
                                      "http_proxy=http://evil",
                                      "LD_LIBRARY_PATH=/evil",
                                      "GCONV_PATH=/evil",
                                      "HOME=/evil",
                                      "USER=evil",
                                      "MALLOC_CONF=evil",
                                      NULL};
    static const char *const argv[] = {"/attacker", "environment", NULL};
    struct box *box = launch_attacker();
    struct threat_command command = {.directory = "/", .env = env, .argv = argv};
    struct outcome outcome = run_command(box, &command);
    char want[1024] = "", path[64], text[64] = "";
    for (size_t i = 0; env[i]; i++) {
        strcat(want, env[i]);
        strcat(want, "\n");
    }
    CHECK_STR(outcome.output, want);
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)box_pid(box));
    autofd environ_fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(environ_fd >= 0);
    CHECK_INT(read(environ_fd, text, sizeof text), 0);
    CHECK(!getenv("LD_PRELOAD") && !getenv("BASH_ENV"));

    outcome = RUN(box, "/attacker", "environment");
    CHECK(!strstr(outcome.output, "evil"));
    command.env = NULL;
    outcome = run_command(box, &command);
    CHECK(!strstr(outcome.output, "evil"));
}

/* CVE-2022-0811: what is pasted together with other text holds no separators. */
BOX_TEST(names_given_to_the_kernel_have_a_grammar)
{
    static const char *const hostnames[] = {"a b", "a\nb", "a/b", "../a",     "a+b=c",
                                            "-a",  ".a",   "a;b", "\x1b[31m", "a\"b"};
    static const char *const scratches[] = {"../evil", "a/b", "",     ".",
                                            "..",      "a b", "a\nb", "run-0/../x"};
    for (size_t i = 0; i < ARRAY_SIZE(hostnames); i++) {
        struct box_spec spec = spec_with(NULL);
        struct error err = {0};
        struct box *box = NULL;
        spec.hostname = hostnames[i];
        if (box_launch(engine, &spec, &box, &err) == 0) {
            end(box);
            test_fail(__FILE__, __LINE__, "hostname '%s' was taken", hostnames[i]);
        }
        CHECK_INT(error_kind(&err), ERROR_INVALID);
    }
    for (size_t i = 0; i < ARRAY_SIZE(scratches); i++) {
        struct box_spec spec = spec_with(NULL);
        struct error err = {0};
        struct box *box = NULL;
        spec.scratch = scratches[i];
        if (box_launch(engine, &spec, &box, &err) == 0) {
            end(box);
            test_fail(__FILE__, __LINE__, "scratch '%s' was taken", scratches[i]);
        }
        CHECK_INT(error_kind(&err), ERROR_INVALID);
    }
}

BOX_TEST(environment_entries_are_names_with_values)
{
    static const char *const bad[] = {"NOVALUE", "=x", ""};
    struct box *box = launch_attacker();
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct error err = {0};
        const char *env[] = {"A=1", bad[i], NULL};
        struct process_spec spec = {.id = 7,
                                    .command.argv = hello,
                                    .command.env = env,
                                    .stdin_fd = -1,
                                    .stdout_fd = -1,
                                    .stderr_fd = -1};
        CHECK(box_spawn(box, &spec, NULL, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
    }
    check_serves(box);
}

NOTHING_IS_LEFT_TEST
