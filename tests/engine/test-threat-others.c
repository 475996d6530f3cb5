/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on others: sibling boxes, the host's processes and sockets, shared read-only files, host
 * users. */
#include "threat_fixture.h"

#include <ftw.h>
#include <sys/wait.h>

#define STORM_BOXES 50

/* Starts `name` of the attacker and waits for its first line. */
static void start_and_await(struct box *box, const char *name, const char *line)
{
    const char *argv[] = {"/attacker", name, NULL};
    struct error err = {0};
    char text[64] = "";
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    autofd reader = ends[0];
    autofd writer = ends[1];
    struct process_spec spec = {.id = 800000,
                                .command.argv = argv,
                                .command.directory = "/",
                                .stdin_fd = -1,
                                .stdout_fd = writer,
                                .stderr_fd = writer};
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    closep(&writer);
    CHECK(read(reader, text, sizeof text - 1) > 0);
    CHECK_STR(text, line);
}

/* The kernel counts files that are under way between sockets by user, and PID 1 has the user of the
 * box's root. */
BOX_TEST(a_guest_that_fills_the_count_of_files_under_way_does_not_stop_pid_1)
{
    static const char *const argv[] = {"/attacker", "hello", NULL};
    struct box *box = launch_attacker();
    start_and_await(box, "files-under-way", "full\n");
    struct threat_command command = {.directory = "/", .argv = argv, .output = OUTPUT_TTY};
    struct outcome outcome = run_command(box, &command);
    CHECK_STR(outcome.output, "hello\r\n");
    check_serves(box);
}

/* A shared layer and a shared bind, with files that every box attacks. */
static const char *make_shared_layer(void)
{
    int fd = -1;
    const char *layer = hostile_layer(&fd);
    char text[8192];
    memset(text, 'o', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    put_file(fd, "one", text, 0666);
    put_file(fd, "two", text, 0644);
    put_attacker(fd, "program", 0755);
    closep(&fd);
    return layer;
}

/* CVE-2022-0847, CVE-2016-5195: the page cache of a file is shared by all who read it. */
BOX_TEST(a_storm_of_writers_in_fifty_boxes_leaves_shared_layers_as_they_were)
{
    const char *layer = make_shared_layer();
    const char *bound = make_shared_layer();
    int fd = open(bound, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put_file(fd, "private", CANARY_TEXT, 0600);
    closep(&fd);
    struct box_bind bind = {.host = bound, .box = "/workspace"};
    struct box_spec spec = spec_with(layer);
    struct box *boxes[STORM_BOXES];
    const char *const argv[] = {"/attacker", "storm", "/one", "/two", "/program", NULL};
    uint32_t ids[STORM_BOXES];
    const int count = is_in_vm() ? 10 : STORM_BOXES;
    struct error err = {0};
    struct process_exit exit;

    spec.binds = &bind;
    spec.n_binds = 1;
    uint64_t before = inventory(layer), bound_before = inventory(bound);
    uint64_t attacker_before = inventory(attacker_layer());
    for (int i = 0; i < count; i++)
        boxes[i] = launch(&spec);
    for (int i = 0; i < count; i++)
        ids[i] = start_command(boxes[i], NULL, argv);
    for (int i = 0; i < count; i++) {
        CHECK_OK(box_wait(boxes[i], ids[i], PATIENCE_MS, &exit, &err), err);
        CHECK_INT(exit.code, 0);
    }
    for (int i = 0; i < count; i += 10) {
        ATTACK(boxes[i], "storm", "-", "/workspace/one", "/workspace/two", "/workspace/program");
        struct outcome outcome = RUN(boxes[i], "/attacker", "probe", "/workspace/private", "/two");
        CHECK_STR(outcome.output,
                  "/workspace/private: Permission denied\n/two: No such file or directory\n");
    }
    for (int i = 0; i < count; i++)
        end(boxes[i]);
    CHECK(inventory(layer) == before);
    CHECK(inventory(bound) == bound_before);
    CHECK(inventory(attacker_layer()) == attacker_before);
}

static int on_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    return strcmp(path + at->base, "suid") == 0 ? 3 : 0;
}

/* Is the file found below `dir` by this user of the host? */
static bool is_found_by(uid_t uid, const char *dir)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (setgid(uid) < 0 || setuid(uid) < 0)
            _exit(2);
        _exit(nftw(dir, on_entry, 16, FTW_PHYS) == 3 ? 3 : 0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) != 2);
    return WEXITSTATUS(status) == 3;
}

/* CVE-2021-41091: what guests make is root's on disk, so nobody else may come near it, whatever the
 * directory above says. */
BOX_TEST(users_of_the_host_cannot_reach_what_a_guest_makes)
{
    struct box *box = launch_attacker();
    ATTACK(box, "plant-setuid");
    CHECK(chmod(data_dir, 0755) == 0);
    bool is_there = is_found_by(0, data_dir);
    bool is_reached = is_found_by(65534, data_dir);
    CHECK(chmod(data_dir, 0700) == 0);
    CHECK(is_there || volume_scheme(engine_volume(engine)) == VOLUME_TMPFS);
    CHECK(!is_reached);
}

NOTHING_IS_LEFT_TEST
