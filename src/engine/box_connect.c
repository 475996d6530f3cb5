/* SPDX-License-Identifier: Apache-2.0 */
/* Connections into a box: sockets that are made in its network namespace by a thread that is there for a moment. */
#include "engine/launch.h"

#include "base/fd.h"
#include "engine/gateway.h"
#include "engine/gateway_wire.h"
#include "engine/pid_one.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define RESOLVER_PORT 53
#define BACKLOG 16
#define NO_NETWORK "the sandbox has no network; set one with 'burrow network policy'"
#define HOME "/proc/thread-self/ns/net"
#define TRIES 1000 // to come back: the kernel may be out of memory for a moment

int box_open_network(struct box *box, int *out, struct error *err)
{
    char path[40];
    pid_t init = 0;

    if (pid_one_find(box, &init, err) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/net", (int)init);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (!pid_one_lives(box))
        return error_set(err, ERROR_GONE, "the sandbox has ended");
    if (fd < 0)
        return error_sys(err, "open %s", path);
    *out = take_fd(fd);
    return 0;
}

static void come_home(int home)
{
    for (int i = 0; setns(home, CLONE_NEWNET) < 0; i++) {
        if (i == TRIES)
            abort(); // what this thread opened next would be in a guest's network
        (void)sched_yield();
    }
}

static int start(const struct sockaddr *address, socklen_t length)
{
    int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int code = connect(fd, address, length) == 0 ? 0 : errno;
    // Within one machine the answer is there as soon as the call returns.
    socklen_t size = sizeof code;
    if (code == EINPROGRESS)
        (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
    if (code == 0)
        return fd;
    (void)close(fd);
    return -code;
}

/* A descriptor, or an errno below 0. Servers that name no address are at one of the two. */
static int connect_here(uint16_t port)
{
    const struct sockaddr_in four = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = start((const struct sockaddr *)&four, sizeof four);

    if (fd != -ECONNREFUSED)
        return fd;
    fd = start((const struct sockaddr *)&six, sizeof six);
    return fd >= 0 ? fd : -ECONNREFUSED;
}

/* Goes into the box's network for a moment and connects there by `make`, which gives a descriptor or an errno below 0. */
static int connect_inside(struct box *box, int (*make)(const void *to), const void *to, int *out,
                          struct error *err)
{
    autofd home = open(HOME, O_RDONLY | O_CLOEXEC);
    autofd there = -1;

    if (home < 0)
        return error_sys(err, "open " HOME);
    if (box_open_network(box, &there, err) < 0)
        return -1;
    if (setns(there, CLONE_NEWNET) < 0)
        return error_sys(err, "enter a sandbox's network");
    int fd = make(to);
    come_home(home);
    if (fd == -ECONNREFUSED)
        return BOX_NOBODY_LISTENS;
    if (fd < 0)
        return error_sys_code(err, -fd, "connect to a sandbox");
    *out = fd;
    return 0;
}

static int connect_port(const void *to)
{
    return connect_here(*(const uint16_t *)to);
}

int box_connect(struct box *box, uint16_t port, int *out, struct error *err)
{
    return connect_inside(box, connect_port, &port, out, err);
}

static int connect_address(const void *to)
{
    const struct sockaddr *address = to;

    return start(address, address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                         : sizeof(struct sockaddr_in));
}

int box_connect_address(struct box *box, const struct sockaddr *address, int *out,
                        struct error *err)
{
    return connect_inside(box, connect_address, address, out, err);
}

static int connect_resolver(const void *to)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, to, sizeof(struct sockaddr_in)) == 0)
        return fd;
    int code = errno;
    (void)close(fd);
    return -code;
}

/* An adopted box may have no network although it is not known here: then the gateway is not there, or there is no way to it. */
int box_open_resolver(struct box *box, int *out, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(RESOLVER_PORT)};
    struct gateway *gateway = NULL;
    autoptr(gateway) found = NULL;
    struct error ignored = {0};

    if (box->has_network)
        gateway = engine_keep_gateway(box->engine, NULL);
    if (box->has_network && !gateway && gateway_find(box->engine->data_dir, &found, &ignored) == 0)
        gateway = found;
    if (!gateway)
        return error_refuse(err, ERROR_STATE, "network", NO_NETWORK);
    address.sin_addr.s_addr = htonl(gateway_address(gateway));
    if (connect_inside(box, connect_resolver, &address, out, err) == 0)
        return 0;
    if (err->sys == ENETUNREACH)
        return error_refuse(err, ERROR_STATE, "network", NO_NETWORK);
    return -1;
}

static int listen_here(const void *to)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, to, sizeof(struct sockaddr_in)) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int code = errno;
    (void)close(fd);
    return -code;
}

int box_listen(struct box *box, uint16_t *port, int *out, struct error *err)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = -1;

    if (connect_inside(box, listen_here, &address, &fd, err) < 0)
        return err->sys == EADDRINUSE
                   ? error_refuse(err, ERROR_CONFLICT, "port",
                                  "somebody in the sandbox listens on port %u already", *port)
                   : -1;
    (void)getsockname(fd, (struct sockaddr *)&address, &length);
    *port = ntohs(address.sin_port);
    *out = fd;
    return 0;
}

static int make_local(const void *unused)
{
    (void)unused;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

int box_make_local(struct box *box, int *out, struct error *err)
{
    return connect_inside(box, make_local, NULL, out, err);
}

static int connect_name(const void *to)
{
    int fd = start(to, sizeof(struct sockaddr_un));

    return fd == -EAGAIN ? -ECONNREFUSED : fd; // its queue is full: not now
}

int box_connect_name(struct box *box, const char *name, int *out, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
    return connect_inside(box, connect_name, &address, out, err);
}

#define INSIDE "eth0"

static int open_version_six(const void *unused)
{
    (void)unused;
    int fd = open("/proc/sys/net/ipv6/conf/" INSIDE "/disable_ipv6", O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int box_join_network(struct box *box, uint32_t *resolver, struct error *err)
{
    struct gateway *gateway = NULL;
    struct error ignored = {0};
    autofd network = -1;
    autofd setting = -1;
    uint32_t index = 0;

    if (engine_gateway(box->engine, &gateway, err) < 0 ||
        box_open_network(box, &network, err) < 0 || gateway_dismiss(gateway, box->slot, err) < 0)
        return -1;
    (void)wire_remove(network, INSIDE);
    box->has_network = true;
    if (gateway_wire(gateway, network, &index, err) < 0)
        return -1;
    // The gateway speaks version 4 alone; where there is no other, there is nothing to turn off.
    if (connect_inside(box, open_version_six, NULL, &setting, &ignored) == 0)
        (void)fd_write_all(setting, "1", 1);
    if (gateway_claim(gateway, network, index, box->slot, err) < 0) {
        (void)wire_remove(network, INSIDE);
        return -1;
    }
    *resolver = gateway_address(gateway);
    return 0;
}
