/* SPDX-License-Identifier: Apache-2.0 */
/* The engine, layers and boxes of tests of attacks; see threat_fixture.h. */
#include "threat_fixture.h"

#include "base/mem.h"

#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>

extern const char attacker_blob_start[] __attribute__((visibility("hidden")));
extern const char attacker_blob_end[] __attribute__((visibility("hidden")));

#define MAX_OUTPUT ((size_t)4 << 20)

const char *place(const char *name)
{
    char *path = NULL;
    CHECK(asprintf(&path, "%s/threat-%s", data_dir, name) > 0);
    return path;
}

void put_file(int dir_fd, const char *path, const char *text, mode_t mode)
{
    autofd fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK(fd_write_all(fd, text, strlen(text)) == 0);
    CHECK(fchmod(fd, mode) == 0);
}

void put_attacker(int dir_fd, const char *path, mode_t mode)
{
    autofd fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK(fd_write_all(fd, attacker_blob_start,
                       (size_t)(attacker_blob_end - attacker_blob_start)) == 0);
    CHECK(fchmod(fd, mode) == 0);
}

const char *attacker_layer(void)
{
    const char *path = place("attacker");
    if (mkdir(path, 0755) < 0)
        return path;
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    put_attacker(fd, "attacker", 0755);
    CHECK(mkdirat(fd, "etc", 0755) == 0);
    put_file(fd, "etc/passwd",
             "root:x:0:0:root:/root:/bin/sh\nguest:x:1000:1000::/home/guest:/bin/sh\n"
             "other:x:1001:1001::/home/other:/bin/sh\n",
             0644);
    put_file(fd, "etc/group", "root:x:0:\nguest:x:1000:\nextra:x:2000:guest\nother:x:1001:\n",
             0644);
    return path;
}

const char *hostile_layer(int *fd)
{
    static unsigned count;
    char name[32];
    (void)snprintf(name, sizeof name, "layer-%u", count++);
    const char *path = place(name);
    CHECK(mkdir(path, 0755) == 0);
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(*fd >= 0);
    return path;
}

const char *canary_dir(void)
{
    static unsigned count;
    char name[32];
    (void)snprintf(name, sizeof name, "canary-%u", count++);
    const char *path = place(name);
    CHECK(mkdir(path, 0755) == 0);
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    put_file(fd, "canary", CANARY_TEXT, 0666);
    put_file(fd, "null", CANARY_TEXT, 0666);
    CHECK(mkdirat(fd, "pts", 0777) == 0 && mkdirat(fd, "shm", 0777) == 0 &&
          mkdirat(fd, "sys", 0777) == 0);
    return path;
}

static void add(uint64_t *sum, const void *data, size_t length)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length; i++)
        *sum = (*sum ^ bytes[i]) * UINT64_C(0x100000001b3);
}

static void add_content(uint64_t *sum, int dir_fd, const char *name)
{
    char chunk[65536];
    autofd fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    CHECK(fd >= 0);
    for (ssize_t got; (got = read(fd, chunk, sizeof chunk)) > 0;)
        add(sum, chunk, (size_t)got);
}

static uint64_t sum_entry(int dir_fd, const char *name);

static uint64_t sum_dir(int dir_fd, const char *name)
{
    uint64_t sum = 0;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fdopendir(fd);
    CHECK(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            sum += sum_entry(fd, entry->d_name); // in any order
    }
    (void)closedir(dir);
    return sum;
}

static uint64_t sum_entry(int dir_fd, const char *name)
{
    struct stat info;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    CHECK(fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0);
    uint64_t facts[] = {info.st_mode,
                        info.st_uid,
                        info.st_gid,
                        (uint64_t)info.st_size,
                        info.st_nlink,
                        (uint64_t)info.st_mtim.tv_sec,
                        (uint64_t)info.st_mtim.tv_nsec,
                        (uint64_t)info.st_ctim.tv_sec,
                        (uint64_t)info.st_ctim.tv_nsec};
    add(&sum, facts, sizeof facts);
    add(&sum, name, strlen(name));
    if (S_ISREG(info.st_mode))
        add_content(&sum, dir_fd, name);
    if (S_ISDIR(info.st_mode)) {
        uint64_t inner = sum_dir(dir_fd, name);
        add(&sum, &inner, sizeof inner);
    }
    return sum;
}

