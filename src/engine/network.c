/* SPDX-License-Identifier: Apache-2.0 */
/* Makes network namespaces; see network.h. */
#include "engine/network.h"

#include "base/auto.h"
#include "base/fd.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int raise_loopback(struct error *err)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    autofd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return error_sys(err, "open a socket");
    if (ioctl(sock, SIOCSIFFLAGS, &request) < 0)
        return error_sys(err, "raise the loopback interface");
    return 0;
}

/* What root in a box cannot do for lack of capabilities over this namespace, everybody in it may. */
static int open_up(struct error *err)
{
    if (fd_write_knob(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", err) < 0)
        return -1;
    struct error ignored = {0};
    (void)fd_write_knob(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", "0 2147483647", &ignored);
    return 0;
}

int network_create(int *out, struct error *err)
{
    autofd own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (own < 0)
        return error_sys(err, "open our network namespace");
    if (unshare(CLONE_NEWNET) < 0)
        return error_sys(err, "make a network namespace");
    autofd made = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int result = made < 0 ? error_sys(err, "open the network namespace") : 0;
    if (result == 0 && (raise_loopback(err) < 0 || open_up(err) < 0))
        result = -1;
    if (setns(own, CLONE_NEWNET) < 0)
        return error_sys(err, "return to our network namespace");
    if (result == 0)
        *out = take_fd(made);
    return result;
}
