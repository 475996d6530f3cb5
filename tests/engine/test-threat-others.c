/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on others: sibling boxes, the host's processes and sockets, shared read-only files, host
 * users. */
#include "threat_fixture.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define STORM_BOXES 50

static const char *const waiting[] = {"/attacker", "wait", NULL};

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

static int listen_abstract(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    CHECK(bind(sock, (struct sockaddr *)&address, length) == 0 && listen(sock, 1) == 0);
    return sock;
}

/* isolate 2.6: /dev/shm was shared; CVE-2020-15257: an abstract socket was. */
BOX_TEST(nothing_that_one_box_leaves_is_found_in_another)
{
    char name[64];
    (void)snprintf(name, sizeof name, "burrow-threat-%d", (int)getpid());
    autofd sock = listen_abstract(name);
    struct box *leaver = launch_attacker();
    struct box *finder = launch_attacker();
    start_and_await(leaver, "leave", "left\n");
    ATTACK(finder, "find-left", name, "left-by-a-box");
    ATTACK_AS(finder, "guest", "find-left", name, "left-by-a-box");
    struct pollfd ready = {.fd = sock, .events = POLLIN};
    CHECK_INT(poll(&ready, 1, 0), 0);
}

static void number(char *text, pid_t pid)
{
    (void)snprintf(text, 16, "%d", (int)pid);
}

BOX_TEST(no_process_of_the_host_or_of_a_sibling_is_reached)
{
    char own[16], pid_of_a[16], pid_of_b[16], parent[16];
    struct box *a = launch_attacker();
    struct box *b = launch_attacker();
    (void)start_command(b, NULL, waiting);
    number(own, getpid());
    number(pid_of_a, box_pid(a));
    number(pid_of_b, box_pid(b));
    number(parent, getppid());
    ATTACK(a, "guessed", own, pid_of_a, pid_of_b, parent, "1");
    ATTACK_AS(a, "guest", "guessed", own, pid_of_a, pid_of_b, parent, "1");
    check_serves(a);
    check_serves(b);
}

BOX_TEST(users_of_one_box_cannot_reach_each_other)
{
    struct box *box = launch_attacker();
    uint32_t root = start_command(box, NULL, waiting);
    uint32_t other = start_command(box, "other", waiting);
    struct error err = {0};
    struct process_exit exit;
    ATTACK_AS(box, "guest", "visible");
    CHECK(box_wait(box, root, 0, &exit, &err) < 0 && error_is(&err, ERROR_TIMEOUT));
    CHECK(box_wait(box, other, 0, &exit, &err) < 0 && error_is(&err, ERROR_TIMEOUT));
}

BOX_TEST(a_guest_that_kills_all_it_can_ends_neither_pid_1_nor_a_sibling)
{
    struct box *killer = launch_attacker();
    struct box *sibling = launch_attacker();
    uint32_t waiter = start_command(sibling, NULL, waiting);
    uint32_t victim = start_command(killer, NULL, waiting);
    struct error err = {0};
    struct process_exit exit;
    ATTACK(killer, "kill-all");
    CHECK_OK(box_wait(killer, victim, PATIENCE_MS, &exit, &err), err);
    check_serves(killer);
    CHECK(box_wait(sibling, waiter, 0, &exit, &err) < 0 && error_is(&err, ERROR_TIMEOUT));
    check_serves(sibling);
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

/* The first address of the machine that is not loopback; "" when it has none. */
static void own_address(char *text, size_t size)
{
    struct ifaddrs *list = NULL;
    text[0] = '\0';
    CHECK(getifaddrs(&list) == 0);
    for (struct ifaddrs *at = list; at && !*text; at = at->ifa_next) {
        struct sockaddr_in *address = (struct sockaddr_in *)(void *)at->ifa_addr;
        if (address && address->sin_family == AF_INET &&
            (ntohl(address->sin_addr.s_addr) >> 24) != 127)
            (void)inet_ntop(AF_INET, &address->sin_addr, text, (socklen_t)size);
    }
    freeifaddrs(list);
}

BOX_TEST(a_box_has_loopback_and_nothing_else)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    char port[16], host[64];
    autofd sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(sock, (struct sockaddr *)&address, sizeof address) == 0 && listen(sock, 8) == 0);
    CHECK(getsockname(sock, (struct sockaddr *)&address, &length) == 0);
    (void)snprintf(port, sizeof port, "%u", ntohs(address.sin_port));
    own_address(host, sizeof host);
    struct box *box = launch_attacker();
    if (*host)
        ATTACK(box, "network", port, host);
    ATTACK_AS(box, "guest", "network", port);
    struct pollfd ready = {.fd = sock, .events = POLLIN};
    CHECK_INT(poll(&ready, 1, 0), 0); // nobody came
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