uint64_t inventory(const char *dir)
{
    return sum_entry(AT_FDCWD, dir);
}

uint64_t file_sum(const char *path)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    char chunk[65536];
    CHECK(fd >= 0);
    for (ssize_t got; (got = read(fd, chunk, sizeof chunk)) > 0;)
        add(&sum, chunk, (size_t)got);
    return sum;
}

struct box_spec spec_with(const char *top)
{
    const char **layers = xcalloc(2, sizeof *layers);
    struct box_spec spec = {.layers = layers, .n_layers = top ? 2 : 1, .hold_fd = -1};
    layers[0] = top ? top : attacker_layer();
    layers[1] = attacker_layer();
    return spec;
}

struct box *launch_attacker(void)
{
    struct box_spec spec = spec_with(NULL);
    return launch(&spec);
}

/* Reads until nobody can write any more. A terminal says that with EIO. */
static char *read_all(int fd, size_t *length)
{
    char *text = xcalloc(1, MAX_OUTPUT + 1);
    size_t used = 0;

    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, PATIENCE_MS) == 0) {
            free(text);
            test_fail(__FILE__, __LINE__, "the command does not end its output");
        }
        ssize_t got = read(fd, text + used, MAX_OUTPUT - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    *length = used;
    return xrealloc(text, used + 1, 1);
}

struct outcome run_command(struct box *box, const struct threat_command *command)
{
    struct outcome outcome = {0};
    struct error err = {0};
    int ends[2] = {-1, -1};
    int tty = -1;
    struct process_spec spec = {
        .id = next_id(),
        .command.argv = command->argv,
        .command.env = command->env,
        .command.directory = command->directory,
        .command.user = command->user,
        .output = command->output,
        .stdin_fd = -1,
        .rows = 24,
        .cols = 80,
    };

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    autofd reader = ends[0];
    autofd writer = ends[1];
    spec.stdout_fd = spec.stderr_fd = writer;
    CHECK_OK(box_spawn(box, &spec, &tty, &err), err);
    autofd terminal = tty;
    closep(&writer);
    if (command->output != OUTPUT_TTY || terminal >= 0)
        outcome.output = read_all(terminal >= 0 ? terminal : reader, &outcome.length);
    CHECK_OK(box_wait(box, spec.id, PATIENCE_MS, &outcome.exit, &err), err);
    return outcome;
}

struct outcome run_attacker_as(struct box *box, const char *user, const char *const *argv)
{
    struct threat_command command = {.user = user, .argv = argv, .directory = "/"};
    return run_command(box, &command);
}

uint32_t start_command(struct box *box, const char *user, const char *const *argv)
{
    struct error err = {0};
    struct process_spec spec = {.id = next_id(),
                                .command.argv = argv,
                                .command.user = user,
                                .command.directory = "/",
                                .stdin_fd = -1,
                                .stdout_fd = -1,
                                .stderr_fd = -1};
    CHECK_OK(box_spawn(box, &spec, NULL, &err), err);
    return spec.id;
}

void attack_as(const char *file, int line, struct box *box, const char *user,
               const char *const *argv)
{
    struct outcome outcome = run_attacker_as(box, user, argv);
    if (outcome.exit.code != 0)
        test_fail(file, line, "attack '%s': code %d %s\n%.800s", argv[1], outcome.exit.code,
                  outcome.exit.text, outcome.output);
    check_no_canary(&outcome);
}

void check_no_canary(const struct outcome *outcome)
{
    if (memmem(outcome->output, outcome->length, CANARY_TEXT, strlen(CANARY_TEXT)))
        test_fail(__FILE__, __LINE__, "the canary was read: %.400s", outcome->output);
}

void check_serves(struct box *box)
{
    struct outcome outcome = RUN(box, "/attacker", "hello");
    CHECK_INT(outcome.exit.code, 0);
    CHECK_STR(outcome.output, "hello\n");
}
