/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks that use things up or do not end: what stops them, and that PID 1, the engine and others
 * go on. */
#include "threat_fixture.h"

#include <errno.h>
#include <signal.h>

#define MIB ((uint64_t)1 << 20)

static struct box *launch_limited(uint64_t memory, uint32_t procs, uint64_t disk)
{
    struct box_spec spec = spec_with(NULL);
    spec.limits = (struct limits){.memory_bytes = memory, .max_processes = procs};
    spec.limits.disk_bytes = disk;
    return launch(&spec);
}

/* Starts the attacker with a pipe and waits for its first line; the read end. */
static int start_reading(struct box *box, uint32_t id, const char *name, const char *line)
{
    const char *argv[] = {"/attacker", name, NULL};
    struct error err = {0};
    char text[32] = "";
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    struct process_spec spec = {.id = id,
                                .command.argv = argv,
                                .command.directory = "/",
                                .stdin_fd = -1,
                                .stdout_fd = ends[1],
                                .stderr_fd = -1};
    int result = box_spawn(box, &spec, NULL, &err);
    (void)close(ends[1]);
    CHECK_OK(result, err);
    if (line) {
        CHECK(read(ends[0], text, strlen(line)) == (ssize_t)strlen(line));
        CHECK_STR(text, line);
    }
    return ends[0];
}

static void kill_tree(struct box *box, uint32_t id)
{
    struct process_exit exit;
    struct error err = {0};
    CHECK_OK(box_signal(box, id, SIGKILL, true, &err), err);
    CHECK_OK(box_wait(box, id, PATIENCE_MS, &exit, &err), err);
}

BOX_TEST(a_fork_bomb_stays_in_its_box)
{
    struct box *box = launch_limited(0, 48, 0);
    struct box *neighbour = launch_attacker();
    (void)close(start_reading(box, 700000, "fork-bomb", NULL));
    struct cgroup_usage usage = {0};
    struct error err = {0};
    while (usage.procs_refused == 0)
        CHECK_OK(box_usage(box, &usage, &err), err);
    check_serves(neighbour);
    kill_tree(box, 700000);
    check_serves(box);
    ATTACK(box, "alone");
}

BOX_TEST(memory_taken_by_any_way_ends_the_taker_and_not_the_box)
{
    static const char *const ways[] = {"heap", "memfd", "shm"};
    struct box *box = launch_limited(48 * MIB, 0, 0);
    struct box *neighbour = launch_attacker();
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        struct outcome outcome = RUN(box, "/attacker", "eat-memory", ways[i]);
        bool is_full = i == 2 && outcome.exit.code == 3; // /dev/shm is no larger than the memory
        if (!is_full && (outcome.exit.cause != CAUSE_MEMORY || outcome.exit.code != 137))
            test_fail(__FILE__, __LINE__, "%s: cause %d, code %d, %s", ways[i], outcome.exit.cause,
                      outcome.exit.code, outcome.output);
        check_serves(neighbour);
        if (i < 2)
            check_serves(box);
    }
    // What is in /dev/shm stays there; who may remove it is served.
    struct error err = {0};
    int conv = -1;
    CHECK_OK(box_files(box, NULL, "/", &conv, &err), err);
    autofd talk = conv;
    CHECK_OK(files_remove(talk, "/dev/shm/eaten", 0, &err), err);
    check_serves(box);
}

/* By writing, by deleting what is still open, by punching holes in what was written. */
BOX_TEST(a_disk_limit_holds_however_it_is_filled)
{
    static const char *const ways[] = {"plain", "deleted", "holes"};
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        struct box *box = launch_limited(0, 0, 32 * MIB);
        struct outcome outcome = RUN(box, "/attacker", "fill-disk", ways[i]);
        int count = 0;
        CHECK(sscanf(outcome.output, "%d", &count) == 1);
        // With holes half of it comes back; btrfs keeps some of it until it commits.
        if (outcome.exit.code != 0 || count < 16 || count > 66)
            test_fail(__FILE__, __LINE__, "%s: code %d, %s", ways[i], outcome.exit.code,
                      outcome.output);
        check_serves(box);
        end(box);
    }
}

