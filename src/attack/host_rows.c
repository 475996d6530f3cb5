/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks of a box on the host: its processes, sockets, network, names and files; see rows.h. */
#include "attack/rows.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define NOBODY 65534
#define SETUID_NAME "burrow-attack-suid"

ROW(run_host_processes)
{
    char own[16], parent[16], first[16];
    (void)snprintf(own, sizeof own, "%d", (int)getpid());
    (void)snprintf(parent, sizeof parent, "%d", (int)getppid());
    (void)snprintf(first, sizeof first, "%d", (int)box_pid(range->a));
    INSIDE(range, range->a, NULL, result, "other-processes", own, parent, first);
    INSIDE(range, range->a, RANGE_USER, result, "other-processes", own, parent, first);
}

/* Whether somebody has come to a listening socket of ours. */
static bool has_caller(int sock)
{
    struct pollfd ready = {.fd = sock, .events = POLLIN};
    return poll(&ready, 1, 0) > 0;
}

ROW(run_host_sockets)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[64];
    int length = snprintf(name, sizeof name, "burrow-attack-%d", (int)getpid());
    autofd sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path + 1, name, (size_t)length);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (sock < 0 || bind(sock, (struct sockaddr *)&address, size) < 0 || listen(sock, 1) < 0) {
        attack_judge(result, ATTACK_UNTRIED, "no socket to attack could be made");
        return;
    }
    INSIDE(range, range->a, NULL, result, "find-sockets", name);
    INSIDE(range, range->a, RANGE_USER, result, "find-sockets", name);
    if (has_caller(sock))
        attack_judge(result, ATTACK_OPEN, "a socket of the host was reached");
}

/* The first address of the machine that is not loopback; false when it has none. */
static bool own_address(char *text, size_t size)
{
    struct ifaddrs *list = NULL;
    text[0] = '\0';
    if (getifaddrs(&list) < 0)
        return false;
    for (struct ifaddrs *at = list; at && !*text; at = at->ifa_next) {
        struct sockaddr_in *address = (struct sockaddr_in *)(void *)at->ifa_addr;
        if (address && address->sin_family == AF_INET &&
            (ntohl(address->sin_addr.s_addr) >> 24) != 127)
            (void)inet_ntop(AF_INET, &address->sin_addr, text, (socklen_t)size);
    }
    freeifaddrs(list);
    return *text;
}

ROW(run_host_network)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char port[16], host[64];
    autofd sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sock < 0 || bind(sock, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(sock, 8) < 0 || getsockname(sock, (struct sockaddr *)&address, &length) < 0) {
        attack_judge(result, ATTACK_UNTRIED, "no listener to attack could be made");
        return;
    }
    (void)snprintf(port, sizeof port, "%u", ntohs(address.sin_port));
    if (own_address(host, sizeof host))
        INSIDE(range, range->a, NULL, result, "network-off", port, host);
    INSIDE(range, range->a, RANGE_USER, result, "network-off", port);
    if (has_caller(sock))
        attack_judge(result, ATTACK_OPEN, "a listener of the host was reached");
}

/* Paths and names that a box has no business to know. */
ROW(run_host_paths)
{
    struct utsname host = {0};
    (void)uname(&host);
    const char *name = strlen(host.nodename) > 3 && strcmp(host.nodename, "(none)") != 0
                           ? host.nodename
                           : range->place;
    INSIDE(range, range->a, NULL, result, "host-paths", range->data_dir, range->place, name);
    INSIDE(range, range->a, RANGE_USER, result, "host-paths", range->data_dir, range->place, name);
}

static void check_canary(struct range *range, struct attack_result *result)
{
    char text[64] = "";
    autofile file = fopen(range->canary, "re");
    if (!file || !fgets(text, sizeof text, file) || strcmp(text, RANGE_CANARY) != 0)
        attack_judge(result, ATTACK_OPEN, "a file of the host was changed");
}

ROW(run_path_escape)
{
    INSIDE(range, range->a, NULL, result, "path-escape", RANGE_CANARY, range->canary);
    INSIDE(range, range->a, RANGE_USER, result, "path-escape", RANGE_CANARY, range->canary);
    check_canary(range, result);
}

static int on_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    return strcmp(path + at->base, SETUID_NAME) == 0 ? 3 : 0;
}

/* Is the file found below the data directory by an ordinary user of the host? */
static bool is_found_outside(const char *dir)
{
    int status = 0;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
            _exit(2);
        _exit(nftw(dir, on_entry, 16, FTW_PHYS) == 3 ? 3 : 0);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

/* CVE-2021-41091: what guests make must not be run by who has an account on the machine. */
ROW(run_host_users)
{
    INSIDE(range, range->a, NULL, result, "plant-setuid", "/tmp/" SETUID_NAME);
    if (is_found_outside(range->data_dir))
        attack_judge(result, ATTACK_OPEN, "users of this machine find files of sandboxes below %s",
                     range->data_dir);
}