/* Deaf, stopped, orphaned, in sessions of their own, holding the output: a timeout takes them all.
 */
BOX_TEST(a_timeout_leaves_no_process_of_the_tree)
{
    struct box *box = launch_attacker();
    uint32_t other = start_command(box, NULL, (const char *const[]){"/attacker", "wait", NULL});
    static const char *const argv[] = {"/attacker", "hydra", NULL};
    struct process_spec spec = {.id = 700001,
                                .command.argv = argv,
                                .command.directory = "/",
                                .stdin_fd = -1,
                                .stdout_fd = -1,
                                .stderr_fd = -1,
                                .command.timeout_ms = 300};
    struct process_exit exit;
    struct error err = {0};
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    CHECK_OK(box_wait(box, spec.id, PATIENCE_MS, &exit, &err), err);
    CHECK_INT(exit.cause, CAUSE_TIMEOUT);
    CHECK_INT(exit.code, 124);
    CHECK(box_wait(box, other, 0, &exit, &err) < 0 &&
          error_is(&err, ERROR_TIMEOUT)); // another leaf lives
    kill_tree(box, other);
    ATTACK(box, "alone");
}

BOX_TEST(a_kill_leaves_no_process_of_the_tree_and_ends_its_output)
{
    struct box *box = launch_attacker();
    char byte;
    autofd reader = start_reading(box, 700002, "hydra", "alive\n");
    kill_tree(box, 700002);
    CHECK_INT(read(reader, &byte, 1), 0); // nobody holds the other end
    ATTACK(box, "alone");
}

BOX_TEST(ending_a_box_ends_every_process_of_it)
{
    struct box *box = launch_attacker();
    char byte;
    autofd reader = start_reading(box, 700003, "hydra", "alive\n");
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d", (int)box_pid(box));
    end(box);
    CHECK_INT(read(reader, &byte, 1), 0);
    CHECK(access(path, F_OK) < 0);
}

BOX_TEST(a_frozen_tree_is_killed_too)
{
    struct box *box = launch_attacker();
    struct error err = {0};
    char byte;
    autofd reader = start_reading(box, 700004, "hydra", "alive\n");
    CHECK_OK(box_freeze(box, &err), err);
    end(box);
    CHECK_INT(read(reader, &byte, 1), 0);
}

static uint64_t resident_pages(pid_t pid)
{
    char path[64], text[128];
    struct error err = {0};
    unsigned long long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    CHECK_OK(fd_read_knob(AT_FDCWD, path, text, sizeof text, &err), err);
    CHECK(sscanf(text, "%*u %llu", &pages) == 1);
    return pages;
}

BOX_TEST(a_flood_of_output_is_cut_and_counted_and_blocks_nobody)
{
    struct box *box = launch_attacker();
    static const char *const argv[] = {"/attacker", "flood", "256", NULL};
    struct process_exit exit;
    struct error err = {0};
    struct stat info;
    autofd spool = open(place("spool"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    check_serves(box);
    uint64_t own_before = resident_pages(getpid()), before = resident_pages(box_pid(box));
    struct process_spec spec = {.id = 700005,
                                .command.argv = argv,
                                .command.directory = "/",
                                .output = OUTPUT_SPOOL,
                                .stdin_fd = -1,
                                .stdout_fd = spool,
                                .stderr_fd = -1,
                                .output_cap_bytes = MIB};
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    CHECK_OK(box_wait(box, spec.id, PATIENCE_MS, &exit, &err), err);
    CHECK_INT(exit.code, 0);
    CHECK(exit.is_truncated);
    CHECK_INT(exit.stdout_bytes, 256 * MIB);
    CHECK(fstat(spool, &info) == 0 && info.st_size == (off_t)MIB);
    CHECK(resident_pages(box_pid(box)) < before + 512);
    CHECK(resident_pages(getpid()) < own_before + 512);
}

BOX_TEST(output_that_nobody_reads_holds_up_its_writer_only)
{
    struct box *box = launch_attacker();
    autofd reader = start_reading(box, 700006, "flood", NULL);
    check_serves(box);
    kill_tree(box, 700006);
    check_serves(box);
}

NOTHING_IS_LEFT_TEST
